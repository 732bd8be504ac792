"""What a step changes next to the memory, in this run's own numbers: compute, traffic, host memory."""

from advisor.engine.states import State
from advisor.memory import Estimate
from advisor.memory.host_processes import without_processes
from advisor.memory.weights import weights_of
from advisor.run import Run
from advisor.speed import StepTime, step_time, traffic
from advisor.speed.step_time import Kind
from advisor.util import gib, seconds

WORTH_SAYING = 0.02
GB = 1e9
TOLD: tuple[tuple[Kind, str], ...] = (("compute", "compute"), ("host", "CPU and PCIe"))


def cost_text(before: State, after: State) -> str:
    """``In this run: 6.1 -> 27.5 GB a step over the links; compute 40.1 -> 52.3 s (+30%).``, as far as that changes."""
    parts = (_traffic_words(before, after), *time_words(before, after), host_words(before, after))
    said = [part for part in parts if part]
    return f"In this run: {'; '.join(said)}." if said else ""


def _traffic_words(before: State, after: State) -> str:
    """Bytes of a step over the links of one GPU."""
    old, new = traffic(before.run), traffic(after.run)
    if not differ(old, new):
        return ""
    return f"{old / GB:,.3g} -> {new / GB:,.3g} GB a step over the links of each GPU"


def time_words(before: State, after: State) -> list[str]:
    """Seconds of compute where the GPU has more, or less, to do."""
    old, new = step_time(before.run), step_time(after.run)
    if not (isinstance(old, StepTime) and isinstance(new, StepTime)):
        return []
    words: list[str] = []
    for kind, name in TOLD:
        was, is_ = old.by_kind()[kind], new.by_kind()[kind]
        if differ(was, is_, of=old.expected):
            share = f" ({is_ / was - 1:+.0%})" if was > WORTH_SAYING * old.expected else ""
            words.append(f"{name} {seconds(was)} -> {seconds(is_)} s{share}")
    return words


def host_words(before: State, after: State) -> str:
    """Host memory of a node, and what that is of a trained parameter."""
    old, new = before.estimate.host_peak, after.estimate.host_peak
    if not differ(old, new):
        return ""
    trained, more = _trained_on_node(after.run), _offloaded(after.estimate) - _offloaded(before.estimate)
    each = f" ({more / trained:.1f} bytes more for each trained parameter)" if trained and more > 0 else ""
    return f"host memory {gib(old)} -> {gib(new)} a node{each}"


def _offloaded(found: Estimate) -> int:
    """Bytes on a host without those of its processes."""
    return sum(term.bytes for term in without_processes(found.host))


def _trained_on_node(run: Run) -> int:
    """Trained parameters of which one node keeps states; 0 for adapters, next to which other things are offloaded."""
    if run.model is None or run.hardware is None or run.adapter is not None:
        return 0
    return weights_of(run, run.model).trained_elements // run.hardware.nodes


def differ(old: float, new: float, of: float | None = None) -> bool:
    """Whether a change is worth a word."""
    return abs(new - old) > WORTH_SAYING * max(old, new, of or 0.0)
