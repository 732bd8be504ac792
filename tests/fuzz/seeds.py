"""What is mutated: the sample configs, the examples inside the rules, and the corpus where there is one."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.engine.example import text_of
from advisor.engine.registry import STAGES, built_in_rules

SAMPLES = Path(__file__).parents[2] / "sample_configs"
MOST_BYTES = 8192


@dataclass(frozen=True)
class Seed:
    """A YAML, and the text of a DeepSpeed JSON that may go with it."""

    name: str
    yaml: str
    json: str | None = None
    gpus: str = "2x a100-40gb"

    def __repr__(self) -> str:
        return f"<{self.name}>"


def seeds() -> list[Seed]:
    """All of them, in an order that is the same each time."""
    return [*samples(), *examples(), *corpus()]


def samples() -> Iterator[Seed]:
    """The sample configs, each with one of the two JSONs."""
    jsons = [path.read_text(encoding="utf-8") for path in sorted((SAMPLES / "deepspeed").glob("*.json"))]
    for number, path in enumerate(sorted(SAMPLES.glob("*.yaml"))):
        yield Seed(path.name, path.read_text(encoding="utf-8"), jsons[number % len(jsons)])


def examples() -> Iterator[Seed]:
    """The examples of every rule."""
    for stage in STAGES:
        for rule in built_in_rules(stage).values():
            for number, example in enumerate(rule.expanded, 1):
                json = text_of(example.deepspeed) if example.deepspeed is not None else None
                gpus = example.gpus or "2x a100-40gb"
                yield Seed(f"{rule.id} {number}", text_of(example.before), json, gpus)


def corpus() -> Iterator[Seed]:
    """Real configs that are not too long."""
    named = os.environ.get("ADVISOR_CORPUS")
    if not named:
        return
    for path in sorted(Path(named, "corpus").rglob("*.y*ml")):
        if path.stat().st_size <= MOST_BYTES:
            yield Seed(path.name, path.read_text(encoding="utf-8", errors="replace"))
