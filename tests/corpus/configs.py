"""The corpus of real axolotl configs, and what the advisor makes of it."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from advisor.documents import Document, read
from advisor.documents.discovery import gathered
from advisor.engine.check import check_run
from advisor.engine.finding import Report
from advisor.engine.fix import Fixed, fixed
from advisor.engine.options import Options
from advisor.memory import estimate
from advisor.opening import Context, LoadedRun, open_run

GPUS = "4x rtx-4090"


def folder() -> Path | None:
    """Where the corpus is, if ``ADVISOR_CORPUS`` says so."""
    named = os.environ.get("ADVISOR_CORPUS")
    return Path(named) if named else None


def copied(into: Path) -> Path:
    """A copy of axolotl's configs that may be written to."""
    corpus = folder()
    assert corpus is not None
    return Path(shutil.copytree(corpus / "corpus" / "axolotl", into / "axolotl"))


def copied_wild(into: Path) -> Path:
    """A copy of strangers' configs that may be written to."""
    corpus = folder()
    assert corpus is not None
    return Path(shutil.copytree(corpus / "corpus" / "wild", into / "wild"))


def accepted_by_axolotl(root: Path) -> set[str]:
    """The configs that axolotl itself accepts, by their path below ``root``."""
    lines = (root / "axolotl_verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [json.loads(line) for line in lines]
    return {verdict["config_path"] for verdict in verdicts if verdict["status"] == "ok"}


def known_models() -> set[str]:
    """Every model id with known facts, aliases included."""
    corpus = folder()
    assert corpus is not None
    facts = json.loads((corpus / "facts" / "models.json").read_text(encoding="utf-8"))
    return set(facts) | {alias for entry in facts.values() for alias in entry.get("aliases") or ()}


@dataclass(frozen=True)
class Case:
    """One config of the corpus on some hardware."""

    name: str
    opened: LoadedRun
    options: Options

    @cached_property
    def report(self) -> Report:
        """What is said of it."""
        return check_run(self.opened, self.options)

    @cached_property
    def fixed(self) -> Fixed:
        """The run after all fixes, unsafe ones included."""
        return fixed(self.opened, self.options, unsafe=True)

    @property
    def fits_when_fixed(self) -> bool:
        """Whether the fixes, the plan's or those of lint rules alone, leave a run that fits."""
        found = estimate(self.fixed.run)
        return found is not None and found.verdict in {"fits", "tight"}


def config_files(root: Path, part: str) -> Iterator[Path]:
    """The axolotl configs of one part of the corpus."""
    for found in gathered([str(root / part)]):
        assert isinstance(found, Document), found
        if found.syntax == "yaml":
            yield Path(found.file)


def case(root: Path, file: Path, gpus: str = GPUS, flowchart: str = "default") -> Case:
    """The run of one file, launched from ``root`` as axolotl's readme does."""
    opened = open_run(read(file), Context(working_directory=str(root), gpus=gpus))
    return Case(file.relative_to(root).as_posix(), opened, Options(flowchart=flowchart))


def examples(root: Path, gpus: str = GPUS, flowchart: str = "default", *, every: int = 1) -> list[Case]:
    """The run of every example that axolotl ships, or of one in so many."""
    return [case(root, file, gpus, flowchart) for file in islice(config_files(root, "examples"), None, None, every)]


def patched_examples(root: Path, gpus: str = GPUS, flowchart: str = "default", *, every: int = 1) -> list[Case]:
    """Those that the advisor writes a patch for."""
    return [one for one in examples(root, gpus, flowchart, every=every) if one.fixed.documents]
