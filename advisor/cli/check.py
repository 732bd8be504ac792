"""``advisor check``: 0 clean or all fixed, 1 findings, 2 could not run."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.cli.inputs import nothing, opened_runs, opening, tell
from advisor.cli.options import CheckOptions
from advisor.cli.output import exit_code, say, targets
from advisor.cli.report_spool import ReportSpool
from advisor.cli.seen_here import with_seen
from advisor.engine.finding import Report
from advisor.engine.suppression import said_once
from advisor.errors import InputError
from advisor.opening import LoadedRun
from advisor.progress import shown
from advisor.record import replace
from advisor.session import CheckedRun, Session, check_loaded, session_for
from advisor.session.session import on_a_terminal
from advisor.streams import aside

if TYPE_CHECKING:
    from advisor.cli.against import Base
    from advisor.cli.changed_since import Changed

MOST_WITH_CARDS = 4
"""Cards take a second a config: HTML has them of the first few."""
MOST_REPLAYED = 1
"""A replay takes half a second a config: the first has the reserved range of one, the rest the published range."""


def check_command(paths: Sequence[str], options: CheckOptions) -> int:
    """``advisor check``: 0 clean or all fixed, 1 findings, 2 could not run."""
    session = session_for(paths, replace(options, details=options.details or options.against is not None)).answering
    session = session.with_other_hardware if _is_one_file(paths, session) else session
    validate(paths, options)
    targets(session.formats, options.output)
    changed = changes(paths, options)
    if options.patch:
        from advisor.cli.patch import prompted

        errors, opened = opened_runs(paths, session, changed)
        return prompted(opened, errors, session, options)
    if options.fix or options.diff:
        from advisor.cli.fix import fix_or_diff

        errors, opened = opened_runs(paths, session, changed)
        return fix_or_diff(opened, errors, session, options)
    session = session.with_outlook if _shows_outlook(paths, session, options) else session
    with shown():
        runs = opening(paths, session, changed)
        errors, reports = judged(runs, session, options.against, isolated=options.isolated)
    tell(errors)
    if not errors and not reports:
        aside(nothing(changed))
    say(reports, session, options.output, detail=options.detail)
    return exit_code(reports, errors, session, exit_zero=options.exit_zero)


def _is_one_file(paths: Sequence[str], session: Session) -> bool:
    """Whether a person looks at one file, on a terminal or a page, which is also planned on other hardware."""
    is_page = any(each.partition("=")[0] == "html" for each in session.formats)
    return _names_one(paths) and (is_page or on_a_terminal())


def _names_one(paths: Sequence[str]) -> bool:
    """Whether a call is about one file."""
    return len(paths) == 1 and not os.path.isdir(paths[0])


def _shows_outlook(paths: Sequence[str], session: Session, options: CheckOptions) -> bool:
    """Whether a format says what there is room for, and what the links take: JSON, and the screen of one file."""
    formats = {each.partition("=")[0] for each in session.formats}
    on_screen = options.detail == "verbose" or (options.detail == "normal" and _names_one(paths))
    return "json" in formats or ("full" in formats and on_screen)


def judged(
    runs: Iterable[LoadedRun | InputError], session: Session, against: str | None = None, *, isolated: bool = True
) -> tuple[list[InputError], Sequence[Report]]:
    """The reports of the runs, each let go once it is judged; what is wrong with one keeps none of the others."""
    errors: list[InputError] = []
    report = _reporter(session.formats, against)

    def reports() -> Iterator[Report]:
        for place, run in enumerate(runs):
            try:
                if isinstance(run, InputError):
                    raise run
                asked = session if place < MOST_REPLAYED else session.published_ranges
                found = with_seen(report(check_loaded(run, asked), asked), run.run, isolated=isolated)
            except InputError as error:
                errors.append(error)
            else:
                yield found

    return errors, ReportSpool(said_once(reports()))


def _reporter(formats: Sequence[str], against: str | None) -> Callable[[CheckedRun, Session], Report]:
    """What becomes of a run: its report, with the cards that would do and the comparison, where they are asked for."""
    left = MOST_WITH_CARDS if any(each.partition("=")[0] == "html" for each in formats) else 0
    bases: dict[str, Base] = {}

    def report(found: CheckedRun, session: Session) -> Report:
        nonlocal left
        left -= 1
        asks = session.options.others and found.run.hardware is None
        shown = _with_cards(found, session) if left >= 0 or asks else found.report
        shown = with_timeline(shown, found) if left >= 0 else shown
        return shown if against is None else compare(replace(found, report=shown), session, against, bases)

    return report


def compare(found: CheckedRun, session: Session, against: str, bases: "dict[str, Base]") -> Report:
    """The report next to that of another revision; git is asked once a folder."""
    from advisor.cli.against import base_of, compared

    folder = os.path.dirname(os.path.abspath(found.run.config.file))
    if folder not in bases:
        bases[folder] = base_of(folder, against)
    return compared(found, session, bases[folder])


def _with_cards(found: CheckedRun, session: Session) -> Report:
    """The report with the cards that would do."""
    from advisor.report.cards import caption_of, cheapest_words, entries, notes_of
    from advisor.report.offers import offers_of

    offers = offers_of(found.run, session)
    return replace(
        found.report,
        cards=tuple(entries(offers)),
        cheapest=cheapest_words(offers),
        card_caption=caption_of(offers),
        card_notes=tuple(notes_of(offers)),
    )


def with_timeline(report: Report, found: CheckedRun) -> Report:
    """The report with what is alive when, where a tape has the run."""
    from advisor.allocations.timeline import envelope

    return replace(report, timeline=envelope(found.run))


def changes(paths: Sequence[str], options: CheckOptions) -> "Changed | None":
    """What ``--changed-since`` leaves of the paths; None for all of them."""
    if options.changed_since is None:
        return None
    from advisor.cli.changed_since import changed_since

    return changed_since(options.changed_since, paths)


def validate(paths: Sequence[str], options: CheckOptions) -> None:
    """Options that contradict each other, or the paths."""
    if options.against is not None:
        from advisor.cli.against import validate_against

        validate_against(paths, options)
    if options.patch:
        from advisor.cli.patch import validate_prompt

        validate_prompt(paths, options)
    options.validate_pairs()
