"""The JSON outputs as pydantic models, from which ``schema.json`` is written.

``python -m advisor.report.schema_models`` writes it. Used by tests and ``make tables`` alone;
nothing on the way of a command imports it.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

FILE = Path(__file__).with_name("schema.json")
Bytes = int


class Model(BaseModel):
    """Readers must accept fields that a later release adds."""

    model_config = ConfigDict(extra="allow")


class Span(Model):
    """Bytes, from low to high."""

    low: Bytes
    high: Bytes


class Parts(Model):
    """Bytes of the peak by part; they sum to ``allocated_peak``."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    loss: Bytes
    overhead: Bytes


class Term(Model):
    """One addend of a phase, with its arithmetic and its source."""

    name: str
    bytes: Bytes
    formula: str
    source: str


class Phase(Model):
    """One phase of training; its bytes are the sum of its terms."""

    name: Literal["load", "forward and loss", "backward", "optimizer step", "evaluation", "generation"]
    bytes: Bytes
    terms: list[Term]


class Uncounted(Model):
    """A key that takes memory, or frees it, and is not counted: the run needs more or less than ``needed``."""

    key: str
    what: str
    memory: Literal["more", "less", "either"]


class ApproximatePart(Model):
    """Something that is only approximate, and what can be done about it."""

    what: str
    remedy: str


class Basis(Model):
    """``exact``: compared with the real modules by an oracle; ``ranges``: what the reserved range rests on.

    Of a call with more than four configs, those after the fourth have the published range.
    """

    kind: Literal["exact", "traced", "approximate"]
    parts: list[ApproximatePart]
    ranges: Literal["replay", "published"]


class Rows(Model):
    """The tokens of a row that are counted, and what says so; ``full``: every row has them, packed or padded.

    ``uncut``: a longer one goes through whole.
    """

    length: int
    origin: str
    full: bool
    uncut: bool


class Images(Model):
    """The images of a row that are counted, in pixels, and what says so: ``assumed`` where nothing does."""

    count: int
    width: int
    height: int
    origin: str


class Memory(Model):
    """The estimate, in bytes: on the GPU that needs most, and on each node's host."""

    unit: Literal["bytes"]
    usable: Bytes
    outside_torch: Bytes
    allocated_peak: Bytes
    needed: Span
    reserved_peak: Span
    host_peak: Bytes
    peak_phase: str
    parts: Parts
    phases: list[Phase]
    rows: Rows | None = None
    images: Images | None = None
    basis: Basis | None = None
    uncounted: list[Uncounted] = []
    host_needed: Span | None = None
    host_usable: Bytes | None = None


class SecondMemory(Model):
    """The estimate for rows of another length, in bytes."""

    verdict: Literal["fits", "tight", "does-not-fit", "unknown"]
    allocated_peak: Bytes
    needed: Span
    reserved_peak: Span


class Second(Model):
    """What ``--row-length`` asks for; ``memory`` is null, with the reason, where rows have one length anyway."""

    tokens: int
    memory: SecondMemory | None
    reason: str


class Expected(Model):
    """A range, and what is likeliest in it."""

    low: float
    expected: float
    high: float


class TimeTerm(Model):
    """One addend of a step's time, with its arithmetic and its source."""

    name: str
    seconds: float
    formula: str
    source: str


class Time(Model):
    """Seconds of one optimizer step; the terms sum to what is expected. Confidence is low for unusual runs."""

    unit: Literal["seconds"]
    step: Expected
    tokens_per_second_per_gpu: Expected
    confidence: Literal["usual", "low"]
    terms: list[TimeTerm]


class Location(Model):
    """1-based; columns in characters, the end exclusive. A finding about the whole file stands at line 1."""

    file: str
    line: int = Field(ge=1)
    column: int = Field(ge=1)
    endLine: int = Field(ge=1)  # noqa: N815 (the contract's name)
    endColumn: int = Field(ge=1)  # noqa: N815


class Change(Model):
    """Bytes that one GPU needs (the low end of ``needed``), before and after an edit."""

    before: Bytes
    after: Bytes


class Edit(Model):
    """Bytes ``start`` to ``end`` of the file give way to ``text``; with ``create`` the file is new."""

    file: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str
    create: bool


class Spent(Model):
    """Seconds of an optimizer step before and after."""

    before: float
    after: float


class Fix(Model):
    """Edits that answer a finding; ``memory`` is null where it is unknown."""

    applicability: Literal["safe", "unsafe"]
    memory: Change | None
    time: Spent | None = None
    edits: list[Edit]


class Finding(Model):
    """One thing to say, at a place."""

    rule: str
    level: Literal["error", "warning", "note"]
    message: str
    url: str | None
    location: Location
    fix: Fix | None
    sequence: Literal["room"] | None = None
    """``room``: a step of what the memory that is left is good for, against the file as the step before left it."""


class Skipped(Model):
    """A step that was skipped, and why."""

    rule: str
    reason: str


class Plan(Model):
    """All steps of the plan as one, the flowchart's own choice; its edits are against the files as they are.

    Without the edits of other findings: ``--fix`` makes their safe fixes first and plans for what is left, so it may
    write other steps, and end in other figures than ``memory.after``.
    """

    safe: bool
    memory: Change
    time: Spent | None = None
    edits: list[Edit]


