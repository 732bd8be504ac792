"""What a plan is made of: a run with its memory and its time, a step from one to the next, the plan."""

from functools import cached_property

from advisor.engine.cancellation import end_if_cancelled
from advisor.engine.rule import Rule
from advisor.memory import Estimate, Verdict, estimate, exceeds, host_bytes, lower_bound
from advisor.record import record, replace
from advisor.run import Fsdp, Run, Zero
from advisor.run.edits import RunEdits
from advisor.speed import StepTime, step_time

USUAL_NETWORK = 400e9 / 8
"""Bytes a second of a node: of p4d.24xlarge (https://aws.amazon.com/ec2/instance-types/p4/)."""


@record(eq=False)
class State:
    """A run whose model and hardware are known, with its estimate and the time of its step."""

    run: Run

    @cached_property
    def estimate(self) -> Estimate:
        """The memory."""
        end_if_cancelled()
        found = estimate(self.run)
        assert found is not None, "a plan needs a model and hardware"
        return found

    @cached_property
    def at_least(self) -> int:
        """Bytes below which ``needed`` is not, known before the estimate is."""
        end_if_cancelled()
        return lower_bound(self.run)

    @cached_property
    def is_too_large(self) -> bool:
        """Whether the GPU does not suffice for one phase, known before the estimate is."""
        hardware = self.run.hardware
        return hardware is not None and self.exceeds(hardware.usable)

    def exceeds(self, limit: float) -> bool:
        """Whether more than ``limit`` is needed, known before the estimate is."""
        end_if_cancelled()
        return exceeds(self.run, limit)

    @cached_property
    def host_peak(self) -> int:
        """Bytes of one node's host memory, known before the estimate is."""
        return host_bytes(self.run)

    @cached_property
    def seconds(self) -> float | None:
        """Of one optimizer step, good to compare runs, if need be over a usual network; None where none is modelled."""
        found = step_time(with_network(self.run))
        return found.expected if isinstance(found, StepTime) else None

    @property
    def shown_seconds(self) -> float | None:
        """The same where it does not rest on a guess about the network."""
        found = step_time(self.run)
        return found.expected if isinstance(found, StepTime) else None

    @property
    def needed(self) -> int:
        """Bytes with which the run may just go through, on the GPU that needs most."""
        return self.estimate.needed.low

    @property
    def verdict(self) -> Verdict:
        """Whether it fits."""
        return self.estimate.verdict


@record(eq=False)
class Step:
    """One edit of the plan: the rule, the edits chosen among its alternatives, the state before and after."""

    rule: Rule
    edits: RunEdits
    before: State
    after: State

    @property
    def safe(self) -> bool:
        """Whether the same thing is trained after this step."""
        return trains_the_same(self.rule, self.before.run, self.after.run)


@record(eq=False)
class Plan:
    """The steps that are needed, in order, and where they end."""

    steps: tuple[Step, ...]
    end: State

    @property
    def names(self) -> tuple[str, ...]:
        """The rules of its steps, in order."""
        return tuple(step.rule.id for step in self.steps)

    @property
    def safe(self) -> bool:
        """Whether every step trains the same thing."""
        return all(step.safe for step in self.steps)

    @property
    def verdict(self) -> Verdict:
        """The verdict after all steps."""
        return self.end.verdict

    @property
    def ends_well(self) -> bool:
        """Whether the run goes through then, if only just."""
        return self.verdict in {"fits", "tight"}


def with_network(run: Run) -> Run:
    """The run with a usual network between its nodes, where none is stated."""
    hardware = run.hardware
    if hardware is None or hardware.nodes == 1 or hardware.network_bytes_per_s is not None:
        return run
    return replace(run, hardware=replace(hardware, network_bytes_per_s=USUAL_NETWORK))


def trains_the_same(rule: Rule, before: Run, after: Run) -> bool:
    """Whether a rule's edits leave what is trained as it is, master weights included."""
    return rule.is_safe(before) and not loses_masters(before, after)


def loses_masters(before: Run, after: Run) -> bool:
    """Whether weights that had fp32 masters are trained in half precision alone afterwards."""
    return before.has_masters and not after.has_masters


def resumes(run: Run) -> bool:
    """Whether the run goes on from a checkpoint, which fixes what it was written by."""
    return bool(run.config.get("resume_from_checkpoint") or run.config.get("auto_resume_from_checkpoints"))


def loads_alike(before: Run, after: Run) -> bool:
    """Whether a checkpoint of one run can be loaded by the other: same engine, class of ZeRO, and optimizer.

    DeepSpeed asserts the class of its own optimizer: stages 1 and 2 share one (stage3.py:2766@0.18.9 and its twin).
    """
    return engine_of(before) == engine_of(after) and before.optimizer == after.optimizer


def engine_of(run: Run) -> tuple[str, int]:
    """What shards the run, and the kind of its states."""
    match run.sharding:
        case Zero(stage=stage):
            return "DeepSpeed", 0 if stage == 0 else 2 if stage < 3 else 3
        case Fsdp(version=version):
            return "FSDP", version
        case None:
            return "none", 0
