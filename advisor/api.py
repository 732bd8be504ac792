"""The advisor from Python: the same answers as the command line's, without settings files."""

from collections.abc import Mapping

from advisor.engine.finding import Report
from advisor.errors import InputError
from advisor.memory import Estimate
from advisor.memory import estimate as estimate_run
from advisor.opening import Config, config_document, open_configs
from advisor.session import RunOptions, Session, examine, session_for
from advisor.settings import Settings


def estimate(
    axolotl: Config, deepspeed: Config | None = None, *, gpus: str, stack: Mapping[str, object] | None = None
) -> Estimate:
    """The memory of a run on ``gpus`` (``"8x a100-80gb"``).

    ``axolotl`` and ``deepspeed`` are mappings or paths. ``InputError`` if they cannot be read or the model is unknown.
    """
    opened = open_configs(axolotl, deepspeed, gpus, stack)
    found = estimate_run(opened.run)
    if found is None:
        if opened.run.unreadable:
            value = opened.run.unreadable[0]
            raise InputError(f"no estimate: {value.message}", opened.run.config.file, remedy=f"correct `{value.key}`")
        reason = opened.unknown_model.reason if opened.unknown_model else "no hardware"
        raise InputError(f"no estimate: {reason}", opened.run.config.file, remedy="give the model's config.json")
    return found


def check(
    axolotl: Config,
    deepspeed: Config | None = None,
    *,
    gpus: str | None = None,
    stack: Mapping[str, object] | None = None,
) -> Report:
    """Findings, verdict and plan of a run, as ``advisor check`` reports them."""
    session = plain_session(RunOptions(gpus=gpus, stack=stack))
    return examine(config_document(axolotl, deepspeed), session).report


def plain_session(options: RunOptions) -> Session:
    """A session that no file and no environment variable has a say in."""
    return session_for(["."], options, settings=Settings(), detects=False)
