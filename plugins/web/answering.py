"""What the page asks of Python, inside the browser: texts in JSON -> markup and patched files in JSON."""

import json
from collections.abc import Callable
from typing import Any

from advisor.engine.answer import Option
from advisor.engine.answering import answered
from advisor.engine.check import time_of
from advisor.engine.finding import Report
from advisor.engine.fix import fixed
from advisor.errors import InputError
from advisor.hardware import parse_hardware
from advisor.record import replace
from advisor.report.html_answer import before_and_after
from advisor.report.html_markup import plain, prose, tag
from advisor.report.html_memory import ledger, memory
from advisor.report.html_page import findings, time
from advisor.report.html_plan import plan, room
from advisor.report.offers import epochs_of, offers_of
from advisor.report.time import Training
from advisor.report.wording import remarks
from advisor.session import CheckedRun

from .asking import Asked, asked, fields_of, gpus_in, soon, stated, whole
from .showing import about_run, answer_of, banner, cards_table, keyed, options, picture, spec_of

_last: list[tuple[str, CheckedRun]] = []
"""The run that was planned last: what is asked of it next need not plan again."""


def quick(request: str) -> str:
    """Verdict, memory and findings, without what takes longer than a key."""
    question = asked(request)
    try:
        found = soon(question)
        said = stated(question, found)
    except InputError as error:
        return json.dumps({"error": unreadable(error), "verdict": "unknown"})
    more = {"stated": said, "fields": fields_of(found.run), "memory": details(found.report)}
    return json.dumps(head(found, question, looks=True) | more)


def full(request: str) -> str:
    """The options with the files that each writes; plan, time, room and ledger."""
    question = asked(request)
    try:
        found = whole(question)
    except InputError:
        return json.dumps({"options": "", "html": "", "ways": {}})
    _last[:] = [(request, found)]
    return json.dumps(of_options(found, question) | {"html": rest(found)})


def others(request: str) -> str:
    """The options again, with other hardware among them."""
    if not _last or _last[0][0] != request:
        return full(request)
    found, question = _last[0][1], asked(request)
    wider = replace(found.options, others=True, outlook=True)
    report = answered(found.opened, wider, found.report)
    return json.dumps(of_options(replace(found, report=report), question) | {"html": rest(found)})


def reserved(request: str) -> str:
    """Memory and findings again, with what torch reserves in a replay of the step."""
    try:
        return json.dumps({"memory": details(soon(asked(request), details=True).report)})
    except InputError:
        return json.dumps({})


def matrix(request: str) -> str:
    """The cards that would do, by cost."""
    question = asked(request)
    try:
        found, session = soon(question), question.session()
        offers = offers_of(found.run, session, question.tokens / epochs_of(found.run))
        specs = [gpus_in(offer.row.hardware.spec, offer.row.hardware) for offer in offers]
        return json.dumps({"html": cards_table(offers, question.tokens), "cards": specs})
    except InputError:
        return json.dumps({"html": "", "cards": []})


def draft(request: str) -> str:
    """A config of the menus, at once."""
    from . import writing

    return _written(writing.draft, request)


def ways(request: str) -> str:
    """The configs of the menus that fit."""
    from . import writing

    return _written(writing.ways, request)


def _written(write: Callable[[str], dict[str, Any]], request: str) -> str:
    try:
        return json.dumps(write(request))
    except InputError as error:
        return json.dumps({"error": unreadable(error)})


def head(found: CheckedRun, question: Asked, *, looks: bool = False) -> dict[str, Any]:
    """What stands first, and what a picture of it says."""
    report = found.report
    about = tag("p", plain(about_run(report)), "about")
    top = banner(found, question.tokens, looks=looks) + before_and_after(report, answer_of(found)) + about
    return {"verdict": report.verdict, "top": top, "picture": picture(found, question.tokens)}


def of_options(found: CheckedRun, question: Asked) -> dict[str, Any]:
    """The head again, the options, and what each of them does."""
    ways: dict[str, Any] = {}
    for key, option in keyed(answer_of(found)):
        if option.letter == "C":
            ways[key] = {"gpus": gpus_in(spec_of(option), parse_hardware(spec_of(option)))}
        else:
            ways[key] = {"files": patched(found, option)}
    return head(found, question) | {"options": options(found, question.tokens), "ways": ways}


def patched(found: CheckedRun, option: Option) -> dict[str, str]:
    """The files as the command of an option leaves them."""
    options = replace(found.options, faster=option.letter == "F")
    return fixed(found.opened, options, unsafe=option.training == "changes").texts()


def details(report: Report) -> str:
    """Memory and findings."""
    found = report.estimate
    return (memory(found) if found else "") + findings(remarks(report))


def rest(found: CheckedRun) -> str:
    """What waits for a pause."""
    report = found.report
    terms = ledger(report.estimate) if report.estimate else ""
    return plan(report) + time(time_of(found.run), Training()) + room(report) + terms


def unreadable(error: InputError) -> str:
    """An error as the page shows it."""
    place = f"line {error.line}: " if error.line else ""
    # What names an option of the command line is no help here.
    remedy = f"; {error.remedy}" if error.remedy and "--" not in error.remedy else ""
    return tag("p", prose(place + error.message + remedy), "verdict does-not-fit")
