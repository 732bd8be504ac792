"""Which architecture a ``base_model`` is: named file, local folder, Hugging Face cache, catalogue, hub."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from advisor.errors import InputError
from advisor.models import catalogue, hub
from advisor.models.architecture import Architecture
from advisor.record import record, replace
from advisor.util import MAX_BYTES, Buffers, is_out_of_bounds, read_start, regex

_STORED = regex(
    r"[-_](?:(?P<bitsandbytes>(?:unsloth-)?(?:bnb|4bit|nf4)\b)|(?P<gptq>gptq\b)|(?P<awq>awq\b)|(?P<nvfp4>nvfp4\b)"
    r"|(?P<mxfp4>mxfp4\b)|(?P<fp8>fp8\b)|bf16$)",
    re.IGNORECASE,
)
"""What the end of an id says of how a copy of the model is stored: the name of a group, or none of bf16."""
_STAGE = regex(r"[-_](sft|dpo|kto|orpo|ppo|grpo|rl|rlhf|rlvr|instruct|it|chat|base|pt)$", re.IGNORECASE)
"""What the end of an id says of how far its training went: the architecture is that of its neighbours."""
TAKEN_FOR = "Taken for "
"""How the fact begins that a model is taken for another."""
EXAMPLE = "Qwen/Qwen2.5-7B"
NOTHING = Buffers()
NOWHERE = "not a local folder, not in the Hugging Face cache, not in the catalogue"
"""Why a model is unknown that is simply not there."""


@record(eq=False)
class Unknown:
    """A model whose architecture could not be found: why, and what the user can do about it."""

    name: str
    reason: str
    remedies: tuple[str, ...]
    config: Literal["missing", "available", "trace-failed"] = "missing"
    """Whether its config was found; then transformers can be asked for its architecture (``--trace``)."""


@record(eq=False, frozen=False)
class _Search:
    """What one search has met so far."""

    name: str
    overrides: Mapping[str, object]
    text_only: bool
    buffers: Buffers = field(default_factory=Buffers)
    trouble: list[str] = field(default_factory=list[str])
    config: dict[str, object] | None = None
    """The config of the architecture that was found; where there is none, the first that was read."""

    def take(self, config: object, source: str) -> Architecture | None:
        """The architecture of a config; notes the reason where it has none."""
        if not isinstance(config, Mapping):
            self.trouble.append(f"{source} is not a JSON object")
            return None
        merged = overridden(cast("Mapping[str, object]", config), self.overrides)
        self.config = self.config or merged
        try:
            found = _described(json.dumps(merged, default=str), self.name, source, self.text_only)
        except InputError as error:
            self.trouble.append(f"{source}: {error.message}")
            return None
        self.config = merged
        return found

    def unknown(self, advice: tuple[str, ...]) -> Unknown:
        """What is said where nothing was found."""
        found = "missing" if self.config is None else "available"
        return Unknown(self.name, "; ".join(self.trouble) or NOWHERE, advice, found)

    def read(self, path: Path, source: str) -> Architecture | None:
        """The architecture of a config.json; notes the reason where it cannot be used."""
        try:
            raw = self.buffers.at(path)
            if raw is None:
                raw = read_start(path, MAX_BYTES + 1)
            if len(raw) > MAX_BYTES:
                raise ValueError(f"larger than {MAX_BYTES >> 20} MiB")
            config: object = json.loads(raw)
        except (OSError, ValueError, RecursionError) as error:
            self.trouble.append(f"{source} cannot be read ({error})")
            return None
        return self.take(config, source)


def resolve(
    name: str,
    *,
    folder: str = ".",
    model_config: str | None = None,
    overrides: Mapping[str, object] | None = None,
    offline: bool = True,
    text_only: bool = False,
) -> Architecture | Unknown:
    """Find the architecture of ``name`` (``base_model``) and count it: see ``resolve_with_config``."""
    return resolve_with_config(
        name, folder=folder, model_config=model_config, overrides=overrides, offline=offline, text_only=text_only
    )[0]


def resolve_with_config(
    name: str,
    *,
    folder: str = ".",
    model_config: str | None = None,
    overrides: Mapping[str, object] | None = None,
    offline: bool = True,
    text_only: bool = False,
    buffers: Buffers = NOTHING,
) -> tuple[Architecture | Unknown, Mapping[str, object] | None]:
    """The architecture of ``name`` (``base_model``), and the config it was counted from or could not be.

    First of: ``model_config`` (a config.json, a folder with one, or the name of a model with this architecture;
    nothing else is tried then), a local
    folder ``name`` below the working directory or ``folder``, the Hugging Face cache, the built-in catalogue,
    and the hub unless ``offline``. ``overrides`` are axolotl's ``overrides_of_model_config``. ``text_only``
    is for runs without a processor (see ``describe``). A source that cannot be used is skipped; where
    none is left, ``Unknown`` says why and what to do.
    """
    search = _Search(name, overrides or {}, text_only, buffers)
    if model_config is not None:
        path = Path(os.path.expanduser(model_config))
        file = path / "config.json" if os.path.isdir(path) else path
        if is_out_of_bounds(file) or (not os.path.exists(path) and buffers.at(path) is None):
            return _standing_in(search, model_config, folder, offline)
        found = search.read(file, model_config)
        advice = ("give --model-config a config.json that can be read",)
        return found or search.unknown(advice), search.config
    for found in _sources(search, folder, offline):
        if found is not None:
            return found, search.config
    return search.unknown(remedies(name, offline)), search.config


def _standing_in(
    search: _Search, named: str, folder: str, offline: bool
) -> tuple[Architecture | Unknown, Mapping[str, object] | None]:
    """The architecture of the model that somebody says another one has. How that is stored, its own name tells."""
    other = replace(search, name=named, trouble=[])
    for found in _sources(other, folder, offline):
        if found is not None:
            own = original(search.name)[1]
            return replace(found, name=search.name, quantized=own or found.quantized), other.config
    said = "; ".join(other.trouble)
    search.trouble.append(f"its model `{named}` is unknown too" + (f": {said}" if said else ""))
    hints = (*_misspelt_hint(named), "give --model-config a config.json that can be read, or a published name")
    return search.unknown(hints), other.config


def _sources(search: _Search, folder: str, offline: bool) -> Iterator[Architecture | None]:
    name = search.name
    # Not pathlib's own tests: they raise where a name is too long or its `~` is nobody's.
    for path in dict.fromkeys((Path(os.path.expanduser(name)), Path(folder, name))):
        if is_out_of_bounds(path / "config.json"):
            search.trouble.append(f"{path} is outside of the folder whose files may be read")
        elif os.path.isfile(path / "config.json") or search.buffers.at(path / "config.json"):
            yield search.read(path / "config.json", str(path / "config.json"))
    for path in hub.cached_configs(name):
        yield search.read(path, "Hugging Face cache")
    yield from _catalogued(search)
    if not offline:
        yield _downloaded(search)


def _catalogued(search: _Search) -> Iterator[Architecture | None]:
    name = search.name
    entry = catalogue.lookup(name)
    if entry is not None:
        found = search.take(_config_of(name, entry), "built-in catalogue")
        yield found and replace(found, quantized=found.quantized or _stored_as(name, entry))
        return
    bare, method = original(name)
    entry = catalogue.lookup(bare) if bare != name else None
    if entry and (found := search.take(_config_of(bare, entry), "built-in catalogue")):
        fact = f"{TAKEN_FOR}{bare}, stored in {method or 'bf16'}, by its name."
        yield replace(found, quantized=method, extra=(*found.extra, fact))
    sibling = _STAGE.sub("", name)
    entry = catalogue.lookup(sibling) if sibling != name else None
    if entry and (found := search.take(_config_of(sibling, entry), "built-in catalogue")):
        yield replace(found, extra=(*found.extra, f"{TAKEN_FOR}{sibling} by its name."))
    yield from _named_by_path(search)


def _named_by_path(search: _Search) -> Iterator[Architecture | None]:
    """The published model that a path is called after, where no config can be read there."""
    for path in hub.names_in(search.name):
        bare, method = original(path)
        for name, stored in ((path, None), (bare, method)):
            entry = catalogue.lookup(name) or (catalogue.by_last_part(name) if "/" not in name else None)
            if entry and (found := search.take(_config_of(name, entry), "built-in catalogue")):
                fact = f"{TAKEN_FOR}{entry['id']} by its path."
                quantized = found.quantized or stored or _stored_as(name, entry)
                yield replace(found, quantized=quantized, extra=(*found.extra, fact))
                return


def _downloaded(search: _Search) -> Architecture | None:
    try:
        config = hub.from_hub(search.name)
    except Exception as error:  # whatever transformers or the network throws is only a reason
        search.trouble.append(f"the hub: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return None
    return search.take(config, "Hugging Face hub")


def _config_of(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The config of an entry, with the positions that this id has instead."""
    others: Mapping[str, list[str]] = entry.get("positions", {})
    positions = next((int(count) for count, ids in others.items() if _lists(ids, name)), None)
    return {**entry["config"], **({} if positions is None else {"max_position_embeddings": positions})}


