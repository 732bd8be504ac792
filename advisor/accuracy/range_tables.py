"""The tables of ranges and verdicts."""

from collections.abc import Iterator

from advisor.accuracy.columns import Row, table, wrapped
from advisor.accuracy.fitted import BY_HAND
from advisor.accuracy.held_out import HeldOut, whole
from advisor.accuracy.replays import NearLimit
from advisor.accuracy.report import Accuracy
from advisor.accuracy.tables import percent, share, words
from advisor.memory.evidence import Slack, published_evidence


def verdict_lines(report: Accuracy, columns: int) -> Iterator[str]:
    """What the verdict is worth."""
    said = report.verdicts
    for name, worth in (
        ("ran out of memory, not called fits:", f"{words(said.sure)} certain, {words(said.inferred)} inferred"),
        ("went through, called does-not-fit:", words(said.refused)),
        ("called tight:", f"{words(said.tight)} ({percent(said.tight)})"),
        ("needed is so wide at the median:", f"{said.width:.1%}"),
    ):
        line = f"{name:<40}{worth}"
        yield from [line] if len(line) <= columns else wrapped(f"{name} {worth}", columns)


def failure_table(report: Accuracy, columns: int) -> Iterator[str]:
    """The failures that are inferred, to be judged by hand."""
    rows = [Row("out of memory, inferred from missing figures", f"{'needs GiB':>15}{'of':>6}", "  verdict")]
    for one in report.failures:
        name = f"{one.id}  {one.group}  {one.micro_batch_size}x{one.sequence_len}"
        low, high = one.needed_gib
        rows.append(Row(name, f"{f'{low:.1f} to {high:.1f}':>15}{one.usable_gib:>6.1f}", f"  {one.verdict}"))
    yield from table(rows, columns)
    for one in report.failures:
        if one.verdict == "fits":
            yield from wrapped(f"{one.id}: {BY_HAND.get(one.id, 'not judged yet')}", columns, "    ")


def width_table(report: Accuracy, columns: int) -> Iterator[str]:
    """The reserved range by kind of run."""
    rows = [Row("reserved range", f"{'expandable segments':>20}{'in range':>10}{'median width':>14}")]
    for one in report.widths:
        segments = "with" if one.expandable else "without"
        rows.append(Row(one.kind, f"{segments:>20}{share(one.held):>10}{one.width:>14.0%}"))
    for expandable, segments in ((False, "without"), (True, "with")):
        if (width := report.median_widths.get(expandable)) is not None:
            rows.append(Row("all", f"{segments:>20}{'':>10}{width:>14.0%}"))
    yield from table(rows, columns)


def replay_table(report: Accuracy, columns: int) -> Iterator[str]:
    """The reserved range of runs that a tape covers, without and with the replay; and what ``needed`` says of some."""
    rows = [
        Row("reserved range, one GPU, of runs with a tape", f"{'published':>18}{'replayed':>20}"),
        Row("", f"{'in range':>10}{'width':>8}{'in range':>12}{'width':>8}"),
    ]
    for one in report.replays:
        without = f"{share(one.held):>10}{one.width:>8.0%}"
        rows.append(Row(one.kind, f"{without}{share(one.held_with):>12}{one.width_with:>8.0%}"))
    yield from table(rows, columns)
    if report.near_limits:
        head = Row("near their limit, with a tape", f"{'needs GiB':>18}{'of':>8}", "  without, with the replay")
        yield from table([head, *map(_near_row, report.near_limits)], columns)


def _near_row(one: NearLimit) -> Row:
    """One run near its card's limit."""
    low, high = one.needed_with_gib
    said = one.verdict if one.verdict == one.verdict_with else f"{one.verdict}, {one.verdict_with}"
    name = f"{one.id}, which {'failed' if one.failed else 'went through'}"
    return Row(name, f"{f'{low:.1f} to {high:.1f}':>18}{one.usable_gib:>8.1f}", f"  {said}")


def slack_table(columns: int) -> Iterator[str]:
    """What ``needed`` rests on."""
    evidence = published_evidence()
    rows = [Row("needed: fragmentation under pressure", f"{'expandable segments':>20}{'share':>8}", "  rests on")]
    for slacks, segments in ((evidence.needed, "without"), (evidence.needed_expandable, "with")):
        for sharding, slack in slacks.items():
            rows.append(Row(sharding, f"{segments:>20}{slack.share:>8.1%}", f"  {basis(slack)}"))
    yield from table(rows, columns)
    low, high = evidence.expandable_share
    pairs = f"expandable segments leave {low:.0%} to {high:.0%} of the slack, in {evidence.pairs} pairs of like runs"
    beyond = (
        f"nine of ten runs exceed their estimates by {evidence.underestimated:.1%} at most: needed allows that much"
    )
    for said in (pairs, beyond):
        yield from wrapped(said, columns)


def basis(slack: Slack) -> str:
    """The runs that a share of fragmentation rests on."""
    return f"{slack.passed} passed" + (f", {slack.failed} failed" if slack.failed else ", none failed")


def held_out_table(report: Accuracy, columns: int) -> Iterator[str]:
    """Every source under the ranges that rest on the others."""
    rows = [Row("one source left out", f"{'in range':>10}{'median width':>14}{'oom':>6}")]
    for name, sources in (("repositories", report.repositories), ("files", report.files)):
        total = whole(sources)
        rows += [_held_out_row(one, columns) for one in sources if one.held.whole or one.caught.whole]
        rows.append(Row("all " + name, f"{words(total):>10}{percent(total):>8}"))
    yield from table(rows, columns)


def _held_out_row(one: HeldOut, columns: int) -> Row:
    """One source; of a long name its repository's owner and its end."""
    name, room = one.source.removeprefix("github:"), min(65, columns)
    if len(name) > room:
        owner = name.partition("/")[0]
        name = f"{owner}/...{name[len(owner) + 4 - room :]}"
    wide = f"{one.width:.0%}" if one.held.whole else ""
    return Row(name, f"{share(one.held):>10}{wide:>14}{share(one.caught):>6}")
