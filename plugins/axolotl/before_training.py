"""What axolotl is about to train -> the advisor's report on it, with the GPUs and the stack that are really there."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from advisor.plugins.axolotl.settings import AdvisorSettings

from advisor.cli.options import asked_of, options_for, settings_for
from advisor.documents import Change, Document, PatchError, Path, Remove, Set, new_document, read
from advisor.documents.changes import plain
from advisor.documents.node import same
from advisor.engine.blocking import blockers
from advisor.engine.check import check_run
from advisor.engine.finding import Finding, Report
from advisor.errors import InputError
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.opening import hardware_for, open_run
from advisor.record import record
from advisor.run import Run
from advisor.run.installed import installed_versions
from advisor.run.stack import Stack, read_stack
from advisor.settings import Settings
from advisor.util import is_mapping

ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
FILE = "axolotl_config_path"


@record(eq=False)
class Checked:
    """The run, all that is said of it, and what of that speaks against the launch."""

    run: Run
    report: Report
    against: tuple[Finding, ...]


def checked(cfg: Mapping[str, Any], settings: AdvisorSettings) -> Checked:
    """Checks the config as axolotl loaded it. Where edits of the file cannot be shown, its values are judged alone."""
    file, values = str(cfg.get(FILE) or "config.yaml"), plain({key: cfg[key] for key in cfg if key != FILE})
    try:
        return judged(document_of(file, values), settings)
    except PatchError:
        return judged(new_document(file, "yaml", values), settings)


def document_of(file: str, values: Mapping[str, Any]) -> Document:
    """The file with what the command line changed, so that places still point into it; else the values alone."""
    with suppress(InputError):
        config = read(file)
        return config.changed(*changes(config.values_mapping, values))
    return new_document(file, "yaml", values)


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


def judged(config: Document, settings: AdvisorSettings) -> Checked:
    """The report, under the settings of the config's folder."""
    given = {"isolated": False, "gpus": None, "model_config": None, "flowchart": None, "stack": None, "offline": True}
    own = settings_for([config.file], given)
    asked = asked_of(given, own)
    hardware = parse_hardware(settings.gpus, file="advisor.gpus") if settings.gpus else found(config, detect())
    context = replace(asked.context, stack=stack_here(own), detects=False)
    if hardware is None:
        hardware = found(config, hardware_for(config, context))
    opened = open_run(config, replace(context, hardware=hardware))
    options = replace(options_for(opened, asked), speed=False)
    report = check_run(opened, options)
    return Checked(opened.run, report, blockers(report, options))


def found(config: Document, hardware: Hardware | None) -> Hardware | None:
    """One GPU for each process of the launch; under Ray, whose driver trains nothing, as it is."""
    if hardware is None or config.get("use_ray"):
        return hardware
    total = count("WORLD_SIZE") or 1
    here = min(count("LOCAL_WORLD_SIZE") or count("LOCAL_SIZE") or hardware.gpus_per_node, total)
    scaled = replace(hardware, gpus_per_node=here, nodes=max(1, total // here))
    if hardware.free_bytes is None:
        return scaled
    # Ranks that came first have opened their contexts, some of them all on the first GPU.
    siblings = (here - 1) * hardware.gpu.context_bytes
    return replace(scaled, free_bytes=min(hardware.gpu.total_bytes, hardware.free_bytes + siblings))


def count(variable: str) -> int | None:
    """A positive number of processes in the environment: torchrun, accelerate and deepspeed set it for each rank."""
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() and int(value) > 0 else None


def stack_here(settings: Settings) -> Stack:
    """The versions that are installed, under the conditions that the settings and the environment state."""
    allocator = next((value for name in ALLOCATOR if (value := os.environ.get(name))), "")
    said = {"expandable_segments": "expandable_segments:true" in allocator.lower().replace(" ", "")}
    return read_stack({**said, **settings.stack, **installed_versions()})
