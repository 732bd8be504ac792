"""The GPUs of a launch: what is stated for it, else what this machine has, else what config and settings say."""

from collections.abc import Callable

from advisor.documents import Document
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.opening import hardware_for, plugin_hardware
from advisor.record import replace
from advisor.session.session import Session


def launched_on(
    config: Document, session: Session, scaled: Callable[[Hardware], Hardware], *, stated: str | None = None
) -> Hardware | None:
    """One GPU a process, as ``scaled`` counts them; what is ``stated`` is taken as it is."""
    if stated:
        return parse_hardware(stated, file="advisor.gpus", own=session.context.own)
    if session.context.gpus:
        return parse_hardware(session.context.gpus, own=session.context.own)
    if (told := plugin_hardware(config, session.context)) is not None:
        return told
    found = detect() or hardware_for(config, replace(session.context, detects=False))
    return found and scaled(found)
