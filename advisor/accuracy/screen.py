"""The report on the screen, at most 100 columns wide."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import fill

from advisor.accuracy.claims import Claim, middle_error
from advisor.accuracy.fitted import FITTED, MISSING
from advisor.accuracy.groups import Share
from advisor.accuracy.range_tables import (
    failure_table,
    held_out_table,
    replay_table,
    slack_table,
    verdict_lines,
    width_table,
)
from advisor.accuracy.report import Accuracy
from advisor.accuracy.tables import compared_table, group_table, other_table, percent, words
from advisor.util import GIB


def text(report: Accuracy) -> str:
    """All tables, one below the other."""
    blocks = [group_table(report), compared_table(report), other_table(report), verdict_lines(report)]
    if report.failures:
        blocks.append(failure_table(report))
    if report.widths:
        blocks.append(width_table(report))
    if report.replays:
        blocks.append(replay_table(report))
    if report.published:
        blocks += [slack_table(), held_out_table(report), _claim_table(report), _fitted_lines(), _missing_lines(report)]
    return "\n\n".join("\n".join(block) for block in blocks)


def _claim_table(report: Accuracy) -> Iterator[str]:
    """What axolotl's READMEs claim, compared with training without the load; not among the figures above."""
    yield f"{'claimed in the READMEs of axolotl, not measured':<60}{'GiB':>6}{'training':>9}{'reserved':>14}  range"
    yield from (_claim_line(one) for one in report.claims)
    compared = [one for one in report.claims if one.compared]
    share = Share(sum(one.held for one in compared), len(compared))
    yield f"compared: {len(compared)} of {len(report.claims)}; in range: {words(share)} ({percent(share)});"
    yield f"training's allocated peak is {middle_error(compared):.1%} off the claim at the median"
    for one in proven(report.claims):
        yield from wrapped(f"  {_claim_name(one)}: ", why(one))


def _claim_line(claim: Claim) -> str:
    """One claim, by its config."""
    line = f"{_claim_name(claim):<60}{claim.claimed_gib:>6.1f}"
    if claim.reserved is None or claim.allocated is None:
        return f"{line}  {'excluded' if claim.excluded else claim.reason}"
    within = f"{claim.reserved.low / GIB:.1f} to {claim.reserved.high / GIB:.1f}"
    judged = "excluded" if claim.excluded else "in" if claim.held else "out"
    return f"{line}{claim.allocated / GIB:>8.1f}{within:>15}  {judged}"


def _claim_name(claim: Claim) -> str:
    """The config, and which variant of it."""
    return claim.config.removeprefix("examples/") + (f" ({claim.variant})" if claim.variant else "")


def proven(found: Sequence[Claim]) -> Iterator[Claim]:
    """The claims that are not compared, or not under the default versions."""
    return (one for one in found if one.proof)


def why(claim: Claim) -> str:
    """What is done with a claim, and the proof."""
    if claim.excluded:
        return f"excluded: {claim.excluded} ({claim.proof})"
    said = ", ".join(f"{key}={value}" for key, value in (claim.stack or {}).items())
    return f"compared with {said} ({claim.proof})"


def wrapped(start: str, text: str) -> list[str]:
    """Text over lines of 100 columns."""
    return fill(start + text, 100, subsequent_indent="    ", break_on_hyphens=False).splitlines()


def _fitted_lines() -> Iterator[str]:
    """The constants that are fitted or assumed."""
    yield f"fitted or assumed, not derived: {len(FITTED)} constants"
    for one in FITTED:
        yield from (f"  {one.name}: {one.value}", f"    {one.place}", f"    {one.rests_on}")


def _missing_lines(report: Accuracy) -> Iterator[str]:
    """What is not among the evidence, and where the evidence is from."""
    yield "not among the evidence:"
    yield from (f"  {line}" for line in MISSING)
    yield f"sources: {', '.join(report.sources[:2])},"
    yield f"  {', '.join(report.sources[2:])}"


def as_json(report: Accuracy) -> str:
    """All figures; shares of one, sizes in bytes where no unit is named."""
    known = {"fitted": [asdict(one) for one in FITTED], "missing": list(MISSING)} if report.published else {}
    return json.dumps({"version": 1, **asdict(report), **known}, indent=2)
