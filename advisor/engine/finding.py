"""What the advisor says of a run: findings, each at a place, each with its fix where there is one."""

from collections.abc import Mapping
from dataclasses import field
from os import path
from typing import TYPE_CHECKING, Literal

from advisor.engine.answer import Rung
from advisor.engine.rule import Level
from advisor.engine.skipped import Skipped
from advisor.record import record, replace

if TYPE_CHECKING:
    from advisor.allocations.timeline import Timeline
    from advisor.documents import Edit
    from advisor.engine.answer import Answer
    from advisor.memory.basis import Basis
    from advisor.memory.ledger import Estimate, Verdict
    from advisor.memory.shorter_rows import ShorterRows
    from advisor.speed import StepTime, Unpriced

LEVELS: tuple[Level, ...] = ("error", "warning", "note")
PLANNED: Mapping[str, str] = {"does-not-fit": "does-not-fit", "tight": "tight-fit"}
"""The verdicts that get a plan, each with the rule that says it."""
OF_HOST = "host-memory-exceeded"
"""The rule that speaks for the verdict where it is the host that does not suffice."""


@record
class Place:
    """A span in a file, 1-based, columns in characters, the end exclusive. Line 0: the whole file."""

    file: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    @property
    def words(self) -> str:
        """``line 9`` of the YAML, ``line 12 of zero2.json``, or the file where it is all of it."""
        if not self.line:
            return self.file
        return f"line {self.line} of {path.basename(self.file)}" if self.file.endswith(".json") else f"line {self.line}"


@record
class Fix:
    """Edits that answer a finding. ``before`` and ``after``: peak bytes on one GPU, where the edit changes it.

    ``edits`` are against the files as the previous step of the plan left them; ``diff`` shows them as unified diff.
    """

    safe: bool
    edits: "tuple[Edit, ...]"
    before: int | None = None
    after: int | None = None
    verdict: "Verdict | None" = None
    diff: str = ""
    by_choice: bool = False
    """A gain rather than a mistake: ``--fix`` leaves it alone."""
    seconds: tuple[float, float] | None = None
    """Of an optimizer step before and after, where both are known."""
    condition: str = ""
    """What ``verdict`` takes of the hosts, as of ``Estimate.condition``."""
    needed: tuple[int, int] | None = None
    """The high end of what one GPU needs, before and after; ``before`` and ``after`` are the low end."""
    host: tuple[int, int] | None = None
    """Bytes of a node's host memory before and after."""


@record
class Finding:
    """One thing to say. ``message`` names the key, the value, the consequence and the remedy, in that order."""

    rule: str
    level: Level
    message: str
    place: Place
    title: str = ""
    cost: str = ""
    why: str = ""
    source: str = ""
    fix: Fix | None = None
    help: tuple[str, ...] = ()
    """Further lines of advice, such as what hardware would do."""
    label: str = ""
    """A step in a few words."""
    because: str = ""
    """Why, in a line."""
    price: str = ""
    """What it costs, in a line."""
    requires: tuple[str, ...] = ()
    """What must be installed first, each with its command."""
    step: int | None = None
    """The number of this step in the plan, from 1; None if the finding is no step."""
    sequence: Literal["room"] | None = None
    """The steps with which the room that is left is used, one after the other."""
    offered: bool = True
    """False for a step that the current ``--fix`` would not take (an unsafe one, without ``--unsafe-fixes``)."""


@record
class WholePlan:
    """The plan as one set of edits against the files as they are. ``before`` and ``after``: bytes needed on one GPU."""

    edits: "tuple[Edit, ...]"
    before: int
    after: int
    verdict: "Verdict"
    safe: bool
    diff: str
    seconds: tuple[float, float] | None = None
    """Of an optimizer step before and after, where both are known."""


@record(eq=False)
class Report:
    """All that is said of one file: a run, or a DeepSpeed JSON alone (then without hardware and estimate)."""

    file: str
    hardware: str | None
    verdict: "Verdict"
    estimate: "Estimate | None"
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...] = ()
    summary: str = ""
    """The run in one line: ``full fine-tune, bf16, seq 4096, micro batch 2, global batch 128``."""
    texts: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Text of each file that a finding points into, with its byte order mark, for snippets."""
    planned: "Estimate | None" = None
    """The estimate after all steps of the plan."""
    plan: WholePlan | None = None
    room: WholePlan | None = None
    """The steps with which the room that is left is used, as one."""
    rungs: tuple[Rung, ...] = ()
    """The user's flowchart next to the plan."""
    fixed: int = 0
    """Findings that ``--fix`` has fixed in this call."""
    applied: tuple[Finding, ...] = ()
    """What ``--fix`` did: the fixed findings and the steps taken."""
    created: tuple[str, ...] = ()
    """The files that it made."""
    undo: str = ""
    """What takes all of it back."""
    time: "StepTime | Unpriced | None" = None
    """The time of a step, or why it has none; None where nobody asked (``Options.details``)."""
    basis: "Basis | None" = None
    """How well the estimate is founded, where that was asked."""
    second: "ShorterRows | None" = None
    """The estimate for rows of another length, where that was asked (``--row-length``)."""
    timeline: "Timeline | None" = None
    """What is alive when, where a page shows it."""
    cards: tuple[tuple[str, ...], ...] = ()
    """The table of ``advisor hardware`` for this run, its heads first, where that was asked."""
    answer: "Answer | None" = None
    """What a person asks of the run, where that is shown."""
    cheapest: str = ""
    """Which card of that table costs least, in a sentence."""
    card_caption: str = ""
    """What that table says in a line."""
    card_notes: tuple[str, ...] = ()
    """What that table says below: of which hours and prices it is, and what it leaves out."""
    against: "Against | None" = None
    """What another revision of the files says, where the call compares with one."""
    seen: str = ""
    """What a run like this one took on this machine: a line for a person who looks on."""

    def without_notes(self) -> "Report":
        """What speaks against the run: errors and warnings."""
        return replace(self, findings=tuple(finding for finding in self.findings if finding.level != "note"))


Lines = Mapping[str, frozenset[int]]
"""Line numbers by file."""


@record(eq=False)
class Against:
    """The same config at another revision, on the same hardware and stack."""

    revision: str
    report: Report | None
    """None where the config was not there, or could not be read."""
    known: tuple[Finding, ...] = ()
    """What is found now and was found then: it does not count."""
    touched: Lines = field(default_factory=dict[str, frozenset[int]])
    """The lines that were changed or added since."""
    shown: Lines = field(default_factory=dict[str, frozenset[int]])
    """Those and their neighbours: the lines that a diff shows, where a code host takes comments."""
    changed: bool = True
    """Whether the YAML, or the DeepSpeed JSON that it names, reads otherwise than then."""
