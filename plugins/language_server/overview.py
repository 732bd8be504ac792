"""The answer as Markdown, over the model: does it fit, what can be done, what became of each rung, step by step."""

from collections.abc import Iterator

from advisor.engine.answer import Answer, AnswerStep, Option
from advisor.engine.finding import Report
from advisor.report.markdown_text import escaped
from advisor.report.wording import SAFETY, arrow, number, rung_lines

from .diagnostics import for_editors
from .tables import cell


def overview(report: Report, answer: Answer) -> str:
    """All of it, in blocks."""
    said = (answer.headline, for_editors(answer), answer.assumed)
    blocks = ["  \n".join(escaped(words) for words in said if words), *_options(report, answer), *_rungs(answer)]
    option = answer.recommended
    if option is not None and option.steps:
        steps = "\n".join(f"{count}. {_step(step)}" for count, step in enumerate(option.steps, 1))
        blocks.append(f"**{escaped(option.title)}**\n\n{steps}")
    return "\n\n".join(blocks)


def _options(report: Report, answer: Answer) -> Iterator[str]:
    """The ways out next to the run as it is."""
    now = report.estimate
    ways = [option for option in answer.options if option.command is not None]
    if now is None or not ways:
        return
    rows = [_row("as it is", "", now.needed.high, answer.tokens_per_second), *map(_option, ways)]
    yield "\n".join(["| | edits | GiB | tokens/s |", "| --- | ---: | ---: | ---: |", *rows])


def _option(option: Option) -> str:
    """One of them."""
    changes = f", {SAFETY[False]}" if option.training == "changes" and option.title != "changes training" else ""
    needed = option.end.needed.high if option.end is not None else None
    return _row(f"{option.title}{changes}", str(option.changes), needed, option.tokens_per_second)


def _row(name: str, edits: str, needed: int | None, tokens: float | None) -> str:
    """A row of the table; what is not known is left out."""
    memory = "" if needed is None else number(needed)
    return f"| {cell(name)} | {edits} | {memory} | {'' if tokens is None else f'{tokens:,.0f}'} |"


def _rungs(answer: Answer) -> Iterator[str]:
    """What became of each rung of the flowchart."""
    rows = [f"| {cell(name)} | {cell(word)} |" for name, word in rung_lines(answer.rungs)]
    if rows:
        yield "\n".join(["| flowchart | |", "| --- | --- |", *rows])


def _step(step: AnswerStep) -> str:
    """``micro batch 8 -> 1 (44.8 -> 19.8 GiB): Fewer rows at once. *Cost:* A few percent slower.``"""
    memory = f" ({arrow(*map(number, step.memory))} GiB)" if step.memory is not None else ""
    because = f": {escaped(step.because)}" if step.because else ""
    return f"{escaped(step.title)}{memory}{because}" + (f" *Cost:* {escaped(step.cost)}" if step.cost else "")
