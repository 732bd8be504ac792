"""Each step of each plan refused in turn: ``python -m tests.corpus.refused [PART PARTS]``.

Of samples and strangers' configs on four kinds of node. It prints each refusal that makes a better plan (one that fits
where the first did not, of an earlier tier, or more than 5 % faster at equal or milder training) of which the answer
does not speak: the first plan should have been that one.
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


def advantage(first: Plan, other: Plan) -> str | None:
    """In what another plan is better than the first."""
    if other.verdict == "fits" and first.verdict != "fits":
        return f"it fits, the first is {first.verdict}"
    if other.verdict != first.verdict or (first.safe and not other.safe) or tier_of(other) > tier_of(first):
        return None
    if first.verdict == "fits" and tier_of(other) < tier_of(first):
        return f"tier {tier_of(first)} -> {tier_of(other)}"
    before, after = first.end.seconds, other.end.seconds
    if first.verdict == "fits" and before and after and after < GAIN * before:
        return f"{before:.2f} -> {after:.2f} s"
    return None


def faults(opened: LoadedRun, options: Options = OPTIONS) -> Iterator[str]:
    """Each refusal that makes a better plan, which ``not_taken`` does not name."""
    report = check_run(opened, options)
    if report.verdict not in {"does-not-fit", "tight"} or (report.estimate and report.estimate.uncounted):
        return
    told = answer_of(opened, options, report).not_taken
    for safe_only in (True, False):
        first = planner(options)(opened.run, safe_only)
        for name in dict.fromkeys(first.names):
            other = planner(options.without((name,)))(opened.run, safe_only)
            better = advantage(first, other)
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
