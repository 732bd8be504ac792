"""A Llama so small and so round that its bytes can be worked out by hand."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.memory.ledger import HostTerm, Term
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.models import Architecture
from advisor.opening import open_configs
from advisor.run import Run

TABLE = 1000 * 100
MATRIX = 100 * 200
"""The largest of a layer."""
LAYER = 4 * 100 * 100 + 3 * MATRIX + 2 * 100
P = 2 * TABLE + 4 * LAYER + 100
"""600,900."""
ROOT = 2 * TABLE + 100
UPCAST = 4 * (2 * TABLE + 9 * 100) + 2 * 4 * (LAYER - 200)
"""Bytes of all weights where axolotl keeps tables and norms in fp32, which it does without DeepSpeed and FSDP."""
TOUCHED = TABLE + 2 * (LAYER - 200) + 500
"""By the wider of two shards: the embedding and two layers' matrices, and five of the nine norms, the last one cut."""
LORA = {"adapter": "lora", "lora_r": 10, "lora_alpha": 16, "lora_target_modules": ["q_proj", "o_proj"]}
ADAPTER = 4 * 2 * 2 * 10 * 100
"""Of two matrices of 100 x 100 in each of four layers, at rank 10."""
CPU = {"device": "cpu"}
MODEL: Mapping[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 1000,
    "hidden_size": 100,
    "intermediate_size": 200,
    "num_hidden_layers": 4,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "head_dim": 10,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}


@dataclass(frozen=True)
class Small:
    """A run of it, and what most terms are worked out from."""

    run: Run
    model: Architecture
    weights: Weights


def small(folder: Path, *, gpus: int = 2, tied: bool = False, stack: Mapping[str, str] = {}, **keys: Any) -> Small:
    """A run: ``keys`` are the YAML's; ``zero`` is DeepSpeed's section, ``json`` what its config has in addition."""
    (folder / "config.json").write_text(json.dumps({**MODEL, "tie_word_embeddings": tied}))
    zero, more = keys.pop("zero", None), keys.pop("json", {})
    deepspeed = None if zero is None else {"zero_optimization": zero, "bf16": {"enabled": True}, **more}
    config = {"base_model": str(folder), "bf16": True, "sequence_len": 10, "optimizer": "adamw_torch_fused", **keys}
    run = open_configs(config, deepspeed, f"{gpus}x a100-80gb", stack).run
    assert run.model is not None
    return Small(run, run.model, weights_of(run, run.model))


def fsdp(version: int, **keys: Any) -> dict[str, Any]:
    """The YAML's keys for FSDP."""
    return {
        "fsdp_version": version,
        "fsdp_config": {"auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "cpu_ram_efficient_loading": True, **keys},
    }


def named(terms: Iterable[Term | HostTerm]) -> dict[str, int]:
    """Bytes by name; what takes none is left out."""
    found: dict[str, int] = {}
    for term in terms:
        found[term.name] = found.get(term.name, 0) + term.bytes
    return {name: bytes_ for name, bytes_ in found.items() if bytes_}
