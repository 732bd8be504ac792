# pyright: basic, reportMissingImports=false
"""Rows of the longest length, written where axolotl loads them as datasets of its own."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from advisor.cli.verifying.request import Request

SEED = 0
PREFERENCES = ("dpo", "ipo", "orpo", "simpo")
CUT_TO_NOTHING = ("orpo", "simpo")
"""What is too long is cut by its own length: trl/experimental/orpo/orpo_trainer.py:542-546@1.9.0."""
PROMPT = " a"
EVALUATED = 4
"""Micro batches of each process in the evaluation."""


def write_rows(cfg: Any, request: Request) -> tuple[Any, Any]:
    """The datasets for training and evaluation as ``datasets`` names them: tokens at random, all of them trained.

    Rows that are tokenized already go on to packing and collator: axolotl/utils/data/wrappers.py:96-98@0.19.0.
    Preferences stand there as text, which the trainer tokenizes.
    """
    from axolotl.loaders import load_tokenizer

    tokenizer = load_tokenizer(cfg)
    ranks = int(os.environ.get("WORLD_SIZE") or 1)
    rows = request.each * (request.steps + 1) * cfg.micro_batch_size * cfg.gradient_accumulation_steps * ranks
    evaluated = request.eval_each * EVALUATED * (cfg.eval_batch_size or cfg.micro_batch_size) * ranks
    write = _texts if cfg.rl else _tokens
    folder = Path(request.folder)
    return (
        _written(folder / "train", lambda path: write(path, cfg, tokenizer, rows, request.length)),
        _written(folder / "evaluation", lambda path: write(path, cfg, tokenizer, evaluated, request.eval_length)),
    )


def _written(target: Path, write: Callable[[Path], None]) -> Any:
    """A dataset's entry once it is there; every process of a node writes the same, and the first one's stays."""
    from axolotl.utils.dict import DictDefault

    if not target.exists():
        own = target.with_name(f"{target.name}-{os.getpid()}")
        write(own)
        try:
            own.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(own, ignore_errors=True)
    return DictDefault({"path": str(target)})


def _tokens(path: Path, _cfg: Any, tokenizer: Any, rows: int, length: int) -> None:
    """``rows`` of ``length`` tokens each, as axolotl leaves them when it has tokenized a dataset."""
    import numpy
    import pyarrow
    from datasets import Dataset

    special = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
    ids = numpy.array([token for token in range(len(tokenizer)) if token not in special], dtype=numpy.int32)
    drawn = numpy.random.default_rng(SEED).choice(ids, rows * length)
    offsets = numpy.arange(0, rows * length + 1, length, dtype=numpy.int64)

    def column(values: Any) -> Any:
        return pyarrow.LargeListArray.from_arrays(offsets, values)

    columns = {"input_ids": drawn, "attention_mask": numpy.ones(rows * length, numpy.int8), "labels": drawn}
    Dataset(pyarrow.table({name: column(values) for name, values in columns.items()})).save_to_disk(str(path))


def _texts(path: Path, cfg: Any, tokenizer: Any, rows: int, length: int) -> None:
    """``rows`` of a short prompt and its answers, which fill ``length`` tokens together.

    The worst that can occur: metrics copy the logits of answers, and KTO's those of all rows where all are wanted
    (trl/trainer/kto_trainer.py:1614-1622@1.9.0). Every other answer lacks a token: it is padded, and has a mask.
    """
    from datasets import Dataset

    left = length - _count(tokenizer, PROMPT) - (_added(tokenizer) if cfg.rl in CUT_TO_NOTHING else 0)
    answer, shorter = filled(tokenizer, left), filled(tokenizer, left - 1)
    columns: dict[str, list[Any]] = {"prompt": [PROMPT] * rows}
    if cfg.rl in PREFERENCES:
        columns |= {"chosen": [answer] * rows, "rejected": [shorter] * rows}
    else:
        columns |= {"completion": [(answer, shorter)[row % 2] for row in range(rows)], "label": [True] * rows}
    Dataset.from_dict(columns).save_to_disk(str(path))


def _added(tokenizer: Any) -> int:
    """Tokens that the trainer puts in front of a row and behind it."""
    return sum(one is not None for one in (tokenizer.bos_token_id, tokenizer.eos_token_id))


def filled(tokenizer: Any, tokens: int) -> str:
    """A text of as many tokens, or the most below."""
    low, high = 0, tokens
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _count(tokenizer, " a" * middle) <= tokens else (low, middle - 1)
    return " a" * low


def _count(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])
