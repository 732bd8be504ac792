"""A line of ``tests/gpu/measure.py`` as a pydantic model, which words what is wrong with one."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from advisor.documents.misfits import misfit_in_line
from advisor.errors import InputError


class Part(BaseModel):
    """A part of a line: what counts is checked as it is, what is left is anybody's."""

    model_config = ConfigDict(strict=True, extra="allow")


class Card(Part):
    """The GPU, as torch names it."""

    name: str


class _ZeroSection(Part):
    """ZeRO's settings."""

    stage: int


class DeepSpeedConfig(Part):
    """The DeepSpeed config of the run."""

    zero_optimization: _ZeroSection


class Config(Part):
    """The axolotl config that stands for the run."""

    base_model: str
    gradient_checkpointing: bool
    adapter: str | None = None


class _OwnRun(Part):
    """What a line must have to be compared with an estimate; sizes in bytes."""

    name: str
    device: Literal["cuda", "cpu"]
    outcome: Literal["ok", "oom", "error"]
    gpu: Card | None
    axolotl: Config
    deepspeed: DeepSpeedConfig | None
    stack: dict[str, Any]
    memory_limit: int | None
    allocated_peak: int | None
    reserved_peak: int | None
    phases: dict[str, Any]


class _EndedRun(_OwnRun):
    """A run that went through has its peaks."""

    allocated_peak: int  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    reserved_peak: int  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


def what_is_wrong(line: str, file: str, number: int, *, ended: bool) -> InputError:
    """Why a line is not a measured run."""
    model = _EndedRun if ended else _OwnRun
    return misfit_in_line(model, line, file, number, otherwise="give a file that tests/gpu/measure.py has written")
