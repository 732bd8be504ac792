"""Runs of one's own: the lines that ``tests/gpu/measure.py`` writes, and the blocks of ``advisor verify``."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from advisor.accuracy.blocks import blocks_in, read_blocks
from advisor.accuracy.published import STACK_KEYS, Measured
from advisor.errors import InputError
from advisor.util import GIB

REMEDY = "give a file that tests/gpu/measure.py has written, or a text with blocks of `advisor verify`"


def own_runs(path: str) -> list[Measured]:
    """The runs of a file that ended, in or out of memory; those on a CPU and those with other errors are left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path, remedy=REMEDY) from None
    return list(read_lines(lines, path))


def read_lines(lines: list[str], path: str) -> Iterator[Measured]:
    """One run a line, or a block of ``advisor verify``, in any text.

    What is none is an ``InputError`` at its line, in the words of ``own_schema``.
    """
    if blocks_in(lines):
        yield from _pasted(lines, path)
        return
    for number, line in enumerate(lines, 1):
        said: Any = None
        try:
            said = json.loads(line) if line.strip() else {"device": None}
            run = measured(said, path, number) if _is_of_a_gpu(said) else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            from advisor.accuracy.own_schema import what_is_wrong

            ended = isinstance(said, dict) and cast("dict[str, Any]", said).get("outcome") == "ok"
            raise what_is_wrong(line, path, number, ended=ended) from None
        if run is not None:
            yield run


def _pasted(lines: list[str], path: str) -> Iterator[Measured]:
    """The runs of all blocks."""
    try:
        yield from read_blocks(lines, path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        line = next(number for number, line in blocks_in(lines) if not _is_whole(line))
        remedy = "paste it as `advisor verify` prints it"
        raise InputError("a block that is not whole", path, line, remedy=remedy) from None


def _is_whole(line: str) -> bool:
    """Whether a block is one."""
    try:
        list(read_blocks([line], ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return True


def _is_of_a_gpu(said: Mapping[str, Any]) -> bool:
    """Whether a line is of a run on a GPU that ended, in or out of memory."""
    return said["device"] == "cuda" and said["outcome"] in {"ok", "oom"} and bool(said["gpu"])


def measured(said: Mapping[str, Any], file: str, line: int) -> Measured:
    """A line as a run; one with a limit is squeezed, and tests what a run needs."""
    failed = said["outcome"] == "oom"
    return Measured(
        id=said["name"],
        group=group_of(said),
        source=Path(file).name,
        gpus=f"1x {said['gpu']['name']}",
        config=said["axolotl"],
        deepspeed=said["deepspeed"],
        stack={key: value for key, value in said["stack"].items() if key in STACK_KEYS},
        allocated_gib=None if failed else said["allocated_peak"] / GIB,
        reserved_gib=None if failed else said["reserved_peak"] / GIB,
        limit_gib=said["memory_limit"] / GIB if said["memory_limit"] else None,
        out_of_memory=failed,
        near_limit=bool(said["memory_limit"]),
        phases=None if failed else frozenset(said["phases"]),
        file=file,
        line=line,
    )


def group_of(said: Mapping[str, Any]) -> str:
    """Like runs: model, method, sharding, checkpointing; as the published runs are named."""
    config: Mapping[str, Any] = said["axolotl"]
    zero: Mapping[str, Any] = said["deepspeed"]["zero_optimization"] if said["deepspeed"] else {}
    sharding = f"zero{zero['stage']}" if zero else "none"
    offload = "-offload" if "offload_optimizer" in zero else ""
    checkpointing = "ckpt" if config["gradient_checkpointing"] else "nockpt"
    name = config["base_model"].rpartition("/")[2]
    return f"{name}-{config.get('adapter') or 'full'}-{sharding}-n1{offload}-{checkpointing}"
