"""What the oracles share: the corpus, copied where it may be written to, and the outcome of every rule's examples."""

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.engine.example import Example
from advisor.engine.examples import opened, outcome
from advisor.engine.registry import STAGES, built_in_rules
from advisor.engine.rule import Rule
from advisor.run import Run

from ..corpus import configs
from .asking import COMMAND, Axolotl


@dataclass(frozen=True)
class Shown:
    """An example of a rule, and the run that it ends in (None where the rule stays silent)."""

    name: str
    rule: Rule
    example: Example
    before: Run
    after: Run | None


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if configs.folder() is None:
        pytest.skip("ADVISOR_CORPUS is not set")
    return configs.copied(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def axolotl() -> Iterator[Axolotl]:
    pytest.importorskip("axolotl")
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=quiet, text=True) as process:
        yield Axolotl(process)
        process.kill()


@pytest.fixture(scope="session")
def shown() -> list[Shown]:
    return list(examples_of_rules())


def examples_of_rules() -> Iterator[Shown]:
    """Every example of every built-in rule."""
    for rule in (rule for stage in STAGES for rule in built_in_rules(stage).values()):
        for number, example in enumerate(rule.expanded, 1):
            with tempfile.TemporaryDirectory() as folder:
                run = opened(example, Path(folder)).run
                after, _ = outcome(rule, run)
            yield Shown(f"{rule.id}:{number}", rule, example, run, after)
