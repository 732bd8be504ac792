"""``advisor verify`` with the real axolotl: a tiny model is trained on the CPU, and counted as it is foreseen."""

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .axolotl_venv import Environment, available
from .tiny_model import CONFIG, write_tiny_model

pytestmark = pytest.mark.oracle

LORA = """\
adapter: lora
lora_r: 8
lora_alpha: 16
lora_target_linear: true
lora_mlp_kernel: false
lora_qkv_kernel: false
lora_o_kernel: false
"""
PREFERENCES = "remove_unused_columns: false\n"
"""Which KTO needs."""
EVALUATION = "val_set_size: 0.1\nevals_per_epoch: 1\n"
COMMAND = ("axolotl", "train", "--launcher", "python")
"""accelerate's launcher adds some seconds, and one test has it."""
MOST_OFF = 0.01
"""Of the peak: the CPU counts every tensor."""


@pytest.fixture(scope="module")
def axolotl() -> Environment:
    return available(trains=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("verify")
    write_tiny_model(made / "model")
    return made


def verified(
    axolotl: Environment, folder: Path, text: str, *command: str
) -> "tuple[subprocess.CompletedProcess[str], str]":
    """The command on a config of this text, and what it prints; nothing stays but the config."""
    (folder / "run.yaml").write_text(text)
    before = {path.name for path in folder.iterdir()} | {"state", "hub"}
    words = ("python", "-m", "advisor", "verify", "run.yaml", "--cpu", *(("--", *command) if command else ()))
    with TemporaryDirectory() as temporary:  # not in the folder: sockets in it would have paths that are too long
        done = axolotl.run(*words, folder=folder, TMPDIR=temporary, COLUMNS="120")
        assert list(Path(temporary).iterdir()) == []
    assert {path.name for path in folder.iterdir()} <= before
    assert (folder / "run.yaml").read_text() == text
    return done, done.stdout


def row(printed: str, name: str) -> list[str]:
    """The figures of a row of the table."""
    found = re.search(rf"^  {re.escape(name)} +(.*)$", printed, re.MULTILINE)
    assert found, printed
    return found[1].split()


@pytest.mark.parametrize(
    ("adapter", "packing", "evaluation"),
    [("", "false", EVALUATION), (LORA, "true", "")],
    ids=["full padded, evaluated", "LoRA packed"],
)
def test_seen_is_as_foreseen(axolotl: Environment, folder: Path, adapter: str, packing: str, evaluation: str):
    text = CONFIG + adapter + f"sample_packing: {packing}\n" + evaluation
    done, printed = verified(axolotl, folder, text, *COMMAND)
    assert done.returncode == 0, printed + done.stderr
    assert "As foreseen: " in printed and "3 steps of axolotl's own training" in printed
    for name in ("load", "forward and backward", "peak", *(("evaluation",) if evaluation else ())):
        foreseen, seen, *_ = map(float, row(printed, name)[:2])
        assert seen == pytest.approx(foreseen, rel=MOST_OFF, abs=0.1), f"{name}\n{printed}"
    assert ("one evaluation" in printed) == bool(evaluation)
    rows = "4 of 64 tokens to a bin" if packing == "true" else "255 tokens each"
    assert rows in " ".join(printed.split())
    assert '{"advisor_verify": 1, ' in printed and '"device": "cpu"' in printed


@pytest.mark.parametrize("rl", ["dpo", "kto"])
def test_preferences_are_as_foreseen(axolotl: Environment, folder: Path, rl: str):
    done, printed = verified(axolotl, folder, CONFIG + LORA + PREFERENCES + f"rl: {rl}\n", *COMMAND)
    assert done.returncode == 0, printed + done.stderr
    for name in ("load", "forward and backward", "peak"):
        foreseen, seen, *_ = map(float, row(printed, name)[:2])
        assert seen == pytest.approx(foreseen, rel=MOST_OFF, abs=0.4), f"{name}\n{printed}"


def test_what_axolotl_refuses_is_one_line(axolotl: Environment, folder: Path):
    done, printed = verified(axolotl, folder, CONFIG + "warmup_steps: 3\nwarmup_ratio: 0.1\n")
    assert done.returncode == 2 and printed == ""
    said = " ".join(done.stderr.split())
    assert "axolotl refuses the config: warmup_steps and warmup_ratio are mutually exclusive --> run.yaml" in said


def test_a_dataset_that_fails_is_one_line(axolotl: Environment, folder: Path):
    """Rows of pretraining are the config's own."""
    streamed = "pretraining_dataset:\n  - path: nowhere.jsonl\n    type: pretrain\n"
    done, printed = verified(axolotl, folder, CONFIG + streamed, *COMMAND)
    assert done.returncode == 2 and printed == ""
    assert re.search(r"the training failed[^:]*: \w*Error: .*nowhere\.jsonl", " ".join(done.stderr.split()))
    started = [line.split()[0] for line in done.stderr.splitlines() if not line.startswith(" ")]
    assert started == ["error:"], done.stderr
