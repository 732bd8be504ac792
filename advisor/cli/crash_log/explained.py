"""A log, and perhaps the config of the run -> all there is to say of how it died, for screens and for agents."""

from advisor.cli.crash_log.explain import by_message, comparison, of_pieces, on_what_was_free, what_happened, where
from advisor.cli.crash_log.guess import Guess, guess
from advisor.cli.crash_log.next_steps import Advice, advice, first_of_all
from advisor.cli.crash_log.parse import Death, read_death
from advisor.documents import Document
from advisor.engine.finding import Report
from advisor.engine.ways_out import without_gpus
from advisor.errors import InputError
from advisor.hardware import Hardware
from advisor.opening import Context, LoadedRun, open_run
from advisor.record import record, replace
from advisor.report.wording import VERDICT_RULES
from advisor.session import Session, check_loaded


@record
class Dead:
    """What a log tells of a death; ``seen``: the hardware in it, where nobody states it."""

    log: str
    death: Death
    seen: Guess | None

    @property
    def happened(self) -> str:
        """How it died, in a sentence or two."""
        said = what_happened(self.death)
        return f"{said.what} {said.rest}"


@record(eq=False)
class Explained:
    """What is said of a death: what to do first, what usually helps or the plan that does, what else the log tells."""

    told: tuple[str, ...]
    first: str = ""
    advice: Advice | None = None
    """Where no plan can be made."""
    hardware: Hardware | None = None
    """With what was really free."""
    report: Report | None = None
    """The run on that hardware, with its options."""


def dead(text: str, log: str, *, stated: bool) -> Dead:
    """The death that a log tells of; ``stated``: whether the GPUs are. ``InputError`` if it tells of none."""
    try:
        death = read_death(text)
        seen = None if death is None or stated else guess(death, text)
    except InputError as error:
        error.file = log
        raise
    if death is None:
        raise InputError("no out-of-memory error found in the log", log, remedy="give the log with the traceback")
    return Dead(log, death, seen)


def without_config(found: Dead) -> Explained:
    """What usually helps, and what the log tells."""
    guessed = found.seen.lines if found.seen else ()
    told = (where(found.log, found.death), *by_message(found.death), *guessed)
    return Explained(told, first_of_all(found.death), advice(found.death))


def with_config(found: Dead, config: Document, session: Session) -> Explained:
    """The same next to what was foreseen, and the edits that suffice for what was really free."""
    death, seen = found.death, found.seen
    opened = _opened(found, config, session.context)
    guessed = seen.lines if seen and opened.run.hardware is seen.hardware else ()
    told = (where(found.log, death), *comparison(opened.run, death), *by_message(death), *guessed)
    if death.cause != "gpu" or death.too_large:
        return Explained(told, advice=advice(death))
    run, less = on_what_was_free(opened.run, death)
    report = _planned(LoadedRun(run, opened.unknown_model), session)
    return Explained((*told, less), of_pieces(opened.run, death), None, run.hardware, report)


def _opened(found: Dead, config: Document, context: Context) -> LoadedRun:
    """The run that died, on the hardware that is stated, or that the log shows."""
    opened = open_run(config, context)
    if opened.run.hardware is None and found.seen is not None:
        opened = open_run(config, replace(context, hardware=found.seen.hardware))
    if opened.run.hardware is None and found.death.cause == "gpu" and not found.death.too_large:
        raise InputError(
            "no GPUs are stated, and the log shows none", config.file, remedy='state them: --gpus "8x a100-80gb"'
        )
    return opened


def _planned(opened: LoadedRun, session: Session) -> Report | None:
    """With which edits the run fits what was really free: the findings of its plan."""
    hardware = opened.run.hardware
    if hardware is None:
        return None
    # A run that died had started: what else could be said of its config is not asked here.
    given = ("--gpus", hardware.spec, *without_gpus(session.options.given))
    session = replace(session, options=replace(session.options, select=tuple(VERDICT_RULES), given=given))
    report = check_loaded(opened, session, speed=False).report
    kept = tuple(one for one in report.findings if one.step or one.rule in VERDICT_RULES)
    return replace(report, findings=kept)
