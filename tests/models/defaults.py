# pyright: basic
"""Writes ``advisor/models/defaults.json`` from the installed transformers (``make defaults``).

It holds, by module of ``advisor/models/`` and model type, what transformers' config classes take for the keys that
the counting reads: every key that it asks for of any family's defaults, the catalogue's configs or the variants.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from transformers import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from advisor.errors import InputError
from advisor.models import catalogue, config, count, family

from .tables import tables

FILE = Path(config.__file__).with_name("defaults.json")
SECTIONS = ("audio_config", "vision_config")
VARIANTS = Path(__file__).with_name("variants.jsonl")

BY_HAND: dict[str, dict[str, object]] = {
    **{one: {"tie_word_embeddings": False} for one in ("baichuan", "chatglm", "kimi_linear", "qwen")},
    "internlm2": {"bias": True, "tie_word_embeddings": False},
    "replit_lm": {"tie_word_embeddings": True},
    "mimo": {"attention_bias": True, "tie_word_embeddings": False},
}
"""Of config classes that come with a model's own code: configuration_*.py of its repository on the hub."""
LIKE = {"kimi_k2": "deepseek_v3"}
"""Config classes of a model's own code that are copies of others."""


def main() -> None:
    """The file, one line for each model type."""
    FILE.write_text(text(), encoding="utf-8")


def text() -> str:
    """``defaults.json`` as the installed transformers gives it."""
    homes = {one: module for module, rows in tables().items() for one in rows}
    counted = {one for rows in tables().values() for one, row in rows.items() if row.layout is not None}
    keys, met = asked(homes, counted)
    groups: dict[str, list[str]] = {module: [] for module in ("", *tables())}
    for one in sorted({*homes, *met}):
        known = defaults(one, keys) if one in counted | met else {}
        line = json.dumps(known, separators=(",", ":"), sort_keys=True)
        groups[homes.get(one, "")].append(f'"{one}":{line}')
    return "{\n" + ",\n".join(f'"{name}":{{\n' + ",\n".join(group) + "\n}" for name, group in groups.items()) + "\n}\n"


def asked(homes: Mapping[str, str], counted: Iterable[str]) -> tuple[list[str], set[str]]:
    """The keys that the counting asks for, and the model types of all sections that it meets."""
    keys: set[str] = set()
    met: set[str] = set()

    class Asked(config.Config):
        def __init__(self, values: Mapping[str, object], model_type: str, name: str) -> None:
            met.update([model_type] if model_type else [])
            super().__init__(values, model_type, name)

        def get(self, key: str) -> object:
            keys.add(key)
            return super().get(key)

    asking = [mock.patch.object(module, "Config", Asked) for module in (count, config)]
    with asking[0], asking[1], mock.patch.object(family, "homes", lambda: homes):
        for values in examples(counted):
            with suppress(InputError):
                count.describe(values, "example", "test")
    return sorted(keys), met


def examples(types: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A config of every kind: class defaults, catalogue, variants."""
    yield from (made.to_dict() for one in types if (made := instance(one)) is not None)
    yield from (entry["config"] for entry in catalogue.entries())
    yield from (json.loads(line)["config"] for line in VARIANTS.read_text(encoding="utf-8").splitlines())


def defaults(model_type: str, keys: Iterable[str]) -> dict[str, object]:
    """What the config class of a model type takes for these keys: plain values, and the kind of its sections."""
    model_type = LIKE.get(model_type, model_type)
    made = instance(model_type)
    if made is None:
        return BY_HAND.get(model_type, {})
    found = {key: value(type(made), made, key) for key in keys}
    return {key: one for key, one in found.items() if one is not None}


def value(config_class: type[PretrainedConfig], made: PretrainedConfig, key: str) -> object:
    """The class's value for a key or the first of its aliases: a number, a flag, a word, or a section's type."""
    if key in SECTIONS:
        section = getattr(made, key, None)
        return {"model_type": section.model_type} if isinstance(section, PretrainedConfig) else None
    mapped = config_class.attribute_map
    names = (mapped.get(name, name) for name in (key, *config.ALIASES.get(key, ())))
    found = (getattr(config_class, name, None) for name in names)
    return next((one for one in found if isinstance(one, (bool, int, float, str))), None)


@cache
def instance(model_type: str) -> PretrainedConfig | None:
    """The config of a model type with nothing given; None where transformers has no such class."""
    with suppress(KeyError):
        return CONFIG_MAPPING[model_type]()
    return next((one() for one in section_classes() if getattr(one, "model_type", "") == model_type), None)


@cache
def section_classes() -> list[type[PretrainedConfig]]:
    """The classes of the sections of multimodal configs."""
    outer = [CONFIG_MAPPING[one] for one in tables()["multimodal"]]
    return [inner for one in outer for inner in one.sub_configs.values()]


if __name__ == "__main__":
    main()
