"""The time of a step on the screen: its range, of what it is made, hours and cost of a whole run."""

from advisor.hardware.prices import Price
from advisor.record import record
from advisor.report.style import Style
from advisor.run import Run
from advisor.speed import StepTime, TimeTerm, Unpriced
from advisor.speed.step_time import KINDS
from advisor.util import seconds

BAR_COLUMNS = 20
NUMBER_COLUMNS = 21


@record
class Training:
    """The whole run: what it is, tokens of an epoch, and what a GPU-hour costs."""

    run: Run | None = None
    tokens: float | None = None
    price: Price | None = None


def time_blocks(found: StepTime | Unpriced, run: Run, training: Training, style: Style) -> list[list[str]]:
    """The step with its kinds, then the whole run."""
    if isinstance(found, Unpriced):
        words = f"unknown: {found.reason}" + (f"; {found.remedy}" if found.remedy else "")
        return [style.prose(words, "  time of a step ")]
    return [[*_step_lines(found, style), *_kind_lines(found, style)], run_lines(found, run, training, style)]


def _step_lines(found: StepTime, style: Style) -> list[str]:
    """``  step  2.31 to 3.40 s, likely 2.72; 6,020 tokens a second on each GPU``."""
    words = (
        f"{seconds(found.low)} to {seconds(found.high)} s, likely {seconds(found.expected)};"
        f" {found.tokens_per_second_per_gpu:,.0f} tokens a second on each GPU"
    )
    lines = style.prose(words, "  time of a step ", "strong")
    doubts = f"a rough figure: {', '.join(found.doubts)}" if found.doubts else ""
    return lines + (style.prose(doubts, "  note: ", "note") if doubts else [])


def _kind_lines(found: StepTime, style: Style) -> list[str]:
    """The seconds of each kind, as bars of the whole."""
    block = "█" if style.unicode else "#"
    shares = found.by_kind()
    bars = {kind: block * round(BAR_COLUMNS * shares[kind] / found.expected) for kind in KINDS}
    return [f"  {kind:<13}{seconds(shares[kind]):>8} s  {bars[kind]}".rstrip() for kind in KINDS if shares[kind] > 0]


def run_lines(found: StepTime, run: Run, training: Training, style: Style) -> list[str]:
    """Hours and cost, as far as the number of steps and a price are known."""
    steps = steps_of(run, training.tokens)
    if steps is None or run.hardware is None:
        return []
    hours = [steps * one / 3600 for one in (found.low, found.expected, found.high)]
    gpus = run.hardware.world_size
    words = f"{steps:,.0f} steps: {hours[0]:,.1f} to {hours[2]:,.1f} hours, likely {hours[1]:,.1f}"
    words += f" ({hours[1] * gpus:,.0f} GPU-hours)" if gpus > 1 else ""
    if training.price is not None:
        words += f"; {_cost(hours[0] * gpus, hours[2] * gpus, training.price)}"
    return style.prose(words, "  whole run      ", "strong")


def _cost(least: float, most: float, price: Price) -> str:
    """From and to, at which price, and whence that is: ``28.21 to 41.48 at 0.4 a GPU-hour``."""
    costs = f"{least * price.amount:,.2f} to {most * price.amount:,.2f}"
    if not price.is_shipped:
        return f"{costs} at {price.amount:g} a GPU-hour"
    return f"about {costs} USD at {price.amount:g} a GPU-hour, {price.origin} (--price)"


def steps_of(run: Run, tokens: float | None) -> float | None:
    """Optimizer steps: as ``max_steps`` says, else from the tokens of an epoch; None where neither is known."""
    most = run.config.get("max_steps")
    if isinstance(most, int) and most > 0:
        return most
    if tokens is None:
        return None
    epochs = run.config.get("num_epochs", 1)
    epochs = epochs if isinstance(epochs, (int, float)) and epochs > 0 else 1
    a_step = run.tokens * run.gradient_accumulation_steps * run.world_size / run.tensor_ranks
    return max(1.0, tokens * epochs / a_step)


def time_ledger(found: StepTime | Unpriced | None, style: Style) -> list[list[str]]:
    """Every term of a step, the largest first."""
    if not isinstance(found, StepTime):
        return []
    title = style.paint(f"time of a step: {seconds(found.expected)} s", "strong")
    terms = sorted(found.terms, key=lambda term: -term.seconds)
    return [[title, *(line for term in terms for line in term_lines(term, style))]]


def term_lines(term: TimeTerm, style: Style) -> list[str]:
    """Seconds and name; below them the arithmetic and the source."""
    margin = " " * NUMBER_COLUMNS
    lines = style.prose(f"{term.name} ({term.kind})", f"{term.seconds:>{NUMBER_COLUMNS - 4}.4f} s  ", "strong")
    lines += style.prose(term.formula, margin + "= ")
    return lines + style.prose(term.source, margin, indent=len(margin) + 2)
