"""The report on step times on the screen, at most 100 columns wide."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from advisor.accuracy.timing import Order, TimeErrors, Timing

HEAD = f"{'':<40}{'runs':>5}{'bias':>7}{'median':>7}{'90 %':>7}{'<15 %':>7}{'<25 %':>7}{'held':>5}  one number"

LEFT_OUT = "each source by constants that it did not move; and one number fitted to the others"


def text(report: Timing) -> str:
    """All tables, one below the other."""
    lines = [HEAD, line(report.all)]
    if report.unseen:
        lines.append(line(report.unseen))
    lines.append(line(report.held_out))
    blocks = ["\n".join(lines)]
    for name, groups in report.groups.items():
        blocks.append("\n".join([f"by {name}", *map(line, groups)]))
    blocks.append("\n".join([LEFT_OUT, *map(line, report.held_out_sources)]))
    blocks.append("\n".join(_order_lines("same model, cards, method and length:", report.order)))
    blocks.append("\n".join(_order_lines("the same, each source left out:", report.held_out_order)))
    if report.left_out:
        blocks.append("\n".join(["without a time:", *(f"  {one}" for one in report.left_out)]))
    return "\n\n".join(blocks)


def line(one: TimeErrors) -> str:
    """One group; at its end the same of the naive rule."""
    return (
        f"  {one.name:<38}{one.runs:>5}{one.bias:>+7.1%}{one.median:>7.1%}{one.p90:>7.1%}"
        f"{one.within_15:>7.0%}{one.within_25:>7.0%}{one.held:>5.0%}  {one.naive_median:.1%}, {one.naive_p90:.1%}"
    )


def _order_lines(head: str, order: Order) -> Iterator[str]:
    """Whether the faster of two is known, and what the choice costs."""
    yield head
    right = f"{order.right:.1%} of {order.pairs} (one number {order.naive_right:.1%})"
    yield f"  pairs more than 10 % apart ordered right: {right}"
    yield f"  choices among {order.sets} sets of runs, up to 64 GPUs and 95 % of the card, cost against the best"
    yield f"    {order.regret_mean:.2%} on average, {order.regret_worst:.1%} at worst"
    yield f"    (one number {order.naive_regret_mean:.2%} and {order.naive_regret_worst:.1%})"


def as_json(report: Timing) -> str:
    """All figures, as shares of one."""
    return json.dumps({"version": 1, **asdict(report)}, indent=2)
