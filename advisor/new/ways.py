"""``ways``: full, LoRA and QLoRA of a model on some GPUs, each with its config, memory, time and cost; which to take.

The one function that every front end calls. Nothing is printed, asked or written.
"""

import os
from collections.abc import Mapping

from advisor.documents.patching import fresh_text
from advisor.engine.finding import Finding, Rung
from advisor.engine.fix import Fixed
from advisor.engine.flowchart_status import offloads, rungs_of
from advisor.engine.options import fit_rules
from advisor.engine.states import Plan, State
from advisor.hardware.prices import Price, Prices
from advisor.learning import Training
from advisor.memory import Estimate
from advisor.new.choosing import recommended
from advisor.new.request import Request
from advisor.new.search import first_run, needs_masters, searched, with_masters
from advisor.new.start import Start, start_of
from advisor.new.telling import config_text
from advisor.record import record, replace
from advisor.run import Run
from advisor.session import Session
from advisor.session.text import check_config_text, text_session
from advisor.speed import StepTime, step_time

KINDS: tuple[Training, ...] = ("full", "lora", "qlora")
TITLES: Mapping[Training, str] = {"full": "full", "lora": "LoRA", "qlora": "QLoRA"}


@record(eq=False, kw_only=True)
class Way:
    """One kind of training. ``files``: texts by path, the config first; none where it does not fit.

    ``why_not``: why it is no way out, empty where it is one. ``seconds``: of an optimizer step. ``hours`` and ``cost``:
    of the whole run, None where its length or a price is not known.
    """

    training: Training
    files: Mapping[str, str]
    estimate: Estimate | None
    seconds: float | None
    hours: float | None
    cost: float | None
    tokens_per_second: float | None
    offloads: bool
    masters: bool
    notes: tuple[Finding, ...] = ()
    requires: tuple[str, ...] = ()
    why_not: str = ""
    recommended: bool = False

    @property
    def title(self) -> str:
        """What people call it."""
        return TITLES[self.training]

    @property
    def fits(self) -> bool:
        """Whether it may be written."""
        return not self.why_not


@record(eq=False, kw_only=True)
class Ways:
    """The three, which to take and why, the flowchart's rungs next to it, and what they stand on."""

    start: Start
    ways: tuple[Way, ...]
    why: str
    rungs: tuple[Rung, ...]
    price: Price | None

    @property
    def chosen(self) -> Way | None:
        """The way to take; None where nothing fits."""
        return next((way for way in self.ways if way.recommended), None)


def ways(request: Request, session: Session | None = None) -> Ways:
    """All ways of a request. ``InputError`` where something must be stated, with the option that states it."""
    start = start_of(request, session)
    price = Prices(request.price).of(start.hardware.gpu.id)
    pairs = [_way(start, training, price) for training in KINDS]
    index, why = recommended(start, [way for way, _ in pairs])
    found = tuple(replace(way, recommended=number == index) for number, (way, _) in enumerate(pairs))
    rungs = _rungs(start, pairs[index][1]) if index is not None else ()
    return Ways(start=start, ways=found, why=why, rungs=rungs, price=price)


def drafted(request: Request, training: Training, session: Session | None = None) -> Mapping[str, str]:
    """The files that the search of one way begins with: they are there at once, and may be too large.

    ``InputError`` as of ``ways``.
    """
    start = start_of(request, session)
    first = first_run(start, training)
    begun = with_masters(first) if needs_masters(start, training, first.run) else first
    return files_of(start, begun.run, training)


def _way(start: Start, training: Training, price: Price | None) -> tuple[Way, Fixed]:
    """One kind, searched, written and checked afresh."""
    found = searched(start, training)
    state = State(found.run)
    time = step_time(found.run)
    seconds = time.expected if isinstance(time, StepTime) else None
    speed = time.tokens * found.run.world_size / time.expected if isinstance(time, StepTime) else None
    hours = start.tokens / speed / 3600 if speed and start.tokens is not None else None
    cost = hours * found.run.world_size * price.amount if hours is not None and price is not None else None
    way = Way(
        training=training,
        files={},
        estimate=state.estimate,
        seconds=seconds,
        hours=hours,
        cost=cost,
        tokens_per_second=speed,
        offloads=offloads(found.run),
        masters=found.run.has_masters,
        requires=tuple(dict.fromkeys(each for done in found.done for each in done.requires)),
    )
    return _checked(start, found, way), found


def _checked(start: Start, found: Fixed, way: Way) -> Way:
    """The way with its files, if a fresh check of them has no word against them."""
    if way.estimate is None or way.estimate.verdict != "fits":
        return replace(way, why_not="does not fit")
    files = files_of(start, found.run, way.training)
    file, text = next(iter(files.items()))
    options = replace(start.session.options, speed=False)
    session = replace(text_session(file, start.request.options, files=_others_of(file, files)), options=options)
    session = replace(session, context=replace(session.context, hardware=start.hardware))
    report = check_config_text(text, file, session, speed=False).report
    against = [finding for finding in report.findings if finding.level != "note"]
    if against or report.verdict != "fits":
        why = against[0].message if against else "does not fit"
        return replace(way, why_not=why)
    late = start.request.hours is not None and (way.hours is None or way.hours > start.request.hours)
    notes = tuple(finding for finding in report.findings if finding.level == "note")
    return replace(
        way, files=files, notes=notes, why_not=f"takes longer than {start.request.hours:g} h" if late else ""
    )


def _others_of(file: str, files: Mapping[str, str]) -> Mapping[str, str]:
    """The other files by names relative to the folder of the config."""
    folder = os.path.dirname(file) or "."
    return {os.path.relpath(name, folder): text for name, text in files.items() if name != file}


def files_of(start: Start, run: Run, training: Training) -> Mapping[str, str]:
    """The config, and the DeepSpeed JSON next to it."""
    values = dict(run.config.values_mapping)
    section, file = run.deepspeed, start.request.file
    others: dict[str, str] = {}
    if section is not None:
        name = f"{os.path.splitext(file)[0]}.deepspeed.json"
        values["deepspeed"] = name
        others[name] = fresh_text("json", dict(section))
    return {file: config_text(start, run, values, training), **others}


def _rungs(start: Start, found: Fixed) -> tuple[Rung, ...]:
    """The flowchart next to the way that is taken, from a full fine-tune on."""
    whole = State(first_run(start, "full").run)
    return rungs_of(whole, Plan((), State(found.run)), fit_rules(start.session.options))
