"""Writes what rests on the published runs again: the table of ranges, and the figures in the texts (make accuracy)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from advisor.accuracy.held_out import whole
from advisor.accuracy.judging import judged
from advisor.accuracy.ranges import derived
from advisor.accuracy.report import Accuracy, accuracy
from advisor.accuracy.tables import percent, words
from advisor.accuracy.timing import Timing, timing
from advisor.memory.evidence import Evidence, Reserved, Slack, published_evidence
from tests.texts import PAGES, README_FILE, ROOT

RANGES = ROOT / "advisor" / "memory" / "ranges.json"
BEGIN, END = "<!-- written by make accuracy -->\n", "<!-- end -->\n"


def main() -> None:
    """Ranges first, since the figures depend on them."""
    RANGES.write_text(ranges_text(), encoding="utf-8")
    published_evidence.cache_clear()
    for file, part in written().items():
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(whole_part(part_of(text)), whole_part(part)), encoding="utf-8")


def ranges_text() -> str:
    """``ranges.json`` as the published runs give it."""
    return json.dumps(as_table(derived(judged())), indent=2) + "\n"


def as_table(evidence: Evidence) -> dict[str, Any]:
    """The evidence as ``ranges.json`` has it."""

    def entries(table: Mapping[str, Reserved | Slack]) -> dict[str, Any]:
        return {key: asdict(entry) for key, entry in table.items()}

    return {
        "reserved": entries(evidence.reserved),
        "reserved_expandable": entries(evidence.reserved_expandable),
        "needed": entries(evidence.needed),
        "needed_expandable": entries(evidence.needed_expandable),
        "expandable_share": list(evidence.expandable_share),
        "pairs": evidence.pairs,
        "underestimated": evidence.underestimated,
    }


def part_of(text: str) -> str:
    """The part of a text that is written by this."""
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)]


def whole_part(part: str) -> str:
    """The part between its marks."""
    return BEGIN + part + END


def written() -> dict[Path, str]:
    """The part of each text: the README has the peers alone, the site's page ranges and verdicts too."""
    report, times = accuracy(judged()), timing()
    table, short = "\n".join(errors(report)), " ".join(step_times(times))
    return {
        README_FILE: f"\n{table}\n\n{short}\n\n",
        PAGES / "trust.md": "\n".join(["", table, "", *verdicts(report), *step_times_more(times), "", ""]),
    }


def errors(report: Accuracy) -> Iterator[str]:
    """The advisor, compared with what a user would ask instead."""
    yield "| allocated peak | runs | median error | 90 % within | bias | failures foreseen |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for one in report.compared:
        found = one.errors
        assert found is not None
        figures = f"{found.runs} | {found.median:.1%} | {found.ninetieth:.1%} | {found.bias:+.1%}"
        yield f"| {one.name} | {figures} | {words(one.caught)} |"


def verdicts(report: Accuracy) -> Iterator[str]:
    """Ranges and verdicts."""
    said, files, repositories = report.verdicts, whole(report.files), whole(report.repositories)
    wide = {expandable: f"{width:.0%}" for expandable, width in report.median_widths.items()}
    held = f"{words(report.all.held)} ({percent(report.all.held)})"
    compared = [claim for claim in report.claims if claim.compared]
    yield f"- Of the runs that surely ran out of memory, {words(said.sure)} are not called `fits`;"
    yield f"  of those that went through, {words(said.refused)} are called `does-not-fit`; {percent(said.tight)} of all are `tight`."
    yield f"- *needed* is {said.width:.0%} wide at the median. The reserved range holds {held} of the measured figures;"
    yield f"  {percent(files)} where the file that a run is from is left out of the evidence, {percent(repositories)} where its repository is."
    yield f"  It is {wide[False]} wide at the median, {wide[True]} with expandable segments."
    yield f"- Of {len(report.claims)} figures that axolotl's READMEs claim for examples, {len(compared)} can be compared; the reserved range"
    yield f"  holds {sum(claim.held for claim in compared)} of these. `advisor accuracy` lists each, with the proof where one is left out."


def step_times(times: Timing) -> Iterator[str]:
    """The time of a step, in two sentences."""
    yield f"The time of a step is made of textbook constants: {times.all.median:.1%} off at the median on"
    yield f"{times.all.runs} published runs, where one utilisation number is {times.all.naive_median:.1%} off;"
    yield f"of two runs that are more than 10 % apart the faster is known in {times.order.right:.1%}."


def step_times_more(times: Timing) -> Iterator[str]:
    """The same as points, with what holds where a source is scored by constants that it did not move."""
    yield "- " + " ".join(step_times(times))
    yield f"  Nine in ten are within {times.all.p90:.1%}; with each source scored by constants that it did not move"
    yield f"  it is {times.held_out.median:.1%} at the median and {times.held_out.p90:.1%} for nine in ten, and"
    yield f"  {times.held_out.naive_median:.1%} at the median for one number fitted to the others."
    yield "  It is a range, and says when it is rough: offloaded parameters, experts, more than 64 GPUs, a card without a"
    yield "  published run. `advisor accuracy --time` has every group and every miss."


if __name__ == "__main__":
    main()
