"""Documents -> Run: axolotl's facts and DeepSpeed's joined, and a run with edits made to its documents."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, cast

from advisor.documents import Change, Document, Path, Set, as_path, new_document
from advisor.hardware import Hardware
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Ebft, Fsdp, Images, Precision, Prepared, Run, Zero, axolotl, deepspeed
from advisor.run.axolotl import preference, read, sharding
from advisor.run.axolotl.expert_targets import moved
from advisor.run.axolotl.reader import Reader
from advisor.run.deepspeed import Section
from advisor.run.history import MeasuredRun
from advisor.run.stack import Stack
from advisor.run.unreadable import Unreadable, unfilled, unfilled_in_deepspeed, without_its_file

if TYPE_CHECKING:
    from advisor.run.axolotl.facts import AttentionFacts, AxolotlFacts, JoinedFacts, RunFacts, SingleFacts

EMULATES_BF16 = "2.4.0"
"""From here on torch says that every card has bf16, and so does axolotl: torch/cuda/__init__.py:191-211@2.13.0."""


def build_run(
    config: Document,
    section: Section | None,
    *,
    model: Architecture | None,
    hardware: Hardware | None,
    stack: Stack,
    working_directory: str = ".",
    deepspeed_editable: bool = False,
    measured: tuple[MeasuredRun, ...] = (),
    images: Images | None = None,
    prepared: Prepared | None = None,
) -> Run:
    """The run that these documents describe on this hardware. Values that cannot be read stand at their defaults."""
    reader = Reader(config)
    if model is not None:
        model = _as_installed(model, stack)
        if (kind := preference.classifier(reader)) is not None:
            model = preference.with_score(reader, model, kind)
    by_yaml = _axolotl_facts(reader, model, hardware, stack)
    origins = dict(reader.origins)
    unreadable = (*refused(reader), *unfilled(config, origins))
    if section is not None and by_yaml["sharding"] is None:
        # Scripts make the trainer's arguments, which fill "auto" in, before the model; axolotl makes them after it.
        # transformers/integrations/deepspeed.py, trainer_config_process@5.16.1; axolotl/loaders/model.py@0.19.0.
        filled = None if stack.trainer == "axolotl" else by_yaml["precision"]
        by_yaml["sharding"], why, wrong = _by_json(
            section.document, section.prefix, model.hidden_size if model else None, filled
        )
        origins |= why
        unreadable += wrong
    elif by_yaml["sharding"] is None:
        unreadable += without_its_file(config.at("deepspeed"))
    facts: RunFacts = {**by_yaml, **joined(reader, model, stack, by_yaml)}
    named = config.at("deepspeed")
    return Run(
        config=config,
        deepspeed=section,
        model=model,
        hardware=hardware,
        stack=stack,
        origins=origins,
        working_directory=working_directory,
        deepspeed_named=named if isinstance(named, str) else None,
        deepspeed_editable=deepspeed_editable,
        measured=measured,
        images=images,
        prepared=prepared,
        unreadable=unreadable,
        **facts,
    )


@lru_cache(maxsize=64)
def _by_json(
    document: Document, prefix: Path, hidden_size: int | None, filled: Precision | None
) -> tuple[Zero, Mapping[str, str], tuple[Unreadable, ...]]:
    """What a DeepSpeed config says, where from, and what of it cannot be read; edits of the YAML ask for it again."""
    section = Section(document, prefix)
    reader = Reader(section)
    found = deepspeed.zero(reader, hidden_size, filled)
    origins = {key: f"{document.file}: {why}" for key, why in reader.origins.items()}
    return found, origins, (*refused(reader, "deepspeed"), *unfilled_in_deepspeed(document, section))


def _as_installed(model: Architecture, stack: Stack) -> Architecture:
    """The model by the names that the installed transformers gives its parts."""
    since = model.family.one_model_since
    if not since or stack.at_least("transformers", since) or model.trace is not None:
        return model
    from advisor.models.former_names import with_former_names

    return with_former_names(model)


def refused(reader: Reader, document: Literal["config", "deepspeed"] = "config") -> tuple[Unreadable, ...]:
    """The values that a reader could not use."""
    return tuple(Unreadable(key, message, document) for key, message in reader.refused.items())


def _axolotl_facts(
    reader: Reader, model: Architecture | None, hardware: Hardware | None, stack: Stack
) -> "AxolotlFacts":
    """Everything that the YAML alone decides."""
    part = reader.part
    gpu_has_bf16 = hardware is None or hardware.gpu.bf16 or stack.at_least("torch", EMULATES_BF16)
    several_gpus = hardware is not None and hardware.world_size > 1
    batch = part(read.batch)
    adapter = part(read.lora, stack, several_gpus=several_gpus)
    quantization = part(read.quantization, model, adapter["adapter"], hardware)
    lora = adapter["lora"]
    preferred = part(preference.preference, adapter["adapter"], hardware.world_size if hardware else 1)
    return {
        **part(_single_facts),
        **part(read.precision, gpu_has_bf16),
        **batch,
        **part(sharding.sizes),
        **adapter,
        "lora": lora if lora is None or quantization["linear_experts"] else moved(lora, model, stack),
        **preferred,
        **part(read.generation, preferred["rl"], batch["eval_batch_size"]),
        **quantization,
        **part(read.checkpointing, preferred["rl"], model, stack),
        **part(attention, model, preferred["ebft"]),
        **part(read.loss, preferred["rl"], model),
        "sharding": part(sharding.fsdp),
    }


def _single_facts(reader: Reader) -> "SingleFacts":
    """Facts of one key each."""
    return {
        "base_model": reader.text("base_model"),
        "optimizer": reader.text("optimizer", "adamw_torch_fused"),
        "optim_target_modules": reader.texts("optim_target_modules"),
        "unfrozen_parameters": reader.texts("unfrozen_parameters"),
        "freeze_multimodal": reader.flag("freeze_mm_modules"),
        "float8": read.float8(reader),
        "fake_quantization": read.fake_quantization(reader),
        "torch_compile": reader.take("torch_compile", False, "axolotl's default") not in (False, "auto"),
    }


def attention(reader: Reader, model: Architecture | None, ebft: Ebft | None) -> "AttentionFacts":
    """The kernel; EBFT that strides takes flex attention whatever is written.

    axolotl/core/trainers/ebft/strided.py:381-391@0.19.0.
    """
    found = read.attention(reader, model)
    return {**found, "attention": "flex"} if ebft is not None and ebft.stride else found


def joined(reader: Reader, model: Architecture | None, stack: Stack, facts: "AxolotlFacts") -> "JoinedFacts":
    """What depends on the YAML and on sharding together, under the run's trainer."""
    by_axolotl, engine = stack.trainer == "axolotl", facts["sharding"]
    embeddings_fp32 = by_axolotl and facts["precision"] != "fp32" and sharding.embeddings_stay_fp32(facts)
    upcasts = sharding.upcasts_unquantized(reader, model, facts) if by_axolotl else False
    if stack.prepare_kbit is not None:
        upcasts = stack.prepare_kbit and facts["quantization"] is not None
    autocast = stack.amp if stack.amp is not None else facts["autocast"] and facts["precision"] != "fp32"
    prepared_by_accelerate = isinstance(engine, Fsdp) and not (by_axolotl and engine.version == 2)
    return {
        "embeddings_fp32": embeddings_fp32,
        "upcasts_unquantized": upcasts,
        "autocast": autocast and not isinstance(engine, Zero),
        "fsdp_upcasts": autocast and prepared_by_accelerate,
        "fp32_residual_stream": embeddings_fp32 or (upcasts and not by_axolotl),
        "reentrant": reentrant(facts, upcasts=upcasts) if by_axolotl else facts["reentrant"],
    }


