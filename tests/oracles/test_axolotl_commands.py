"""The plugin and ``axolotl advise`` under axolotl's own commands, up to where they would load something."""

import json
import os
from pathlib import Path

import pytest

from ..llama import LLAMA_3_8B
from .axolotl_venv import Environment, available

pytestmark = pytest.mark.oracle

CONFIG = """\
base_model: ./model
plugins:
  - advisor.plugins.axolotl.AdvisorPlugin
advisor:
  gpus: {gpus}
datasets:
  - path: data.jsonl
    type: alpaca
output_dir: ./out
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 1
max_steps: 2
learning_rate: 0.0001
optimizer: adamw_torch
bf16: false
fp16: false
gradient_checkpointing: true
"""
BLOCKED = (
    "advisor: to train anyway: `advisor: {mode: warn}` in the config, or `# advisor: file-ignore[does-not-fit] reason`"
)
WHOLE = "advisor: does not fit: "
VERDICT = "[axolotl.advisor] fits "


@pytest.fixture(scope="module")
def axolotl() -> Environment:
    return available()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(LLAMA_3_8B))
    (tmp_path / "small.yml").write_text(CONFIG.format(gpus="1x rtx-4090"))
    (tmp_path / "roomy.yml").write_text(CONFIG.format(gpus="1x b300"))
    return tmp_path


def test_training_is_blocked_before_anything_is_loaded(axolotl: Environment, folder: Path):
    done = axolotl.run("axolotl", "train", "small.yml", folder=folder)
    assert done.returncode != 0
    assert WHOLE in done.stderr
    assert BLOCKED in done.stderr
    assert "155.0 of 23.1 GiB" in done.stderr and "at the top of small.yml" in done.stderr
    assert "in register" not in done.stderr  # no traceback of ours
    assert not (folder / "out").exists()


def test_what_fits_goes_on(axolotl: Environment, folder: Path):
    done = axolotl.run("axolotl", "train", "roomy.yml", "--launcher", "python", folder=folder)
    assert VERDICT in done.stdout
    assert " of 267.0 GiB" in done.stdout  # a B300's
    # axolotl shows the config once its schema has taken it, the plugin's key with it; it stops later for its own reasons.
    shown = done.stdout.partition("config:\n")[2]
    assert '"gpus": "1x b300"' in shown
    assert '"mode": "block"' in shown
    assert done.returncode != 0
    assert "advisor" not in done.stderr


def test_overrides_of_the_command_line_count(axolotl: Environment, folder: Path):
    done = axolotl.run("axolotl", "train", "roomy.yml", "--micro-batch-size", "64", folder=folder)
    assert done.returncode != 0
    assert "`micro_batch_size`: change on the command line" in done.stderr
    assert BLOCKED in done.stderr


def test_of_two_ranks_one_says_everything(axolotl: Environment, folder: Path):
    launcher = ("python", "-m", "torch.distributed.run", "--nproc_per_node", "2")
    done = axolotl.run(*launcher, "-m", "axolotl.cli.train", "small.yml", folder=folder)
    assert done.returncode != 0
    assert done.stderr.count(WHOLE) == 1


@pytest.mark.parametrize("command", ["preprocess", "vllm-serve", "merge-sharded-fsdp-weights"])
def test_other_commands_are_left_alone(axolotl: Environment, folder: Path, command: str):
    done = axolotl.run("axolotl", command, "small.yml", folder=folder)
    assert "Plugin loaded successfully: advisor.plugins.axolotl.AdvisorPlugin" in done.stdout
    assert WHOLE not in done.stdout + done.stderr
    assert BLOCKED not in done.stdout + done.stderr


def test_the_key_of_the_plugin_is_checked_by_axolotl(axolotl: Environment, folder: Path):
    config = (folder / "roomy.yml").read_text().replace("  gpus:", "  gpu:")
    (folder / "wrong.yml").write_text(config)
    done = axolotl.run("axolotl", "train", "wrong.yml", "--launcher", "python", folder=folder)
    assert done.returncode != 0
    assert "advisor.gpu" in done.stdout + done.stderr


def test_advise_answers_as_check_does(axolotl: Environment, folder: Path):
    blocked = axolotl.run("axolotl", "advise", "small.yml", "--gpus", "1x rtx-4090", folder=folder)
    assert blocked.returncode == 1
    assert "Does not fit" in blocked.stdout and "on 1x RTX 4090," in blocked.stdout
    fits = axolotl.run(
        *("axolotl", "advise", "small.yml", "--gpus", "1x rtx-4090", "--adapter", "qlora", "--load-in-4bit"),
        *("--lora-r", "8", "--lora-alpha", "16", "--lora-target-linear", "--sequence-len=512"),
        folder=folder,
    )
    assert fits.returncode == 0, fits.stdout
    assert "\nFits" in fits.stdout and "on 1x RTX 4090." in fits.stdout
    assert axolotl.run("axolotl", "advise", "nothing.yml", folder=folder).returncode == 2


def test_advise_is_listed_among_axolotls_commands(axolotl: Environment, folder: Path):
    done = axolotl.run("axolotl", "--help", folder=folder)
    assert "advise" in done.stdout


def test_the_gpus_of_the_machine_count_with_what_is_free_of_them(axolotl: Environment, folder: Path):
    (folder / "run.yml").write_text((folder / "roomy.yml").read_text().replace("  gpus: 1x b300", "  mode: block"))
    tools = folder / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho '0, GPU-1234, NVIDIA H200, 143771, 9000, 9.0, Disabled'\n")
    (tools / "nvidia-smi").chmod(0o755)
    path = f"{tools}{os.pathsep}{axolotl.bin}{os.pathsep}{os.environ['PATH']}"
    command = ("axolotl", "train", "run.yml", "--launcher", "python")
    done = axolotl.run(*command, folder=folder, PATH=path, CUDA_VISIBLE_DEVICES="0")
    assert WHOLE in done.stderr
    assert " of 8.1 GiB" in done.stderr and "--gpus '1x h200 " in done.stderr