def _lists(ids: Iterable[str], name: str) -> bool:
    """Whether a name is one of these ids in any case, or ends one as a path does."""
    return any(f"/{one}".lower().endswith(f"/{name}".lower()) for one in ids)


def _stored_as(name: str, entry: Mapping[str, Any]) -> str | None:
    """The method in which the checkpoint of this id is stored quantized, by the entry, else by the name."""
    stored: Mapping[str, list[str]] = entry.get("stored", {})
    listed = next((method for method, ids in stored.items() if _lists(ids, name)), None)
    return listed or original(name)[1]


def copy_in_bf16(name: str) -> str | None:
    """The published id of the same weights in bf16, of a checkpoint that is stored quantized; None if none is known."""
    copies: Mapping[str, str] = (catalogue.lookup(name) or {}).get("bf16", {})
    bare, method = original(name)
    same = bare if method is not None and catalogue.lookup(bare) else None
    return copies.get(name, same)


def original(name: str) -> tuple[str, str | None]:
    """The id without the ending that tells how a copy is stored, and the method that the ending names."""
    match = _STORED.search(name)
    return (name[: match.start()], match.lastgroup) if match else (name, None)


def overridden(config: Mapping[str, object], overrides: Mapping[str, object]) -> dict[str, object]:
    """The config with overrides on top; nested sections are merged, not replaced."""
    merged = dict(config)
    for key, value in overrides.items():
        old = merged.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            old, value = cast("Mapping[str, object]", old), cast("Mapping[str, object]", value)
            merged[key] = overridden(old, value)
        else:
            merged[key] = value
    return merged


