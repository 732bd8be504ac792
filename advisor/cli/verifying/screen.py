"""Foreseen against seen, as people read it."""

from collections.abc import Iterator

from advisor.cli.verifying.comparison import Comparison, Row
from advisor.cli.verifying.request import Request
from advisor.engine.finding import Report
from advisor.memory import Estimate
from advisor.memory.ledger import Range
from advisor.report.style import Style
from advisor.speed import StepTime
from advisor.util import GIB, counted, path_shown, seconds

MIB = 1 << 20
COLUMNS = "  {:<24}{:>12}{:>12}{:>9}{:>12}"
NOTHING = "-"
ROWS = {
    "synthetic": "rows are synthetic, {length} tokens each; model, tokenizer and collator are the config's",
    "packed": "rows are synthetic, {each} of {length} tokens to a bin; model, tokenizer and packing are the config's",
    "own": "rows are the config's own, as long as they are: shorter ones than it allows need less than is foreseen",
}


class Screen:
    """The table of one comparison; sizes in GiB, of a small run in MiB."""

    def __init__(self, found: Comparison, style: Style) -> None:
        self.found = found
        self.style = style
        self.unit, self.per = ("GiB", GIB) if max(found.foreseen, found.seen.allocated) >= GIB else ("MiB", MIB)

    def lines(self, report: Report, request: Request, time: StepTime | None, estimate: Estimate) -> Iterator[str]:
        """The run, the table, the verdict."""
        yield from self.style.prose(report.summary, f"{path_shown(report.file)}   ", "strong", indent=2)
        yield from self.style.prose(f"{report.hardware}{self._place(request)}")
        evaluation = "one evaluation" if request.evaluates else "no evaluation"
        what = f"{counted(self.found.seen.steps, 'step')} of axolotl's own training, {evaluation}"
        yield from self.style.prose(f"{what}; {ROWS[request.rows].format(length=request.length, each=request.each)}")
        yield ""
        yield COLUMNS.format("allocated, " + self.unit, "foreseen", "seen", "", "reserved").rstrip()
        for row in self.found.rows:
            yield self._row(row)
        yield self._peak()
        yield ""
        yield from self._others(time, estimate)
        yield ""
        yield from self.verdict()

    def verdict(self) -> Iterator[str]:
        """Whether it is as foreseen, and where it is not, why not."""
        found = self.found
        lead, color = ("As foreseen: ", "fits") if found.as_foreseen else ("Not as foreseen: ", "does-not-fit")
        yield from self.style.prose("; ".join(self._spans()), lead, color, indent=2)
        if found.likely is not None:
            term = found.likely
            likely = f"{term.name} ({self.size(term.bytes)} {self.unit}: {term.formula}; {term.source})"
            yield from self.style.prose(likely, "Likely term: ", "strong", indent=2)

    def _spans(self) -> Iterator[str]:
        """What was seen, each with its range: ``20.9 GiB allocated, within 19.8 to 22.3``."""
        found, unit = self.found, self.unit
        within = "within" if found.holds_allocated else "outside of"
        yield f"{self.size(found.seen.allocated)} {unit} allocated, {within} its range of {self._span(found.allocated)}"
        if found.reserved is not None:
            within = "within" if found.holds_reserved else "outside of"
            yield f"{self.size(found.seen.reserved)} {unit} reserved, {within} {self._span(found.reserved)}"

    def _row(self, row: Row) -> str:
        """One part of the training."""
        off = f"{row.allocated / row.foreseen - 1:+.1%}" if row.is_compared and row.foreseen and row.allocated else ""
        shown = (self.size(row.foreseen), self.size(row.allocated), off, self.size(row.reserved or None))
        return COLUMNS.format(row.name, *shown).rstrip()

    def _peak(self) -> str:
        """The highest of all."""
        seen = self.found.seen
        return self._row(Row("peak", self.found.foreseen, seen.allocated, seen.reserved))

    def _others(self, time: StepTime | None, estimate: Estimate) -> Iterator[str]:
        """Host memory, and the time of a step."""
        host = self.size(estimate.host_peak) if estimate.host else NOTHING
        yield COLUMNS.format(f"host, {self.unit}", host, self.size(self.found.seen.host), "", "").rstrip()
        foreseen = f"{seconds(time.low)}-{seconds(time.high)}" if time is not None else NOTHING
        taken = NOTHING if self.found.seen.seconds is None else seconds(self.found.seen.seconds)
        yield COLUMNS.format("seconds a step", foreseen, taken, "", "").rstrip()

    def _place(self, request: Request) -> str:
        """What a run on a CPU shows."""
        cpu = ", tried on a CPU: tensors are counted, and what CUDA adds is left out"
        return cpu if request.cpu else ""

    def _span(self, within: Range) -> str:
        return f"{self.size(within.low)} to {self.size(within.high)}"

    def size(self, bytes_: int | None) -> str:
        """Bytes in the table's unit."""
        return NOTHING if bytes_ is None else f"{bytes_ / self.per:,.1f}"
