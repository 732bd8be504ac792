"""The column of tools that axolotl never reads by its name."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.schemas.entries import entries_of

READ = "tools"


def finds(run: Run) -> Iterator[Hit]:
    """Each dataset that names another column."""
    for at, item in entries_of(run.config) if run.rl is None else ():
        name = item.get("field_tools")
        if name and name != READ:
            message = f"`field_tools: {name}` is silently ignored: axolotl reads the column `{READ}` alone, and trains"
            yield Hit(f"{at}.field_tools", f"{message} these rows without tools; rename the column")


rule = Rule(
    id="tools-field-ignored",
    stage="lint",
    title="The column of tools that axolotl never reads by its name",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        The prompter takes the name of the column, and axolotl makes it without: the key of the dataset is not among
        those that are handed on. Answers that call tools are then trained without the tools that they call.
    """,
    source="axolotl/prompt_strategies/chat_template.py:54,1193,1383-1410@0.19.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen3-8B",
            "datasets:\n  - path: someone/calls\n    type: chat_template\n    field_tools: functions",
            fires=True,
        ),
        but("datasets:\n  - path: someone/calls\n    type: chat_template\n    field_tools: tools"),
        but("datasets:\n  - path: someone/calls\n    type: chat_template"),
        but("datasets:\n  - someone/calls"),
        but("datasets: someone/calls"),
        but("rl: dpo"),
    ),
)
