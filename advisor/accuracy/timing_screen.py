"""The report on step times on the screen."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain

from advisor.accuracy.columns import Row, table, wrapped
from advisor.accuracy.timing import Order, TimeErrors, Timing

HEAD = f"{'runs':>5}{'bias':>7}{'median':>7}{'90 %':>7}{'<15 %':>7}{'<25 %':>7}{'held':>5}"
NAIVE = len("19.3%, 74.9%")
"""Columns, so that all tables have theirs at the same place."""
LEFT_OUT = "each source by constants that it did not move; and one number fitted to the others"


def text(report: Timing, columns: int) -> str:
    """All tables, one below the other."""
    overall = [report.all, *([report.unseen] if report.unseen else []), report.held_out]
    blocks = [table([Row("", HEAD, "  one number"), *map(row, overall)], columns)]
    for name, groups in report.groups.items():
        blocks.append(chain([f"by {name}"], table(map(row, groups), columns)))
    blocks.append(chain(wrapped(LEFT_OUT, columns, under=""), table(map(row, report.held_out_sources), columns)))
    blocks.append(_order_lines("same model, cards, method and length:", report.order, columns))
    blocks.append(_order_lines("the same, each source left out:", report.held_out_order, columns))
    if report.left_out:
        blocks.append(chain(["without a time:"], *(wrapped(one, columns, "  ") for one in report.left_out)))
    return "\n\n".join("\n".join(block) for block in blocks)


def row(one: TimeErrors) -> Row:
    """One group; at its end the same of the naive rule."""
    figures = (
        f"{one.runs:>5}{one.bias:>+7.1%}{one.median:>7.1%}{one.p90:>7.1%}"
        f"{one.within_15:>7.0%}{one.within_25:>7.0%}{one.held:>5.0%}"
    )
    return Row(f"  {one.name}", figures, f"  {f'{one.naive_median:.1%}, {one.naive_p90:.1%}':<{NAIVE}}")


def _order_lines(head: str, order: Order, columns: int) -> Iterator[str]:
    """Whether the faster of two is known, and what the choice costs."""
    yield head
    right = f"{order.right:.1%} of {order.pairs} (one number {order.naive_right:.1%})"
    for first, said in (
        ("  ", f"pairs more than 10 % apart ordered right: {right}"),
        ("  ", f"choices among {order.sets} sets of runs, up to 64 GPUs and 95 % of the card, cost against the best"),
        ("    ", f"{order.regret_mean:.2%} on average, {order.regret_worst:.1%} at worst"),
        ("    ", f"(one number {order.naive_regret_mean:.2%} and {order.naive_regret_worst:.1%})"),
    ):
        yield from wrapped(said, columns, first)


def as_json(report: Timing) -> str:
    """All figures, as shares of one."""
    return json.dumps({"version": 1, **asdict(report)}, indent=2)
