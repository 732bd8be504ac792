"""The tables of errors."""

from collections.abc import Iterator, Mapping

from advisor.accuracy.columns import Row, table, wrapped
from advisor.accuracy.errors import Errors
from advisor.accuracy.groups import Compared, Group, Share
from advisor.accuracy.report import Accuracy

SHORT = ("advisor", "DeepSpeed", "accelerate", "16 B")
WORDS: Mapping[str, str] = {
    "*": "fewer than 3 runs: listed, not judged",
    "runs": "those with an allocated peak; not those at their card's limit or read off charts (LK)",
    "in range": "reserved figures that the stated range holds",
    "oom": "runs out of memory that are not called fits",
}
"""What the heads of the columns mean."""


def group_table(report: Accuracy, columns: int) -> Iterator[str]:
    """Errors of the allocated peak, by group and over all."""
    head = f"{'runs':>4}{'median':>7}{'90 %':>6}{'worst':>6}{'bias':>7}{'in range':>10}{'oom':>7}"
    groups = [
        _group_row(group.name if group.judged or not group.errors else f"{group.name} *", group)
        for group in report.groups
    ]
    mean = Row("mean of the median over groups of 3 runs or more", f"{'':<4}{report.mean_of_medians:>7.1%}")
    yield from table([Row("allocated peak", head), *groups, _group_row("all runs", report.all), mean], columns)
    yield ""
    for word, meaning in WORDS.items():
        yield from wrapped(meaning, columns, f"{word:<10}", " " * 10)


def _group_row(name: str, group: Group) -> Row:
    """A row of the table."""
    return Row(name, f"{figures(group.errors)}{share(group.held):>10}{share(group.caught):>7}")


def figures(errors: Errors | None) -> str:
    """Errors in columns."""
    if errors is None:
        return " " * 30
    sizes = f"{errors.median:>7.1%}{errors.ninetieth:>6.1%}{errors.worst:>6.1%}"
    return f"{errors.runs:>4}{sizes}{errors.bias:>+7.1%}"


def compared_table(report: Accuracy, columns: int) -> Iterator[str]:
    """The advisor, compared with what a user would ask instead."""
    head = f"{'runs':>5}{'median':>8}{'90 %':>8}{'bias':>9}{'oom foreseen':>14}{'false alarms':>14}"
    yield from table([Row("all runs", head), *map(_compared_row, report.compared)], columns)


def _compared_row(one: Compared) -> Row:
    """One estimator."""
    found = one.errors
    sizes = f"{found.runs:>5}{found.median:>8.1%}{found.ninetieth:>8.1%}{found.bias:>+9.1%}" if found else " " * 30
    return Row(one.name, f"{sizes}{share(one.caught):>14}{share(one.refused):>14}")


def other_table(report: Accuracy, columns: int) -> Iterator[str]:
    """The median error of each estimator, by group."""
    rows = [Row("median error", "".join(f"{name:>12}" for name in SHORT))]
    for group in report.groups:
        if group.errors:
            medians = [group.errors.median, *group.others.values()]
            said = "".join(f"{'' if median is None else format(median, '.1%'):>12}" for median in medians)
            rows.append(Row(group.name, said))
    yield from table(rows, columns)


def share(one: Share) -> str:
    """``9/10``, or nothing of nothing."""
    return f"{one.part}/{one.whole}" if one.whole else ""


def words(one: Share) -> str:
    """``9 of 10``."""
    return f"{one.part} of {one.whole}"


def percent(one: Share) -> str:
    """``90 %``."""
    return f"{one.part / one.whole:.0%}" if one.whole else ""
