"""What ZeRO's offloading keeps in a node's memory, against a real DeepSpeed: one and two processes train a Llama."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deepspeed")
pytest.importorskip("transformers")

from advisor.memory import estimate
from advisor.memory.host_processes import LEAST_OF_A_RANK, MOST_OF_A_RANK, without_processes
from advisor.memory.ledger import HostTerm
from advisor.opening import open_configs
from advisor.run import Run

from .ranks import differences, each, trained_by

pytestmark = pytest.mark.oracle

WORKER = "offloading_host_worker"
# Sizes that two ranks share without padding.
MODEL: Mapping[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 2048,
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
LARGEST = 2048 * 256
"""Elements of the largest tensor, the embeddings."""
UNFROZEN = ("model.layers.[0-9]+.mlp", "lm_head.weight")
# The advisor's terms, and what DeepSpeed holds of each.
PARTS = {
    "master weights and gradients": ("masters", "gradients", "staging", "accumulated"),
    "optimizer states": ("states",),
    "one gradient": ("one gradient",),
    "trained shards": ("trained shards",),
    "frozen shards": ("frozen shards",),
}


@dataclass(frozen=True)
class Case:
    """One run in bf16 whose optimizer steps on the CPU."""

    stage: int
    world: int = 2
    accumulation: int = 1
    trained: str = "all"
    parameters: bool = False
    pinned: bool = False

    @property
    def name(self) -> str:
        return differences(self)

    @property
    def unfrozen(self) -> tuple[str, ...]:
        return UNFROZEN if self.trained == "part" else ()

    @property
    def deepspeed(self) -> dict[str, Any]:
        place = {"device": "cpu", "pin_memory": self.pinned}
        zero: dict[str, Any] = {
            "stage": self.stage,
            "offload_optimizer": place,
            "reduce_bucket_size": 1_000_000,
            "allgather_bucket_size": 1_000_000,
            "stage3_param_persistence_threshold": 0,
            "contiguous_gradients": True,
        }
        return {
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": self.accumulation,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "bf16": {"enabled": True},
            "zero_optimization": zero | ({"offload_param": place} if self.parameters else {}),
        }

    @property
    def axolotl(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "bf16": True,
            "micro_batch_size": 1,
            "gradient_accumulation_steps": self.accumulation,
            "sequence_len": 16,
            "optimizer": "adamw_torch",
        }
        return values | ({"unfrozen_parameters": list(self.unfrozen)} if self.unfrozen else {})


CASES = [
    *(Case(stage, world=world) for stage in (2, 3) for world in (1, 2)),
    *(Case(stage, accumulation=2) for stage in (2, 3)),
    *(Case(stage, pinned=True) for stage in (2, 3)),
    *(Case(3, world=world, parameters=True) for world in (1, 2)),
    Case(3, parameters=True, pinned=True),
    Case(3, parameters=True, trained="part"),
]


@dataclass(frozen=True, eq=False)
class Offloaded:
    """A case, what the advisor counts on its node, and what each rank measured."""

    case: Case
    run: Run
    ranks: tuple[Mapping[str, Any], ...]

    @cached_property
    def terms(self) -> dict[str, HostTerm]:
        found = estimate(self.run)
        assert found is not None
        return {term.name: term for term in without_processes(found.host)}

    def held(self, *parts: str) -> int:
        """Bytes of the parts, on the whole node."""
        return sum(rank["host"][part] for rank in self.ranks for part in parts)

    @property
    def everything(self) -> int:
        return sum(sum(rank["host"].values()) for rank in self.ranks)

    @property
    def shared(self) -> int:
        """Bytes of accumulated gradients of the tensors that a border between ranks cuts, on each but the first."""
        once = self.held("staging")  # both in bf16, and staging is cut where the shards are
        return max(0, self.held("accumulated") - once)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Offloaded]:
    """Every case, trained once."""
    folder = tmp_path_factory.mktemp("offloading")
    (folder / "config.json").write_text(json.dumps(MODEL))
    measured = {world: trained_by(WORKER, world, folder, asked(world)) for world in (1, 2)}
    return {
        case.name: Offloaded(case, described(case, folder), tuple(rank[case.name] for rank in measured[case.world]))
        for case in CASES
    }


def asked(world: int) -> Iterable[dict[str, Any]]:
    cases = (case for case in CASES if case.world == world)
    return ({"name": case.name, "deepspeed": case.deepspeed, "unfrozen": case.unfrozen} for case in cases)


def described(case: Case, folder: Path) -> Run:
    config = {"base_model": str(folder), **case.axolotl}
    return open_configs(config, case.deepspeed, f"{case.world}x a100-80gb", {"deepspeed": "0.18.9"}).run


@pytest.fixture
def found(case: Case, outcomes: Mapping[str, Offloaded]) -> Offloaded:
    return outcomes[case.name]


@each(CASES)
def test_every_part_on_the_host_lies_in_its_range(found: Offloaded) -> None:
    """Pinned blocks are not rounded on a CPU, so what is measured is the range's lower end."""
    assert found.terms.keys() <= PARTS.keys()
    for name, parts in PARTS.items():
        measured = found.held(*parts) - (found.shared if "accumulated" in parts else 0)
        term = found.terms.get(name)
        low, high = (term.least, term.bytes) if term else (0, 0)
        assert low <= measured <= high, f"{name}: measured {measured:,}, counted {low:,} to {high:,}"
        assert measured == low


@each(case for case in CASES if case.stage == 2)
def test_stage_2_keeps_one_gradient_more(found: Offloaded) -> None:
    """A buffer as large as the largest tensor: deepspeed/runtime/zero/stage_1_and_2.py:563-568@0.18.9."""
    assert found.held("one gradient") == 2 * LARGEST * found.case.world


@each([Case(2, accumulation=2)])
def test_stage_2_accumulates_a_tensor_on_each_rank_that_has_a_part_of_it(found: Offloaded) -> None:
    """Whole tensors are accumulated: deepspeed/runtime/zero/stage_1_and_2.py:1380@0.18.9."""
    assert 0 < found.shared <= 2 * LARGEST


@each(case for case in CASES if case.stage == 3)
def test_stage_3_keeps_nothing_else(found: Offloaded) -> None:
    assert found.everything == sum(term.least for term in found.terms.values())


def test_a_process_takes_what_is_counted_before_it_offloads(outcomes: Mapping[str, Offloaded]) -> None:
    """Without CUDA, so near the lower end."""
    (first, *_) = outcomes.values()
    for rank in first.ranks:
        assert LEAST_OF_A_RANK <= rank["before"]["Anonymous"] < MOST_OF_A_RANK
