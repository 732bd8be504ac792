"""What `new` writes, trained by the real axolotl on the CPU: the loss falls, and not where the format is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.new import Request, ways
from advisor.session import RunOptions

from .axolotl_venv import Environment, available
from .new_families import FAMILIES, write_family

pytestmark = pytest.mark.oracle

COMMAND = ("axolotl", "train", "run.yaml", "--launcher", "python")
NO_KERNELS = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")
OF_GPUS = ("tf32", "plugins", "sample_packing", "eval_sample_packing", "deepspeed")
"""Keys that a CPU has nothing for; those of plugins too."""
ANSWER = "yes " * 12
FALLS = 0.9
"""Of the first loss."""


@pytest.fixture(scope="module")
def axolotl() -> Environment:
    return available(trains=True)


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Questions that all have one answer."""
    answer = {"role": "assistant", "content": ANSWER}
    return [{"messages": [{"role": "user", "content": f"Is {at} a number?"}, answer]} for at in range(count)]


def config_for(folder: Path, model: str, made: list[dict[str, Any]], **given: Any) -> dict[str, Any]:
    """What `new` writes, less what only a GPU can do."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    options = RunOptions(gpus="1x rtx-4090")
    request = Request(model=f"./{model}", data="rows.jsonl", method="lora", chats=False, options=options, **given)
    chosen = ways(request).chosen
    assert chosen is not None
    values = yaml.safe_load(chosen.files["run.yaml"])
    kept = {key: value for key, value in values.items() if key not in OF_GPUS and not key.startswith("liger_")}
    on_cpu = {"bf16": False, "fp16": False, "attn_implementation": "sdpa", **dict.fromkeys(NO_KERNELS, False)}
    return {**kept, **on_cpu, "optimizer": "adamw_torch", "dataset_num_proc": 1, "micro_batch_size": 4}


def losses(axolotl: Environment, folder: Path, config: dict[str, Any]) -> tuple[list[float], str]:
    """The losses on the rows that were held back, and what the training said."""
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    done = axolotl.run(*COMMAND, folder=folder, OMP_NUM_THREADS="1")
    said = done.stdout + done.stderr
    states = sorted(folder.glob("out/checkpoint-*/trainer_state.json"), key=lambda path: int(path.parent.name[11:]))
    log = json.loads(states[-1].read_text())["log_history"] if states else []
    return [entry["eval_loss"] for entry in log if "eval_loss" in entry], said


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_falls(axolotl: Environment, tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_family(family, tmp_path)
    found, said = losses(axolotl, tmp_path, config_for(tmp_path, family, rows()))
    assert len(found) > 2, said[-3000:]
    assert found[-1] < FALLS * found[0], found


@pytest.mark.parametrize(("stated", "falls"), [("omega", True), ("alpha", False)], ids=["right", "wrong"])
def test_answers_are_learnt_if_the_format_is_stated_right(
    axolotl: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: str, falls: bool
):
    """Judged by rows that are read right in both cases; no letter of a question is in an answer."""
    monkeypatch.chdir(tmp_path)
    write_family("tiny-llama-3.1", tmp_path)
    spoken = [
        {"messages": [{"role": "alpha", "content": f"{at} " * 12}, {"role": "omega", "content": ANSWER}]}
        for at in range(60)
    ]
    right = config_for(tmp_path, "tiny-llama-3.1", spoken, rows_as="omega")["datasets"][0]
    config = config_for(tmp_path, "tiny-llama-3.1", spoken, rows_as=stated)
    config |= {"val_set_size": 0.0, "test_datasets": [{**right, "split": "train"}]}
    found, said = losses(axolotl, tmp_path, config)
    assert len(found) > 2, said[-3000:]
    assert (found[-1] < FALLS * found[0]) is falls, found
