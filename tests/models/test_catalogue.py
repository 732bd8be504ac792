"""The built-in catalogue: every entry is counted to the parameter, and every name is found."""

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.models import Architecture, catalogue, catalogue_ids, describe, resolve

ENTRIES = list(catalogue.entries())
LINEARS = [json.loads(line) for line in Path(__file__).with_name("linears.jsonl").read_text().splitlines()]
TOWERS = ("vision", "audio", "projector")


def counted(entry: dict[str, Any]) -> Architecture:
    return describe(entry["config"], entry["id"], "built-in catalogue")


def towers(model: Architecture) -> dict[str, int]:
    found = {kind: model.by_kind[kind] for kind in TOWERS if model.by_kind.get(kind)}
    return {**found, "text": model.parameters - sum(found.values())}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_count_is_exact(entry: dict[str, Any]) -> None:
    model = counted(entry)

    assert model.parameters == entry["parameters"]
    assert model.by_kind.get("experts", 0) == entry.get("experts", 0)
    assert towers(model) == entry.get("towers", {"text": entry["parameters"]})


@pytest.mark.parametrize("expected", LINEARS, ids=lambda expected: expected["id"])
def test_linears_and_experts_have_the_names_and_shapes_of_transformers(expected: dict[str, Any]) -> None:
    entry = catalogue.lookup(expected["id"])
    assert entry is not None
    model = counted(entry)

    linears: dict[str, list[list[int]]] = {}
    for tensor in model.tensors:
        if tensor.linear and not is_jamba_router(tensor.module):
            linears.setdefault(tensor.module, []).append([*reversed(tensor.shape), tensor.count])
    experts = {t.name: [list(t.shape), t.count] for t in model.tensors if t.kind == "experts"}

    assert {name: sorted(sizes) for name, sizes in linears.items()} == {
        name: sorted(sizes) for name, sizes in expected["linears"].items()
    }
    assert {name: size for name, size in experts.items() if not name.endswith("bias")} == {
        name: size for name, size in expected.get("experts", {}).items() if not name.endswith("bias")
    }


def is_jamba_router(module: str) -> bool:
    """A linear layer in transformers 5.16, which the package counts by, and no longer one in 5.23."""
    return module.endswith("feed_forward.router") and "language_model" not in module


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_blocks_hold_the_parameters_of_all_layers(entry: dict[str, Any]) -> None:
    model = counted(entry)
    stacks = (".layers.*.", ".h.*.", ".blocks.*.")
    inside = sum(
        tensor.elements
        for tensor in model.tensors
        if tensor.kind not in TOWERS and any(stack in tensor.name for stack in stacks)
    )

    assert sum(block.count * block.parameters for block in model.blocks) == inside
    assert model.layers > 0


def test_every_name_leads_to_its_own_entry() -> None:
    for entry in ENTRIES:
        for name in catalogue.names(entry):
            found = catalogue.lookup(name)
            assert found is not None and found["id"] == entry["id"], name


def test_no_name_stands_twice() -> None:
    names = catalogue_ids()

    assert len(names) == len(set(names)) > 900


def test_case_is_ignored_when_nothing_matches_exactly() -> None:
    entry = catalogue.lookup("META-LLAMA/llama-3.1-8b")

    assert entry is not None and entry["id"] == "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8", "Llama-3.1-8B", "vocab_size", "LlamaForCausalLM", "", '"'])
def test_part_of_a_line_is_no_name(name: str) -> None:
    assert catalogue.lookup(name) is None


def test_file_stays_small() -> None:
    assert len(catalogue.catalogue()) < 200_000


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("Qwen/Qwen2.5-7B", 131072),
        ("Qwen/Qwen2.5-7B-Instruct", 32768),
        ("qwen/qwen2.5-7b-instruct", 32768),
        ("unsloth/Qwen2.5-72B-Instruct-bnb-4bit", 32768),
        ("/models/Qwen2.5-14B-Instruct", 32768),
        ("Qwen/Qwen2.5-Coder-32B", 32768),
    ],
)
def test_ids_of_one_architecture_may_differ_in_their_positions(name: str, positions: int):
    assert resolve(name).max_position_embeddings == positions
