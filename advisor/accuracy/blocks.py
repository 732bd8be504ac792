"""What ``advisor verify`` prints to be pasted: a run in a line of JSON, without a path, a name or data in it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from advisor.about import VERSION
from advisor.accuracy.published import STACK_KEYS, Measured
from advisor.memory.uncounted import weighing_keys
from advisor.run import Run
from advisor.util import GIB, is_list, is_mapping

START = '{"advisor_verify":'
"""With which each of them begins, so that they are found in any text."""
VERSION_OF_BLOCKS = 1
MODEL = "model"
"""What stands for the folder of the model."""
NAMING = frozenset(
    ["base_model", "base_model_config", "lora_model_dir", "deepspeed", "plugins", "test_datasets", "host", "vllm"]
)
"""Keys that count and name a file, a machine, or what only their kind is needed of."""
PATTERNS = frozenset(["lora_target_modules", "lora_modules_to_save", "lora_target_parameters", "unfrozen_parameters"])
"""Keys whose words are names of modules, or expressions for them."""
WORD = re.compile(r"[\w.:+-]{1,64}")
OWN_PLUGINS = ("axolotl.", "advisor.")


def block_of(run: Run, described: Mapping[str, object], figures: Mapping[str, object]) -> dict[str, Any]:
    """The line of a run: ``described`` is its model's config, ``figures`` what was foreseen and seen, in bytes."""
    assert run.hardware is not None, "nothing is foreseen without hardware"
    plugins = [name for name in run.config.get("plugins") or () if str(name).startswith(OWN_PLUGINS)]
    config = {key: run.config.get(key) for key in run.config if key in weighing_keys() - NAMING}
    evaluates = {"val_set_size": 0.05} if run.config.get("test_datasets") else {}
    return {
        "advisor_verify": VERSION_OF_BLOCKS,
        "advisor": VERSION,
        "gpus": f"{run.hardware.nodes}n{run.hardware.gpus_per_node}x {run.hardware.gpu.id}",
        "model": _nameless(described),
        "config": _nameless(config | evaluates) | ({"plugins": plugins} if plugins else {}),
        "deepspeed": _nameless(run.deepspeed.document.values_mapping) if run.deepspeed else None,
        "stack": asdict(run.stack),
        **figures,
    }


def _nameless(values: Mapping[Any, object]) -> dict[str, Any]:
    """Numbers, switches and words of a mapping; what may name a file or a person is left out."""
    named = ((str(key), value) for key, value in values.items())
    kept = {key: _value(key, value) for key, value in named if not key.startswith(("_", "auto_map"))}
    return {key: value for key, value in kept.items() if value is not None}


def _value(key: str, value: object) -> Any:
    """A value as it may be shown; None where it may not."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        shown = "/" not in value if key in PATTERNS else WORD.fullmatch(value)
        return value if shown else None
    if is_mapping(value):
        return _nameless(value)
    if is_list(value):
        return [one for each in value if (one := _value(key, each)) is not None]
    return None


def blocks_in(lines: list[str]) -> list[tuple[int, str]]:
    """The blocks of a text with their lines, from 1: pasted as they are, fenced, or quoted."""
    found = ((number, line.strip().lstrip("> `")) for number, line in enumerate(lines, 1))
    return [(number, line) for number, line in found if line.startswith(START)]


def read_blocks(lines: list[str], path: str) -> Iterator[Measured]:
    """The runs of the blocks that are of a GPU. What is none is a ``ValueError``, ``KeyError`` or ``TypeError``."""
    for number, line in blocks_in(lines):
        said: Mapping[str, Any] = json.loads(line)
        if said["device"] == "cuda":
            yield _measured(said, path, number)


def _measured(said: Mapping[str, Any], path: str, line: int) -> Measured:
    """A block as a run."""
    failed = said["outcome"] == "oom"
    method = str(said["config"].get("adapter") or "full")
    return Measured(
        id=f"line {line}",
        group=f"{said['model'].get('model_type', 'model')}-{method}-{said['gpus'].replace(' ', '-')}",
        source=path,
        gpus=said["gpus"],
        config={"base_model": MODEL, **said["config"]},
        deepspeed=said["deepspeed"],
        stack={key: value for key, value in said["stack"].items() if key in STACK_KEYS and value is not None},
        allocated_gib=None if failed else said["allocated"] / GIB,
        reserved_gib=None if failed else said["reserved"] / GIB,
        out_of_memory=failed,
        near_limit=failed,
        model=said["model"],
        file=path,
        line=line,
    )
