"""Where findings point: the span of a hit, or the key that stands for the whole run."""

from advisor.documents import Change, Document
from advisor.engine.finding import Place
from advisor.engine.rule import Hit, Level
from advisor.run import Run
from advisor.run.build import prefixed
from advisor.run.deepspeed import has_shipped_name, is_shipped


def document_named(run: Run, name: str) -> Document | None:
    """The YAML, as ``config``, or the DeepSpeed JSON."""
    if name == "config":
        return run.config
    return run.deepspeed.document if run.deepspeed else None


def place_of(run: Run, hit: Hit) -> Place:
    """The span of a hit; for what is not in the file, the key that stands for the whole run."""
    document = document_named(run, hit.document)
    if document is None or document.is_new:
        return run_place(run)
    path = run.deepspeed.path(hit.at) if hit.document == "deepspeed" and run.deepspeed and hit.at else hit.at
    # Where a value ends may be a secret too.
    outside = hit.document == "deepspeed" and run.has_foreign_json
    span = (document.key_span(path) if hit.on_key or outside else document.span(path)) if path else None
    if span is None:
        return run_place(run) if document is run.config else Place(document.file)
    return Place(document.file, span.line, span.column, span.end_line, span.end_column)


def run_place(run: Run) -> Place:
    """Where findings about the whole run point: how it is sharded, else its model."""
    for key in ("deepspeed", "fsdp_config", "base_model"):
        if run.config.get(key) is None and key != "base_model":
            continue  # a blank one has nothing to point at
        span = run.config.key_span(key) if key == "fsdp_config" else run.config.span(key)
        if span is not None:
            return Place(run.config.file, span.line, span.column, span.end_line, span.end_column)
    return Place(run.config.file)


def json_hit(run: Run, at: str, message: str, *edits: Change, on_key: bool = False, level: Level | None = None) -> Hit:
    """A hit at a path of the DeepSpeed config, wherever that stands.

    It points at ``deepspeed:`` where the file is one of axolotl's own; the edits are dropped where the file is not this
    run's alone, since a lint edit changes a file in place.
    """
    section = run.deepspeed
    if run.has_foreign_json:
        return Hit(at, message, document="deepspeed", on_key=True, level=level)
    if section is None or (not section.prefix and not run.is_json_alone and is_shipped(section.file, section)):
        return Hit("deepspeed", message, level=level)
    if section.prefix:
        within = ".".join((*map(str, section.prefix), *([at] if at else [])))
        inline = tuple(prefixed(edit, section.prefix) for edit in edits)
        return Hit(within, message, inline, on_key=on_key or not at, level=level)
    kept = edits if owns_json(run) else ()
    return Hit(at, message, kept, document="deepspeed", on_key=on_key, level=level)


def owns_json(run: Run) -> bool:
    """Whether the DeepSpeed JSON is this run's alone and under its repository, or a copy that a plan makes."""
    section = run.deepspeed
    if section is None:
        return False
    return not has_shipped_name(section.file) if section.document.is_new else run.deepspeed_editable
