"""The first config of a kind: what does not depend on memory, and the plainest form of what does."""

from collections.abc import Mapping
from typing import Any

from advisor.learning import Training, bands
from advisor.new.start import Start
from advisor.new.usual import fewest_steps, pairs_a_step, tokens_a_step

RANK, ALPHA = 16, 32
"""As the step `lora` writes them (rules/fit/lora.py)."""
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def rate_for(start: Start, training: Training) -> bands.Band:
    """The band of learning rates of a method, a kind and a size."""
    method = "dpo" if start.seen.paired else "sft"
    found = (band for band in bands.bands() if band.key == "learning_rate" and method in band.methods)
    return next(band for band in found if training in band.training and band.holds_for(start.model.parameters))


def draft(start: Start, training: Training, *, packs: bool, attention: bool = False) -> dict[str, Any]:
    """Keys and values; micro batch 1, everything checkpointed. ``attention``: adapters of its layers alone."""
    return {
        "base_model": start.request.model,
        **_chat_keys(start),
        **start.seen.root,
        **({"rl_beta": 0.1} if start.seen.paired else {}),
        "datasets": [dict(start.seen.entry)],
        "dataset_prepared_path": "./prepared",
        **_evaluation(start, packs=packs),
        "sequence_len": start.sequence_len,
        **({"sample_packing": True} if packs else {}),
        **_adapter(training, attention=attention),
        "learning_rate": rate_for(start, training).default,
        "lr_scheduler": "cosine",
        "warmup_ratio": 0.1,
        "num_epochs": start.epochs,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "optimizer": "adamw_torch_fused",
        "micro_batch_size": 1,
        "gradient_accumulation_steps": accumulation(start, training, packs=packs),
        **_precision(start, training),
        "gradient_checkpointing": True,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "saves_per_epoch": 1,
        "save_total_limit": 2,
        "logging_steps": 1,
        "output_dir": "./out",
        "seed": 42,
    }


def _chat_keys(start: Start) -> dict[str, Any]:
    """Template, the token that ends an answer where it must be named, and one that pads."""
    chat, chats = start.chat, start.chats
    keys: dict[str, Any] = {}
    if chat is not None and chat.pad is not None:
        keys["special_tokens"] = {"pad_token": chat.pad}
    if not start.seen.templated:
        return keys
    if chat is None:
        return {"chat_template": "tokenizer_default" if chats else "tokenizer_default_fallback_chatml"}
    ends = chat.eot_tokens if chats else chat.base_eot_tokens
    keys["chat_template"] = chat.template if chats else chat.base_template
    return keys | ({"eot_tokens": list(ends)} if ends and not start.seen.paired else {})


def _evaluation(start: Start, *, packs: bool) -> dict[str, Any]:
    """A share of the rows, and evaluations that come: with one epoch one a run would not (see ``comments.json``)."""
    share, rows, mean = start.held_back, start.seen.rows, start.seen.mean
    if not share:
        return {"val_set_size": 0.0}
    keys: dict[str, Any] = {"val_set_size": share, "evals_per_epoch": 2}
    if packs:
        fills = 2 * start.sequence_len * start.hardware.world_size
        keys["eval_sample_packing"] = rows is None or mean is None or rows * mean * share >= fills
    return keys


def _adapter(training: Training, *, attention: bool) -> Mapping[str, Any]:
    """An adapter of all linear layers, or of attention's."""
    if training == "full":
        return {}
    bits = {"load_in_4bit": True} if training == "qlora" else {}
    targets = {"lora_target_modules": list(ATTENTION)} if attention else {"lora_target_linear": True}
    return {"adapter": training, **bits, "lora_r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0, **targets}


def _precision(start: Start, training: Training) -> Mapping[str, Any]:
    """Half precision of the card."""
    gpu = start.hardware.gpu
    if not gpu.bf16:
        return {"fp16": True, "bf16": False} if training != "full" else {"bf16": False}
    return {"bf16": True, **({"tf32": True} if gpu.tf32 else {})}


def accumulation(start: Start, training: Training, *, packs: bool) -> int:
    """A power of two: as many rows a step as are usual, and no more than leave a small dataset its steps."""
    seen, length = start.seen, start.sequence_len
    if seen.paired:
        rows: float = pairs_a_step()
    else:
        mean = length if packs or seen.mean is None else min(seen.mean, length)
        rows = tokens_a_step(training) / mean
    in_all = _rows_in_all(start, packs=packs)
    if in_all is not None:
        rows = min(rows, in_all / fewest_steps())
    return 1 << max(0, int(rows / start.hardware.world_size).bit_length() - 1)


def _rows_in_all(start: Start, *, packs: bool) -> float | None:
    """Rows of all epochs, as they are trained: packed, in full ones."""
    if packs:
        return None if start.tokens is None else start.tokens / start.sequence_len
    if start.seen.rows is not None:
        return start.seen.rows * start.epochs
    each = start.sequence_len * (2 if start.seen.paired else 1)
    return None if start.tokens is None else start.tokens / each
