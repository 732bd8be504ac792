"""The picture of a step: what is alive when, by part, under what torch has reserved; as SVG, and as lines of blocks."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from advisor.allocations.timeline import ALIVE, Alive, Moment, Span, Timeline
from advisor.report.style import Style
from advisor.util import GIB, gib

WIDTH, HEIGHT = 1000, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 70, 96
COLOURS: dict[Alive, str] = {
    "weights": "#4c6a92",
    "optimizer states": "#7a9cc6",
    "gradients": "#e0a458",
    "activations": "#6fa287",
    "loss": "#c8553d",
    "temporaries": "#a58bc4",
    "workspaces": "#bbbbbb",
}
HEIGHTS = " ▁▂▃▄▅▆▇█"
LOAD_COLUMNS = 60
BLOCK_COLUMNS = 40
SHARE = 0.1
"""A part that makes less of the peak than this is not what the peak is about."""


def svg(timeline: Timeline, title: str, usable: int) -> str:
    """The picture; ``usable`` bytes are the card's line."""
    top = 1.06 * max(timeline.reserved, usable if usable < 2 * timeline.reserved else 0)
    frame = Frame(timeline, top)
    body = [*frame.grid(), *frame.areas(), frame.line(), *frame.card(usable), *frame.phases(), *frame.peak()]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui,sans-serif" font-size="12" aria-label="{escape(title)}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        f'<text x="{LEFT}" y="22" font-size="15" font-weight="600">{escape(title)}</text>'
    )
    return "\n".join([head, *body, *frame.legend(), f"{text(LEFT, HEIGHT - 14, told(timeline))}</svg>"]) + "\n"


class Frame:
    """Where moments and bytes lie in the picture."""

    def __init__(self, timeline: Timeline, top: float) -> None:
        self.timeline, self.top = timeline, top
        load, rest = timeline.spans[0], timeline.spans[1:]
        room = WIDTH - LEFT - RIGHT - LOAD_COLUMNS
        columns = sum(len(span.moments) for span in rest)
        self.columns = [LEFT + LOAD_COLUMNS * index / len(load.moments) for index in range(len(load.moments))]
        self.columns += [LEFT + LOAD_COLUMNS + room * index / columns for index in range(columns + 1)]
        self.moments = [moment for span in timeline.spans for moment in span.moments]

    def y(self, bytes_: float) -> float:
        """The height of an amount."""
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - bytes_ / self.top), 1)

    def grid(self) -> list[str]:
        """Lines at round amounts."""
        steps = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
        step = next((one for one in steps if self.top / GIB / one < 7), 500)
        amounts = [step * index for index in range(int(self.top / GIB / step) + 1)]
        return [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(one * GIB)}" y2="{self.y(one * GIB)}" stroke="#eee"/>'
            + text(LEFT - 6, self.y(one * GIB) + 4, f"{one:g} GiB", anchor="end", fill="#555")
            for one in amounts
        ]

    def areas(self) -> list[str]:
        """One area a part, the longest-lived at the bottom."""
        found: list[str] = []
        below = [0] * len(self.moments)
        for index, part in enumerate(ALIVE):
            above = [low + moment.parts[index] for low, moment in zip(below, self.moments, strict=True)]
            if above != below:
                outline = [*self.points(above), *reversed(self.points(below))]
                found.append(f'<path d="{path(outline)}Z" fill="{COLOURS[part]}"><title>{part}</title></path>')
            below = above
        return found

    def points(self, amounts: Sequence[int]) -> list[tuple[float, float]]:
        """Steps of a line: each moment lasts until the next."""
        heights = [self.y(one) for one in amounts]
        found = [(round(self.columns[0], 1), heights[0])]
        for index, (old, new) in enumerate(pairwise(heights), start=1):
            if new != old:
                x = round(self.columns[index], 1)
                found += [(x, old), (x, new)]
        return [*found, (WIDTH - RIGHT, heights[-1])]

    def line(self) -> str:
        """What torch has reserved."""
        steps = path(self.points([moment.reserved for moment in self.moments]))
        x, y = WIDTH - RIGHT - 4, self.y(self.timeline.reserved) - 6
        words = text(x, y, f"reserved {gib(self.timeline.reserved)}", anchor="end")
        return f'<path d="{steps}" fill="none" stroke="#222" stroke-width="1.6"/>{words}'

    def card(self, usable: int) -> list[str]:
        """What is usable of the card, where that is in sight."""
        if usable > self.top:
            return []
        y = self.y(usable)
        return [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#c00" stroke-dasharray="5 4"/>',
            text(LEFT + 4, y - 5, f"usable {gib(usable)}", fill="#c00"),
        ]

    def phases(self) -> list[str]:
        """Names of phases above lines at their ends; narrow ones go without."""
        found: list[str] = []
        start = 0
        for span in self.timeline.spans:
            end = start + len(span.moments)
            left, right = self.columns[start], self.columns[min(end, len(self.columns) - 1)]
            found.append(
                f'<line x1="{right:.1f}" x2="{right:.1f}" y1="{TOP - 8}" y2="{HEIGHT - BOTTOM}" '
                'stroke="#999" stroke-dasharray="2 3"/>'
            )
            if right - left > 7 * len(span.name):
                found.append(text((left + right) / 2, TOP - 14, span.name, anchor="middle", fill="#333"))
            start = end
        return found

    def peak(self) -> list[str]:
        """A mark at the peak."""
        index = max(range(len(self.moments)), key=lambda one: self.moments[one].allocated)
        x, y = round(self.columns[index], 1), self.y(self.moments[index].allocated)
        side, anchor = (x - 8, "end") if x > WIDTH / 2 else (x + 8, "start")
        words = f"peak {gib(self.moments[index].allocated)}"
        return [f'<circle cx="{x}" cy="{y}" r="4" fill="#c00"/>', text(side, y - 6, words, anchor=anchor, fill="#c00")]

    def legend(self) -> list[str]:
        """A square and a word for each part, with its bytes at the peak."""
        peak, found, x = self.timeline.peak[1], list[str](), LEFT
        for part in ALIVE:
            words = f"{part} {gib(peak.of(part))}" if peak.of(part) else part
            if any(moment.of(part) for moment in self.moments):
                found.append(f'<rect x="{x}" y="{HEIGHT - 66}" width="11" height="11" fill="{COLOURS[part]}"/>')
                found.append(text(x + 15, HEIGHT - 56, words))
                x += 30 + int(6.2 * len(words))
        return [
            *found,
            text(LEFT, HEIGHT - 36, "amounts are those at the peak; from left to right: allocations", fill="#555"),
        ]


