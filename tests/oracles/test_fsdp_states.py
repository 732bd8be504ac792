"""FSDP's memory against the real one: two processes train a tiny Llama, and every rank's bytes are read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("axolotl")
pytest.importorskip("transformers")

from advisor.memory import Estimate, estimate
from advisor.memory.fsdp import gathered_units, held_inputs
from advisor.memory.gradients import between_micro_steps, step_gradients
from advisor.memory.model import stored_terms
from advisor.memory.optimizer_states import optimizer_terms
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.models import Architecture
from advisor.opening import open_configs
from advisor.run import Run

from .ranks import differences, each, total, trained_by

pytestmark = pytest.mark.oracle

WORKER = "fsdp_worker"
MODEL: Mapping[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "dtype": "bfloat16",
}
WORKSPACES = 2 * 8_519_680
"""cuBLAS's, which a CPU does without."""
LAYER_INPUT = 3 * 64 * 2
ADAPTER_UNIT = 2 * 4 * 128
"""One matrix of an adapter, which is a unit of its own."""


@dataclass(frozen=True)
class Case:
    """One run on two GPUs."""

    version: int = 2
    rank: int = 0
    checkpoints: str = "none"
    accumulation: int = 1
    reshards: bool = True
    tied: bool = False
    kernels: bool = False
    vocabulary: int = 512

    @property
    def name(self) -> str:
        return differences(self) or "plain"

    @property
    def axolotl(self) -> dict[str, Any]:
        fsdp: dict[str, Any] = {"auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "state_dict_type": "FULL_STATE_DICT"}
        if self.version == 2:
            fsdp["reshard_after_forward"] = self.reshards
        if self.checkpoints == "fsdp":
            fsdp["activation_checkpointing"] = True
        values: dict[str, Any] = {
            "bf16": True,
            "sequence_len": 3,
            "gradient_accumulation_steps": self.accumulation,
            "optimizer": "adamw_torch",
            "fsdp_version": self.version,
            "fsdp_config": fsdp,
        }
        if self.rank:
            values |= {"adapter": "lora", "lora_r": self.rank, "lora_alpha": 8, "lora_target_linear": True}
            values |= dict.fromkeys(("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"), self.kernels)
        if self.checkpoints in {"reentrant", "not reentrant", "around"}:
            reentrant = self.checkpoints != "not reentrant"
            values |= {
                "gradient_checkpointing": True,
                "gradient_checkpointing_kwargs": {"use_reentrant": reentrant},
            }
        return values

    @property
    def stack(self) -> dict[str, str]:
        return {"transformers": "4.52.4"} if self.checkpoints == "around" else {}


FULL_2 = [
    Case(),
    *(Case(checkpoints=kind) for kind in ("reentrant", "not reentrant", "fsdp")),
    Case(accumulation=2),
    Case(accumulation=2, checkpoints="reentrant"),
    Case(reshards=False),
    Case(tied=True),
    Case(tied=True, accumulation=2),
]
LORA_2 = [Case(rank=4, checkpoints=kind, accumulation=steps) for kind in ("none", "reentrant") for steps in (1, 2)]
KERNELS_2 = [
    *(Case(rank=4, kernels=True, checkpoints=kind) for kind in ("none", "reentrant", "not reentrant")),
    Case(rank=4, kernels=True, accumulation=2),
]
FULL_1 = [Case(1), Case(1, accumulation=2), Case(1, tied=True)]
TABLES_1 = [
    Case(1, vocabulary=8192, accumulation=steps, tied=tied) for steps, tied in ((1, False), (2, False), (1, True))
]
"""Models that are mostly tables, so that backward is at its peak when the root unit's gradients are made."""
LORA_1 = [
    *(Case(1, rank=4, checkpoints=kind) for kind in ("none", "reentrant", "not reentrant", "around")),
    Case(1, rank=4, accumulation=2),
]
VERSION_2 = [*FULL_2, *LORA_2, *KERNELS_2]
CASES = [*VERSION_2, *FULL_1, *TABLES_1, *LORA_1]


@dataclass(frozen=True, eq=False)
class Trained:
    """A case, what the advisor knows of it, and what each rank measured."""

    case: Case
    run: Run
    ranks: tuple[Mapping[str, Any], ...]

    @cached_property
    def model(self) -> Architecture:
        assert self.run.model is not None
        return self.run.model

    @cached_property
    def weights(self) -> Weights:
        return weights_of(self.run, self.model)

    @cached_property
    def estimate(self) -> Estimate:
        found = estimate(self.run)
        assert found is not None
        return found

    def counted(self, phase: str) -> int:
        (found,) = [other for other in self.estimate.phases if other.name == phase]
        return found.bytes - (WORKSPACES if phase != "load" else 0)

    def each_rank(self, name: str) -> list[Any]:
        return [rank[name] for rank in self.ranks]


@pytest.fixture
def trained(case: Case, outcomes: Mapping[str, Trained]) -> Trained:
    return outcomes[case.name]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trained]:
    """Every case, trained once."""
    folder = tmp_path_factory.mktemp("fsdp")
    (folder / "config.json").write_text(json.dumps(MODEL))
    ranks = trained_by(WORKER, 2, folder, ({"name": case.name, **vars(case)} for case in CASES))
    return {
        case.name: Trained(case, described(case, folder), tuple(answer[case.name] for answer in ranks))
        for case in CASES
    }


