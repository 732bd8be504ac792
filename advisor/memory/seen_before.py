"""What an earlier run of this machine took that was like this one."""

from advisor.memory.run_kind import kind_of
from advisor.run import Run
from advisor.run.history import MeasuredRun
from advisor.util import number


def family_of(run: Run) -> str:
    """The ``model_type`` of its model."""
    return run.model.model_type if run.model is not None else ""


def parameters_of(run: Run) -> int:
    """The parameters of its model, before adapters."""
    return run.model.parameters if run.model is not None else 0


def seen_before(run: Run) -> MeasuredRun | None:
    """The last run of this machine that was like this one: same model, method, card and number of cards."""
    hardware = run.hardware
    if hardware is None or run.model is None or not run.measured:
        return None
    this = (hardware.gpu.id, run.world_size, kind_of(run), family_of(run), parameters_of(run))
    alike = (one for one in reversed(run.measured) if this == (one.gpu, one.gpus, one.kind, one.family, one.parameters))
    return next(alike, None)


def seen_words(run: Run) -> str:
    """``seen on this machine: 72.4 GiB where 71.0 was foreseen (...)``; empty where nothing was."""
    seen = seen_before(run)
    if seen is None:
        return ""
    alike = "same model, method, card, count"
    return f"seen on this machine: {number(seen.allocated)} GiB where {number(seen.estimated)} was foreseen ({alike})"
