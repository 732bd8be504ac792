"""A value that cannot be read, so that there is no estimate."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, json_hit, only
from advisor.run.unreadable import may_hold_placeholders, placeholders

UNKNOWN = "there is no estimate before it is filled in"
UNCHECKED = "what is filled in is not checked"


def finds(run: Run) -> Iterator[Hit]:
    """The values that the estimate depends on and that cannot be read; and every variable, as a note."""
    for found in run.unreadable:
        if not (found.placeholder or found.absent):
            yield hit(run, found.document, found.key, f"{found.message}; without it there is no estimate")
    waiting = {(found.document, found.key) for found in run.unreadable if found.placeholder}
    if may_hold_placeholders(run.config):
        for path, value in placeholders(run.config):
            inline = path[0] == "deepspeed" and len(path) > 1
            key = ".".join(map(str, path[1:] if inline else path))
            counts = ("deepspeed" if inline else "config", key) in waiting
            yield note("config", ".".join(map(str, path)), value, counts=counts)
    section = run.deepspeed
    if section is not None and not section.prefix and may_hold_placeholders(section.document):
        for path, value in placeholders(section):
            key = ".".join(map(str, path))
            yield note("deepspeed", key, value, counts=("deepspeed", key) in waiting)


def hit(run: Run, document: str, key: str, message: str) -> Hit:
    """An error at a key of one of the two documents."""
    return json_hit(run, key, message) if document == "deepspeed" else Hit(key, message)


def note(document: str, key: str, value: str, *, counts: bool) -> Hit:
    """A variable, and what it means for the answer."""
    message = f"`{key}` is `{value.strip()}`, which axolotl does not fill in itself; {UNKNOWN if counts else UNCHECKED}"
    return Hit(key, message, document="deepspeed" if document == "deepspeed" else "config", level="note")


rule = Rule(
    id="unreadable-value",
    stage="lint",
    title="A value that cannot be read, so that there is no estimate",
    finds=finds,
    alone=True,
    level="error",
    proof="rejects",
    why="""
        One value that is no value of its key leaves the memory unknown; everything else in the file is checked all the
        same. `${X}` as a whole value, or `{{ x }}` in quotes, is a variable: axolotl reads it as those very letters, so
        something else has to fill it in first. Findings that depend on it are not reported.
    """,
    source="deepspeed/runtime/zero/config.py:95@0.18.9; axolotl/cli/config.py:254@0.19.0: plain `yaml.safe_load`",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 4096",
            "deepspeed: zero.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 7}, "bf16": {"enabled": true}}',
            fires=True,
        ),
        but(
            'sequence_len: "4096"',
            "micro_batch_size: 2.0",
            "flash_attention: yes",
            deepspeed='{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}',
        ),
        only("base_model: Qwen/Qwen2.5-7B", "sequence_len: ${LENGTH}", fires=True),
    ),
)
