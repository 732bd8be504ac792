"""Files -> Runs: finds the DeepSpeed config, the model and the hardware that a YAML means."""

import json
import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from advisor.documents import Directive, Document, Set, new_document, parse, read
from advisor.documents.repository import checkout_of, lies_in, repository_of
from advisor.errors import InputError
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.models import Architecture, Unknown, resolve_with_config
from advisor.record import record, replace
from advisor.run import Images, Run
from advisor.run.build import build_run
from advisor.run.deepspeed import Section, shipped
from advisor.run.deepspeed.locate import deepspeed_path, is_own
from advisor.run.history import MeasuredRun
from advisor.run.stack import Stack, read_stack
from advisor.run.unreadable import is_placeholder
from advisor.tracing.folder import has_traces
from advisor.util import Buffers, is_mapping

Config = Mapping[str, Any] | str | os.PathLike[str]
PLUGIN_GPUS = "advisor.gpus"
PREPARED = "last_run_prepared"
"""Where axolotl keeps what it has tokenized: axolotl/common/const.py:3@0.19.0."""


@record(eq=False)
class Context:
    """What the call says about every run: where it was made, on which hardware, with which stack."""

    working_directory: str = "."
    hardware: Hardware | None = None
    """Before everything else: what a launch will really have."""
    gpus: str | None = None
    default_gpus: str | None = None
    """From the settings: used where neither the call nor the YAML says."""
    detects: bool = False
    stack: Stack = field(default_factory=Stack)
    model_config: str | None = None
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """From the settings: which model another one is a fine-tune of."""
    offline: bool = True
    trace: bool = False
    """Whether transformers may be asked for what the formulas do not know."""
    buffers: Buffers = field(default_factory=Buffers)
    """Texts that count instead of the files of these names."""
    measured: tuple[MeasuredRun, ...] = ()
    """Runs that were measured on this machine."""
    images: Images | None = None
    """The images of a row, as the call states them."""


@record(eq=False)
class LoadedRun:
    """A run, and what could not be found for it."""

    run: Run
    unknown_model: Unknown | None = None
    context: Context | None = None
    """Where the run was read from; None if it was put together from values."""


def open_run(config: Document, context: Context) -> LoadedRun:
    """The run that a YAML describes. What is wrong with its values is an ``InputError`` at their place."""
    hardware = hardware_for(config, context)
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
                raise _unshown(config) from error
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


def hardware_for(config: Document, context: Context) -> Hardware | None:
    """The first of: the call, the YAML's own comment, its key for the plugin, the settings, detection."""
    if context.hardware is not None:
        return context.hardware
    if context.gpus:
        return replace(parse_hardware(context.gpus), source="--gpus")
    said = pragma(config, "gpus")
    if said is not None:
        return parse_hardware(said.argument, file=config.file, line=said.line)
    if (found := plugin_hardware(config)) is not None:
        return found
    if context.default_gpus:
        return parse_hardware(context.default_gpus)
    return detected() if context.detects else None


def plugin_hardware(config: Document) -> Hardware | None:
    """The hardware that the plugin is told in the YAML: ``advisor: {gpus: ...}``."""
    said = config.at(PLUGIN_GPUS)
    if not isinstance(said, str) or not said.strip() or is_placeholder(said):
        return None
    span = config.span(PLUGIN_GPUS)
    return parse_hardware(said, file=config.file, line=span.line if span else 0)


def pragma(config: Document, name: str) -> Directive | None:
    """The first comment of the YAML that says what its ``name`` is."""
    return next((directive for directive in config.directives if directive.name == name), None)


@lru_cache(maxsize=1)
def detected() -> Hardware | None:
    """This machine's GPUs, asked once."""
    return detect()


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


def deepspeed_for(config: Document, context: Context) -> tuple[Section | None, bool]:
    """The DeepSpeed config that the YAML means, and whether an edit may land in its file."""
    named = config.get("deepspeed")
    if isinstance(named, dict):
        return Section(config, ("deepspeed",)), True
    if not isinstance(named, str) or not named:
        return None, False
    path = deepspeed_path(config, named, context.working_directory, context.buffers)
    if path is not None:
        return _deepspeed_in(path, config, named, context), is_own(config, path)
    values = shipped(named)
    return (Section(new_document(named, "json", values)), False) if values else (None, False)


def _deepspeed_in(path: str, config: Document, named: str, context: Context) -> Section:
    """The DeepSpeed config in a file. Why one outside the repository cannot be read is not said: it would quote it."""
    nothing = Section(new_document(path, "json", {}))
    try:
        unsaved = context.buffers.at(path)
        section = Section(read(path) if unsaved is None else parse(unsaved, path, "json"))
    except InputError as error:
        if _is_outside(config, named, nothing, context.working_directory):
            raise _unshown(config) from error
        raise
    return replace(section, outside=_is_outside(config, named, section, context.working_directory))


def _unshown(config: Document) -> InputError:
    """What is said of a DeepSpeed config outside the repository that cannot be used."""
    span = config.span("deepspeed")
    line, column = (span.line, span.column) if span else (0, 0)
    message = "`deepspeed` names a file outside the repository that is not a DeepSpeed config; its content is not shown"
    return InputError(message, config.file, line, column, "name a file in the repository, or check that file itself")


def json_of(opened: LoadedRun) -> str:
    """The real path of the JSON that a run has read; empty without one."""
    section = opened.run.deepspeed
    return os.path.realpath(section.file) if section is not None and not section.prefix else ""


def left_alone(documents: Iterable[Document], named: Container[str]) -> list[Document]:
    """The JSONs that none of the runs has read."""
    return [document for document in documents if os.path.realpath(document.file) not in named]


def open_json(document: Document, context: Context) -> LoadedRun:
    """The JSON as a run without a YAML. A value of a wrong type is an ``InputError`` at its place."""
    nothing = parse(b"", document.file, "yaml")
    run = build_run(
        nothing,
        Section(document, outside=not lies_in(repository_of(document.file), document.file)),
        model=None,
        hardware=None,
        stack=context.stack,
        working_directory=context.working_directory,
        deepspeed_editable=is_own(document, document.file),
    )
    return LoadedRun(run)


def open_configs(
    axolotl: Config,
    deepspeed: Config | None = None,
    gpus: str | None = None,
    stack: Mapping[str, object] | None = None,
) -> LoadedRun:
    """The run of these configs, with nothing else said of it."""
    return open_run(config_document(axolotl, deepspeed), Context(gpus=gpus, stack=read_stack(stack)))


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


def _is_outside(config: Document, named: str, found: Section, working_directory: str) -> bool:
    """Whether a DeepSpeed JSON is somebody else's: outside the YAML's repository, and not as axolotl ships it.

    Without a repository, a plain path from the working directory, where axolotl looks, is inside too.
    """
    root = repository_of(config.file)
    if lies_in(root, found.file) or dict(found) == shipped(os.path.basename(named)):
        return False
    plain = not os.path.isabs(named) and ".." not in named.replace(os.sep, "/").split("/")
    return not (plain and checkout_of(root) is None and lies_in(os.path.realpath(working_directory), found.file))
