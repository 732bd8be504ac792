"""The plugin over a stand-in for axolotl's base class, and a config as ``load_cfg`` hands it over."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from advisor.run.history import history

from ...llama import LLAMA_3_8B

CONFIG = """\
# what a run is
base_model: ./model
plugins: [advisor.plugins.axolotl.AdvisorPlugin]
adapter: qlora
load_in_4bit: true
lora_r: 8
lora_alpha: 16
lora_target_linear: true
sequence_len: 512
sample_packing: true
attn_implementation: flash_attention_2
micro_batch_size: 1  # rows
gradient_accumulation_steps: 1
gradient_checkpointing: true
optimizer: adamw_torch_fused
bf16: true
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
learning_rate: 1e-5
"""
VARIABLES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_SIZE", "CUDA_VISIBLE_DEVICES"),
    *("ADVISOR_GPUS", "ADVISOR_FLOWCHART", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a model and a config, on a machine without GPUs and measured runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(LLAMA_3_8B))
    (tmp_path / "run.yml").write_text(CONFIG)
    history.cache_clear()
    yield tmp_path
    history.cache_clear()


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The plugin in a process that runs ``axolotl train``."""
    base = ModuleType("axolotl.integrations.base")
    base.BasePlugin = type("BasePlugin", (), {})  # type: ignore[attr-defined]
    for name, module in {
        "axolotl": ModuleType("axolotl"),
        "axolotl.integrations": ModuleType("axolotl.integrations"),
        "axolotl.integrations.base": base,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "argv", ["/venv/bin/axolotl", "train", "run.yml"])
    monkeypatch.delitem(sys.modules, "advisor.plugins.axolotl.plugin", raising=False)
    yield importlib.import_module("advisor.plugins.axolotl").AdvisorPlugin()
    sys.modules.pop("advisor.plugins.axolotl.plugin", None)


@pytest.fixture
def cfg(folder: Path) -> Callable[..., dict[str, Any]]:
    """What axolotl's ``load_cfg`` makes of the file and the command line."""

    def loaded(text: str | None = None, **overrides: Any) -> dict[str, Any]:
        if text is not None:
            (folder / "run.yml").write_text(text)
        values = yaml.safe_load((folder / "run.yml").read_text())
        return {**values, "axolotl_config_path": "run.yml", **overrides}

    return loaded
