# pyright: basic
"""``python -m tests.allocations.record [NAME...]``: records the settings again, as the installed torch, transformers and PEFT make them."""

import gzip
import json
import sys
from pathlib import Path

from .emulating import canonical, least_compared
from .recording import record
from .settings import SETTINGS

RECORDED = Path(__file__).with_name("recorded.json.gz")


def recorded(name: str) -> list[int]:
    """One setting's tape, from when the model is loaded."""
    recorder, marks = record(SETTINGS[name])
    return canonical(recorder.events, marks[0][1], least_compared(SETTINGS[name]))


def main() -> None:
    """Writes the file."""
    kept = json.loads(gzip.decompress(RECORDED.read_bytes())) if sys.argv[1:] else {}
    tapes = {name: recorded(name) if name in (sys.argv[1:] or SETTINGS) else kept[name] for name in SETTINGS}
    text = json.dumps(tapes, separators=(",", ":"))
    RECORDED.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
