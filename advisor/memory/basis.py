"""How well an estimate is founded: what of it is compared with the real modules, and what is not."""

from collections.abc import Iterator
from typing import Literal

from advisor.memory.ledger import Estimate
from advisor.memory.optimizer_states import effective_optimizer
from advisor.memory.towers import images_of
from advisor.memory.uncounted import Uncounted
from advisor.models import Architecture
from advisor.models.compared import is_compared
from advisor.record import record
from advisor.run import Run

Kind = Literal["exact", "traced", "approximate"]
TRACE = "`--trace` asks the installed transformers"
MEASURE = "measure a short run"


@record
class Part:
    """Something that is only approximate, and what can be done about it."""

    what: str
    remedy: str = ""


@record
class Basis:
    """``exact``: an oracle compares this family's layers with the modules; ``traced``: they were traced here."""

    kind: Kind
    parts: tuple[Part, ...] = ()
    ranges: Literal["published", "replay"] = "published"


def basis_of(run: Run, model: Architecture, found: Estimate) -> Basis:
    """The basis of a run's estimate."""
    parts = tuple(parts_of(run, model, found.uncounted))
    if parts:
        return Basis("approximate", parts, found.ranges)
    return Basis("traced" if model.trace is not None else "exact", (), found.ranges)


def parts_of(run: Run, model: Architecture, uncounted: tuple[Uncounted, ...]) -> Iterator[Part]:
    """What is approximate."""
    if model.trace is None and (why := unsure(model)):
        tried = any(fact.startswith("not traced") for fact in model.extra)
        yield Part(why, MEASURE if tried else TRACE)
    if run.uses_images:
        yield from _parts_of_towers(run, model)
    if effective_optimizer(run).approximate:
        yield Part(f"states of `{run.optimizer}` are read from its description", MEASURE)
    if run.tensor_ranks > 1:
        yield Part(f"activations inside layers that `{run.tensor_ranks_key}` divides are counted whole", MEASURE)
    yield from (Part(fact) for fact in model.extra)
    yield from (Part(f"`{one.key}` is not counted") for one in uncounted)


def _parts_of_towers(run: Run, model: Architecture) -> Iterator[Part]:
    """What of images and sound is not known."""
    known = {tower.kind for tower in model.towers}
    for kind in ("vision", "audio"):
        if kind in model.by_kind and kind not in known:
            yield Part(f"activations of the {kind} tower of `{model.model_type}` are not counted", MEASURE)
    if not known and not {"vision", "audio"} & model.by_kind.keys():
        yield Part(f"what images or sound add to `{model.model_type}` is not counted", MEASURE)
    images = images_of(run)
    if "vision" in known and images.origin != "--images":
        yield Part(f"{images}", "state them: `--images 2x1024x768`")
    if "audio" in known:
        yield Part("one clip of 30 s a row is assumed", MEASURE)


def unsure(model: Architecture) -> str:
    """Why a trace would tell more of a model's layers than the formulas; nothing where they are compared."""
    decoder = model.decoder_type or model.model_type
    if model.approximated:
        return f"token mixers of `{decoder}` are counted by widths"
    if not is_compared(decoder):
        return f"layers of `{decoder}` are not compared with their modules"
    return ""
