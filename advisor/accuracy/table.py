"""The accuracy table: by group, over all, and what a user would use instead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from advisor.accuracy.published import Judged
from advisor.units import GIB

Estimator = Callable[[Judged], float | None]
LEAST_RUNS = 3
"""A smaller group is listed and not judged."""


@dataclass(frozen=True, eq=False)
class Row:
    """Errors of one group, as fractions of what was measured."""

    name: str
    runs: int
    median: float
    worst: float
    bias: float


def rows(cases: Sequence[Judged]) -> list[Row]:
    """One row a group, in the table's order."""
    groups: dict[str, list[float]] = {}
    for case in cases:
        if case.case.counts:
            groups.setdefault(case.case.group, []).append(case.error)
    return [row(name, errors) for name, errors in groups.items()]


def row(name: str, errors: Sequence[float]) -> Row:
    """Median and worst error without sign, and the bias with it."""
    sizes = [abs(error) for error in errors]
    return Row(name, len(errors), median(sizes), max(sizes), mean(errors))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def text(cases: Sequence[Judged]) -> str:
    """The whole report."""
    counted = [case for case in cases if case.case.counts]
    lines = [f"{'group':<52}{'runs':>5}{'median':>9}{'worst':>9}{'bias':>9}"]
    lines += [written(one, "" if one.runs >= LEAST_RUNS else "  not judged") for one in rows(cases)]
    lines += ["", f"{'all runs, allocated peak':<40}{'runs':>5}{'median':>9}{'90 %':>9}{'bias':>9}"]
    lines += [compared(name, counted, estimator) for name, estimator in ESTIMATORS.items()]
    return "\n".join([*lines, "", *out_of_memory(cases), "", *held(cases), "", *MISSING])


def written(one: Row, remark: str) -> str:
    """A line of the table."""
    return f"{one.name:<52}{one.runs:>5}{one.median:>9.1%}{one.worst:>9.1%}{one.bias:>+9.1%}{remark}"


def compared(name: str, cases: Sequence[Judged], estimator: Estimator) -> str:
    """How another estimator does on the runs of which it says anything."""
    errors: list[float] = []
    for case in cases:
        said = estimator(case)
        if said is not None and case.case.allocated_gib:
            errors.append(said / GIB / case.case.allocated_gib - 1)
    sizes = [abs(error) for error in errors]
    return f"{name:<40}{len(errors):>5}{median(sizes):>9.1%}{percentile(sizes, 0.9):>9.1%}{mean(errors):>+9.1%}"


def ours(case: Judged) -> float:
    """The advisor's allocated peak."""
    return case.estimate.allocated_peak


def sixteen_bytes(case: Judged) -> float | None:
    """The textbook's 16 bytes a parameter, divided where everything is sharded."""
    assert case.run.model is not None
    sharded = case.run.fsdp is not None or case.run.zero_stage == 3
    return 16 * case.run.model.parameters / (case.run.shard_size if sharded else 1)


def accelerate_estimate(case: Judged) -> float | None:
    """accelerate estimate-memory, "Training using Adam" in half precision: 4 times the weights."""
    assert case.run.model is not None
    return 8 * case.run.model.parameters


def deepspeed_estimate(case: Judged) -> float | None:
    """DeepSpeed's estimate_zero2/3_model_states_mem_needs (stage_1_and_2.py:4017, stage3.py:4016@0.19.8)."""
    zero, model = case.run.zero, case.run.model
    assert model is not None
    if zero is None or zero.stage < 2:
        return None
    share = case.run.world_size
    offloaded = zero.offload_optimizer != "gpu"
    if zero.stage == 2:
        return 2 * model.parameters + (0 if offloaded else 18 * model.parameters / share)
    largest = 4 * model.largest_tensor
    return largest + (2 if offloaded else 18) * model.parameters / share


ESTIMATORS: dict[str, Estimator] = {
    "advisor": ours,
    "DeepSpeed's estimate_zero2/3": deepspeed_estimate,
    "accelerate estimate-memory": accelerate_estimate,
    "16 bytes a parameter": sixteen_bytes,
}
MISSING = (
    "Not among the evidence: FSDP2, DeepSpeed full fine-tunes in bf16, anything on transformers 5.",
    "Sources: gpjt/fine-tune-2024-04, foundation-model-stack/fms-acceleration, linkedin/Liger-Kernel,",
    "huggingface/peft.",
)


def out_of_memory(cases: Sequence[Judged]) -> list[str]:
    """Verdicts on runs that failed, and on those that succeeded."""
    failed = [case for case in cases if case.case.out_of_memory]
    passed = [case for case in cases if not case.case.out_of_memory]
    sure = [case for case in failed if case.case.confidence == "high"]
    said = sum(case.estimate.verdict != "fits" for case in failed)
    surely = sum(case.estimate.verdict != "fits" for case in sure)
    wrong = sum(case.estimate.verdict == "does-not-fit" for case in passed)
    return [
        f"out of memory: {said} of {len(failed)} runs foreseen, {surely} of {len(sure)} of those that are certain",
        f"runs that went through and are called does-not-fit: {wrong} of {len(passed)}",
    ]


def held(cases: Sequence[Judged]) -> list[str]:
    """How often the reserved range holds what was reserved."""
    known = [(case, case.reserved_gib) for case in cases if not case.case.out_of_memory]
    inside = [
        case.estimate.reserved_peak.low <= reserved * GIB <= case.estimate.reserved_peak.high
        for case, reserved in known
        if reserved is not None
    ]
    return [f"reserved range holds the measured figure: {sum(inside)} of {len(inside)} runs"]
