"""What the processes that ask a real library share: lines in, lines out, and an error as data."""

import contextlib
import importlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

Values = dict[str, Any]


def serve(answer: Callable[[Values], Values], modules: Iterable[str], **environment: str) -> None:
    """Answers each JSON line of standard input by one; what else is printed goes to standard error."""
    os.environ.update(environment, HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.redirect_stdout(sys.stderr):
        for module in modules:
            importlib.import_module(module)
        logging.disable(logging.CRITICAL)
        for line in sys.stdin:
            reply.write(json.dumps(answer(json.loads(line)), default=str) + "\n")
            reply.flush()


def problems(error: Exception) -> list[Values]:
    """What an error says: each of pydantic's with its place, the value there and its model; any other as it is."""
    listed = getattr(error, "errors", None)
    if not callable(listed):
        return [{"at": [], "message": f"{type(error).__name__}: {error}", "model": "", "given": None}]
    every: Any = listed()
    model = getattr(error, "title", "")
    return [
        {
            "at": list(one["loc"]),
            "message": one["msg"].removeprefix("Value error, "),
            "model": model,
            "given": one.get("input"),
        }
        for one in every
    ]
