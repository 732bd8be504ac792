"""What a call says about every run that it reads, and a run that was read."""

from collections.abc import Mapping
from dataclasses import field

from advisor.hardware import Gpu, Hardware
from advisor.models import Unknown
from advisor.record import record
from advisor.run import Images, Run
from advisor.run.history import MeasuredRun
from advisor.run.stack import Stack
from advisor.util import Buffers


@record(eq=False)
class Context:
    """What the call says about every run: where it was made, on which hardware, with which stack."""

    working_directory: str = "."
    hardware: Hardware | None = None
    """Before everything else: what a launch will really have."""
    gpus: str | None = None
    default_gpus: str | None = None
    """From the settings: used where neither the call nor the YAML says."""
    own: Mapping[str, Gpu] = field(default_factory=dict[str, Gpu])
    """Cards that the settings describe, by name."""
    owned: tuple[str, ...] = ()
    """From the settings: names of cards that are there already."""
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
