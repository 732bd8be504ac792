# pyright: basic
"""The batches that axolotl's own trainer evaluates, as JSON: their shapes, by case.

Runs where axolotl's commands do (axolotl_venv.py). The argument is a folder with a model's ``config.json`` and its
tokenizer, the datasets, and ``cases.json`` (name: the keys of a config). axolotl reads each config, loads its
datasets and builds its trainer, as cli/config.py, common/datasets.py and core/builders/causal.py@0.19.0 do for
``axolotl train``; the model is made here, and no step is run. No kernel is asked of Triton or bitsandbytes, so both
are stood in for, as are packages that only callbacks need.
"""

import contextlib
import gc
import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest import mock

os.environ["NUMBA_DISABLE_JIT"] = "1"  # twenty rows are packed sooner than the packer is compiled

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from .axolotl_kernels import blanks
from .no_triton import without_triton

NOT_ASKED = ("bitsandbytes", "bitsandbytes.functional", "evaluate", "wandb")
with blanks(*NOT_ASKED), without_triton():
    sys.modules["wandb"].__spec__ = ModuleSpec("wandb", None)  # transformers asks whether it can be found
    from axolotl.cli.config import load_cfg
    from axolotl.common.datasets import load_datasets
    from axolotl.core.builders import HFCausalTrainerBuilder
    from axolotl.monkeypatch.data.batch_dataset_fetcher import apply_multipack_dataloader_patch
    from axolotl.utils.data import sft
    from axolotl.utils.data.shared import get_prepared_dataset_path
    from axolotl.utils.dict import DictDefault


def saved(cfg: Any, dataset: Any, dataset_hash: str, _split: str) -> None:
    """Saves a prepared dataset where axolotl would, but without processes of its own, which load torch each."""
    dataset.save_to_disk(get_prepared_dataset_path(cfg, dataset_hash))


def trainer_of(keys: dict[str, Any], folder: Path) -> Any:
    """axolotl's trainer for a config, over the datasets that axolotl loads for it."""
    cfg = load_cfg(DictDefault(keys))
    cfg.dataset_num_proc = None
    with mock.patch.object(sft, "save_preprocessed_dataset", saved):
        data = load_datasets(cfg=cfg)
    if cfg.sample_packing:  # as axolotl's loader of models does, loaders/patch_manager.py:943-951@0.19.0
        apply_multipack_dataloader_patch()
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    builder = HFCausalTrainerBuilder(cfg, model, AutoTokenizer.from_pretrained(folder))
    builder.train_dataset, builder.eval_dataset = data.train_dataset, data.eval_dataset
    return builder.build(data.total_num_steps)


def evaluated(keys: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Tokens of the longest row in the evaluation set, and the shape of each batch that evaluation feeds."""
    trainer = trainer_of(keys, folder)
    longest = max(len(row) for row in trainer.eval_dataset["input_ids"])
    return {"longest": longest, "shapes": [list(one["input_ids"].shape) for one in trainer.get_eval_dataloader()]}


def main(folder: Path) -> None:
    """Every case; what axolotl prints goes to standard error."""
    torch.set_num_threads(1)
    gc.freeze()  # the packer collects garbage 16 times a case: what was imported need not be looked through
    cases = json.loads((folder / "cases.json").read_text())
    with contextlib.redirect_stdout(sys.stderr):
        found = {name: evaluated(keys, folder) for name, keys in cases.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
