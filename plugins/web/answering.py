"""What the page asks of Python, inside the browser: texts in JSON -> markup and patched files in JSON."""

import json
from typing import Any

from advisor.documents import parse
from advisor.engine.cards import all_gpus
from advisor.engine.check import time_of
from advisor.engine.finding import Report
from advisor.engine.fix import fixed
from advisor.errors import InputError
from advisor.hardware.parse import options_of
from advisor.opening import pragma
from advisor.record import replace
from advisor.report.cards import entries, notes_of
from advisor.report.html_markup import folded, plain, prose, tag
from advisor.report.html_memory import ledger, memory
from advisor.report.html_page import cards, findings, time, verdict
from advisor.report.html_plan import plan, room
from advisor.report.offers import offers_of
from advisor.report.time import Training
from advisor.report.wording import remarks
from advisor.session import CheckedRun, RunOptions, Session, check_config_text, text_session
from advisor.util import GIB

CONFIG = "run.yaml"
MODEL = "config.json"
Asked = dict[str, Any]


def gpus() -> str:
    """The cards to choose from: names and titles."""
    return json.dumps([[gpu.id, gpu.title] for gpu in sorted(all_gpus(), key=lambda gpu: gpu.title)])


def quick(request: str) -> str:
    """Verdict, memory and findings, without what takes longer than a key."""
    try:
        asked = json.loads(request)
        _, found = check_loaded(asked, replays=False)
    except InputError as error:
        return json.dumps({"error": unreadable(error), "verdict": "unknown"})
    return json.dumps({**head(found), "stated": chosen(found) if _is_stated(asked) else None})


def comment(config: str) -> str:
    """What a comment ``# advisor: gpus=...`` of the YAML says; empty without one. ``InputError`` for no YAML."""
    if "advisor:" not in config:
        return ""
    said = pragma(parse(config.encode(), CONFIG, "yaml"), "gpus")
    return said.argument if said else ""


def _is_stated(asked: Asked) -> bool:
    """Whether the comment says something that the fields of the page have not taken over."""
    said = comment(asked["config"])
    return bool(said) and said != asked.get("taken")


def chosen(found: CheckedRun) -> dict[str, Any] | None:
    """The GPUs of the comment as the fields of the page have them."""
    hardware = found.run.hardware
    if hardware is None:
        return None
    options = options_of(said := comment(found.run.config.text))[0]
    return {
        "said": said,
        "count": hardware.gpus_per_node,
        "card": hardware.gpu.id,
        "nodes": hardware.nodes,
        "host": round(hardware.host_bytes / GIB) if hardware.host_bytes else "",
        "link": hardware.link or "",
        "net": options.get("net", ""),
    }


def full(request: str) -> str:
    """Plan, time, room and ledger, and the files as the fixes leave them."""
    try:
        _, found = check_loaded(json.loads(request), plans=True)
    except InputError:
        return json.dumps({"html": "", "safe": {}, "all": {}})
    safe, every = patched(found, unsafe=False), patched(found, unsafe=True)
    files = {"safe": safe, "all": every if every != safe else {}}
    return json.dumps({**head(found), "html": rest(found), **files})


def reserved(request: str) -> str:
    """Verdict, memory and findings again, with what torch reserves in a replay of the step."""
    try:
        _, found = check_loaded(json.loads(request), details=True)
    except InputError:
        return json.dumps({})
    return json.dumps(head(found))


def matrix(request: str) -> str:
    """The cards that would do."""
    try:
        session, found = check_loaded(json.loads(request))
        offers = offers_of(found.run, _plans_of(session))
        return json.dumps({"html": cards(entries(offers), list(notes_of(offers)))})
    except InputError:
        return json.dumps({"html": ""})


def _plans_of(session: Session) -> Session:
    """The same, with plans for cards on which the run does not fit."""
    return replace(session, options=replace(session.options, plans=True))


def check_loaded(
    asked: Asked, *, plans: bool = False, replays: bool = True, details: bool = False
) -> tuple[Session, CheckedRun]:
    """The run of the texts on the page. ``InputError`` where they cannot be read."""
    files: dict[str, str] = {name: text for name, text in asked["files"].items() if text.strip()}
    model = MODEL if MODEL in files else None
    gpus = None if _is_stated(asked) else asked["gpus"] or None
    options = RunOptions(gpus=gpus, model_config=model, details=details)
    session = text_session(CONFIG, options, files=files)
    session = replace(session, options=replace(session.options, plans=plans, replays=replays))
    return session, check_config_text(asked["config"], CONFIG, session, speed=plans)


def head(found: CheckedRun) -> dict[str, str]:
    """The verdict, and what stands first."""
    return {"verdict": found.report.verdict, "top": top(found.report)}


def top(report: Report) -> str:
    """What follows each key."""
    about = tag("p", plain("; ".join(part for part in (report.summary, report.hardware) if part)))
    found = report.estimate
    return about + verdict(report) + (memory(found) if found else "") + findings(remarks(report))


def rest(found: CheckedRun) -> str:
    """What waits for a pause."""
    report = found.report
    terms = ledger(report.estimate) if report.estimate else ""
    details = folded("Ledger: every term with its arithmetic and source", terms) if terms else ""
    return plan(report) + time(time_of(found.run), Training()) + room(report) + details


def patched(found: CheckedRun, *, unsafe: bool) -> dict[str, str]:
    """The files as ``--fix`` would leave them."""
    try:
        result = fixed(found.opened, found.options, unsafe=unsafe)
        return {file: content.decode() for file, content in result.files().items()}
    except InputError:
        return {}


def unreadable(error: InputError) -> str:
    """An error as the page shows it."""
    place = f"line {error.line}: " if error.line else ""
    remedy = f"; {error.remedy}" if error.remedy else ""
    return tag("p", prose(place + error.message + remedy), "verdict does-not-fit")
