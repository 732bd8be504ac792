"""How well the estimates hold, as pictures: each published run a point, measured against foreseen."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from advisor.accuracy.judging import judged
from advisor.accuracy.timed import timed
from advisor.accuracy.timing import judged as judged_times
from advisor.util import GIB

SIDE, EDGE = 520, 64
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}circle{fill:#3b76d6;fill-opacity:.55}"
    "path{stroke:#8b949e;fill:none}.even{stroke:#c01f18}"
    "@media(prefers-color-scheme:dark){text{fill:#9aa5b2}circle{fill:#86b4ff}.even{stroke:#ff7b70}}"
)


@dataclass(frozen=True)
class Axes:
    """A square of two equal logarithmic axes."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Pixels from the origin."""
        return (SIDE - 2 * EDGE) * math.log(value / self.low) / math.log(self.high / self.low)

    @property
    def marks(self) -> list[float]:
        """1, 2, 5, 10 and so on, within the axes."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        return [value for value in every if self.low <= value <= self.high]


def files() -> dict[str, str]:
    """The pictures by their names."""
    memory = [(run.allocated / GIB, run.estimated / GIB) for run in judged() if run.case.counts]
    speed = [(run.case.tokens_per_second, run.predicted) for run in judged_times(timed())[0]]
    return {
        "memory.svg": scatter(memory, "allocated peak, GiB", f"{len(memory)} published runs"),
        "speed.svg": scatter(speed, "tokens a second on each GPU", f"{len(speed)} published runs"),
    }


def scatter(points: Sequence[tuple[float, float]], what: str, title: str) -> str:
    """Measured to the right, foreseen upwards; on the line both are equal."""
    values = [value for point in points for value in point]
    axes = Axes(min(values) / 1.2, max(values) * 1.2)
    end = SIDE - EDGE
    dots = "".join(
        f'<circle cx="{EDGE + axes.at(right):.1f}" cy="{end - axes.at(up):.1f}" r="3"/>' for right, up in points
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" width="{SIDE}" role="img">'
        f"<title>{escape(f'{what}: foreseen against measured, {title}')}</title><style>{STYLE}</style>"
        f'<path d="M{EDGE} {EDGE}V{end}H{end}"/><path class="even" d="M{EDGE} {end}L{end} {EDGE}"/>'
        f"{''.join(_marks(axes))}{dots}"
        f'<text x="{SIDE / 2}" y="{SIDE - 12}" text-anchor="middle">measured: {escape(what)}</text>'
        f'<text x="{EDGE}" y="{EDGE - 16}">foreseen; {escape(title)}</text></svg>\n'
    )


def _marks(axes: Axes) -> Iterable[str]:
    """The numbers along both axes."""
    end = SIDE - EDGE
    for value in axes.marks:
        place, word = axes.at(value), f"{value:,.10g}"
        yield f'<text x="{EDGE + place:.1f}" y="{end + 18}" text-anchor="middle">{word}</text>'
        yield f'<text x="{EDGE - 6}" y="{end - place + 4:.1f}" text-anchor="end">{word}</text>'
