"""A page in Markdown for each rule, and an index, all from the rules themselves."""

import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc

from advisor.engine.example import Example
from advisor.engine.registry import built_in_rules
from advisor.engine.rule import Rule, Stage
from advisor.report.rule_page import PROOFS, SAFE, STAGES, applicability, edits, example_diff, subtitle
from advisor.schemas.refusals import refusals

ORDER: tuple[Stage, ...] = ("fit", "speed", "lint")
AS_IT_IS = re.compile(r"``.+?``|`[^`]+`|https?://[^\s,;)>]+", re.DOTALL)


def files() -> dict[str, str]:
    """The text of each file by its name: ``index.md``, and one a rule."""
    rules = [rule for stage in ORDER for rule in built_in_rules(stage).values()]
    return {"index.md": index(rules), **{f"{rule.id}.md": page(rule) for rule in rules}}


def index(rules: Iterable[Rule]) -> str:
    """Every rule by stage, with a link to its page."""
    blocks = ["# Rules of axolotl-advisor"]
    known = list(rules)
    for stage in ORDER:
        rows = [f"- [`{rule.id}`]({rule.id}.md): {prose(rule.title)}" for rule in known if rule.stage == stage]
        blocks += [f"## {STAGES[stage]}", "\n".join(rows)]
    return "\n\n".join(blocks) + "\n"


def page(rule: Rule) -> str:
    """What ``advisor rule NAME`` prints, with all examples."""
    blocks = [f"# {rule.id}", f"*{subtitle(rule)}*", f"**{prose(rule.title)}**", "## Why", prose(rule.why)]
    if rule.cost:
        blocks += ["## Cost", prose(rule.cost)]
    if rule.stage != "lint" or edits(rule):
        blocks += ["## Is the edit safe?", prose(SAFE[applicability(rule)])]
    if rule.stage == "lint":
        blocks += ["## Proof", prose(PROOFS[rule.proof])]
    if rows := list(covered(rule.id)):
        blocks += ["## What it covers", "\n".join(rows)]
    for title, wanted in (("## Examples", True), ("## Does not fire on", False)):
        shown = [example for example in rule.expanded if example.expects_finding is wanted]
        blocks += [title, *(block for example in shown for block in example_blocks(example))] if shown else []
    return "\n\n".join([*blocks, "## Source", prose(rule.source), "[All rules](index.md)"]) + "\n"


def covered(rule: str) -> Iterator[str]:
    """A point for each row of the table of refusals that the rule reads."""
    for row in (row for rows in refusals().get(rule, {}).values() for row in rows):
        with_ = f" with `{row.next_to}`" if row.next_to else f" without {row.without}" if row.without else ""
        plugin = f" ({row.plugin})" if row.plugin else ""
        yield f"- {prose(f'`{row.at}`{with_}{plugin}: {row.because}')}"


def example_blocks(example: Example) -> Iterator[str]:
    """The hardware, then the config, or what the edit does to it."""
    yield f"On {example.gpus}" + (f", {prose(example.memory)} per GPU:" if example.memory else ":")
    if diff := example_diff(example):
        yield fenced("diff", diff.rstrip())
        return
    yield fenced("yaml", cleandoc(example.before))
    if example.deepspeed:
        yield fenced("json", cleandoc(example.deepspeed))


def fenced(language: str, text: str) -> str:
    """A block of code; no text of an example can close it."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text}\n{fence}"


def prose(text: str) -> str:
    """Text of a rule as Markdown: code stays, addresses are links, the rest means only what it says."""
    said, after, text = "", 0, cleandoc(text)
    for found in AS_IT_IS.finditer(text):
        said += plain(text[after : found.start()])
        said += found.group() if found.group().startswith("`") else f"<{found.group()}>"
        after = found.end()
    return said + plain(text[after:])


def plain(text: str) -> str:
    """Text outside of code: no mark opens emphasis, a link, a tag or a table, and none a list or title on a new line."""
    return re.sub(r"(?m)^(\d+)([.)] )", r"\1\\\2", re.sub(r"[\\`*_\[\]<>|#~]|(?m:^[-+](?= ))", r"\\\g<0>", text))
