"""Each step of each plan refused in turn: ``python -m tests.corpus.refused [PART PARTS]``.

Of samples and strangers' configs on four kinds of node. It prints each refusal that makes a better plan of which the
answer does not speak: one that fits where the first did not, of an earlier tier, or at equal or milder training more
than 5 % faster than what ``--faster`` makes of it, or about as fast by fewer edits. The first plan should have been that
one.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from advisor.documents import read
from advisor.engine.answer import NotTaken
from advisor.engine.answering import answer_of
from advisor.engine.axes import EXPERTS, FIRST
from advisor.engine.check import check_run
from advisor.engine.options import Options, planner, tiers_of
from advisor.engine.states import Plan
from advisor.errors import InputError
from advisor.opening import LoadedRun, open_run

from .answers import SAMPLES, cases

GAIN = 0.95
OPTIONS = Options(details=True)


def tier_of(plan: Plan, options: Options = OPTIONS) -> int:
    """The tier that a plan's last rule comes with; what the YAML itself asks for is of the first."""
    tiers = tiers_of(options)
    rank = {rule.id: place for place, tier in enumerate(tiers) for rule in reversed(tier.rules)}
    return max((rank.get(name, 0) for name in plan.names if name not in {FIRST, EXPERTS}), default=0)


def advantage(first: Plan, other: Plan, fastest: Plan) -> str | None:
    """In what another plan is better than the first, and faster than the fastest."""
    if other.verdict == "fits" and first.verdict != "fits":
        return f"it fits, the first is {first.verdict}"
    if other.verdict != first.verdict or (first.safe and not other.safe) or tier_of(other) > tier_of(first):
        return None
    if first.verdict == "fits" and tier_of(other) < tier_of(first):
        return f"tier {tier_of(first)} -> {tier_of(other)}"
    before, after, least = first.end.seconds, other.end.seconds, fastest.end.seconds
    if first.verdict != "fits" or not before or not after or not least:
        return None
    if after < GAIN * min(before, least):
        return f"{before:.2f} -> {after:.2f} s"
    as_roomy = first.end.estimate.has_little_room or not other.end.estimate.has_little_room
    if as_roomy and GAIN * after <= before and len(other.steps) < len(first.steps):
        return f"{len(first.steps)} -> {len(other.steps)} edits"
    return None


def faults(opened: LoadedRun, options: Options = OPTIONS) -> Iterator[str]:
    """Each refusal that makes a better plan, which ``not_taken`` does not name."""
    report = check_run(opened, options)
    if report.verdict not in {"does-not-fit", "tight"} or (report.estimate and report.estimate.uncounted):
        return
    told = answer_of(opened, options, report).not_taken
    for safe_only in (True, False):
        first = planner(options)(opened.run, safe_only)
        fastest = options.memo.plan(opened.run, tiers_of(options), safe_only=safe_only, fastest=True)
        for name in dict.fromkeys(first.names):
            other = planner(options.without((name,)))(opened.run, safe_only)
            better = advantage(first, other, fastest)
            if better and not any(speaks_of(way, first, other) for way in told):
                kind = "safe" if safe_only else "all"
                yield f"{kind}, without {name}: {better}; {first.names} -> {other.names}"


def speaks_of(way: NotTaken, first: Plan, other: Plan) -> bool:
    """Whether a way that is not taken is the other plan: it ends with it, or names a step that the first has not."""
    if way.seconds is not None and way.seconds == other.end.shown_seconds:
        return way.memory == other.end.estimate.needed.high
    return any(step in way.title for step in other.names if step not in first.names)


def main(part: int = 0, parts: int = 1) -> None:
    """One part of all cases."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as root:
        os.chdir(SAMPLES.parent)
        for file, context in list(cases(Path(root)))[part::parts]:
            try:
                found = list(faults(open_run(read(str(file)), context)))
            except InputError:
                continue
            counts["cases"] += 1
            counts["better plans"] += len(found)
            for fault in found:
                print(f"{file.name} on {context.gpus}: {fault}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
