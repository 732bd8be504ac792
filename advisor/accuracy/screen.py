"""The report on the screen, at most 100 columns wide."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from advisor.accuracy.claims import Claim
from advisor.accuracy.fitted import FITTED, MISSING
from advisor.accuracy.range_tables import failure_table, held_out_table, slack_table, verdict_lines, width_table
from advisor.accuracy.report import Accuracy
from advisor.accuracy.tables import compared_table, group_table, other_table
from advisor.util import GIB


def text(report: Accuracy) -> str:
    """All tables, one below the other."""
    blocks = [group_table(report), compared_table(report), other_table(report), verdict_lines(report)]
    if report.failures:
        blocks.append(failure_table(report))
    if report.widths:
        blocks.append(width_table(report))
    if report.published:
        blocks += [slack_table(), held_out_table(report), claim_table(report), fitted_lines(), missing_lines(report)]
    return "\n\n".join("\n".join(block) for block in blocks)


def claim_table(report: Accuracy) -> Iterator[str]:
    """What axolotl's READMEs claim; not among the figures above."""
    yield f"{'claimed in the READMEs of axolotl, not measured':<63}{'GiB':>6}{'peak':>7}{'reserved':>16}  held"
    yield from (claim_line(one) for one in report.claims)


def claim_line(claim: Claim) -> str:
    """One claim, by its config."""
    name = claim.config.removeprefix("examples/") + (f" ({claim.variant})" if claim.variant else "")
    if claim.reserved is None or claim.allocated is None:
        return f"{name:<63}{claim.claimed_gib:>6.1f}  {claim.reason}"
    within = f"{claim.reserved.low / GIB:.1f} to {claim.reserved.high / GIB:.1f}"
    held = "yes" if claim.held else "no"
    return f"{name:<63}{claim.claimed_gib:>6.1f}{claim.allocated / GIB:>7.1f}{within:>16}  {held}"


def fitted_lines() -> Iterator[str]:
    """The constants that are fitted or assumed."""
    yield f"fitted or assumed, not derived: {len(FITTED)} constants"
    for one in FITTED:
        yield from (f"  {one.name}: {one.value}", f"    {one.place}", f"    {one.rests_on}")


def missing_lines(report: Accuracy) -> Iterator[str]:
    """What is not among the evidence, and where the evidence is from."""
    yield "not among the evidence:"
    yield from (f"  {line}" for line in MISSING)
    yield f"sources: {', '.join(report.sources[:2])},"
    yield f"  {', '.join(report.sources[2:])}"


def as_json(report: Accuracy) -> str:
    """All figures; shares of one, sizes in bytes where no unit is named."""
    known = {"fitted": [asdict(one) for one in FITTED], "missing": list(MISSING)} if report.published else {}
    return json.dumps({"version": 1, **asdict(report), **known}, indent=2)
