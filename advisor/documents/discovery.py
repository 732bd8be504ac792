"""Paths on the command line -> documents: files as they are, folders searched for configs."""

import os
from collections.abc import Iterator, Sequence

from advisor.documents import Document, parse, read
from advisor.documents.excluding import Excluded
from advisor.documents.repository import leads_out
from advisor.documents.templates import as_template
from advisor.errors import InputError
from advisor.util import is_mapping, read_start

NOTHING = Excluded()
SUFFIXES = (".yaml", ".yml", ".json")
MOST_BYTES = 1 << 20
USUAL = ("datasets", "micro_batch_size", "sequence_len", "learning_rate", "adapter", "num_epochs", "output_dir")
"""Keys that most axolotl configs have."""
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


def gathered(paths: Sequence[str]) -> Iterator[Document | InputError]:
    """The axolotl configs and DeepSpeed JSONs among ``paths``, and what could not be read, in order, each once."""
    for file, named, searched in candidates(paths):
        found = opened(file, named, searched)
        if found is not None:
            yield found


def candidates(paths: Sequence[str], excluded: Excluded = NOTHING) -> Iterator[tuple[str, bool, str | None]]:
    """The files that may be configs, each once, and whether they were named outright; those are never excluded.

    Last is the folder that was searched for it, None for a path that was given.
    """
    seen: set[str] = set()
    # pre-commit names every YAML of a commit, whatever it is for.
    chosen = not os.environ.get("PRE_COMMIT")
    for path in paths:
        for file, named in files_of(path, excluded):
            real = os.path.realpath(file)
            left_out = named and not chosen and excluded.has_above(file)
            if real not in seen and not left_out:
                seen.add(real)
                yield file, named and chosen, None if named else path


def files_of(path: str, excluded: Excluded) -> Iterator[tuple[str, bool]]:
    """A file, or the YAMLs and JSONs below a folder; and whether it was named outright."""
    if not os.path.isdir(path):
        yield path, True
        return
    refused: list[str] = []
    for folder, folders, files in os.walk(path, onerror=lambda error: refused.append(error.filename)):
        kept = (name for name in folders if not name.startswith(".") and name != "node_modules")
        folders[:] = sorted(name for name in kept if not excluded.has(os.path.join(folder, name)))
        for name in sorted(files):
            file = os.path.join(folder, name)
            # A pipe or a device would be waited for.
            readable = os.path.isfile(file) or not os.path.exists(file)
            if name.endswith(SUFFIXES) and readable and not excluded.has(file):
                yield file, False
    # Opened, they say why they may not be read.
    yield from ((folder, True) for folder in refused)


def opened(file: str, named: bool, searched: str | None = None) -> Document | InputError | None:
    """The document if it is a YAML that was named, an axolotl config, or a DeepSpeed JSON.

    A YAML found in a folder, and any JSON, that cannot be read counts only if it looks like one. A link that leads out
    of the checkout, or without one of the folder that was ``searched``, shows nothing of what it leads to, unless it
    was named.
    """
    if not _looks_like_config(file, named):
        return None
    if not named and os.path.islink(file) and leads_out(file, searched):
        where = "its repository" if leads_out(file) else "the folder that is searched"
        return InputError(f"is a link out of {where}", file, remedy="name it to have it checked", note=True)
    try:
        document = read(file)
    except InputError as error:
        return as_template(error, _raw_of(file), named=named)
    if document.syntax == "json":
        return document if is_deepspeed(document) else None
    return document if named or is_config(document) else None


def _raw_of(file: str) -> bytes:
    """The beginning of a file that could not be used."""
    try:
        return read_start(file, MOST_BYTES)
    except (OSError, ValueError):
        return b""


def _looks_like_config(file: str, named: bool) -> bool:
    """Whether the text names a base model anywhere, or a JSON a key of DeepSpeed's."""
    is_json = file.lower().endswith(".json")
    if named and not is_json:
        return True
    try:
        raw = read_start(file, MOST_BYTES + 1)
    except OSError:
        return True
    return may_be_deepspeed(raw) if is_json else b"base_model" in raw


def from_stdin(raw: bytes) -> Document:
    """Standard input as a YAML."""
    try:
        return parse(raw, "<stdin>", "yaml")
    except InputError as error:
        raise as_template(error, raw, named=True) from error


def no_config(file: str) -> InputError:
    """What is said of a file that was named as a config and is none."""
    return InputError("is not an axolotl config: it has no `base_model`", file, remedy="name an axolotl YAML")


def is_config(document: Document) -> bool:
    """Whether a YAML is an axolotl config: it has a ``base_model``, as have the recipes of mergekit, which are none.

    A blank one counts where another key is axolotl's too.
    """
    if document.syntax != "yaml" or "base_model" not in document or _is_recipe(document):
        return False
    return document["base_model"] is not None or any(key in document for key in USUAL)


def _is_recipe(document: Document) -> bool:
    """Whether a YAML tells mergekit what to merge (mergekit/config.py:107-112@0.1.5)."""
    return "merge_method" in document and any(key in document for key in ("models", "slices", "modules"))


def is_deepspeed(document: Document) -> bool:
    """Whether a JSON is a DeepSpeed config, by its keys."""
    return any(key in document for key in SIGNS) or any(is_mapping(document.get(key)) for key in DTYPES)


def may_be_deepspeed(raw: bytes) -> bool:
    """Whether it is worth parsing: a mapping that names one of those keys anywhere."""
    if len(raw) > MOST_BYTES or raw.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"{":
        return False
    return any(f'"{key}"'.encode() in raw for key in (*SIGNS, *DTYPES))
