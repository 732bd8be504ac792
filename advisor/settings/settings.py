"""Settings: ``advisor.toml`` or ``[tool.advisor]`` in ``pyproject.toml``, and the environment over them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

from advisor.engine.rule import Level
from advisor.errors import Fault, InputError, going_on, stop
from advisor.hardware import Gpu
from advisor.hardware.own import FLAGS, KEYS, RATES, own_gpu
from advisor.record import record, replace
from advisor.run.stack import KINDS, is_allowed
from advisor.settings.toml import Key, Source, Table, nearest_settings

RULES = "ADVISOR_RULES"
"""Folders of rules, one a line or separated as in ``PATH``; they are run wherever the settings lie."""
ENVIRONMENT = {
    "ADVISOR_GPUS": "gpus",
    "ADVISOR_FAIL_ON": "fail-on",
    "ADVISOR_FLOWCHART": "flowchart",
    "ADVISOR_OUTPUT_FORMAT": "output-format",
    RULES: "rules",
}
NARROW = "ADVISOR_NARROW"
"""Set where a settings file is not trusted, as in a pull request: only what narrows the check counts."""
PARTS: Mapping[str, tuple[str, ...]] = {"gpus": ("cards", "owned")}
"""Settings that are read from the table of another."""
NARROWING = ("gpus", "fail_on", "ignore", "per_file_ignores", "stack")
"""What a file that is not trusted may say."""


@record
class Settings:
    """What an organisation or a repository asks for; keys are the same in TOML, with dashes.

    ``rules`` are absolute paths of folders. ``file`` is where the settings were read, None without.
    ``unused`` are the settings of that file that do not count, each with a line that says so.
    ``origins`` has, for each setting that was given, its file and line, or its environment variable and 0.
    """

    gpus: str | None = None
    fail_on: Level = "error"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    rules: tuple[str, ...] = ()
    flowchart: str = "default"
    flowcharts: Mapping[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """Flowcharts of one's own by name: lists of steps, or of tables with ``name`` and ``steps``."""
    output_format: str | None = None
    exclude: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    stack: Mapping[str, object] = field(default_factory=dict[str, object])
    file: str | None = None
    unused: Mapping[str, str] = field(default_factory=dict[str, str])
    origins: Mapping[str, tuple[str, int]] = field(
        default_factory=dict[str, tuple[str, int]], repr=False, compare=False
    )
    named_rules: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """``rules`` of the file, whatever the environment says."""
    cards: Mapping[str, Gpu] = field(default_factory=dict[str, Gpu])
    """Of ``[gpus.NAME]``: cards that no catalogue has."""
    owned: tuple[str, ...] = ()
    """Of ``[gpus]``: the names of cards that ``advisor hardware`` shows first."""


def load_settings(folder: str | Path, *, isolated: bool = False, fault: Fault = stop) -> Settings:
    """The settings for the files of ``folder``: those of its nearest ancestor, and the environment over them.

    ``isolated`` skips the files; environment variables still count. Raises ``InputError`` with file,
    line and remedy for what cannot be read, unless ``fault`` goes on without it.
    """
    return _under_environment(Settings() if isolated else settings_in_file(folder, fault), fault)


def settings_in_file(folder: str | Path, fault: Fault = stop) -> Settings:
    """The settings of the nearest ancestor of a folder alone; the defaults without one. ``InputError``."""
    with going_on(fault):
        if found := nearest_settings(Path(folder).resolve()):
            source, table = found
            return narrowed(_read_table(table, source, fault))
    return Settings()


def narrowed(settings: Settings) -> Settings:
    """The settings of a file without what it may not choose: a file to write, and, if not trusted, all but filters."""
    if os.environ.get(NARROW):
        given = [name for name in settings.origins if name not in NARROWING]
        unused = {name: _unused_line(settings, name, f"{NARROW} is set") for name in given}
        return replace(settings, unused=unused, **{name: getattr(Settings(), name) for name in given})
    form, named, _ = (settings.output_format or "").partition("=")
    if not named:
        return settings
    line = _unused_line(
        settings, "output_format", "settings do not choose a file to write; use --output-format", "=FILE"
    )
    return replace(settings, output_format=form, unused={"output_format": line})


