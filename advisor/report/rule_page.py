"""The page of a rule, written from the rule itself; and the list of all rules."""

from collections.abc import Iterable, Iterator
from inspect import cleandoc
from typing import Any

from advisor.engine.example import Example
from advisor.engine.rule import Rule, Stage
from advisor.report.snippet import diff_lines
from advisor.report.style import Style
from advisor.report.wording import APPLICABILITY
from advisor.schemas.refusals import refusals

STAGES: dict[Stage, str] = {
    "lint": "lint: always consulted",
    "fit": "fit: steps of the flowchart, while the run does not fit",
    "speed": "speed: what to do with the memory that is left",
}
PROOFS = {
    "rejects": "tested: the library itself refuses the example",
    "accepts": "tested: the library itself accepts the example",
    "read": "read in the source named below",
}
SAFE = {
    "safe": "Yes: it does not change what is trained.",
    "unsafe": "No: it changes what is trained, so it takes `--unsafe-fixes` or a `y`.",
    "depends": "It depends on the run; the finding says which.",
}


def page(rule: Rule, style: Style) -> str:
    """What it is, why, cost, safety, examples as diffs, source."""
    head = [style.paint(f"{rule.id} ({subtitle(rule)})", "strong"), *style.prose(rule.title)]
    blocks = [head, section("Why", rule.why, style)]
    if rule.cost:
        blocks.append(section("Cost", rule.cost, style))
    if rule.stage != "lint" or edits(rule):
        blocks.append(section("Is the edit safe?", SAFE[applicability(rule)], style))
    if rule.stage == "lint":
        blocks.append(section("Proof", PROOFS[rule.proof], style))
    if covered := list(covers(rule.id)):
        blocks.append([style.paint("What it covers", "strong"), *covered])
    blocks += [_example_block(example, style) for example in rule.expanded if example.expects_finding]
    silent = [example for example in rule.expanded if not example.expects_finding]
    blocks += [_silent_block(example, style) for example in silent[:1]]
    blocks.append(section("Source", rule.source, style))
    return "\n\n".join("\n".join(block) for block in blocks)


def subtitle(rule: Rule) -> str:
    """``lint, error, blocks a launch``."""
    words = [
        rule.stage,
        *([rule.level] if rule.stage == "lint" else []),
        *(["blocks a launch"] if rule.fatal else []),
    ]
    return ", ".join(words)


def covers(rule: str) -> Iterator[str]:
    """The rows of the table of refusals that the rule reads, one a line."""
    for row in (row for rows in refusals().get(rule, {}).values() for row in rows):
        next_to = f" with `{row.next_to}`" if row.next_to else f" without {row.without}" if row.without else ""
        plugin = f" ({row.plugin})" if row.plugin else ""
        yield f"  `{row.at}`{next_to}{plugin}: {row.because}"


def section(title: str, text: str, style: Style) -> list[str]:
    """A title, and paragraphs under it."""
    paragraphs = [style.prose(part, "  ") for part in cleandoc(text).split("\n\n")]
    lines = [line for paragraph in paragraphs for line in ([""] if paragraph is not paragraphs[0] else []) + paragraph]
    return [style.paint(title, "strong"), *lines]


def _example_block(example: Example, style: Style) -> list[str]:
    """An example that fires: what it does to memory, then the diff, or the text where nothing is edited."""
    memory = f": {example.memory} per GPU" if example.memory else ""
    title = style.paint(f"Example on {example.gpus}{memory}", "strong")
    diff = example_diff(example)
    return [title, *(diff_lines(diff, style, "  ") if diff else texts(example))]


def _silent_block(example: Example, style: Style) -> list[str]:
    """An example about which the rule says nothing."""
    return [style.paint(f"No finding for this one on {example.gpus}", "strong"), *texts(example)]


def texts(example: Example) -> Iterator[str]:
    """The YAML, and the JSON if there is one, indented."""
    documents = [cleandoc(example.before), *([cleandoc(example.deepspeed)] if example.deepspeed else [])]
    for document in documents:
        yield from (f"  {line}".rstrip() for line in document.splitlines())


def example_diff(example: Example) -> str:
    """What the edit does to the YAML and to the JSON."""
    pairs = [
        ("config.yaml", example.before, example.after),
        ("deepspeed.json", example.deepspeed or "", example.after_deepspeed),
    ]
    return "".join(unified(name, before, after) for name, before, after in pairs if after is not None)


def unified(name: str, before: str, after: str) -> str:
    """A unified diff; one line where nothing changes hands is nothing."""
    from difflib import unified_diff

    old, new = cleandoc(before).splitlines(), cleandoc(after).splitlines()
    return "".join(f"{line}\n" for line in unified_diff(old, new, name if old else "/dev/null", name, lineterm=""))


def edits(rule: Rule) -> bool:
    """Whether any example shows an edit."""
    return any(example.after is not None or example.after_deepspeed is not None for example in rule.expanded)


def applicability(rule: Rule) -> str:
    """``safe``, ``unsafe``, or ``depends`` where the run decides."""
    return "depends" if callable(rule.safe) else APPLICABILITY[rule.safe]


def listing(rules: Iterable[Rule], style: Style) -> str:
    """Ids and titles by stage, each stage in the order given."""
    known = list(rules)
    blocks: list[list[str]] = []
    for stage, title in STAGES.items():
        members = [rule for rule in known if rule.stage == stage]
        if members:
            column = max(len(rule.id) for rule in members) + 4
            lines = [line for rule in members for line in style.prose(rule.title, f"  {rule.id}".ljust(column))]
            blocks.append([style.paint(title, "strong"), *lines])
    return "\n\n".join("\n".join(block) for block in blocks)


def as_json(rule: Rule) -> dict[str, Any]:
    """The page as a JSON value; keys may be added."""
    return {
        "rule": rule.id,
        "stage": rule.stage,
        "level": rule.level if rule.stage == "lint" else "note",
        "title": rule.title,
        "why": cleandoc(rule.why),
        "cost": rule.cost,
        "applicability": applicability(rule),
        "proof": rule.proof if rule.stage == "lint" else None,
        "fatal": rule.fatal,
        "source": rule.source,
        "examples": [_example_json(example) for example in rule.expanded],
    }


def _example_json(example: Example) -> dict[str, Any]:
    """One example with its diff."""
    return {
        "gpus": example.gpus,
        "fires": example.expects_finding,
        "memory": example.memory,
        "before": cleandoc(example.before),
        "after": cleandoc(example.after) if example.after is not None else None,
        "deepspeed": example.deepspeed,
        "after_deepspeed": example.after_deepspeed,
        "diff": example_diff(example),
    }
