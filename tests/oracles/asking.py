"""axolotl's own schema, asked by tests."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from advisor.engine.lint import lint_hits
from advisor.engine.options import Options
from advisor.run import Run

Configs = Mapping[str, Mapping[str, Any]]
COMMAND = (sys.executable, str(Path(__file__).with_name("axolotl_oracle.py")))
BATCH = {"micro_batch_size": 1, "gradient_accumulation_steps": 1}
# Its examples are whole but for what they lack.
SPEAKS_OF_WHAT_IS_MISSING = ("required-key-missing",)
# What every real config has and an example of a rule leaves out.
REST = {
    "datasets": [{"path": "tatsu-lab/alpaca", "type": "alpaca"}],
    "learning_rate": 0.0001,
    "num_epochs": 1,
    "output_dir": "out",
    **BATCH,
}


@dataclass(frozen=True)
class Answer:
    """What axolotl says of one config."""

    ok: bool
    error: str
    without: tuple[str, ...]
    stood_in: tuple[str, ...]


class Axolotl:
    """One axolotl process that is asked line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def says(
        self,
        config: Mapping[str, Any],
        folder: Path,
        n_gpu: int = 4,
        capabilities: Mapping[str, Any] = {},
        torch: str = "",
    ) -> Answer:
        """Its answer about one config, read in ``folder``, on GPUs with these ``capabilities``, with this torch."""
        assert self.process.stdin is not None and self.process.stdout is not None
        question = {"id": 0, "config": config, "n_gpu": n_gpu, "folder": str(folder)}
        question |= {"capabilities": capabilities, "torch": torch}
        self.process.stdin.write(json.dumps(question, default=str) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        without, stood_in = tuple(answer["without"]), tuple(answer["stood_in"])
        return Answer(answer["ok"], answer["error"][:700], without, stood_in)

    def rejected(self, configs: Configs, folder: Path, n_gpu: int = 4) -> dict[str, str]:
        """Its words about each config that it rejects."""
        answers = {name: self.says(config, folder, n_gpu) for name, config in configs.items()}
        return {name: answer.error for name, answer in answers.items() if not answer.ok}

    def must_accept(self, configs: Configs, folder: Path, n_gpu: int = 4) -> None:
        """Fails with its words about each config that it rejects."""
        rejected = self.rejected(configs, folder, n_gpu)
        if rejected:
            pytest.fail("\n".join(f"{name}: {error}" for name, error in rejected.items()), pytrace=False)


def whole(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of an example with the rest of a real one; sizes of batches only if it has none of its own."""
    speaks_of_batches = BATCH.keys() & config.keys() or "batch_size" in config
    return {key: value for key, value in REST.items() if not (speaks_of_batches and key in BATCH)} | dict(config)


def error_rules(run: Run) -> set[str]:
    """The lint rules that stop this run with an error, what examples lack aside."""
    hits = lint_hits(run, Options(ignore=SPEAKS_OF_WHAT_IS_MISSING))
    return {rule.id for rule, hit in hits if (hit.level or rule.level) == "error"}