def _unused_line(settings: Settings, name: str, reason: str, part: str = "") -> str:
    """Says which setting does not count, where it stands, and why."""
    file, line = settings.origins[name]
    key = name.replace("_", "-")
    return f"{file}:{line}: {f'the `{part}` of `{key}`' if part else f'`{key}`'} is not used: {reason}"


def _read_table(table: Table, source: Source, fault: Fault = stop) -> Settings:
    """The settings of a parsed table. Unknown keys and wrong types are ``InputError``s at the key's line."""
    with going_on(fault):
        _reject_unknown(table, READERS, (), source)
    values: dict[str, Any] = {}
    for key in filter(READERS.__contains__, table):
        with going_on(fault):
            values[key.replace("-", "_")] = _read_value(table, key, source)
    if isinstance(values.get("gpus"), dict):
        with going_on(fault):
            values |= _parts_of_gpus(values.pop("gpus"), source)
    origins = {name: (source.shown, source.line_of((name.replace("_", "-"),))) for name in values}
    values["rules"] = values["named_rules"] = tuple(str(source.folder / name) for name in values.get("rules", ()))
    return Settings(**values, file=source.shown, origins=origins)


def _read_value(table: Table, key: str, source: Source) -> object:
    """One setting, whose key is known; ``InputError`` at its line, or that of the key inside that is wrong."""
    if key == "stack" and isinstance(stack := table[key], dict):
        _reject_unknown(cast("Table", stack), KINDS, (key,), source)
    if key == "gpus" and isinstance(gpus := table[key], dict):
        for name, card in cast("Table", gpus).items():
            if isinstance(card, dict):
                _reject_unknown(cast("Table", card), dict.fromkeys(KEYS), (key, name), source)
    try:
        return READERS[key](table[key])
    except TypeError:
        _reject_value(table, key, source)


def _parts_of_gpus(table: Table, source: Source) -> dict[str, Any]:
    """The default of a table ``[gpus]``, the cards that are owned, and those that it describes. ``InputError``."""
    cards: dict[str, Gpu] = {}
    for name, card in table.items():
        if isinstance(card, dict):
            try:
                cards[name.lower()] = own_gpu(name.lower(), cast("Table", card))
            except InputError as error:
                key = error.message.split("`")[1].rpartition(".")[2]
                line = source.line_of(("gpus", name, key))
                raise InputError(error.message, source.shown, line, remedy=error.remedy) from None
    return {"gpus": table.get("default"), "cards": cards, "owned": tuple(cast("list[str]", table.get("owned", [])))}


def _under_environment(settings: Settings, fault: Fault = stop) -> Settings:
    """The settings with the environment's over them; an empty variable counts as none."""
    for variable, key in ENVIRONMENT.items():
        if value := os.environ.get(variable):
            name = key.replace("-", "_")
            origins = {**settings.origins, name: (variable, 0)}
            if key == "rules":
                with going_on(fault):
                    settings = replace(settings, rules=folders_of(value), origins=origins)
                continue
            try:
                READERS[key](value)
            except TypeError:
                levels = ", ".join(get_args(Level))
                fault(InputError(f"`{variable}` is `{value}`", remedy=f"set it to one of {levels}"))
                continue
            settings = replace(settings, **{name: value}, origins=origins)
    return settings


def folders_of(value: str) -> tuple[str, ...]:
    """The folders of ``ADVISOR_RULES``. ``InputError`` for a relative one: it would lead into whatever is looked at."""
    names = [name.strip() for line in value.splitlines() for name in line.split(os.pathsep)]
    for name in filter(None, names):
        if not os.path.isabs(name):
            raise InputError(f"`{RULES}` has the relative path `{name}`", remedy="set it to an absolute path")
    return tuple(os.path.abspath(name) for name in names if name)


