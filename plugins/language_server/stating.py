"""Quick fixes that state the GPUs: yours, those of this machine, the smallest card that would do, a few usual ones."""

from collections.abc import Iterable, Iterator
from typing import Any

from advisor.engine.hardware_that_fits import on_any_gpu, on_hardware
from advisor.errors import InputError
from advisor.hardware import Hardware, parse_hardware
from advisor.hardware.catalogue import catalogue
from advisor.memory import estimate
from advisor.opening.context import Context
from advisor.opening.which_hardware import detected
from advisor.report.wording import VERDICTS, number
from advisor.run import Run

from .checking import Checked
from .texts import insertion, lsp, uri_of

USUAL = ("1x rtx-4090", "1x a100-80gb", "8x a100-80gb", "8x h100-80gb")
MOST = 7


def stating(checked: Checked, quick: Any) -> Iterator[Any]:
    """One action for each kind of hardware; nothing where the run has some."""
    run, context = checked.found.run, checked.found.opened.context
    if run.hardware is not None or run.is_json_alone or context is None:
        return
    specs = list(dict.fromkeys(hardware.spec for hardware in _hardware_for(run, context)))
    for spec in specs[:MOST]:
        words = _words(run, parse_hardware(spec, own=context.own))
        change = insertion(0, 0, f"# advisor: gpus={spec}\n")
        edit = lsp.TextDocumentEdit(lsp.OptionalVersionedTextDocumentIdentifier(uri_of(checked.path)), [change])
        yield lsp.CodeAction(
            f"advisor: State GPUs: {words}", kind=quick, edit=lsp.WorkspaceEdit(document_changes=[edit])
        )


def _hardware_for(run: Run, context: Context) -> Iterator[Hardware]:
    """What is offered, in its order."""
    yield from _parsed(context.owned, context)
    if (here := detected()) is not None:
        yield here
    if (least := _smallest_for(run)) is not None:
        yield least
    yield from _parsed(USUAL, context)


def _parsed(specs: Iterable[str], context: Context) -> Iterator[Hardware]:
    """Those that can be read: the settings may name a card that nobody has."""
    for spec in specs:
        try:
            yield parse_hardware(spec, own=context.own)
        except InputError:
            continue


def _smallest_for(run: Run) -> Hardware | None:
    """One card that holds the run as it is written, the smallest of the common ones that compute in bf16."""
    found = estimate(on_any_gpu(run)) if run.model is not None else None
    if found is None:
        return None
    cards = sorted((gpu for gpu in catalogue().gpus.values() if gpu.bf16), key=lambda gpu: gpu.total_bytes)
    enough = (hardware for hardware in map(Hardware, cards, [1] * len(cards)) if hardware.usable >= found.needed.high)
    return next(enough, None)


def _words(run: Run, hardware: Hardware) -> str:
    """``1x RTX 4090 (fits: 19.8 of 23.1 GiB)``."""
    found = estimate(on_hardware(run, hardware)) if run.model is not None else None
    if found is None:
        return hardware.title
    return f"{hardware.title} ({VERDICTS[found.verdict]}: {number(found.needed.high)} of {number(found.usable)} GiB)"
