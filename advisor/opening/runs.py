"""Files -> Runs, each with the DeepSpeed config, the model and the hardware that its YAML means."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from advisor.documents import Document, Set, new_document, parse, read
from advisor.documents.repository import lies_in, repository_of
from advisor.errors import InputError
from advisor.models import Architecture, Unknown, resolve_with_config
from advisor.opening.context import Context, LoadedRun
from advisor.opening.which_deepspeed import deepspeed_for, unshown
from advisor.opening.which_hardware import hardware_for, pragma, that_trains
from advisor.record import replace
from advisor.run import Run
from advisor.run.build import build_run
from advisor.run.deepspeed import Section
from advisor.run.deepspeed.locate import is_own
from advisor.run.stack import read_stack
from advisor.run.unreadable import is_placeholder
from advisor.tracing.folder import has_traces
from advisor.util import Buffers, is_mapping

Config = Mapping[str, Any] | str | os.PathLike[str]
MODEL_CONFIG = "the model's config.json"
"""No file: what a call says of a model that nothing else knows."""
PREPARED = "last_run_prepared"
"""Where axolotl keeps what it has tokenized: axolotl/common/const.py:3@0.19.0."""


def open_run(config: Document, context: Context) -> LoadedRun:
    """The run that a YAML describes. What is wrong with its values is an ``InputError`` at their place."""
    hardware = hardware_for(config, context)
    if hardware is not None and context.hardware is None:
        hardware = that_trains(config, hardware)
    section, editable = deepspeed_for(config, context)

    def built(model: Architecture | None) -> Run:
        try:
            return build_run(
                config,
                section,
                model=model,
                hardware=hardware,
                stack=context.stack,
                working_directory=context.working_directory,
                deepspeed_editable=editable,
                measured=context.measured,
                images=context.images,
            )
        except InputError as error:
            if section is not None and section.outside and error.file == section.file:
                raise unshown(config) from error
            raise

    model = _with_traces(*_model_for(config, context), built, context)
    if isinstance(model, Architecture):
        return LoadedRun(_with_prepared_rows(built(model)), context=context)
    reason = f" ({model.reason})" if model.reason else ""
    run = replace(built(None), model_reason=reason, model_config=model.config, model_hints=model.remedies)
    return LoadedRun(run, model, context)


def _with_prepared_rows(run: Run) -> Run:
    """The run with the longest row of the dataset that axolotl has prepared for it, where rows differ in length."""
    if run.sample_packing or run.pads_to_sequence_len or run.rl is not None or run.classifier is not None:
        return run
    base = run.config.get("dataset_prepared_path") or PREPARED
    if not isinstance(base, str) or not os.path.isdir(os.path.join(run.working_directory, base)):
        return run
    from advisor.run.axolotl.prepared import prepared_rows

    prepared = prepared_rows(run.config, run.working_directory, base, run.sequence_len)
    return run if prepared is None else replace(run, prepared=prepared)


def _with_traces(
    model: Architecture | Unknown,
    described: Mapping[str, object] | None,
    built: Callable[[Architecture | None], Run],
    context: Context,
) -> Architecture | Unknown:
    """A model that the formulas do not know, or only by widths, with what is traced of it."""
    if described is None or not (context.trace or has_traces()):
        return model
    from advisor.memory.basis import unsure

    if isinstance(model, Architecture) and not unsure(model):
        return model
    from advisor.tracing import by_trace

    return by_trace(model, described, built, allowed=context.trace)


def _model_for(config: Document, context: Context) -> tuple[Architecture | Unknown, Mapping[str, object] | None]:
    """The architecture of ``base_model_config`` or ``base_model``, with the YAML's overrides; and its config."""
    name = config.get("base_model_config") or config.get("base_model")
    if not name or is_placeholder(name):
        return Unknown("", "it is not named", ()), None
    said = pragma(config, "model")
    overrides = config.get("overrides_of_model_config") or config.get("model_config")
    return resolve_with_config(
        str(name),
        folder=os.path.dirname(config.file) or ".",
        model_config=context.model_config or (said.argument if said else context.models.get(str(name))),
        overrides=overrides if is_mapping(overrides) else None,
        offline=context.offline,
        buffers=context.buffers,
    )


def open_json(document: Document, context: Context) -> LoadedRun:
    """The JSON as a run without a YAML. A value of a wrong type is an ``InputError`` at its place."""
    nothing = parse(b"", document.file, "yaml")
    section = Section(document, outside=not lies_in(repository_of(document.file), document.file))
    run = build_run(
        nothing,
        section,
        model=None,
        hardware=None,
        stack=context.stack,
        working_directory=context.working_directory,
        deepspeed_editable=is_own(document, section),
    )
    return LoadedRun(run)


def open_configs(
    axolotl: Config,
    deepspeed: Config | None = None,
    gpus: str | None = None,
    stack: Mapping[str, object] | None = None,
    *,
    model: Mapping[str, object] | None = None,
) -> LoadedRun:
    """The run of these configs, with nothing else said of it; ``model``: what its ``config.json`` would say."""
    buffers = Buffers() if model is None else Buffers({os.path.abspath(MODEL_CONFIG): json.dumps(model)})
    context = Context(gpus=gpus, stack=read_stack(stack), buffers=buffers, model_config=MODEL_CONFIG if model else None)
    return open_run(config_document(axolotl, deepspeed), context)


def config_document(axolotl: Config, deepspeed: Config | None = None) -> Document:
    """A path or a mapping of plain values as a document, with ``deepspeed`` instead of what it names."""
    config = (
        parse(json.dumps(axolotl).encode(), "config.yaml", "yaml") if isinstance(axolotl, Mapping) else read(axolotl)
    )
    if deepspeed is None:
        return config
    value = dict(deepspeed) if isinstance(deepspeed, Mapping) else os.fspath(deepspeed)
    changed = config.changed(Set("deepspeed", value))
    return new_document(config.file, "yaml", changed.values_mapping) if isinstance(value, dict) else changed
