"""The report on the screen."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from advisor.accuracy.claims import Claim, middle_error
from advisor.accuracy.columns import Row, table, wrapped
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


def text(report: Accuracy, columns: int) -> str:
    """All tables, one below the other."""
    drawn = [group_table, compared_table, other_table, verdict_lines]
    if report.failures:
        drawn.append(failure_table)
    if report.widths:
        drawn.append(width_table)
    if report.replays:
        drawn.append(replay_table)
    blocks = [draw(report, columns) for draw in drawn]
    if report.published:
        blocks += [slack_table(columns), held_out_table(report, columns), _claim_table(report, columns)]
        blocks += [_fitted_lines(columns), _missing_lines(report, columns)]
    return "\n\n".join("\n".join(block) for block in blocks)


def _claim_table(report: Accuracy, columns: int) -> Iterator[str]:
    """What axolotl's READMEs claim, compared with training without the load; not among the figures above."""
    head = f"{'GiB':>6}{'training':>9}{'reserved':>15}"
    rows = [Row("claimed in the READMEs of axolotl, not measured", head, "  range"), *map(_claim_row, report.claims)]
    yield from table(rows, columns)
    compared = [one for one in report.claims if one.compared]
    share = Share(sum(one.held for one in compared), len(compared))
    held = f"compared: {len(compared)} of {len(report.claims)}; in range: {words(share)} ({percent(share)});"
    off = f"training's allocated peak is {middle_error(compared):.1%} off the claim at the median"
    yield from (*wrapped(held, columns), *wrapped(off, columns))
    for one in proven(report.claims):
        yield from wrapped(f"{_claim_name(one)}: {why(one)}", columns, "  ")


def _claim_row(claim: Claim) -> Row:
    """One claim, by its config."""
    name, size = _claim_name(claim), f"{claim.claimed_gib:>6.1f}"
    if claim.reserved is None or claim.allocated is None:
        return Row(name, size, f"  {'excluded' if claim.excluded else claim.reason}")
    within = f"{claim.reserved.low / GIB:.1f} to {claim.reserved.high / GIB:.1f}"
    judged = "excluded" if claim.excluded else "in" if claim.held else "out"
    return Row(name, f"{size}{claim.allocated / GIB:>9.1f}{within:>15}", f"  {judged}")


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


def _fitted_lines(columns: int) -> Iterator[str]:
    """The constants that are fitted or assumed."""
    yield f"fitted or assumed, not derived: {len(FITTED)} constants"
    for one in FITTED:
        yield from wrapped(f"{one.name}: {one.value}", columns, "  ", "  ")
        for more in (one.place, one.rests_on):
            yield from wrapped(more, columns, "    ")


def _missing_lines(report: Accuracy, columns: int) -> Iterator[str]:
    """What is not among the evidence, and where the evidence is from."""
    yield "not among the evidence:"
    for line in MISSING:
        yield from wrapped(line, columns, "  ")
    yield from wrapped(f"sources: {', '.join(report.sources)}", columns, under="  ")


def as_json(report: Accuracy) -> str:
    """All figures; shares of one, sizes in bytes where no unit is named."""
    known = {"fitted": [asdict(one) for one in FITTED], "missing": list(MISSING)} if report.published else {}
    return json.dumps({"version": 1, **asdict(report), **known}, indent=2)