def remedies(name: str, offline: bool) -> tuple[str, ...]:
    """What a user can do about a model that was not found, the likeliest first."""
    from advisor.models.fine_tunes import base_of

    advice = list(_misspelt_hint(name))
    base = base_of(name)
    if base is not None:
        advice.append(f"if it is a fine-tune of {base}, add the line `# advisor: model={base}`")
    elif not advice:
        advice.append(f"if it is a fine-tune, add a line with its base, such as `# advisor: model={EXAMPLE}`")
    advice.append("give its config.json with --model-config PATH")
    published = not Path(name).is_absolute() and not name.startswith((".", "~")) and name.count("/") <= 1
    if published:
        advice.append(f"put it in the Hugging Face cache: hf download {name} config.json")
    if published and offline:
        advice.append("fetch its config with --online (needs huggingface_hub: pip install axolotl-advisor[hub])")
    return tuple(advice)


def _misspelt_hint(name: str) -> tuple[str, ...]:
    """The question whether a published name was meant."""
    from advisor.models.fine_tunes import misspelt

    close = misspelt(name)
    return (f"did you mean `{close}`?",) if close else ()


@lru_cache(maxsize=64)
def _described(config: str, name: str, source: str, text_only: bool) -> Architecture:
    from advisor.models.count import describe

    return describe(json.loads(config), name, source, text_only=text_only)
