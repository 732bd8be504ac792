"""The keys that the plugin adds to axolotl's schema."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class AdvisorSettings(BaseModel):
    """What stands under ``advisor:``."""

    model_config = ConfigDict(extra="forbid")

    mode: Literal["off", "warn", "block"] = "block"
    gpus: str | None = Field(default=None, description="The GPUs to check against, instead of those that are found.")
    record: bool = Field(default=True, description="Whether a measured run is kept, for later estimates.")

    @field_validator("mode", mode="before")
    @classmethod
    def spelled(cls, mode: Any) -> Any:
        """YAML 1.1 reads a bare ``off`` as false."""
        return "off" if mode is False else mode


class AdvisorArgs(BaseModel):
    """One key, so that no other plugin's can be meant."""

    advisor: AdvisorSettings | None = None
