# pyright: basic
"""A tiny random Llama with a tokenizer of bytes, as a training finds them on disk; and the config that trains it."""

from pathlib import Path
from typing import Any

WORDS = 2048
SPECIAL = ("<s>", "</s>", "<pad>")
CONFIG = """\
base_model: ./model
datasets:
  - path: nowhere.jsonl
    type: alpaca
output_dir: ./out
sequence_len: 256
micro_batch_size: 2
gradient_accumulation_steps: 1
learning_rate: 0.0001
optimizer: adamw_torch
bf16: false
fp16: false
attn_implementation: sdpa
gradient_checkpointing: false
"""


def write_tiny_model(folder: Path) -> None:
    """Its weights, config and tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*SPECIAL, *letters, *(f"word{number}" for number in range(WORDS - len(SPECIAL) - len(letters)))]
    tokenizer: Any = Tokenizer(models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    begin, end, padding = SPECIAL
    named = {"bos_token": begin, "eos_token": end, "pad_token": padding}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