def described(case: Case, folder: Path) -> Run:
    own = folder / f"{'tied' if case.tied else 'untied'}, {case.vocabulary} tokens"
    own.mkdir(exist_ok=True)
    model = {**MODEL, "vocab_size": case.vocabulary, "tie_word_embeddings": case.tied}
    (own / "config.json").write_text(json.dumps(model))
    return open_configs({"base_model": str(own), **case.axolotl}, None, "2x a100-80gb", case.stack).run


@each(CASES)
def test_weights_and_moments_are_shards(trained: Trained) -> None:
    assert trained.each_rank("weights") == [total(stored_terms(trained.run, trained.weights))] * 2
    assert trained.each_rank("moments") == [total(optimizer_terms(trained.run, trained.weights))] * 2


@each(CASES)
def test_gradients_are_whole_until_the_last_micro_step(trained: Trained) -> None:
    last = total(step_gradients(trained.run, trained.weights))
    before = total(between_micro_steps(trained.run, trained.weights))
    expected = [last] if trained.case.accumulation == 1 else [before, last]
    assert trained.each_rank("gradients") == [expected] * 2


@each(VERSION_2)
def test_a_layer_is_still_gathered_when_forward_ends(trained: Trained) -> None:
    counted = total(gathered_units(trained.run, trained.model, "end of forward"))
    assert all(0 <= bytes_ - counted <= ADAPTER_UNIT for bytes_ in trained.each_rank("gathered at head"))


@each(case for case in VERSION_2 if case.reshards)
def test_backward_gathers_the_layer_before(trained: Trained) -> None:
    _, *layers = gathered_units(trained.run, trained.model, "layer")
    assert all(0 <= bytes_ - total(layers) <= ADAPTER_UNIT for bytes_ in trained.each_rank("gathered layers"))


@each(VERSION_2)
def test_axolotl_puts_the_whole_model_on_each_gpu_and_holds_it_while_it_is_cut(trained: Trained) -> None:
    assert max(trained.each_rank("load")) == pytest.approx(trained.counted("load"), rel=0.001)


@each(CASES)
def test_step(trained: Trained) -> None:
    assert max(trained.each_rank("step")) == pytest.approx(trained.counted("optimizer step"), rel=0.001)


@each(CASES)
def test_peak_of_forward_and_backward(trained: Trained) -> None:
    measured = max(trained.each_rank("forward") + trained.each_rank("backward"))
    counted = max(trained.counted("forward and loss"), trained.counted("backward"))
    assert measured == pytest.approx(counted, rel=0.06)


@each(TABLES_1)
def test_the_tables_gradients_are_flattened_when_backward_ends(trained: Trained) -> None:
    assert max(trained.each_rank("backward")) == pytest.approx(trained.counted("backward"), rel=0.001)


@each(LORA_1)
def test_layer_inputs_last_where_checkpoints_are_around_frozen_layers(trained: Trained) -> None:
    held = sum(term.bytes for term in held_inputs(trained.run, trained.model)) // LAYER_INPUT
    assert held == (2 * trained.model.layers if trained.case.checkpoints == "around" else 0)
    # The first layer's input and gradient are there in any case.
    assert all(0 <= found - held <= 2 for found in trained.each_rank("like layer inputs"))
