# pyright: basic
"""Tiny random models of four families, one of each format, each with a tokenizer of bytes that has its special tokens, as bases."""

from pathlib import Path
from typing import Any

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = (
    *("<s>", "</s>", "<pad>", "<unk>", "<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|finetune_right_pad_id|>"),
    *("<start_of_turn>", "<end_of_turn>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "[INST]", "[/INST]"),
)
WIDTHS: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "tiny-llama-3.1": ("LlamaConfig", {}),
    "tiny-qwen3": ("Qwen3Config", {"head_dim": 32}),
    "tiny-gemma-2": ("Gemma2Config", {"head_dim": 32, "query_pre_attn_scalar": 32}),
    "tiny-phi-3": ("Phi3Config", {}),
}


def write_family(name: str, folder: Path) -> None:
    """Weights, config and tokenizer of one of them."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*SPECIAL, *letters]
    tokenizer: Any = Tokenizer(models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=[]))
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in SPECIAL])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "chat_template": CHATML}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named).save_pretrained(folder / name)
    kind, more = FAMILIES[name]
    config = getattr(transformers, kind)(vocab_size=len(words), **WIDTHS, **more)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder / name)
