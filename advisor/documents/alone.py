"""A DeepSpeed JSON that no YAML of the call names: only the rules that speak of it alone are asked."""

import os
from collections.abc import Container, Iterable

from advisor.documents import Document, parse
from advisor.opening import Context, Opened, is_own
from advisor.run.build import build_run
from advisor.run.deepspeed import Section
from advisor.util import is_mapping

MOST_BYTES = 1 << 20
SIGNS = (
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "wall_clock_breakdown",
)
"""Keys that the JSONs of no other tool have."""
DTYPES = ("bf16", "fp16")
"""Mappings in DeepSpeed's config alone; elsewhere they are switches."""


def is_deepspeed(document: Document) -> bool:
    """Whether a JSON is a DeepSpeed config, by its keys."""
    return any(key in document for key in SIGNS) or any(is_mapping(document.get(key)) for key in DTYPES)


def may_be_deepspeed(raw: bytes) -> bool:
    """Whether it is worth parsing: a mapping that names one of those keys anywhere."""
    if len(raw) > MOST_BYTES or raw.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"{":
        return False
    return any(f'"{key}"'.encode() in raw for key in (*SIGNS, *DTYPES))


def json_of(opened: Opened) -> str:
    """The real path of the JSON that a run has read; empty without one."""
    section = opened.run.deepspeed
    return os.path.realpath(section.file) if section is not None and not section.prefix else ""


def left_alone(documents: Iterable[Document], named: Container[str]) -> list[Document]:
    """The JSONs that none of the runs has read."""
    return [document for document in documents if os.path.realpath(document.file) not in named]


def open_json(document: Document, context: Context) -> Opened:
    """The JSON as a run without a YAML. A value of a wrong type is an ``InputError`` at its place."""
    nothing = parse(b"", document.file, "yaml")
    run = build_run(
        nothing,
        Section(document),
        model=None,
        hardware=None,
        stack=context.stack,
        working_directory=context.working_directory,
        deepspeed_editable=is_own(document, document.file),
    )
    return Opened(run)