class Rung(Model):
    """A rung of the flowchart and what became of it in the plan."""

    rung: str
    word: Literal[
        "done", "taken", "taken back", "not needed", "slower here", "would change training", "impossible", "ignored"
    ]
    detail: str


class Reason(Model):
    """Where a run does not fit, or why nobody knows; ``phase`` is the one that needs most."""

    where: Literal["gpu", "host", "load", "evaluation", "refused", "not-counted", "no-gpus", "unknown-model"]
    phase: str | None


class NumberChange(Model):
    """A figure before and after."""

    before: float
    after: float


class AnswerStep(Model):
    """One edit of an option: a step, or the fix of a finding; ``memory`` is the high end of what a GPU needs."""

    rule: str
    title: str
    because: str
    cost: str
    requires: list[str]
    memory: Change | None
    host: Change | None
    time: NumberChange | None


class OptionMemory(Model):
    """Bytes of one GPU, and of one node's host."""

    needed: Span
    usable: Bytes
    host: Bytes


class OptionTime(Model):
    """Seconds of an optimizer step, and tokens a second of all GPUs."""

    seconds: float
    tokens_per_second: float | None


class Option(Model):
    """One way out. A: the same training. B: changes what is trained. F: faster, where it fits or A makes it fit.

    ``edits`` are what ``command`` writes, against the files as they are. ``command`` is null where the option is no
    way out; ``memory`` is then the smallest end that was found.
    """

    id: Literal["A", "B", "C", "F"]
    training: Literal["same", "changes"]
    title: str
    hardware: str | None
    fits: bool
    verdict: Literal["fits", "tight", "does-not-fit", "unknown"]
    recommended: bool
    changes: int
    steps: list[AnswerStep]
    edits: list[Edit]
    command: str | None
    memory: OptionMemory | None
    time: OptionTime | None


class NotTaken(Model):
    """A way or a step that is not taken, and why."""

    title: str
    because: str
    memory: Bytes | None
    seconds: float | None


class Room(Model):
    """The largest micro batch that fits with all else as it is: a larger global batch. ``needed``: of one GPU."""

    micro_batch_size: int
    global_batch_size: int
    needed: Span


class Answer(Model):
    """What a person asks: does it fit, what can be done, what does it cost. ``verdict`` stays about memory alone."""

    starts: bool
    reason: Reason | None
    headline: str
    action: str
    little_room: bool
    needs: Bytes | None
    room: Room | None = None
    more_room: str = ""
    """What makes room for the same training, where a run fits with little; empty elsewhere."""
    network: str = ""
    """Where the links take most of a step: how much, and what helps; empty elsewhere."""
    rate: str = ""
    """Where the learning rate is far from what is usual, a warning: how far, and what is usual; empty elsewhere."""
    padding: str = ""
    """Where short rows are padded to full ones: what that takes, and what to set; empty elsewhere."""
    few_bits: str = ""
    """Where adapters fit on the base as released, and are faster: what that takes, and what to set; empty elsewhere."""
    masters: str = ""
    """Where the rate wants fp32 masters that the weights lack: what ZeRO-1 takes, which keeps them; empty elsewhere."""
    vllm: str = ""
    """Where the model itself makes GRPO's answers: what vLLM on the same card takes, and what to set; else empty."""
    smaller_model: str = ""
    """Where no edit keeps the training: the smaller model that fits as written; empty elsewhere."""
    options: list[Option]
    not_taken: list[NotTaken]


class Estimated(Model):
    """A file with its verdict; ``memory`` is null where model or hardware is unknown, ``time`` also without `net=`."""

    file: str
    hardware: str | None
    verdict: Literal["fits", "tight", "does-not-fit", "unknown"]
    memory: Memory | None
    row_length: Second | None = None
    time: Time | None = None


class Against(Model):
    """The run at another revision, null where it was not there; what is found there too does not count."""

    revision: str
    run: Estimated | None
    known: list[Finding]


class CheckedRun(Estimated):
    """A file with its findings; the steps of a plan are notes, in order."""

    findings: list[Finding]
    skipped: list[Skipped]
    answer: Answer | None = None
    plan: Plan | None = None
    flowchart: list[Rung] = []
    against: Against | None = None


class CheckOutput(Model):
    """What ``advisor check --output-format json`` prints."""

    version: Literal[1]
    advisor: str = ""
    runs: list[CheckedRun]


class EstimateOutput(Estimated):
    """What ``advisor estimate --output-format json`` prints."""

    version: Literal[1]
    advisor: str = ""


def schema() -> dict[str, Any]:
    """Both outputs as one JSON Schema, draft 2020-12; each is also reachable under ``$defs``."""
    places, definitions = models_json_schema(
        [(CheckOutput, "validation"), (EstimateOutput, "validation")], title="Output of advisor, version 1"
    )
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {
        "$schema": draft,
        "title": definitions["title"],
        "anyOf": list(places.values()),
        "$defs": definitions["$defs"],
    }


def text() -> str:
    """``schema.json`` as it must lie on disk."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
