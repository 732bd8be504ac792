"""``new`` as a tool: the ways as a small answer, with the files of the one that is taken. Nothing is written."""

from advisor.new import Request, Way, ways
from advisor.new.methods import method_named
from advisor.record import replace
from advisor.report.agent import needs
from advisor.session import RunOptions, session_for
from advisor.session.amounts import parse_tokens
from advisor.session.rule_selection import Tell

from .answers import Answer, rounded
from .asked import inside


def request_for(
    root: str, model: str, data: str | None, method: str, tokens: str | None, hours: float | None, options: RunOptions
) -> Request:
    """What a call asks. ``InputError`` for a file outside of ``root``."""
    return Request(
        model=model,
        data=None if data is None else inside(root, data),
        method=method_named(method),
        tokens=None if tokens is None else parse_tokens(tokens),
        hours=hours,
        options=options,
    )


def answer_for(request: Request, rows_as: str | None, sequence_len: int | None, tell: Tell) -> Answer:
    """The three ways, which is taken and why, and its files by name."""
    request = replace(request, rows_as=rows_as, sequence_len=sequence_len)
    found = ways(request, session_for([request.file], request.options, detects=False, tell=tell))
    chosen = found.chosen
    said: Answer = {"ways": [_way(one) for one in found.ways], "why": found.why}
    if found.start.seen.rows is not None:
        said["data"] = " ".join((found.start.seen.why, *found.start.seen.said))
    if chosen is not None:
        said |= {"taken": chosen.training, "files": dict(chosen.files)}
        said |= {"install": list(chosen.requires)} if chosen.requires else {}
    return said


def _way(one: Way) -> Answer:
    """One way with its figures."""
    said: Answer = {"training": one.training, "fits": one.fits, **(needs(one.estimate) if one.estimate else {})}
    if not one.fits:
        return said | {"why_not": one.why_not}
    speed = None if one.tokens_per_second is None else round(one.tokens_per_second)
    figures = {"tokens_per_second": speed, "hours": rounded(one.hours), "cost": rounded(one.cost)}
    return said | {key: value for key, value in figures.items() if value is not None}
