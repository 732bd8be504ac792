"""axolotl's own loading of files of rows, in the environment in which its commands run: labels of each row."""

import importlib
import json
import os
import sys
from typing import Any

ABLE = {"bf16": True, "fp8": True, "tf32": True, "n_gpu": 1, "compute_capability": "sm_90"}


def opened(values: dict[str, Any]) -> tuple[Any, Any]:
    """The config as axolotl has it, and its tokenizer."""
    config: Any = importlib.import_module("axolotl.utils.config")
    wrapped = importlib.import_module("axolotl.utils.dict").DictDefault(values)
    cfg = config.validate_config(wrapped, capabilities=ABLE, env_capabilities={"torch_version": "2.13.0"})
    cfg.base_model_config = cfg.tokenizer_config = cfg.base_model
    cfg.dataset_num_proc = 1
    return cfg, importlib.import_module("axolotl.loaders.tokenizer").load_tokenizer(cfg)


def trained(values: dict[str, Any]) -> list[int]:
    """Of each row, labels; of a pair, characters of the shorter answer."""
    cfg, tokenizer = opened(values)
    if cfg.rl:
        shared: Any = importlib.import_module("axolotl.utils.data.shared")
        prompts: Any = importlib.import_module("axolotl.prompt_strategies.dpo")
        rows = shared.load_dataset_with_config(cfg.datasets[0], False, streaming=False)
        transform = prompts.load(cfg.datasets[0].type, cfg, dataset_idx=0)
        transform = transform[0] if isinstance(transform, tuple) else transform
        pairs = [transform(dict(row), tokenizer=tokenizer) for row in rows]
        return [min(len(pair["chosen"].strip()), len(pair["rejected"].strip())) for pair in pairs]
    sft: Any = importlib.import_module("axolotl.utils.data.sft")
    read, _ = sft._load_and_process_single_dataset(cfg.datasets[0], cfg, tokenizer, "train", 42)
    return [sum(label != -100 for label in row["labels"]) for row in read]


def main() -> None:
    found: dict[str, Any] = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        asked = json.load(file)
    for name, values in asked.items():
        try:
            found[name] = trained(values)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
    main()
