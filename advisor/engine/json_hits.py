"""Hits in a run's DeepSpeed config: where they point, and whether an edit may land there."""

from advisor.documents import Change
from advisor.engine.rule import Hit, Level
from advisor.run import Run
from advisor.run.build import prefixed
from advisor.run.deepspeed import has_shipped_name


def json_hit(run: Run, at: str, message: str, *edits: Change, on_key: bool = False, level: Level | None = None) -> Hit:
    """A hit at a path of the DeepSpeed config, wherever that stands.

    It points at ``deepspeed:`` where the file is one of axolotl's own; the edits are dropped where the file is not this
    run's alone, since a lint edit changes a file in place.
    """
    section = run.deepspeed
    if section is None or (not section.prefix and not run.is_json_alone and has_shipped_name(section.file)):
        return Hit("deepspeed", message, level=level)
    if section.prefix:
        within = ".".join((*map(str, section.prefix), *([at] if at else [])))
        inline = tuple(prefixed(edit, section.prefix) for edit in edits)
        return Hit(within, message, inline, on_key=on_key or not at, level=level)
    kept = edits if owns_json(run) else ()
    return Hit(at, message, kept, document="deepspeed", on_key=on_key, level=level)


def owns_json(run: Run) -> bool:
    """Whether the DeepSpeed JSON is this run's alone, under its repository and on disk."""
    section = run.deepspeed
    return section is not None and run.deepspeed_editable and not section.document.is_new
