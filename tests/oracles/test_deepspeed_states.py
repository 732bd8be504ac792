"""ZeRO's states against a real DeepSpeed: two and three processes train a tiny Llama, and every rank's bytes are read."""

import itertools
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
from advisor.memory.deepspeed import bucket_terms, flattened_terms, largest_module, live_terms, persistent_terms
from advisor.memory.gradients import between_micro_steps, reduction_terms, zero_gradients
from advisor.memory.ledger import Term
from advisor.memory.model import stored_terms
from advisor.memory.optimizer_states import zero_states, zero_step
from advisor.memory.optimizers import optimizer_named
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.models import Architecture
from advisor.opening import open_configs
from advisor.run import Run
from advisor.speed import link

from .ranks import differences, each, total, trained_by

pytestmark = pytest.mark.oracle

WORKER = "deepspeed_worker"
# Odd sizes, so that every flat group and every shard needs padding.
MODEL: Mapping[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 509,
    "hidden_size": 75,
    "intermediate_size": 131,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "num_key_value_heads": 1,
    "head_dim": 14,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
SCALARS = 200
"""Bytes that norms, overflow flags and step counters may need."""
UNFROZEN = ("model.layers.[0-9]+.mlp", "lm_head.weight")


@dataclass(frozen=True)
class Case:
    """One run: what differs from plain bf16 training on two GPUs."""

    stage: int
    world: int = 2
    accumulation: int = 1
    trained: str = "all"
    bf16: bool = True
    bucket: int = 20_000
    threshold: int = 0
    overlap: bool = False
    offload: bool = False
    fp32_gradients: bool = False
    sub_group: int = 1_000_000_000
    live: int = 10_000
    half_masters: bool = False

    @property
    def name(self) -> str:
        return differences(self)

    @property
    def lora_rank(self) -> int:
        return 4 if self.trained == "adapter" else 0

    @property
    def unfrozen(self) -> tuple[str, ...]:
        return UNFROZEN if self.trained == "part" else ()

    @property
    def deepspeed(self) -> dict[str, Any]:
        zero: dict[str, Any] = {
            "stage": self.stage,
            "reduce_bucket_size": self.bucket,
            "allgather_bucket_size": 20_000,
            "stage3_prefetch_bucket_size": 10_000,
            "stage3_max_live_parameters": self.live,
            "stage3_max_reuse_distance": 0,
            "stage3_param_persistence_threshold": self.threshold,
            "sub_group_size": self.sub_group,
            "overlap_comm": self.overlap,
            "contiguous_gradients": True,
        }
        if self.offload:
            zero["offload_optimizer"] = {"device": "cpu"}
        values: dict[str, Any] = {
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": self.accumulation,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": zero,
        }
        if self.bf16:
            values["bf16"] = {"enabled": True}
        if self.half_masters:
            values["bf16"] |= {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}
        if self.fp32_gradients:
            values["data_types"] = {"grad_accum_dtype": "fp32"}
        return values

    @property
    def axolotl(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "bf16": self.bf16,
            "micro_batch_size": 1,
            "gradient_accumulation_steps": self.accumulation,
            "sequence_len": 16,
            "optimizer": "adamw_torch",
        }
        if self.lora_rank:
            values |= {"adapter": "lora", "lora_r": self.lora_rank, "lora_alpha": 8, "lora_target_linear": True}
        if self.unfrozen:
            values["unfrozen_parameters"] = list(self.unfrozen)
        return values


PLAIN_1 = [Case(1, accumulation=steps) for steps in (1, 2)]
# A bucket that holds every gradient, so that none lies outside it.
OVERLAP_1 = [Case(1, overlap=True, bucket=40_000), Case(1, overlap=True, bucket=40_000, trained="part")]
WHOLE_BUCKET_1 = Case(1, bucket=500_000)
ADAPTER_1 = Case(1, trained="adapter")
EDGES_2 = [
    *(Case(2, accumulation=steps, trained=trained) for steps in (1, 2) for trained in ("all", "part")),
    Case(2, overlap=True),
    Case(2, bf16=False),
    Case(2, fp32_gradients=True),
    Case(2, world=3),
    Case(2, world=3, accumulation=2),
]
ADAPTER_2 = [Case(2, accumulation=steps, trained="adapter") for steps in (1, 2)]
OFFLOAD_2 = Case(2, offload=True)
SHARDED_3 = [
    *(Case(3, accumulation=steps, trained=trained) for steps in (1, 2) for trained in ("all", "part")),
    Case(3, fp32_gradients=True),
    Case(3, world=3),
]
ADAPTER_3 = Case(3, trained="adapter")
SUB_GROUPS_3 = Case(3, sub_group=20_000)
LIVE_3 = [Case(3, live=elements) for elements in (0, 20_000, 60_000)]
PERSISTENT_3 = [
    Case(3, threshold=1_000),
    Case(3, threshold=5_000),
    Case(3, world=3, threshold=1_000),
    Case(3, threshold=1_000, trained="adapter"),
]
ADAPTER_HALF = Case(2, half_masters=True, trained="adapter")
HALF_MASTERS = [
    *(Case(stage, half_masters=True, accumulation=steps) for stage in (1, 2, 3) for steps in (1, 2)),
    Case(2, half_masters=True, world=3),
    ADAPTER_HALF,
    Case(3, half_masters=True, trained="part"),
]
CASES = [
    Case(0),
    *PLAIN_1,
    Case(1, world=3),
    Case(1, overlap=True, accumulation=2),
    Case(1, trained="part"),
    *OVERLAP_1,
    WHOLE_BUCKET_1,
    ADAPTER_1,
    *EDGES_2,
    *ADAPTER_2,
    OFFLOAD_2,
    *SHARDED_3,
    ADAPTER_3,
    SUB_GROUPS_3,
    *LIVE_3,
    *PERSISTENT_3,
    *HALF_MASTERS,
]


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
    def groups(self) -> list[list[int]]:
        """Elements of the trained tensors, by the optimizer's groups, in the order in which they are flattened."""
        return self.ranks[0]["groups"]

    @cached_property
    def sharded_groups(self) -> list[int]:
        """Elements of one rank's part of each group, padding included."""
        n = self.case.world
        if self.case.stage == 3:
            return [sum(-(-numel // n) for numel in group) for group in self.groups]
        return [-(-sum(group) // (2 * n)) * 2 for group in self.groups]

    @property
    def shard(self) -> int:
        return sum(self.sharded_groups)

    @cached_property
    def padding(self) -> int:
        """Elements by which all ranks' shards exceed the trained weights."""
        return self.shard * self.case.world - self.trained

    @property
    def trained(self) -> int:
        return sum(map(sum, self.groups))

    @property
    def half(self) -> int:
        return 2 if self.case.bf16 else 4

    def at(self, moment: str, *, micro_step: int = -1) -> list[int]:
        """Bytes of gradients on each rank at a moment of a micro-step's backward."""
        return [rank["micro_steps"][micro_step][moment] for rank in self.ranks]

    def end_padding(self, rank: int) -> int:
        """Elements of zeros that the last rank's gradients end with."""
        last = rank == self.case.world - 1
        return self.padding if last else 0

    def touched(self, rank: int) -> int:
        """Elements of every tensor, in full, of which a part belongs to this rank's shard of a flat group."""
        total = 0
        for group, size in zip(self.groups, self.sharded_groups, strict=True):
            first, end, at = rank * size, (rank + 1) * size, 0
            for numel in group:
                total += numel if at < end and at + numel > first else 0
                at += numel
        return total

    @cached_property
    def gradients(self) -> int:
        return total(zero_gradients(self.run, self.weights))

    @cached_property
    def states(self) -> tuple[Term, ...]:
        return zero_states(self.run, self.weights, optimizer_named(self.run.optimizer))

    @cached_property
    def step(self) -> int:
        return total(zero_step(self.run, self.weights, optimizer_named(self.run.optimizer)))


def agree(measured: Iterable[int], counted: int, padding: float = 0, roundings: int = 1) -> None:
    """Every rank measured what is counted, and the padding: a term may have lost less than one byte to ``//``."""
    found = list(measured)
    assert all(abs(bytes_ - counted - padding) < roundings for bytes_ in found), (
        f"measured {found}, counted {counted} and {padding:g} of padding"
    )


@pytest.fixture
def trained(case: Case, outcomes: Mapping[str, Trained]) -> Trained:
    return outcomes[case.name]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trained]:
    """Every case, trained once."""
    folder = tmp_path_factory.mktemp("deepspeed")
    (folder / "config.json").write_text(json.dumps(MODEL))
    worlds = sorted({case.world for case in CASES})
    measured = {
        world: trained_by(WORKER, world, folder, (asked(case) for case in CASES if case.world == world))
        for world in worlds
    }
    return {
        case.name: Trained(case, described(case, folder), tuple(answer[case.name] for answer in measured[case.world]))
        for case in CASES
    }


def described(case: Case, folder: Path) -> Run:
    config = {"base_model": str(folder), **case.axolotl}
    return open_configs(config, case.deepspeed, f"{case.world}x a100-80gb", {"deepspeed": "0.18.9"}).run


def asked(case: Case) -> dict[str, Any]:
    return {"name": case.name, "deepspeed": case.deepspeed, "unfrozen": case.unfrozen, "rank": case.lora_rank}


@each(CASES)
def test_the_advisor_counts_the_tensors_that_deepspeed_got(trained: Trained) -> None:
    frozen = trained.ranks[0]["frozen"]
    assert trained.weights.trained_elements == trained.trained
    assert trained.weights.elements == trained.trained + sum(frozen)
    assert trained.weights.largest_trained == max(map(max, trained.groups))


@each(CASES)
def test_padding_is_small(trained: Trained) -> None:
    n = trained.case.world
    if trained.case.stage == 3:
        assert 0 <= trained.padding <= (n - 1) * sum(map(len, trained.groups))
    else:
        assert 0 <= trained.padding < 2 * n * len(trained.groups)


@each(CASES)
def test_weights(trained: Trained) -> None:
    terms = stored_terms(trained.run, trained.weights)
    n = trained.case.world
    padding = 0.0 if trained.case.stage == 0 else float(trained.padding)
    if trained.case.stage == 3:
        frozen = trained.ranks[0]["frozen"]
        padding = (padding + sum(-numel % n for numel in frozen)) / n
    measured = [rank["weights"] for rank in trained.ranks]
    agree(measured, total(terms), trained.half * padding, len(terms))


@each(case for case in CASES if not case.offload)
def test_master_weights_and_moments(trained: Trained) -> None:
    padding = trained.padding / trained.case.world if trained.case.stage else 0
    master, moments = trained.states
    width = 2 if trained.case.half_masters else 4
    agree((rank["master"] for rank in trained.ranks), master.bytes, width * padding)
    agree((rank["moments"] for rank in trained.ranks), moments.bytes, 2 * width * padding)


def test_offloaded_states_leave_the_gpu(outcomes: Mapping[str, Trained]) -> None:
    assert outcomes[OFFLOAD_2.name].states == ()


@each(case for case in CASES if case.stage)
def test_reduce_buckets(trained: Trained) -> None:
    assert {rank["buckets"] for rank in trained.ranks} == {total(bucket_terms(trained.run))}


@each(case for case in CASES if case.stage in {1, 2} and not case.offload)
def test_a_reduction_copies_at_most_a_bucket(trained: Trained) -> None:
    copied = total(flattened_terms(trained.run, trained.weights))
    assert 0 < max(rank["flattened"] for rank in trained.ranks) <= copied


@each(case for case in CASES if case.stage in {1, 2})
def test_stages_1_and_2_free_their_buckets_before_the_step(trained: Trained) -> None:
    assert set(trained.at("buckets left")) == {0}


@each(case for case in CASES if case.accumulation > 1)
def test_only_stage_2_frees_its_buckets_between_micro_steps(trained: Trained) -> None:
    left = 0 if trained.case.stage == 2 else trained.ranks[0]["buckets"]
    assert set(trained.at("buckets left", micro_step=-2)) == {left}


@each([PLAIN_1[0], ADAPTER_1, *ADAPTER_2])
def test_forward_is_without_buckets(trained: Trained) -> None:
    found = estimate(trained.run)
    assert found is not None
    (forward,) = [phase for phase in found.phases if phase.name == "forward and loss"]
    assert not {"reduce buckets", "flattened bucket"} & {term.name for term in forward.terms}


@each([Case(0)])
def test_stage_0_keeps_all_gradients(trained: Trained) -> None:
    agree(trained.at("end"), trained.gradients)


@each([*PLAIN_1, WHOLE_BUCKET_1, ADAPTER_1, Case(1, trained="part"), Case(1, world=3)])
def test_stage_1_has_all_gradients_when_backward_ends(trained: Trained) -> None:
    agree(trained.at("ready"), trained.gradients)


@each(case for case in CASES if case.stage == 1 and case.accumulation > 1)
def test_stage_1_accumulates_all_gradients(trained: Trained) -> None:
    agree(trained.at("end", micro_step=-2), total(between_micro_steps(trained.run, trained.weights)))


@each([*PLAIN_1, Case(1, world=3)])
def test_stage_1_makes_its_shard_next_to_all_gradients(trained: Trained) -> None:
    # The first tensor is larger than the bucket: nothing has moved when the first rank's shard is made.
    assert trained.at("shard made")[0] == trained.half * (trained.trained + trained.touched(0))


@each([*PLAIN_1, Case(1, world=3)])
def test_stage_1_shard_is_counted(trained: Trained) -> None:
    counted, largest = (
        total(reduction_terms(trained.run, trained.weights)),
        trained.half * trained.weights.largest_trained,
    )
    assert 0 <= counted - max(trained.at("shard made")) <= largest


@each([*OVERLAP_1, *EDGES_2, *ADAPTER_2])
def test_a_gradient_shard_is_made_of_whole_tensors(trained: Trained) -> None:
    copies = trained.case.accumulation
    zeros = 4 if trained.case.fp32_gradients else trained.half
    assert trained.at("reduced") == [
        copies * trained.half * trained.touched(rank) + zeros * trained.end_padding(rank)
        for rank in range(trained.case.world)
    ]


@each(ADAPTER_2)
def test_gradient_shard_that_cuts_no_tensor(trained: Trained) -> None:
    agree(trained.at("reduced"), trained.gradients)


@each([*OVERLAP_1, *EDGES_2])
def test_gradient_shard_that_cuts_tensors(trained: Trained) -> None:
    padding = 4 * trained.padding
    assert trained.gradients <= max(trained.at("reduced")) <= trained.gradients + padding


@each(case for case in [*EDGES_2, *ADAPTER_2] if case.accumulation > 1)
def test_stage_2_accumulates_one_shard(trained: Trained) -> None:
    kept = total(between_micro_steps(trained.run, trained.weights))
    agree([kept], trained.gradients // 2)
    shards = [trained.half * trained.touched(rank) for rank in range(trained.case.world)]
    assert trained.at("end", micro_step=-2) == shards


def test_offloaded_gradients_leave_one_tensor_behind(outcomes: Mapping[str, Trained]) -> None:
    trained = outcomes[OFFLOAD_2.name]
    agree(trained.at("end"), trained.gradients)


@each([*SHARDED_3, *PERSISTENT_3, ADAPTER_3, SUB_GROUPS_3])
def test_stage_3_keeps_its_gradient_shard(trained: Trained) -> None:
    width = 4 if trained.case.fp32_gradients else trained.half
    padding = width * trained.padding / trained.case.world
    for micro_step in range(-trained.case.accumulation, 0):
        agree(trained.at("end", micro_step=micro_step), trained.gradients, padding)
    agree([total(between_micro_steps(trained.run, trained.weights))], trained.gradients)


@each(case for case in CASES if case.stage == 3)
def test_persistent_parameters_are_whole_next_to_their_shards(trained: Trained) -> None:
    n, threshold = trained.case.world, trained.case.threshold
    numels = [*itertools.chain(*trained.groups), *trained.ranks[0]["frozen"]]
    small = sorted(numel for numel in numels if numel <= threshold)
    for rank in trained.ranks:
        assert sorted(rank["persistent_numels"]) == small
        assert rank["persistent"] == 2 * sum(-(-numel // n) * n for numel in small)


@each(case for case in CASES if case.stage == 3 and not case.threshold)
def test_no_parameter_is_persistent_below_a_threshold_of_nought(trained: Trained) -> None:
    assert total(persistent_terms(trained.run, trained.model, trained.weights)) == 0


@each(PERSISTENT_3)
def test_persistent_parameters(trained: Trained) -> None:
    n, numels = trained.case.world, trained.ranks[0]["persistent_numels"]
    padding = 2 * sum(-numel % n for numel in numels)
    agree(
        (rank["persistent"] for rank in trained.ranks),
        total(persistent_terms(trained.run, trained.model, trained.weights)),
        padding,
    )


@each(LIVE_3)
def test_live_parameters_are_held_once(trained: Trained) -> None:
    """The advisor counts them twice: a GPU's freed ones await the stream, as a CPU's do not."""
    table, largest = trained.weights.largest_trained, 75 * 131
    for gathered in trained.at("gathered"):
        assert max(table, trained.case.live - largest) <= gathered <= table + trained.case.live + largest
    at_work, *live = live_terms(trained.run, trained.model, head_only=False)
    assert at_work.bytes == trained.half * largest_module(trained.model)
    assert total(live) == trained.half * 2 * trained.case.live


@each([*ADAPTER_2, ADAPTER_1, ADAPTER_HALF])
def test_step_of_stages_1_and_2(trained: Trained) -> None:
    shard = trained.half * trained.trained // trained.case.world
    agree((rank["step"] for rank in trained.ranks), shard + trained.step, roundings=SCALARS)


@each([Case(2), HALF_MASTERS[2]])
def test_the_vectors_gradients_keep_the_shard_while_matrices_are_stepped(trained: Trained) -> None:
    counted = trained.half * max(map(trained.touched, range(2))) + trained.step
    padding = 2 * (2 if trained.case.half_masters else 4) * (trained.padding + trained.sharded_groups[-1])
    assert counted - padding <= max(rank["step"] for rank in trained.ranks) <= counted + padding


@each([*SHARDED_3, ADAPTER_3, SUB_GROUPS_3])
def test_step_of_stage_3_works_on_one_sub_group(trained: Trained) -> None:
    """The flat copy (2 B) is gone once it is cast (4 B); AdamW then needs one temporary (4 B)."""
    width = 4 if trained.case.fp32_gradients else trained.half
    expected = width * trained.shard + 8 * max(trained_pieces(trained))
    agree((rank["step"] for rank in trained.ranks), expected, roundings=SCALARS)


@each([ADAPTER_3, SUB_GROUPS_3])
def test_step_of_stage_3(trained: Trained) -> None:
    agree((rank["step"] for rank in trained.ranks), trained.gradients + trained.step, roundings=SCALARS)


@each(case for case in HALF_MASTERS if case.stage == 3)
def test_half_masters_of_stage_3_need_no_cast(trained: Trained) -> None:
    """The flat copy is the gradient (2 B); AdamW needs one temporary (2 B)."""
    expected = 2 * trained.shard + 4 * max(trained_pieces(trained))
    agree((rank["step"] for rank in trained.ranks), expected, roundings=SCALARS)


def trained_pieces(trained: Trained) -> list[int]:
    """Elements of the sub-groups: whole shards of tensors, until the size is reached."""
    pieces: list[int] = []
    for group in trained.groups:
        shards = [-(-numel // trained.case.world) for numel in group]
        piece = 0
        for shard in shards:
            piece += shard
            if piece >= trained.case.sub_group:
                pieces.append(piece)
                piece = 0
        pieces.append(piece)
    return pieces


@each([ADAPTER_1, ADAPTER_2[1]])
def test_gradients_when_the_step_begins(trained: Trained) -> None:
    found = estimate(trained.run)
    assert found is not None
    (step,) = [phase for phase in found.phases if phase.name == "optimizer step"]
    agree(trained.at("end"), step.parts()["gradients"])


@each([case for case in CASES if case.stage < 3])
def test_what_the_gpus_send(trained: Trained) -> None:
    """Flags and norms come on top."""
    for found, counted in zip(sent(trained), expected(trained), strict=True):
        assert found == pytest.approx(counted, rel=0.001)


@each([case for case in CASES if case.stage == 3])
def test_stage_3_sends_less_by_what_is_still_there(trained: Trained) -> None:
    """Of a model as small as this, some weights of the forward pass are not gathered again."""
    (found, once), (counted, _) = sent(trained), expected(trained)
    whole = trained.case.accumulation == 1 and trained.case.trained == "all" and trained.case.live < 60_000
    assert (0.97 if whole else 0.80) * counted < found + once < 1.01 * counted


def sent(trained: Trained) -> tuple[int, int]:
    """Bytes of the last step's collectives: in its micro-steps, and after them."""
    last = trained.ranks[0]["micro_steps"][-trained.case.accumulation :]
    found = sum(each["sent"] for each in last), sum(each["sent in step"] for each in last)
    # Stages 0 and 1 reduce when the last backward is done.
    return found if trained.case.stage >= 2 else (0, sum(found))


def expected(trained: Trained) -> tuple[float, float]:
    """The same, as the advisor counts them."""
    return trained.case.accumulation * link.micro_step(trained.run, trained.weights, link.UNIT), link.step(
        trained.run, trained.weights, link.UNIT
    )