def reentrant(facts: "AxolotlFacts", *, upcasts: bool) -> bool:
    """How layers are checkpointed under offloading, where axolotl switches the trainer's checkpoints off.

    In a full fine-tune its own wrapper does it, non-reentrant. With adapters the loader's checkpoints stay on
    (axolotl/loaders/model.py:368-385,461-466@0.19.0): ``legacy`` puts its own function in their place, and
    ``prepare_model_for_kbit_training`` asks for torch's default (peft/utils/other.py:247-251@0.20.0).
    """
    match facts["activation_offloading"], facts["adapter"]:
        case ((None | "hidden-states"), _):
            return facts["reentrant"]
        case _, None:
            return False
        case mode, _:
            return facts["reentrant"] or upcasts or mode == "legacy"


def edited(run: Run, edits: Mapping[str, object], step: str) -> Run:
    """The run after ``edits``, keyed as in ``EDITS``; ``step`` names a DeepSpeed file if one must be written."""
    for_deepspeed = {name: value for name, value in edits.items() if name in deepspeed.EDITS}
    for_config = {name: value for name, value in edits.items() if name not in deepspeed.EDITS}
    run = with_config(run, axolotl.changes(run.config, for_config)) if for_config else run
    return _deepspeed_edited(run, for_deepspeed, step) if for_deepspeed else run


