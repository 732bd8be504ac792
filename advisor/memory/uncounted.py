"""What a run asks for that takes memory, or frees it, and is not counted.

``keys.json`` classes every key of axolotl, ``deepspeed_keys.json`` every key of DeepSpeed's JSON.

``counted``: the estimate follows the key. ``none``: it does not change what lies on the GPU. ``unknown``: it does, by
bytes that no formula here says, unless its value is off.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from advisor.memory.tensor_parallel import is_plain
from advisor.record import record
from advisor.run import Run
from advisor.run.axolotl.flags import plugin_names
from advisor.util import is_mapping

Direction = Literal["more", "less", "either"]
OFF: Sequence[object] = (None, False, 0, "", "none", "false", "off", "no", [], {})
"""Values that turn nothing on, whatever the key."""
ROOT = "AxolotlInputConfig"
REINIT, AUTO = "reinit_weights", "AutoModel"
WIDTHS: Mapping[str, int] = {"bfloat16": 2, "float16": 2, "float32": 4}
EFFECTS: Mapping[Direction, str] = {
    "more": "the run needs more",
    "less": "the run may need less",
    "either": "the run may need more or less",
}


@record
class Uncounted:
    """A key that is on, what of it is not counted, and where that was read.

    ``memory``: whether the run needs ``more`` or ``less`` than what is counted.
    """

    key: str
    what: str
    memory: Direction
    source: str

    def __str__(self) -> str:
        return f"`{self.key}` is not counted ({self.what}): {EFFECTS[self.memory]} than this"


@record(eq=False)
class Row:
    """One line of class ``unknown``. ``on``: a pattern, if only some values count; ``off``: values that do not.

    ``level``: the root, or the plugin that must be listed; with ``at``, a dotted path, the level that it stands at.
    ``needs``: another key that must be on. Of DeepSpeed's keys a pattern may name what turns nothing on elsewhere.
    """

    level: str
    key: str
    memory: Direction
    what: str
    source: str
    on: str | None = None
    off: Sequence[object] = ()
    needs: str | None = None
    at: str | None = None
    stages: Sequence[int] = ()
    """The stages of ZeRO in which the key is read, where not all do."""

    @cached_property
    def top(self) -> str:
        """The key of the config that it stands at or below."""
        return (self.at or self.key).partition(".")[0]


AUTOTP = Row(
    level="TPTrainingConfig",
    key="autotp_size",
    at="tensor_parallel.autotp_size",
    memory="either",
    what="of this model's layers it is not known which AutoTP divides, or whether it can",
    source="deepspeed/module_inject/auto_tp.py:351-405@0.18.9; tests/oracles/test_autotp.py",
)
"""For the models whose layers are not Llama's."""


@cache
def rows() -> tuple[Row, ...]:
    """The keys whose memory is not known."""
    return tuple(Row(**row) for row in _table()["unknown"])


def weighing_keys() -> frozenset[str]:
    """The top keys of a YAML that change what lies on the GPU, whether they are counted or not."""
    levels = (level for name, level in _table()["levels"].items() if name == ROOT or name.endswith("Plugin"))
    counted = {key for level in levels for line in level.get("counted", ()) for key in line.split()}
    return frozenset(counted | {row.top for row in rows()})


def _table() -> Any:
    """The class of every key of axolotl."""
    return json.loads(Path(__file__).with_name("keys.json").read_text(encoding="utf-8"))


@cache
def _deepspeed_rows() -> tuple[Row, ...]:
    """Those of DeepSpeed's JSON, each place once."""
    table: Any = json.loads(Path(__file__).with_name("deepspeed_keys.json").read_text(encoding="utf-8"))
    found = (Row(**row) for row in table["unknown"])
    return tuple({row.at or row.key: row for row in found}.values())


def uncounted(run: Run) -> tuple[Uncounted, ...]:
    """What this run turns on that is not counted. Of other trainers no key of the YAML is known to mean anything."""
    there = [row for row in _deepspeed_rows() if _is_on_in_deepspeed(run, row)] if run.zero is not None else []
    if run.autotp_size > 1 and run.model is not None and not is_plain(run.model):
        there.append(AUTOTP)
    if run.stack.trainer == "axolotl":
        written = run.config.values_mapping
        there += [row for row in rows() if row.top in written and is_on(run, row) and not _is_as_counted(run, row)]
    return tuple(Uncounted(row.at or row.key, row.what, row.memory, row.source) for row in there)


def _is_as_counted(run: Run, row: Row) -> bool:
    """Whether weights that are built from the model's config take what loaded ones do.

    They are in the dtype that the config names, which an Auto class reads and another does not, and in full bits:
    axolotl/loaders/model.py:941-956@0.19.0; transformers/modeling_utils.py:1489@5.16.1.
    """
    if row.key != REINIT or run.model is None or run.quantization is not None:
        return False
    is_auto = str(run.config.get("model_type") or AUTO).startswith(AUTO)
    return is_auto and WIDTHS.get(run.model.dtype) == run.compute_bytes


def _is_on_in_deepspeed(run: Run, row: Row) -> bool:
    """Whether the JSON sets the key to a value that takes effect at the run's stage; "auto" is the default."""
    section = run.deepspeed
    if section is None or row.top not in section or (row.stages and run.zero_stage not in row.stages):
        return False
    if row.needs is not None and _is_off(section.at(row.needs)):
        return False
    value = section.at(row.at or row.key)
    if row.on is not None:
        return value is not None and re.search(row.on, str(value)) is not None
    return not (_is_off(value) or same(value, "auto") or any(same(value, off) for off in row.off))


def is_on(run: Run, row: Row) -> bool:
    """Whether the run sets the key to a value that takes effect."""
    value = run.config.at(row.at or row.key)
    if value is None or _is_off(value) or any(same(value, off) for off in row.off):
        return False
    if row.level != ROOT and row.at is None and row.level not in plugin_names(run.config):
        return False
    if row.needs is not None and _is_off(run.config.get(row.needs)):
        return False
    return row.on is None or re.search(row.on, str(value)) is not None


def _is_off(value: object) -> bool:
    """Whether a value turns nothing on."""
    return any(same(value, off) for off in OFF)


def same(value: object, other: object) -> bool:
    """Equality, by which ``1`` is not ``True``, and words match in any case."""
    if isinstance(value, str) and isinstance(other, str):
        return value.strip().lower() == other
    if is_mapping(value) and is_mapping(other):
        return dict(value) == dict(other)
    return type(value) is type(other) and value == other