def path(points: Sequence[tuple[float, float]]) -> str:
    """A line through points."""
    return "M" + " L".join(f"{x:g},{y:g}" for x, y in points)


def text(x: float, y: float, words: str, *, anchor: str = "start", fill: str = "#222") -> str:
    """Words in the picture."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}">{escape(words)}</text>'


def told(timeline: Timeline) -> str:
    """What the peak is about, and what would take something off it."""
    span, moment = timeline.peak
    peak, lead = moment.allocated, f"the peak is in the {span.name}"
    loss, temporaries, kept = (moment.of(part) for part in ("loss", "temporaries", "activations"))
    rest = timeline.without("loss")
    if loss >= SHARE * peak and rest <= (1 - SHARE) * peak:
        return (
            f"the peak is one needle, in the loss: all else stays under {gib(rest)}, "
            f"so a fused loss takes up to {gib(peak - rest)} off it; checkpointing takes off nothing of the loss"
        )
    if span.name == "optimizer step" and temporaries >= SHARE * peak:
        return (
            f"the peak is in the optimizer's step, {gib(temporaries)} of it for a moment: a fused or 8-bit optimizer "
            "takes that off; checkpointing and shorter rows take off nothing"
        )
    if kept >= SHARE * peak and kept >= temporaries:
        return f"{lead}, {gib(kept)} of it kept by the layers: checkpointing, shorter or fewer rows take that off"
    if temporaries >= SHARE * peak:
        return f"{lead}, {gib(temporaries)} of it for a moment: shorter or fewer rows take that off"
    return f"{lead}, and most of it stays: weights, gradients and states"


def blocks(timeline: Timeline, style: Style) -> list[str]:
    """One line of blocks a phase, the highest block the peak; then what the peak is about."""
    top = timeline.peak[1].allocated
    lines = [f"  {'timeline':<18}{'GiB':>7}  each block is a stretch of allocations"]
    for span in timeline.spans:
        row = "".join(height(one, top, style) for one in stretched(span))
        lines.append(f"  {span.name:<18}{span.peak.allocated / GIB:>7.1f}  {row}".rstrip())
    return [*lines, *style.prose(told(timeline), "  ")]


def stretched(span: Span) -> list[Moment]:
    """As many moments as there are columns, each the largest of its stretch."""
    count = min(BLOCK_COLUMNS, len(span.moments))
    bounds = [len(span.moments) * index // count for index in range(count + 1)]
    return [max(span.moments[a:b], key=lambda one: one.allocated) for a, b in pairwise(bounds)]


def height(moment: Moment, top: int, style: Style) -> str:
    """A block as high as a moment's share of the peak."""
    eighths = max(1, round(8 * moment.allocated / top))
    return HEIGHTS[eighths] if style.unicode else str(min(9, eighths))
