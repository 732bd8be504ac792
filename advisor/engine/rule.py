"""What a rule is: a frozen value that reads like data, with the examples that are its tests and its documentation."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from advisor.engine.example import Example, Variation
from advisor.record import record

if TYPE_CHECKING:
    from advisor.documents import Change
    from advisor.run import Run
    from advisor.run.edits import RunEdits

Level = Literal["error", "warning", "note"]
Stage = Literal["fit", "speed", "lint"]
Proof = Literal["rejects", "accepts", "read"]


@record(eq=False)
class Hit:
    """What a lint rule found: at a dotted path of the YAML, or of the DeepSpeed JSON with ``document="deepspeed"``."""

    at: str
    message: str
    edits: tuple["Change", ...] = ()
    document: Literal["config", "deepspeed"] = "config"
    on_key: bool = False
    level: Level | None = None
    """Where one rule speaks at two levels; None is the rule's own."""
    json_edits: tuple["Change", ...] = ()
    """Of a hit in the YAML: what the DeepSpeed JSON must say then, in the same edit."""
    cost: str = ""
    """What these edits cost, where the rule's own words are about more than them."""

    @property
    def changes(self) -> tuple[tuple[str, tuple["Change", ...]], ...]:
        """All of its edits, by document; nothing where it has none."""
        both: tuple[tuple[str, tuple[Change, ...]], ...] = (self.document, self.edits), ("deepspeed", self.json_edits)
        return tuple((document, edits) for document, edits in both if edits)


Examples = tuple[Example | Variation, ...]
Words = str | Callable[["Run", "Run"], str]
"""What a step says of itself, or how it finds that from the runs before and after it."""


def said(words: Words, before: "Run", after: "Run") -> str:
    """Words of a step, of these runs."""
    return words(before, after) if callable(words) else words


def _never(_run: "Run") -> bool:
    return False


def _nothing(_run: "Run") -> "RunEdits":
    return {}


def _nothing_more(_before: "Run", _after: "Run") -> tuple[str, ...]:
    return ()


def _no_words(_before: "Run", _after: "Run") -> str:
    return ""


def _no_hits(_run: "Run") -> Iterable[Hit]:
    return ()


@record(kw_only=True)
class Rule:
    """One rule. ``fit`` and ``speed`` rules give ``when`` and ``edits``; ``lint`` rules give ``finds``.

    ``edits`` gives the edits, or a list of alternatives, mildest first: the engine takes the mildest that suffices.

    ``label``, ``because`` and ``price``: the step, why it helps and what it costs, as one line of a plan has them.
    ``requires``: what must be installed first, of the runs before and after, each with its command.
    ``caveat``: what this step leaves to the user, of the runs before and after it, as a sentence behind its cost.
    ``safe``: the same thing is trained (parameters, objective, data, global batch, optimizer).
    ``proof`` of a lint rule: ``rejects`` and ``accepts`` are tested against the real library, ``read`` cites a line.
    ``of_names``: refuses what a list of names lacks, which a newer library may have.
    ``fatal``: proven to stop the run after the download, so a launch hook may block on it.
    ``offer``: a gain to choose and no mistake: shown with its edit, which ``--fix`` leaves alone.
    ``alone``: speaks of the DeepSpeed config whatever the YAML says, and so of a JSON that no YAML of the call names.
    """

    id: str
    stage: Stage
    title: str
    why: str
    source: str
    examples: "Examples | Callable[[], Examples]"
    """A variation is of the last full one before it that fires. A function where a check need not make them."""
    label: Words = ""
    """Of the runs before and after the step, where numbers say more."""
    cost: str = ""
    because: Words = ""
    price: Words = ""
    requires: "Callable[[Run, Run], tuple[str, ...]]" = _nothing_more
    caveat: Callable[["Run", "Run"], str] = _no_words
    safe: bool | Callable[["Run"], bool] = False
    when: Callable[["Run"], bool] = _never
    edits: "Callable[[Run], RunEdits | Sequence[RunEdits]]" = _nothing
    finds: Callable[["Run"], Iterable[Hit]] = _no_hits
    level: Level = "warning"
    proof: Proof = "read"
    of_names: bool = False
    fatal: bool = False
    alone: bool = False
    offer: bool = False

    @property
    def given(self) -> Examples:
        """The examples as the file has them."""
        return self.examples() if callable(self.examples) else self.examples

    @property
    def begins_with_variation(self) -> bool:
        """Whether a variation has no full example that it could be of."""
        first = next((one for one in self.given if isinstance(one, Variation) or one.expects_finding), None)
        return isinstance(first, Variation)

    @property
    def expanded(self) -> tuple[Example, ...]:
        """The examples, each in full; the loader refuses a rule that begins with a variation."""
        found: list[Example] = []
        full = Example("")
        for example in self.given:
            shown = example.of(full) if isinstance(example, Variation) else example
            if shown is example and shown.expects_finding:
                full = shown
            found.append(shown)
        return tuple(found)

    def is_safe(self, run: "Run") -> bool:
        """Whether this rule's edits leave what is trained as it is, for this run."""
        return self.safe(run) if callable(self.safe) else self.safe

    def named(self, before: "Run", after: "Run") -> str:
        """The step as a line of a plan has it: the label, or the title of a rule that has none."""
        return said(self.label, before, after) or self.title

    @property
    def may_require(self) -> bool:
        """Whether its step may need what axolotl does not install."""
        return self.requires is not _nothing_more
