"""Asks one of axolotl's real schema classes what it takes."""

import contextlib
import io
from copy import deepcopy
from dataclasses import field
from typing import Any, cast

from advisor.record import record
from advisor.schemas.value_kinds import fits

Row = dict[str, Any]
Rows = dict[str, Row]
PROBES: tuple[Any, ...] = (True, 7, 0.5, "words", "7", "true", [], ["words"], [7], {}, {"a": 1}, None)


@record
class Asked:
    """A schema class, and the values without which it accepts nothing."""

    schema: Any
    base: dict[str, Any] = field(default_factory=dict[str, Any])

    def answer(self, values: dict[str, Any]) -> tuple[dict[str, Any] | None, Exception | None]:
        """What the schema makes of the values, or what it refuses them with."""
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                return self.schema(**deepcopy({**self.base, **values})).model_dump(), None
        except Exception as error:
            return None, error

    def takes(self, key: str, value: Any) -> bool:
        """Whether the schema has nothing against the value of this one key."""
        _, error = self.answer({key: value})
        if error is None:
            return True
        listed: list[Any] = cast("Any", error).errors() if hasattr(error, "errors") else []
        return bool(listed) and all(one["loc"] and one["loc"][0] != key for one in listed)

    def loosen(self, rows: Rows) -> None:
        """``any`` for each key of which the schema takes more than its annotation says."""
        for key, row in rows.items():
            if any(not fits(row["kinds"], value) and self.takes(key, value) for value in PROBES):
                row["kinds"] = [*(kind for kind in row["kinds"] if isinstance(kind, dict)), "any"]
