"""Memory over a step as envelopes: a column a phase, each part on top of those that live longer."""

from collections.abc import Iterator

from advisor.allocations.timeline import ALIVE, Alive, Span, Timeline
from advisor.report.html_markup import legend, plain, table, tag
from advisor.report.timeline import told
from advisor.report.wording import number
from advisor.util import GIB, capital

ROLES: dict[Alive, str] = {
    "weights": "weights",
    "optimizer states": "optimizer",
    "gradients": "gradients",
    "activations": "activations",
    "loss": "loss",
    "temporaries": "overhead",
    "workspaces": "rest",
}
TALL = 200
"""Units of height."""
LEAST = GIB // 20
"""A part of the peak that is less has no place in the legend."""
FAR = 2
"""A card's line so many times above what is reserved is out of the picture."""


def over_time(timeline: Timeline | None, usable: int) -> str:
    """The picture with the peak of each phase in numbers; nothing without a timeline."""
    if timeline is None:
        return ""
    is_near = usable < FAR * timeline.reserved
    top = max(timeline.reserved, usable if is_near else 0) * 1.03
    pictures = [_picture(span, top, usable) for span in timeline.spans]
    peaks = [number(span.peak.allocated) for span in timeline.spans]
    heads = ("Phase", *(plain(span.name) for span in timeline.spans))
    caption = (
        f"GiB allocated, each phase where it is highest, replayed through torch's allocator; top: {number(int(top))}"
    )
    peak = timeline.peak[1]
    parts = [(ROLES[part], f"{part} {number(peak.of(part))}") for part in ALIVE if peak.of(part) >= LEAST]
    marks = [*parts, ("limit", f"usable: {number(usable)}")] if is_near else parts
    drawn = table(caption, heads, (("by part", *pictures), ("peak", *peaks)), "timeline")
    title = tag("h3", "Memory over a step")
    words = told(timeline)
    return title + drawn + legend(marks) + tag("p", plain(f"{capital(words)}."))


def _picture(span: Span, top: float, usable: int) -> str:
    """One phase: the whole first, then over it what is left without the part on top."""
    drawn = "".join(reversed(list(_areas(span, top))))
    if usable <= top:
        drawn += f'<rect class="limit" y="{_height(usable, top)}" width="100%"/>'
    size = f"0 0 {len(span.moments)} {TALL}"
    return f'<svg aria-hidden="true" viewBox="{size}" preserveAspectRatio="none">{drawn}</svg>'


def _areas(span: Span, top: float) -> Iterator[str]:
    """An area for each part, from the ground to the upper edge of the part."""
    below = [0] * len(span.moments)
    for index, part in enumerate(ALIVE):
        above = [low + moment.parts[index] for low, moment in zip(below, span.moments, strict=True)]
        if above != below:
            yield f'<path class="{ROLES[part]}" d="{_outline([_height(one, top) for one in above])}"/>'
        below = above


def _outline(heights: list[int]) -> str:
    """Steps of an edge, a point only where it changes, closed along the ground."""
    steps = [f"M0 {TALL}V{heights[0]}"]
    for place in range(1, len(heights)):
        if heights[place] != heights[place - 1]:
            steps.append(f"H{place}V{heights[place]}")
    return f"{''.join(steps)}H{len(heights)}V{TALL}Z"


def _height(bytes_: float, top: float) -> int:
    """From the top, in units."""
    return round(TALL * (1 - bytes_ / top))
