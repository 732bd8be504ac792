"""What axolotl's schema refuses: a row for each ``raise`` of its validators, and some for pydantic's own refusals.

``axolotl_refusals.jsonl``: where it is raised, how the message begins, since which of the releases 0.8 to 0.19 (absent:
all), and either the ``rule`` that says it here, with configs that are refused for it, or ``why_not`` no rule can, by
``class``: ``machine`` (it depends on what is installed or on hardware that the catalogue does not have),
``unreachable`` or ``unused``. A case is what a whole config has on top (``without``: what it lacks); its own ``rule``
comes before that of its row.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from advisor.documents import parse
from advisor.engine.check import check_run
from advisor.engine.options import Options
from advisor.opening import Context, LoadedRun, open_run
from advisor.run import Run
from advisor.run.stack import read_stack

from .asking import whole

TABLE = Path(__file__).with_name("axolotl_refusals.jsonl")
BASE = {"base_model": "Qwen/Qwen2.5-7B", "sequence_len": 512}
GPUS = "1x h100-80gb"
JSON = {
    "zero_optimization": {"stage": 2},
    "bf16": {"enabled": True},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
}


@dataclass(frozen=True)
class Case:
    """A config that is refused."""

    name: str
    rule: str
    config: Mapping[str, Any]
    gpus: str
    stack: Mapping[str, Any]

    def run(self, folder: Path) -> Run:
        """Its run, with the DeepSpeed JSON that some name."""
        (folder / "zero2.json").write_text(json.dumps(JSON), encoding="utf-8")
        text = yaml.safe_dump(dict(self.config), sort_keys=False)
        context = Context(working_directory=str(folder), gpus=self.gpus, stack=read_stack(self.stack))
        return open_run(parse(text.encode(), str(folder / "config.yaml"), "yaml"), context).run

    def errors(self, folder: Path) -> set[str]:
        """The rules that call it an error."""
        run = self.run(folder)
        return {one.rule for one in check_run(LoadedRun(run), Options(speed=False)).findings if one.level == "error"}


@lru_cache(maxsize=1)
def rows() -> tuple[Mapping[str, Any], ...]:
    """The table."""
    return tuple(json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines())


def cases() -> Iterator[Case]:
    """Every case of every row."""
    for row in rows():
        for number, given in enumerate(row.get("cases", ())):
            config = whole({**BASE, **given["config"]})
            yield Case(
                name=f"{row['in']}:{row.get('line', row['says'])}-{number}",
                rule=given.get("rule", row.get("rule")),
                config={key: value for key, value in config.items() if key not in given.get("without", ())},
                gpus=given.get("gpus", GPUS),
                stack=given.get("stack", {}),
            )
