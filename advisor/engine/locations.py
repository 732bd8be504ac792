"""Where findings point: the span of a hit, or the key that stands for the whole run."""

from advisor.documents import Document
from advisor.engine.finding import Place
from advisor.engine.rule import Hit
from advisor.run import Run


def document_of(run: Run, hit: Hit) -> Document | None:
    """The document that a hit speaks of."""
    if hit.document == "config":
        return run.config
    return run.deepspeed.document if run.deepspeed else None


def place_of(run: Run, hit: Hit) -> Place:
    """The span of a hit; for what is not in the file, the key that stands for the whole run."""
    document = document_of(run, hit)
    if document is None or document.is_new:
        return run_place(run)
    path = run.deepspeed.path(hit.at) if hit.document == "deepspeed" and run.deepspeed and hit.at else hit.at
    span = (document.key_span(path) if hit.on_key else document.span(path)) if path else None
    if span is None:
        return run_place(run) if document is run.config else Place(document.file)
    return Place(document.file, span.line, span.column, span.end_line, span.end_column)


def run_place(run: Run) -> Place:
    """Where findings about the whole run point: how it is sharded, else its model."""
    for key in ("deepspeed", "fsdp_config", "base_model"):
        span = run.config.key_span(key) if key == "fsdp_config" else run.config.span(key)
        if span is not None:
            return Place(run.config.file, span.line, span.column, span.end_line, span.end_column)
    return Place(run.config.file)
