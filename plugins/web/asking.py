"""What the page says, as JSON -> the run that it means."""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from advisor.documents import Document, parse
from advisor.hardware import Hardware
from advisor.hardware.parse import options_of
from advisor.opening import pragma
from advisor.record import record, replace
from advisor.run import Run
from advisor.session import CheckedRun, RunOptions, Session, check_config
from advisor.session.text import text_session
from advisor.util import GIB

CONFIG = "run.yaml"
MODEL = "config.json"


@record(eq=False, kw_only=True)
class Asked:
    """The texts of the page, its GPUs, and how much will be trained on.

    ``taken``: the comment whose GPUs the fields of the page hold already.
    """

    config: str
    files: Mapping[str, str]
    gpus: str | None
    taken: str
    tokens: float

    @cached_property
    def document(self) -> Document:
        """The YAML. ``InputError`` where it cannot be read."""
        return parse(self.config.encode(), CONFIG, "yaml")

    @cached_property
    def comment(self) -> str:
        """What a comment ``# advisor: gpus=...`` says; empty without one. ``InputError`` where there is no YAML."""
        said = pragma(self.document, "gpus")
        return said.argument if said else ""

    @property
    def is_stated(self) -> bool:
        """Whether the comment says something that the fields of the page have not taken over."""
        return bool(self.comment) and self.comment != self.taken

    def session(self, *, details: bool = False) -> Session:
        """Of these texts. ``InputError`` where the YAML cannot be read."""
        model = MODEL if MODEL in self.files else None
        options = RunOptions(gpus=None if self.is_stated else self.gpus, model_config=model, details=details)
        return text_session(CONFIG, replace(options, answers=True), files=self.files)


def asked(request: str) -> Asked:
    """A question of the page."""
    said = json.loads(request)
    files = {name: text for name, text in said["files"].items() if text.strip()}
    tokens = float(said.get("tokens") or 100e6)
    gpus, taken = said["gpus"] or None, said.get("taken") or ""
    return Asked(config=said["config"], files=files, gpus=gpus, taken=taken, tokens=tokens)


def soon(question: Asked, *, details: bool = False) -> CheckedRun:
    """What a key waits for: no plan, and no replay but for ``details``. ``InputError`` where a text cannot be read."""
    session = question.session(details=details)
    options = replace(session.options, plans=False, replays=details)
    return check_config(question.document, replace(session, options=options), speed=False)


def whole(question: Asked) -> CheckedRun:
    """The same with plans and options."""
    return check_config(question.document, question.session())


def stated(question: Asked, found: CheckedRun) -> dict[str, Any] | None:
    """The GPUs of the comment as the fields of the page have them; None where they have them already."""
    hardware = found.run.hardware
    return gpus_in(question.comment, hardware) if question.is_stated and hardware is not None else None


def gpus_in(said: str, hardware: Hardware) -> dict[str, Any]:
    """GPUs, which ``said`` states, field by field."""
    return {
        "said": said,
        "count": hardware.gpus_per_node,
        "card": hardware.gpu.id,
        "nodes": hardware.nodes,
        "host": round(hardware.host_bytes / GIB) if hardware.host_bytes else "",
        "link": hardware.link or "",
        "net": options_of(said)[0].get("net", ""),
    }


def fields_of(run: Run) -> dict[str, Any]:
    """What the menus and sliders show of a run; no method where it is none of theirs."""
    method = run.rl if run.rl in {None, "dpo"} else ""
    if method is None:
        method = "full" if run.adapter is None else "qlora" if run.quantization is not None else "lora"
    unknown = run.model is None and not run.unreadable
    return {
        "model": run.base_model,
        "method": method,
        "length": run.sequence_len,
        "batch": run.micro_batch_size,
        "unknown": run.base_model if unknown else "",
    }