def _deepspeed_edited(run: Run, edits: Mapping[str, object], step: str) -> Run:
    """Edits of the DeepSpeed config: in place if it is this run's own, else in a copy next to the YAML."""
    section, live, asked = run.deepspeed, deepspeed.live_for(run.model), tuple(edits.items())
    if section is not None and section.prefix:
        made = deepspeed.changes(section, edits, run.precision, live)
        return with_config(run, [prefixed(change, section.prefix) for change in made])
    made_here = section is not None and section.document.is_new and not deepspeed.has_shipped_name(section.file)
    if section is not None and (run.deepspeed_editable or made_here):
        return rebuilt(run, run.config, Section(_json_edited(section.document, asked, run.precision, live)))
    name, document = _copy_name(run, step), section and section.document
    config = run.config.changed(Set("deepspeed", _written_path(run, name)))
    return rebuilt(run, config, Section(_json_copied(document, name, asked, run.precision, live)))


@lru_cache(maxsize=64)
def _json_edited(
    document: Document, edits: tuple[tuple[str, object], ...], precision: Precision, live: int
) -> Document:
    """A DeepSpeed config after ``edits``, which many points of a plan share."""
    return document.changed(*deepspeed.changes(document, dict(edits), precision, live))


@lru_cache(maxsize=64)
def _json_copied(
    document: Document | None, name: str, edits: tuple[tuple[str, object], ...], precision: Precision, live: int
) -> Document:
    """A new DeepSpeed config after ``edits``: a copy of one that is left as it is, or made from nothing."""
    values: Mapping[str, Any] = (
        dict(document)
        if document
        else deepspeed.fresh_config(int(cast("int", dict(edits).get("zero_stage", 0))), precision, live)
    )
    return _json_edited(new_document(name, "json", values), edits, precision, live)


def _copy_name(run: Run, step: str) -> str:
    """``<stem of the YAML>.<step>.json`` next to the YAML."""
    yaml = PurePath("config.yaml" if run.config.file == "<stdin>" else run.config.file)
    return str(yaml.with_name(f"{yaml.stem}.{step}.json"))


def _written_path(run: Run, name: str) -> str:
    """What ``deepspeed:`` must say to mean ``name``: axolotl looks from the working directory."""
    return PurePath(os.path.relpath(name, run.working_directory)).as_posix()


def prefixed(change: Change, prefix: Path) -> Change:
    """The same change below ``prefix``."""
    return replace(change, path=(*prefix, *as_path(change.path)))


def with_config(run: Run, changes: list[Change]) -> Run:
    """The run with changes made to its YAML."""
    config = run.config.changed(*changes)
    section = run.deepspeed
    if section is not None and section.prefix:
        section = Section(config, section.prefix) if config.has(section.prefix) else None
    elif not config.has("deepspeed"):
        section = None
    return rebuilt(run, config, section)


def rebuilt(run: Run, config: Document, section: Section | None) -> Run:
    """The run read again from changed documents."""
    again = build_run(
        config,
        section,
        model=run.model,
        hardware=run.hardware,
        stack=run.stack,
        working_directory=run.working_directory,
        deepspeed_editable=run.deepspeed_editable,
        measured=run.measured,
        images=run.images,
        prepared=run.prepared,
    )
    if run.model is not None:
        return again
    return replace(again, model_reason=run.model_reason, model_config=run.model_config, model_hints=run.model_hints)
