"""The advisor from Python: the same answers as the command line's, without settings files."""

from collections.abc import Mapping, Sequence
from typing import Literal

from advisor.engine.check import replayed
from advisor.engine.finding import Report
from advisor.engine.options import Options
from advisor.errors import InputError
from advisor.memory import Estimate
from advisor.opening import Config, config_document, open_configs
from advisor.session import RunOptions, check_config
from advisor.session.text import check_config_text, plain_session, text_session
from advisor.speed import Conditions, StepTime, Unpriced
from advisor.speed import step_time as priced_run


def estimate(
    axolotl: Config, deepspeed: Config | None = None, *, gpus: str, stack: Mapping[str, object] | None = None
) -> Estimate:
    """The memory of a run on ``gpus`` (``"8x a100-80gb"``), as ``advisor estimate`` says it, replay included.

    ``axolotl`` and ``deepspeed`` are mappings or paths. ``InputError`` if they cannot be read or the model is unknown.
    """
    opened = open_configs(axolotl, deepspeed, gpus, stack)
    found = replayed(opened.run, Options(details=True))
    if found is None:
        if opened.run.unreadable:
            value = opened.run.unreadable[0]
            raise InputError(f"no estimate: {value.message}", opened.run.config.file, remedy=f"correct `{value.key}`")
        reason = opened.unknown_model.reason if opened.unknown_model else "no hardware"
        raise InputError(f"no estimate: {reason}", opened.run.config.file, remedy="give the model's config.json")
    return found


def step_time(
    axolotl: Config,
    deepspeed: Config | None = None,
    *,
    gpus: str,
    stack: Mapping[str, object] | None = None,
    kernels: Literal["eager", "optimized"] = "eager",
    compile: bool = False,  # noqa: A002 (the contract's name)
) -> StepTime:
    """The time of one optimizer step on ``gpus`` (``"2x rtx-3090 link=pcie"``).

    ``kernels`` and ``compile`` describe runs of other trainers. ``InputError`` where there is no time, and why.
    """
    opened = open_configs(axolotl, deepspeed, gpus, stack)
    found = priced_run(opened.run, Conditions(optimized_kernels=kernels == "optimized" or compile))
    if isinstance(found, Unpriced):
        raise InputError(f"no step time: {found.reason}", opened.run.config.file, remedy=found.remedy or "state it")
    return found


def check(
    axolotl: Config,
    deepspeed: Config | None = None,
    *,
    gpus: str | None = None,
    stack: Mapping[str, object] | None = None,
) -> Report:
    """Findings, verdict and plan of a run, as ``advisor check`` reports them."""
    session = plain_session(RunOptions(gpus=gpus, stack=stack, details=True))
    return check_config(config_document(axolotl, deepspeed), session).report


def check_text(
    text: str,
    *,
    file: str = "run.yaml",
    files: Mapping[str, str] | None = None,
    gpus: str | None = None,
    stack: str | Mapping[str, object] | None = None,
    model_config: str | None = None,
    flowchart: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    settings: bool = False,
) -> Report:
    """The same of a YAML that may not be on disk, or not as it is there: for editors, pages and agents.

    ``file`` is what the text is called. ``files`` are texts that count instead of what is on disk, by names relative
    to the folder of ``file``: DeepSpeed JSONs, a ``config.json``. ``settings``: read the settings nearest to ``file``.
    ``report.plan`` has the whole plan as edits of these texts; findings have each step's. Nothing is written.
    ``InputError``, with line and remedy, where a text cannot be read.
    """
    options = RunOptions(
        gpus=gpus,
        stack=stack,
        model_config=model_config,
        flowchart=flowchart,
        select=tuple(select),
        ignore=tuple(ignore),
        details=True,
    )
    return check_config_text(text, file, text_session(file, options, files=files, settings=settings)).report