def text_of(value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts_of(value: object) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(value, list):
        raise TypeError
    return tuple(text_of(item) for item in cast("list[object]", value))


def _gpus_of(value: object) -> object:
    """A string, or a table with ``default``, ``owned``, and a table for each card of one's own."""
    if not isinstance(value, dict):
        return text_of(value)
    for key, item in cast("Table", value).items():
        match key:
            case "default":
                text_of(item)
            case "owned":
                _texts_of(item)
            case _:
                _check_card(item)
    return cast("Table", value)


def _check_card(value: object) -> None:
    """A table with the memory of a card, and what else is known of it. ``TypeError``."""
    if not isinstance(value, dict):
        raise TypeError
    card = cast("Table", value)
    text_of(card.get("memory"))
    for key, item in card.items():
        number = isinstance(item, (int, float)) and not isinstance(item, bool)
        if key != "memory" and not (isinstance(item, bool) if key in FLAGS else key in RATES and number):
            raise TypeError


def level_of(value: object) -> str:
    """A level of finding."""
    if value not in get_args(Level):
        raise TypeError
    return cast("str", value)


def _lists_of(value: object) -> dict[str, tuple[str, ...]]:
    """A table of lists of strings."""
    if not isinstance(value, dict):
        raise TypeError
    return {key: _texts_of(item) for key, item in cast("Table", value).items()}


def _names_of(value: object) -> dict[str, str]:
    """A table of strings."""
    if not isinstance(value, dict):
        raise TypeError
    return {key: text_of(item) for key, item in cast("Table", value).items()}


def charts_of(value: object) -> dict[str, list[Any]]:
    """A table of flowcharts."""
    if not isinstance(value, dict):
        raise TypeError
    return {key: _chart_of(item) for key, item in cast("Table", value).items()}


def _chart_of(value: object) -> list[Any]:
    """A list of steps, or of tables with a name and steps."""
    if not isinstance(value, list) or not value:
        raise TypeError
    items = cast("list[object]", value)
    if not isinstance(items[0], dict):
        return list(_texts_of(items))
    for item in items:
        if not isinstance(item, dict) or set(cast("Table", item)) != {"name", "steps"}:
            raise TypeError
        text_of(cast("Table", item)["name"])
        _texts_of(cast("Table", item)["steps"])
    return items


def stack_of(value: object) -> Table:
    """A table of the fields of ``Stack``, of their types."""
    if not isinstance(value, dict):
        raise TypeError
    table = cast("Table", value)
    if not all(is_allowed(key, item) for key, item in table.items()):
        raise TypeError
    return table


READERS: Mapping[str, Callable[[object], object]] = {
    "gpus": _gpus_of,
    "fail-on": level_of,
    "select": _texts_of,
    "ignore": _texts_of,
    "per-file-ignores": _lists_of,
    "rules": _texts_of,
    "flowchart": text_of,
    "flowcharts": charts_of,
    "output-format": text_of,
    "exclude": _texts_of,
    "models": _names_of,
    "stack": stack_of,
}


def _reject_unknown(table: Table, known: Mapping[str, object], parent: Key, source: Source) -> None:
    """Raises ``InputError`` for the first key that is not known, with the nearest one that is."""
    unknown = next((key for key in table if key not in known), None)
    if unknown is None:
        return
    import difflib

    near = difflib.get_close_matches(unknown, known, n=1)
    remedy = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
    name, line = ".".join((*parent, unknown)), source.line_of((*parent, unknown))
    raise InputError(f"unknown setting `{name}`", source.shown, line, remedy=remedy)


def _reject_value(table: Table, key: str, source: Source) -> NoReturn:
    """Raises the ``InputError`` for a value of the wrong type, in the words of the model."""
    from advisor.settings.schema import what_is_wrong

    path, message, remedy = what_is_wrong(key, table[key])
    raise InputError(message, source.shown, source.line_of(path), remedy=remedy)
