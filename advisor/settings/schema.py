"""The settings as a pydantic model: its JSON Schema ships, and it words what is wrong with a value.

Nothing on the way of a valid file imports this.
"""

from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, create_model

from advisor.documents.misfits import first_misfit
from advisor.engine.rule import Level
from advisor.run.stack import KINDS, VERSIONS, Stack

TAGS = ("text", "table")
"""Of the two forms of ``gpus``; no key of the file."""
EXPECTED = {
    "dict_type": "a table",
    "model_type": "a table",
    "string_pattern_mismatch": "a version such as 2.13.0, or a range such as >=0.18.6,<0.19",
}


def dashed(name: str) -> str:
    """``fail_on`` -> ``fail-on``."""
    return name.replace("_", "-")


def checked(kind: Any) -> Any:
    """A plain string of the stack is a version."""
    return Annotated[str, Field(pattern=VERSIONS)] if kind is str else kind


StackModel = create_model(
    "StackModel",
    __config__=ConfigDict(extra="forbid", strict=True),
    __doc__="Versions and habits that the facts depend on; what is not given is axolotl's own pin.",
    **cast("dict[str, Any]", {name: (checked(kind), getattr(Stack(), name)) for name, kind in KINDS.items()}),
)


class TierModel(BaseModel):
    """A sort of run, and the steps that come with it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    steps: list[str]


class CardModel(BaseModel):
    """A card that no catalogue has; without bandwidth and rate it has no time."""

    model_config = ConfigDict(extra="forbid", strict=True)

    memory: str = Field(description="The size on the label: `24GB`.")
    bf16: bool = Field(True, description="Whether its tensor units have bf16.")
    fp8: bool = Field(False, description="Whether its tensor units have FP8.")
    bandwidth_gb_s: float | None = Field(None, description="Of its memory, in GB/s.")
    bf16_tflops: float | None = Field(None, description="Dense.")
    fp16_tflops: float | None = Field(None, description="Dense.")
    link_gb_s: float | None = Field(None, description="NVLink or the like, in one direction, in GB/s.")
    pcie_gb_s: float | None = Field(None, description="In one direction, in GB/s.")


class GpusModel(BaseModel):
    """The hardware to judge by, the cards that you have, and those that no catalogue has, each by its name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, CardModel] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    default: str | None = Field(None, description="As the string `gpus`: `8x a100-80gb`.")
    owned: tuple[str, ...] = Field((), description="Cards that `advisor hardware` shows first.")


class SettingsModel(BaseModel):
    """Settings of the config advisor: ``advisor.toml``, or ``[tool.advisor]`` in ``pyproject.toml``."""

    model_config = ConfigDict(extra="forbid", alias_generator=dashed, title="axolotl-advisor settings")

    gpus: Annotated[
        Annotated[str | None, Tag("text")] | Annotated[GpusModel, Tag("table")],
        Discriminator(lambda value: "table" if isinstance(value, (dict, GpusModel)) else "text"),
    ] = Field(
        None,
        description="The hardware to judge by: `2n8x h100 host=1TiB`, `rtx-4090 free=22GiB`; or a table.",
    )
    fail_on: Level = Field("error", description="The lowest level of finding that gives exit code 1.")
    select: tuple[str, ...] = Field((), description="Ids of the only rules to consult; empty: all.")
    ignore: tuple[str, ...] = Field((), description="Ids of rules to leave out, also as steps of the plan.")
    per_file_ignores: dict[str, tuple[str, ...]] = Field(
        default_factory=dict[str, tuple[str, ...]],
        description="Glob patterns of files, relative to this one, each with the ids of the rules to leave out there.",
    )
    rules: tuple[str, ...] = Field((), description="Folders of your own rules, relative to this file.")
    flowchart: str = Field("default", description="The order of the steps that make a run fit.")
    flowcharts: dict[str, list[str] | list[TierModel]] = Field(
        default_factory=dict[str, list[str] | list[TierModel]],
        description="Flowcharts of your own: lists of steps, or of tiers with `name` and `steps`.",
    )
    output_format: str | None = Field(None, description="The format of the report, as for `--output-format`.")
    exclude: tuple[str, ...] = Field(
        (), description="Glob patterns, relative to this file, of files and folders that a walk leaves out."
    )
    models: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Models of your own, each with the published one that it is a fine-tune of.",
    )
    stack: StackModel = Field(  # pyright: ignore[reportInvalidTypeForm]
        default_factory=dict[str, object], description="Versions of libraries and habits of the trainer."
    )


def what_is_wrong(key: str, value: object) -> tuple[tuple[str, ...], str, str]:
    """The path, the message and the remedy for one setting of the wrong type."""
    found = first_misfit(SettingsModel, {key: value}, EXPECTED, as_json=False)
    if found is None:
        return (key,), f"`{key}` is `{value}`", "write another value"
    path = tuple(part for part in found.path if isinstance(part, str) and part not in TAGS)
    return path, f"`{'.'.join(path)}` {found.is_}", found.remedy
