"""A measured run of this machine as a pydantic model, which words what is wrong with a line of the file."""

from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from advisor.documents.misfits import misfit_in_line
from advisor.errors import InputError
from advisor.run.history import KINDS, LATER, path, run_of

Positive = {"allocated": Field(gt=0), "reserved": Field(gt=0)}
MeasuredRunModel: type[BaseModel] = create_model(
    "MeasuredRunModel",
    __config__=ConfigDict(strict=True),
    **cast("dict[str, Any]", {name: (kind, Positive.get(name, LATER.get(name, ...))) for name, kind in KINDS.items()}),
)


def first_skipped() -> InputError | None:
    """The first line of the file that is not a run; None if all are."""
    try:
        lines = enumerate(path().read_bytes().splitlines(), 1)
    except OSError:
        return None
    wrong = (what_is_wrong(line, str(path()), number) for number, line in lines if line.strip() and not run_of(line))
    return next(wrong, None)


def what_is_wrong(line: bytes, file: str, number: int) -> InputError:
    """Why a line does not count."""
    less = "`reserved` is less than `allocated`"
    found = misfit_in_line(MeasuredRunModel, line, file, number, otherwise="remove the line", else_=less)
    found.message = f"this run does not count: {found.message}"
    return found
