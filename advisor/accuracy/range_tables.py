"""The tables of ranges and verdicts, at most 100 columns wide."""

from collections.abc import Iterator

from advisor.accuracy.fitted import BY_HAND
from advisor.accuracy.held_out import HeldOut, whole
from advisor.accuracy.replays import NearLimit
from advisor.accuracy.report import Accuracy
from advisor.accuracy.tables import percent, share, words
from advisor.memory.evidence import Slack, published_evidence


def verdict_lines(report: Accuracy) -> Iterator[str]:
    """What the verdict is worth."""
    said = report.verdicts
    yield f"ran out of memory, not called fits:     {words(said.sure)} certain, {words(said.inferred)} inferred"
    yield f"went through, called does-not-fit:      {words(said.refused)}"
    yield f"called tight:                           {words(said.tight)} ({percent(said.tight)})"
    yield f"needed is so wide at the median:        {said.width:.1%}"


def failure_table(report: Accuracy) -> Iterator[str]:
    """The failures that are inferred, to be judged by hand."""
    yield f"{'out of memory, inferred from missing figures':<65}{'needs GiB':>15}{'of':>6}  verdict"
    for one in report.failures:
        name = f"{one.id}  {one.group}  {one.micro_batch_size}x{one.sequence_len}"
        low, high = one.needed_gib
        yield f"{name:<65}{f'{low:.1f} to {high:.1f}':>15}{one.usable_gib:>6.1f}  {one.verdict}"
        if one.verdict == "fits":
            yield f"    {BY_HAND.get(one.id, 'not judged yet')}"


def width_table(report: Accuracy) -> Iterator[str]:
    """The reserved range by kind of run."""
    yield f"{'reserved range':<44}{'expandable segments':>20}{'in range':>10}{'median width':>14}"
    for one in report.widths:
        segments = "with" if one.expandable else "without"
        yield f"{one.kind:<44}{segments:>20}{share(one.held):>10}{one.width:>14.0%}"
    for expandable, segments in ((False, "without"), (True, "with")):
        if (width := report.median_widths.get(expandable)) is not None:
            yield f"{'all':<44}{segments:>20}{'':>10}{width:>14.0%}"


def replay_table(report: Accuracy) -> Iterator[str]:
    """The reserved range of runs that a tape covers, without and with the replay; and what ``needed`` says of some."""
    yield f"{'reserved range, one GPU, of runs with a tape':<46}{'published':>18}{'replayed':>20}"
    yield f"{'':<46}{'in range':>10}{'width':>8}{'in range':>12}{'width':>8}"
    for one in report.replays:
        without = f"{share(one.held):>10}{one.width:>8.0%}"
        yield f"{one.kind:<46}{without}{share(one.held_with):>12}{one.width_with:>8.0%}"
    if report.near_limits:
        yield f"{'near their limit, with a tape':<46}{'needs GiB':>18}{'of':>8}  without, with the replay"
        yield from (_near_line(one) for one in report.near_limits)


def _near_line(one: NearLimit) -> str:
    """One run near its card's limit."""
    low, high = one.needed_with_gib
    said = one.verdict if one.verdict == one.verdict_with else f"{one.verdict}, {one.verdict_with}"
    name = f"{one.id}, which {'failed' if one.failed else 'went through'}"
    return f"{name:<46}{f'{low:.1f} to {high:.1f}':>18}{one.usable_gib:>8.1f}  {said}"


def slack_table() -> Iterator[str]:
    """What ``needed`` rests on."""
    evidence = published_evidence()
    yield f"{'needed: fragmentation under pressure':<36}{'expandable segments':>20}{'share':>8}  rests on"
    for table, segments in ((evidence.needed, "without"), (evidence.needed_expandable, "with")):
        for sharding, slack in table.items():
            yield f"{sharding:<36}{segments:>20}{slack.share:>8.1%}  {basis(slack)}"
    low, high = evidence.expandable_share
    yield f"expandable segments leave {low:.0%} to {high:.0%} of the slack, in {evidence.pairs} pairs of like runs"
    yield f"nine of ten runs exceed their estimates by {evidence.underestimated:.1%} at most: needed allows that much"


def basis(slack: Slack) -> str:
    """The runs that a share of fragmentation rests on."""
    return f"{slack.passed} passed" + (f", {slack.failed} failed" if slack.failed else ", none failed")


def held_out_table(report: Accuracy) -> Iterator[str]:
    """Every source under the ranges that rest on the others."""
    yield f"{'one source left out':<66}{'in range':>10}{'median width':>14}{'oom':>6}"
    for name, sources in (("repositories", report.repositories), ("files", report.files)):
        total = whole(sources)
        yield from (_held_out_line(one) for one in sources if one.held.whole or one.caught.whole)
        yield f"{'all ' + name:<66}{words(total):>10}{percent(total):>8}"


def _held_out_line(one: HeldOut) -> str:
    """One source."""
    name = one.source.removeprefix("github:")
    name = name if len(name) <= 65 else f"{name.partition('/')[0]}/...{name[-(61 - name.index('/')) :]}"
    wide = f"{one.width:.0%}" if one.held.whole else ""
    return f"{name:<66}{share(one.held):>10}{wide:>14}{share(one.caught):>6}".rstrip()
