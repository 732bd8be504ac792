# pyright: basic
"""The shapes of evaluation's batches, asked of axolotl's own loader, builder and trainer.

The argument is a folder with ``cases.json`` (name -> config); it is written there as ``shapes.json``: name -> the
largest rows and tokens of a batch.
"""

import importlib
import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", WORLD_SIZE="1")
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.oracles.no_triton import Blank, Finder

ROWS = 20


def without_lacking() -> None:
    """Stand-ins for what axolotl imports and evaluation's batches do not need."""
    for name in ("torch.utils.flop_counter", "torch._inductor.runtime.triton_heuristics"):
        importlib.import_module(name)  # which look for Triton themselves
    sys.meta_path.insert(0, Finder())
    for name in ("evaluate", "wandb"):
        sys.modules[name] = blank = Blank(name)
        blank.__spec__ = ModuleSpec(name, None)


def main(folder: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    os.chdir(folder)
    tokenizer = words()
    tokenizer.save_pretrained("model")
    config = LlamaConfig(
        vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.save_pretrained("model")
    lines = [json.dumps({"text": " ".join("a" * (3 * row + 1))}) for row in range(ROWS)]
    for name in ("data.jsonl", "test.jsonl"):
        Path(name).write_text("\n".join(lines))
    cases = json.loads(Path("cases.json").read_text())
    found = {
        name: shape(case | {"dataset_prepared_path": f"prepared/{name}"}, model, tokenizer)
        for name, case in cases.items()
    }
    Path("shapes.json").write_text(json.dumps(found))


def words() -> Any:
    """A tokenizer that knows one word."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    known = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "a": 4}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    named = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def shape(case: dict[str, Any], model: Any, tokenizer: Any) -> list[int]:
    """The most rows and the most tokens that a batch of evaluation has."""
    from axolotl.core.builders.causal import HFCausalTrainerBuilder
    from axolotl.monkeypatch.data.batch_dataset_fetcher import apply_multipack_dataloader_patch
    from axolotl.utils.config import normalize_config, validate_config
    from axolotl.utils.data.sft import prepare_datasets
    from axolotl.utils.dict import DictDefault

    apply_multipack_dataloader_patch()  # axolotl/loaders/patch_manager.py:946@0.19.0, for packed rows
    cfg = validate_config(DictDefault(case))
    normalize_config(cfg)
    train, evaluated, _steps, _prompters = prepare_datasets(cfg, tokenizer)
    builder = HFCausalTrainerBuilder(cfg, model, tokenizer)
    builder.train_dataset, builder.eval_dataset = train, evaluated
    trainer = builder.build(10)
    shapes = [batch["input_ids"].shape for batch in trainer.get_eval_dataloader()]
    return [max(rows for rows, _ in shapes), max(rows * tokens for rows, tokens in shapes)]


if __name__ == "__main__":
    without_lacking()
    main(Path(sys.argv[1]))
