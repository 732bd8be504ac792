"""What is asked of ``new``, what was seen in the data, and what must be asked because nothing says it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from advisor.learning import Training
from advisor.record import record
from advisor.session import RunOptions

Method = Literal["auto", "full", "lora", "qlora", "dpo"]
METHODS: tuple[Method, ...] = ("auto", "full", "lora", "qlora", "dpo")


@record(kw_only=True)
class Request:
    """A config from a blank page: what it is for. ``options`` say where and with what it will run.

    ``tokens``: trained in all epochs together. ``hours``: the most that training may take. ``rows_as``: the word for
    what the rows are, where they leave it open. ``chats``: whether the model was trained to chat, where its name does
    not say. ``training``: what is trained, next to ``method: dpo``. ``price``: of a GPU-hour.
    """

    model: str
    data: str | None = None
    method: Method = "auto"
    training: Training | None = None
    sequence_len: int | None = None
    tokens: float | None = None
    hours: float | None = None
    file: str = "run.yaml"
    rows_as: str | None = None
    chats: bool | None = None
    price: float | None = None
    options: RunOptions = field(default_factory=RunOptions)

    @property
    def wanted(self) -> Training | None:
        """The kind of training that is asked for; None where the advisor chooses."""
        return self.training or (self.method if self.method in {"full", "lora", "qlora"} else None)  # pyright: ignore[reportReturnType]


@record(kw_only=True)
class Choice:
    """An answer: the word that states it, and what it means."""

    word: str
    title: str


@record(kw_only=True)
class Question:
    """Something that is left open: the field of the request and the option that state it, and the answers."""

    field: str
    option: str
    text: str
    choices: tuple[Choice, ...]
    default: str


@record(kw_only=True, eq=False)
class Seen:
    """The data: how axolotl reads it, and how much there is. ``rows`` is None where there is no data yet.

    ``entry``: the dataset's entry, ``root``: keys at the top. ``mean``: tokens of a row, as trained. ``longest``: the
    most tokens that the longest row may have.
    """

    entry: Mapping[str, Any]
    root: Mapping[str, Any]
    paired: bool
    templated: bool
    plain_text: bool
    why: str
    rows: int | None = None
    mean: float | None = None
    longest: int | None = None
    said: tuple[str, ...] = ()

    @property
    def tokens(self) -> float | None:
        """Of all rows."""
        return None if self.rows is None or self.mean is None else self.rows * self.mean
