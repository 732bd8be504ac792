"""The YAML of ``--cloud`` as a pydantic model, for axolotl's own providers: it words what is wrong with one."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, StrictStr

from advisor.documents import Document
from advisor.documents.misfits import first_misfit
from advisor.errors import InputError
from advisor.hardware.parse import parse_size

WORDS = {
    "greater_than_equal": "a whole number of 1 at least",
    "int_parsing": "a whole number of 1 at least",
    "int_type": "a whole number of 1 at least",
    "less_than_equal": "a whole number below 10000",
    "string_type": "a name",
    "value_error": "GiB as a number, or a size such as 256GiB",
}


def size(value: object) -> object:
    """Memory that can be read, plain numbers as GiB."""
    if value is None or type(value) is int:
        return value
    try:
        return value if str(value).isdecimal() else parse_size(str(value))
    except InputError as error:
        raise ValueError from error


def card(value: object) -> object:
    """A card's name, which YAML may take for a number."""
    return str(value) if type(value) is int else value


Count = Annotated[int, Field(ge=1, le=9999)] | None


class CloudModel(BaseModel):
    """What counts of a cloud YAML; axolotl/cli/cloud/modal_.py:203-227@0.19.0."""

    provider: StrictStr | None = None
    gpu: Annotated[StrictStr | None, BeforeValidator(card)] = None
    gpu_count: Count = None
    node_count: Count = None
    memory: Annotated[object, BeforeValidator(size)] = None


def what_is_wrong(document: Document) -> InputError | None:
    """The first key that cannot be read, at its line."""
    found = first_misfit(CloudModel, dict(document), WORDS)
    if found is None:
        return None
    span = document.span(str(found.path[0]))
    place = (span.line, span.column) if span else (0, 0)
    return InputError(found.message, document.file, *place, remedy=f"{found.remedy}, or remove it")
