"""What axolotl is about to train -> the advisor's report on it, with the GPUs and the stack that are really there."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from advisor.documents import Change, Document, PatchError, Path, Remove, Set, new_document, read
from advisor.documents.changes import plain
from advisor.documents.node import same
from advisor.errors import InputError
from advisor.hardware import Hardware
from advisor.record import replace
from advisor.run.overrides import OF_THE_COMMAND
from advisor.session import CheckedRun, RunOptions, check_config
from advisor.session.launched import launched_on
from advisor.session.lenient import lenient_session
from advisor.util import is_mapping

from .settings import AdvisorSettings

ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
FILE = "axolotl_config_path"


def checked(cfg: Mapping[str, Any], settings: AdvisorSettings, *, whole: bool = True) -> CheckedRun:
    """Checks the config as axolotl loaded it; ``whole``: with plan, time and basis, which only one rank shows.

    Where edits of the file cannot be shown, its values are judged alone.
    """
    file, values = str(cfg.get(FILE) or "config.yaml"), plain({key: cfg[key] for key in cfg if key != FILE})
    try:
        return judged(document_of(file, values), settings, whole=whole)
    except PatchError:
        return judged(new_document(file, "yaml", _without_options(values, {})), settings, whole=whole)


def document_of(file: str, values: Mapping[str, Any]) -> Document:
    """The file with what the command line changed, so that places still point into it; else the values alone."""
    config: Document | None = None
    with suppress(InputError):
        config = read(file)
    kept = _without_options(values, config or {})
    with suppress(InputError):
        if config is not None:
            return config.overlaid(*changes(config.values_mapping, kept))
    return new_document(file, "yaml", kept)


def _without_options(values: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with the file's own where ``axolotl train`` adds an option of its own to the config."""
    return {key: file.get(key) if key in OF_THE_COMMAND else value for key, value in values.items()}


def changes(old: Mapping[str, Any], new: Mapping[str, Any], above: Path = ()) -> Iterator[Change]:
    """What makes ``new`` of ``old``. A null counts as absent, as it does for axolotl."""
    for key in old.keys() - {key for key, value in new.items() if value is not None}:
        if old[key] is not None:
            yield Remove((*above, key))
    for key, value in new.items():
        before = old.get(key)
        if is_mapping(before) and is_mapping(value):
            yield from changes(before, value, (*above, key))
        elif value is not None and not same(before, value):
            yield Set((*above, key), value)


def judged(config: Document, settings: AdvisorSettings, *, whole: bool) -> CheckedRun:
    """The report, under the settings of the config's folder."""
    options = RunOptions(stack=_allocator_here(), details=whole)
    session = lenient_session([config.file], options, detects=False, here=True, tell=told)
    hardware = launched_on(config, session, lambda hardware: scaled(config, hardware), stated=settings.gpus)
    session = session if whole else session.verdict_alone
    return check_config(config, session, hardware=hardware, speed=False)


def told(line: str) -> None:
    """What of the settings does not count, in the log of the first rank."""
    from .plugin import LOG, is_first

    if is_first():
        LOG.warning("advisor: %s", line)


def scaled(config: Document, hardware: Hardware) -> Hardware:
    """One GPU for each process of the launch; under Ray, whose driver trains nothing, as it is."""
    if config.get("use_ray"):
        return hardware
    total = count("WORLD_SIZE") or 1
    here = min(count("LOCAL_WORLD_SIZE") or count("LOCAL_SIZE") or hardware.gpus_per_node, total)
    by_process = replace(hardware, gpus_per_node=here, nodes=max(1, total // here))
    if hardware.free_bytes is None:
        return by_process
    # Ranks that came first have opened their contexts, some of them all on the first GPU.
    siblings = (here - 1) * hardware.gpu.context_bytes
    return replace(by_process, free_bytes=min(hardware.gpu.total_bytes, hardware.free_bytes + siblings))


def count(variable: str) -> int | None:
    """A positive number of processes in the environment: torchrun, accelerate and deepspeed set it for each rank."""
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() and int(value) > 0 else None


def _allocator_here() -> dict[str, object]:
    """How torch will allocate in this process."""
    allocator = next((value for name in ALLOCATOR if (value := os.environ.get(name))), "")
    return {"expandable_segments": "expandable_segments:true" in allocator.lower().replace(" ", "")}
