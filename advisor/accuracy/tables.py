"""The tables of errors, at most 100 columns wide."""

from collections.abc import Iterator

from advisor.accuracy.errors import Errors
from advisor.accuracy.groups import Compared, Group, Share
from advisor.accuracy.report import Accuracy

SHORT = ("advisor", "DeepSpeed", "accelerate", "16 B")


def group_table(report: Accuracy) -> Iterator[str]:
    """Errors of the allocated peak, by group and over all."""
    yield f"{'allocated peak':<52}{'runs':>4}{'median':>7}{'90 %':>6}{'worst':>6}{'bias':>7}{'in range':>10}{'oom':>7}"
    for group in report.groups:
        yield _group_line(group.name if group.judged or not group.errors else f"{group.name} *", group)
    yield _group_line("all runs", report.all)
    yield f"{'mean of the median over groups of 3 runs or more':<52}{'':>4}{report.mean_of_medians:>7.1%}"
    yield ""
    yield "*         fewer than 3 runs: listed, not judged"
    yield "runs      those with an allocated peak; not those at their card's limit or read off charts (LK)"
    yield "in range  reserved figures that the stated range holds"
    yield "oom       runs out of memory that are not called fits"


def _group_line(name: str, group: Group) -> str:
    """A line of the table."""
    return f"{name:<52}{figures(group.errors)}{share(group.held):>10}{share(group.caught):>7}".rstrip()


def figures(errors: Errors | None) -> str:
    """Errors in columns."""
    if errors is None:
        return " " * 30
    sizes = f"{errors.median:>7.1%}{errors.ninetieth:>6.1%}{errors.worst:>6.1%}"
    return f"{errors.runs:>4}{sizes}{errors.bias:>+7.1%}"


def compared_table(report: Accuracy) -> Iterator[str]:
    """The advisor, compared with what a user would ask instead."""
    yield f"{'all runs':<34}{'runs':>5}{'median':>9}{'90 %':>9}{'bias':>9}{'oom foreseen':>15}{'false alarms':>15}"
    yield from (_compared_line(one) for one in report.compared)


def _compared_line(one: Compared) -> str:
    """One estimator."""
    found = one.errors
    columns = f"{found.runs:>5}{found.median:>9.1%}{found.ninetieth:>9.1%}{found.bias:>+9.1%}" if found else " " * 32
    return f"{one.name:<34}{columns}{share(one.caught):>15}{share(one.refused):>15}".rstrip()


def other_table(report: Accuracy) -> Iterator[str]:
    """The median error of each estimator, by group."""
    yield f"{'median error':<52}" + "".join(f"{name:>12}" for name in SHORT)
    for group in report.groups:
        if group.errors:
            medians = [group.errors.median, *group.others.values()]
            said = "".join(f"{'' if median is None else format(median, '.1%'):>12}" for median in medians)
            yield f"{group.name:<52}{said}".rstrip()


def share(one: Share) -> str:
    """``9/10``, or nothing of nothing."""
    return f"{one.part}/{one.whole}" if one.whole else ""


def words(one: Share) -> str:
    """``9 of 10``."""
    return f"{one.part} of {one.whole}"


def percent(one: Share) -> str:
    """``90 %``."""
    return f"{one.part / one.whole:.0%}" if one.whole else ""
