"""What a caller may ask of a check: every option at its default when it is left out."""

from collections.abc import Mapping

from advisor.engine.rule import Level
from advisor.record import record


@record(kw_only=True)
class RunOptions:
    """What the run is, where it will be, and which rules are consulted.

    ``stack`` is ``installed``, ``torch=2.9.0,trainer=trl-sft``, or a mapping of the fields of ``Stack``.
    """

    gpus: str | None = None
    model_config: str | None = None
    trace: bool = False
    stack: str | Mapping[str, object] | None = None
    flowchart: str | None = None
    isolated: bool = False
    """Read no settings file."""
    rules: tuple[str, ...] = ()
    """Folders of rules that run, instead of those that settings name."""
    offline: bool = True
    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    validate: bool = False
    """Also ask the installed axolotl and DeepSpeed."""
    fail_on: Level | None = None
    formats: tuple[str, ...] = ()
    images: str | None = None
    """Images of a row: ``2x1024x768``."""
    row_length: int | None = None
    """Tokens of a row for a second estimate."""
    details: bool = False
    """Also the time of a step and the basis of the estimate, as with JSON."""
