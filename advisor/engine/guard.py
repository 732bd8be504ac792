"""An organisation's rule that goes wrong on some config is told as what it is: a fault of that file."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from advisor.engine.rule import Rule
from advisor.errors import InputError
from advisor.run import Run

Found = TypeVar("Found")


def guarded(rule: Rule, file: str) -> Rule:
    """The rule, with what its functions raise as an ``InputError`` at the line of ``file``."""

    def guard(function: Callable[[Run], Found]) -> Callable[[Run], Found]:
        def call(run: Run) -> Found:
            try:
                return function(run)
            except InputError:
                raise
            except Exception as error:
                raise fault(rule, file, error) from error

        return call

    safe = guard(rule.safe) if callable(rule.safe) else rule.safe
    finds = guard(lambda run: list(rule.finds(run)))
    return replace(rule, when=guard(rule.when), edits=guard(rule.edits), finds=finds, safe=safe)


def fault(rule: Rule, file: str, error: Exception) -> InputError:
    """What went wrong, at the last line of the rule's own file."""
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    message = f"the rule `{rule.id}` failed: {type(error).__name__}: {error}"
    return InputError(message, file, lines[-1] if lines else 0, remedy=f"mend it, or pass --ignore {rule.id}")
