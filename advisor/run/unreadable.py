"""Values that cannot be read: of a wrong type, or a template's, which are not there before it is rendered."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from advisor.documents import Document, Path
from advisor.record import record
from advisor.util import is_list, is_mapping, regex

PLACEHOLDER = regex(r"\s*(\$\{[^{}]+\}|\{\{[^{}]+\}\})\s*")
LITERAL = frozenset({"chat_template_jinja"})
"""Keys whose values are templates of their own, which axolotl renders itself."""
NAMES_THE_RUN = frozenset({"base_model", "base_model_config", "deepspeed", "model_config", "overrides_of_model_config"})
"""Keys that name the model and the DeepSpeed config; those are found before a run is built."""
COUNTED_SECTIONS = frozenset({"zero_optimization", "bf16", "fp16", "data_types", "optimizer"})
"""Of a DeepSpeed config, what its memory depends on."""


@record(eq=False)
class Unreadable:
    """A value that the estimate depends on and that cannot be read. ``key`` is dotted, inside its document."""

    key: str
    message: str
    document: Literal["config", "deepspeed"] = "config"
    placeholder: bool = False
    """Whether it is filled in before axolotl reads the file, so that nothing is wrong with it."""
    absent: bool = False
    """Whether it names a file that is not there, of which a rule of its own speaks."""


def is_placeholder(value: object) -> bool:
    """Whether a value as a whole is a variable: ``${X}``, or ``{{ x }}`` in quotes."""
    return isinstance(value, str) and PLACEHOLDER.fullmatch(value) is not None


def placeholders(values: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """The variables among the values of a config, with their paths. ``{{ x }}`` counts at the top level alone."""
    for key, value in values.items():
        if key in LITERAL:
            continue
        if is_placeholder(value):
            yield (key,), value
        else:
            yield from _below(value, (key,))


def _below(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if is_mapping(value):
        inside: Iterable[tuple[Any, Any]] = value.items()
    elif is_list(value):
        inside = enumerate(value)
    else:
        return
    for key, item in inside:
        # Datasets have templates of their own, in braces.
        if isinstance(item, str) and is_placeholder(item) and item.lstrip().startswith("$"):
            yield (*path, key), item
        else:
            yield from _below(item, (*path, key))


def without_its_file(named: object) -> tuple[Unreadable, ...]:
    """A DeepSpeed config that is named and not there: nobody knows how it shards."""
    if not isinstance(named, str) or not named or is_placeholder(named):
        return ()
    return (Unreadable("deepspeed", f"`deepspeed: {named}` is not there", absent=True),)


def may_hold_placeholders(document: Document) -> bool:
    """Whether it is worth looking: most files have no brace of that kind in them."""
    return document.is_new or b"${" in document.raw or b"{{" in document.raw


def unfilled(document: Document, read: Iterable[str]) -> tuple[Unreadable, ...]:
    """The variables of a YAML at keys that the run depends on: those that were ``read`` for it."""
    if not may_hold_placeholders(document):
        return ()
    counted = {key.partition(".")[0] for key in read} | NAMES_THE_RUN
    # An inline DeepSpeed config is a document of its own.
    own = ((path, value) for path, value in placeholders(document) if path[0] != "deepspeed" or len(path) == 1)
    return tuple(_unfilled_at(path, value) for path, value in own if path[0] in counted)


def unfilled_in_deepspeed(document: Document, values: Mapping[str, Any]) -> tuple[Unreadable, ...]:
    """The variables of a DeepSpeed config at keys that memory depends on."""
    if not may_hold_placeholders(document):
        return ()
    found = ((path, value) for path, value in placeholders(values) if path[0] in COUNTED_SECTIONS)
    return tuple(_unfilled_at(path, value, "deepspeed") for path, value in found)


def _unfilled_at(path: Path, value: str, document: Literal["config", "deepspeed"] = "config") -> Unreadable:
    """A variable as what it is."""
    return Unreadable(".".join(map(str, path)), f"`{path[-1]}` is `{value.strip()}`", document, placeholder=True)
