"""What the tools answer, from which the SDK makes their schemas. GiB are of one GPU; what is not known is left out."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Verdict = Literal["fits", "tight", "does-not-fit", "unknown"]
Training = Literal["same", "changes"]
Level = Literal["error", "warning", "note"]
Span = tuple[float, float]


class Result(BaseModel):
    """Holds what it names, and nothing else."""

    model_config = ConfigDict(extra="forbid")


class Answering(Result):
    """The answer to a call; ``notes``: what of the settings does not count."""

    notes: list[str] | None = None


class Needs(Result):
    """Memory: low to high of a GPU, what the card gives, and a host's where something is offloaded."""

    needed_gib: Span | None = None
    usable_gib: float | None = None
    host_gib_per_node: float | None = None


class Head(Needs):
    """What every answer about a run says first."""

    verdict: Verdict
    hardware: str | None = None
    run: str
    step_seconds: Span | None = None


class Step(Result):
    """One edit, and the GiB that are needed after it."""

    rule: str
    does: str
    needed_gib: float | None = None
    training: Training | None = None
    cost: str | None = None
    install: list[str] | None = None


class Option(Result):
    """One way out; ``plan`` takes its ``id``, the command line its ``flags``."""

    id: Literal["A", "B", "F"]
    title: str | None = None
    training: Training
    fits: bool
    recommended: bool | None = None
    edits: int
    needed_gib: float | None = None
    host_gib_per_node: float | None = None
    tokens_per_second: int | None = None
    flags: str
    steps: list[Step] | None = None


class Finding(Result):
    """What is wrong, and where: in the YAML, or in ``file``; ``edit``: of which sort the fix is that ``plan`` has."""

    rule: str
    level: Level
    file: str | None = None
    line: int
    message: str
    help: list[str] | None = None
    edit: Training | None = None


class Answer(Result):
    """Two sentences and the ways out; ``needs_gib``: on one GPU, where none are stated."""

    starts: Literal[False] | None = None
    headline: str | None = None
    action: str | None = None
    needs_gib: float | None = None
    options: list[Option] | None = None
    larger_micro_batch: int | None = None
    hints: list[str] | None = None


class Checked(Answering, Answer, Head):
    """Of ``check``."""

    findings: list[Finding]
    more_findings: int | None = None


class Term(Result):
    """A term of the peak."""

    name: str
    gib: float
    formula: str
    source: str


class Estimated(Answering, Head):
    """Of ``estimate``."""

    why: list[str] | None = None
    peak_phase: str | None = None
    phases_gib: dict[str, float] | None = None
    parts_gib: dict[str, float] | None = None
    reserved_gib: Span | None = None
    terms: list[Term] | None = None


class Planned(Answering):
    """Of ``plan``."""

    before: Head
    after: Head
    steps: list[Step]
    diff: str
    still_wrong: list[Finding] | None = None
    files: dict[str, str] | None = None


class Value(Result):
    """The largest value, none where not even the smallest fits; ``or_more``: the search went no further."""

    value: int | None = None
    or_more: bool | None = None
    needed_gib: float
    steps: list[str] | None = None
    training: Training | None = None


class Largest(Answering):
    """Of ``max``."""

    key: str
    hardware: str
    usable_gib: float
    as_written: Value
    with_steps: Value
    positions_of_the_model: int | None = None


class Remedy(Result):
    """What usually helps, and its lines of YAML."""

    does: str
    yaml: list[str] | None = None
    training: Training


class Died(Answering, Answer):
    """Of ``oom``; with a config ``gpus`` is what was free, for ``plan``, and ``options`` are those that suffice."""

    happened: str
    phase: str | None = None
    first: str | None = None
    remedies: list[Remedy] | None = None
    gpus: str | None = None
    told: list[str]


class Card(Result):
    """GPUs that would do; ``gpus`` is what the other tools take; a price is weak where few clouds ask one."""

    gpus: str
    needed_gib: float
    usable_gib: float
    host_gib_per_node: float | None = None
    steps: list[str] | None = None
    training: Training | None = None
    tokens_per_second: int | None = None
    hours: float | None = None
    price_per_gpu_hour: float | None = None
    cost: float | None = None
    price_is_weak: bool | None = None
    best: list[Literal["cheapest", "fastest", "smallest"]] | None = None
    owned: bool | None = None


class Cards(Answering):
    """Of ``hardware``; ``tokens``: of an epoch, where nobody said how many; ``more``: cards that are not listed."""

    run: str
    tokens: float | None = None
    currency: Literal["USD"] | None = None
    prices_read: str | None = None
    cards: list[Card]
    more: int | None = None
    doubts: list[str] | None = None


class Way(Needs):
    """A kind of training: its figures, or why it does not fit."""

    training: Literal["full", "lora", "qlora"]
    fits: bool
    why_not: str | None = None
    tokens_per_second: int | None = None
    hours: float | None = None
    cost: float | None = None


class Written(Answering):
    """Of ``new``: the ways, and the files of the one that is taken."""

    ways: list[Way]
    why: str
    data: str | None = None
    taken: Literal["full", "lora", "qlora"] | None = None
    files: dict[str, str] | None = None
    install: list[str] | None = None


class Page(Answering):
    """Of ``explain``."""

    rule: str
    stage: Literal["lint", "fit", "speed"]
    level: Level
    title: str
    why: str
    cost: str | None = None
    applicability: Literal["safe", "unsafe", "depends"]
    source: str
