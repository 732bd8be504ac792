"""Every fix of every real config: ``python -m tests.corpus.sweep [PART PARTS]`` counts the promises that are broken."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from advisor.documents import Document
from advisor.documents.discovery import gathered
from advisor.engine.options import Options
from advisor.errors import InputError
from advisor.opening import Context

from ..promises import Kept, kept
from .configs import config_files, copied, copied_wild

CARDS = ("1x t4", "1x rtx-4090", "2x rtx-4090", "4x l40s", "8x a100-40gb")
KINDS = ("cannot be read", "new error", "report differs", "promise differs", "second fix")
Case = tuple[Path, Path, str, bool]
"""A config, the folder that it is launched from, the GPUs, and whether unsafe fixes are allowed."""


def cases(root: Path) -> Iterator[Case]:
    """Every example and every stranger's config on every card, safe and unsafe."""
    examples, wild = copied(root), copied_wild(root)
    files = [(file, examples) for file in config_files(examples, "examples")]
    files += [(file, file.parent) for file in wild_files(wild)]
    for file, folder in files:
        for gpus in CARDS:
            for unsafe in (False, True):
                yield file, folder, gpus, unsafe


def wild_files(wild: Path) -> Iterator[Path]:
    """Strangers' configs that can be read."""
    for found in gathered([str(wild / "axolotl")]):
        if isinstance(found, Document) and found.syntax == "yaml":
            yield Path(found.file)


def outcome(case: Case) -> Kept | None:
    """What became of one case; None where the config cannot be read."""
    file, folder, gpus, unsafe = case
    with suppress(InputError):
        return kept(file, Context(working_directory=str(folder), gpus=gpus), Options(), unsafe=unsafe)
    return None


def title(case: Case) -> str:
    """The case in a word."""
    file, _, gpus, unsafe = case
    return f"{file.parent.name}/{file.name} on {gpus}{', unsafe' if unsafe else ''}"


def main(part: int, parts: int) -> int:
    """The counts, and each broken promise."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases(Path(folder))):
            if number // len(CARDS) // 2 % parts != part:
                continue
            found = outcome(case)
            if found is None:
                counts["refused"] += 1
                continue
            counts["tried"] += 1
            counts["wrote"] += found.wrote
            for kind, how in found.broken.items():
                counts[kind] += 1
                print(f"{title(case)}: {kind}: {how}", flush=True)
    print(", ".join(f"{counts[name]} {name}" for name in ("tried", "wrote", "refused", *KINDS)))
    return int(any(counts[kind] for kind in KINDS))


if __name__ == "__main__":
    sys.exit(main(*(map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (0, 1))))
