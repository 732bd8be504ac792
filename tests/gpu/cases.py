"""What is measured: a setting of a training step, the order of settings, and how the advisor reads them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

TINY = {
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1024,
}
MODELS: dict[str, dict[str, Any]] = {
    "1b": {
        "id": "meta-llama/Llama-3.2-1B",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "head_dim": 64,
        "tie_word_embeddings": True,
    },
    "3b": {
        "id": "meta-llama/Llama-3.2-3B",
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 28,
        "num_attention_heads": 24,
        "head_dim": 128,
        "tie_word_embeddings": True,
    },
    "8b": {
        "id": "meta-llama/Llama-3.1-8B",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "head_dim": 128,
        "tie_word_embeddings": False,
    },
    "tiny": {"id": "tiny", **TINY, "tie_word_embeddings": True},
    "tiny-untied": {"id": "tiny-untied", **TINY, "tie_word_embeddings": False},
}
LORA_TARGETS = {"all": None, "qv": ["q_proj", "v_proj"]}
LIGER_LAYERS = ("liger_rms_norm", "liger_glu_activation", "liger_rope")


@dataclass(frozen=True)
class Case:
    """One setting.

    ``trainer`` decides the widths of embeddings and norms; ``cap`` limits torch to that multiple of the allocated
    peak that the same case had without a limit, 0 is no limit.
    """

    model: str = "1b"
    method: str = "full"
    sequence_len: int = 2048
    micro_batch_size: int = 1
    gradient_accumulation_steps: int = 1
    checkpointing: str = "reentrant"
    attention: str = "sdpa"
    optimizer: str = "adamw_torch_fused"
    liger: str = "off"
    zero: int = 0
    offload_optimizer: bool = False
    lora_r: int = 16
    lora_targets: str = "all"
    prepare_kbit: bool = False
    padded: bool = False
    eval_batch_size: int = 0
    trainer: str = "hf-trainer"
    expandable_segments: bool = False
    cap: float = 0.0

    @property
    def name(self) -> str:
        """The case in one line for people; no two cases share it."""
        parts = [self.model, self.method, f"{self.micro_batch_size}x{self.sequence_len}", self.checkpointing]
        parts += [self.attention, self.optimizer]
        usual = Case()
        for key in ("liger", "zero", "lora_r", "lora_targets", "trainer", "eval_batch_size", "cap"):
            parts += [f"{key}={getattr(self, key)}"] if getattr(self, key) != getattr(usual, key) else []
        if self.gradient_accumulation_steps > 1:
            parts.append(f"accumulation={self.gradient_accumulation_steps}")
        flags = ("offload_optimizer", "prepare_kbit", "padded", "expandable_segments")
        return " ".join([*parts, *(flag for flag in flags if getattr(self, flag))])


def model_config(case: Case) -> dict[str, Any]:
    """The model's config.json."""
    shape = {key: value for key, value in MODELS[case.model].items() if key != "id"}
    common = {"num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072}
    fixed = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16"}
    return {**fixed, **common, **shape}


def axolotl_of(case: Case) -> dict[str, Any]:
    """The case as an axolotl config."""
    config: dict[str, Any] = {
        "base_model": MODELS[case.model]["id"],
        "sequence_len": case.sequence_len,
        "micro_batch_size": case.micro_batch_size,
        "gradient_accumulation_steps": case.gradient_accumulation_steps,
        "bf16": True,
        "attn_implementation": case.attention,
        "optimizer": case.optimizer,
        "sample_packing": False,
        "pad_to_sequence_len": case.padded,
    }
    config |= checkpointing_of(case) | adapter_of(case) | liger_of(case)
    if case.eval_batch_size:
        config |= {"val_set_size": 0.1, "eval_steps": 1, "eval_batch_size": case.eval_batch_size}
    return config


def checkpointing_of(case: Case) -> dict[str, Any]:
    """axolotl's keys for gradient checkpointing."""
    if case.checkpointing == "off":
        return {"gradient_checkpointing": False}
    reentrant = case.checkpointing == "reentrant"
    return {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": reentrant}}


def adapter_of(case: Case) -> dict[str, Any]:
    """axolotl's keys for the adapter."""
    if case.method == "full":
        return {}
    targets = LORA_TARGETS[case.lora_targets]
    chosen = {"lora_target_linear": True} if targets is None else {"lora_target_modules": targets}
    keys = {"adapter": case.method, "lora_r": case.lora_r, "lora_alpha": 2 * case.lora_r, "lora_dropout": 0.0}
    return {**keys, **chosen, **({"load_in_4bit": True} if case.method == "qlora" else {})}


def liger_of(case: Case) -> dict[str, Any]:
    """axolotl's keys for Liger's kernels."""
    if case.liger == "off":
        return {}
    keys = {"plugins": ["axolotl.integrations.liger.LigerPlugin"], "liger_fused_linear_cross_entropy": True}
    return keys | (dict.fromkeys(LIGER_LAYERS, True) if case.liger == "all" else {})


def deepspeed_of(case: Case) -> dict[str, Any] | None:
    """The DeepSpeed config; buckets keep DeepSpeed's defaults."""
    if not case.zero:
        return None
    zero: dict[str, Any] = {"stage": case.zero, "overlap_comm": False, "contiguous_gradients": True}
    if case.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    return {
        "zero_optimization": zero,
        "bf16": {"enabled": True},
        "gradient_clipping": 1.0,
        "zero_allow_untested_optimizer": True,
        "train_micro_batch_size_per_gpu": case.micro_batch_size,
        "gradient_accumulation_steps": case.gradient_accumulation_steps,
    }


def stack_of(case: Case, versions: Mapping[str, str | None]) -> dict[str, Any]:
    """The advisor's ``stack``: versions, and what the loop does where trainers differ."""
    known = ("torch", "transformers", "peft", "accelerate", "deepspeed", "bitsandbytes")
    stack: dict[str, Any] = {key: str(versions[key]) for key in known if versions.get(key)}
    stack |= {"trainer": case.trainer, "amp": not case.zero, "padding": "full" if case.padded else "packed"}
    stack |= {"expandable_segments": case.expandable_segments}
    return stack | ({"prepare_kbit": case.prepare_kbit} if case.method == "qlora" else {})


def packages(case: Case) -> set[str]:
    """What must be installed in addition to torch, transformers, peft and accelerate."""
    bnb = case.method == "qlora" or "bnb" in case.optimizer
    found = {"bitsandbytes": bnb, "flash_attn": case.attention == "flash_attention_2"}
    found |= {"liger_kernel": case.liger != "off", "deepspeed": case.zero > 0}
    return {name for name, needed in found.items() if needed}


def most_informative() -> Iterator[Case]:
    """In the order of what a short measurement must know first: one run for each kind of term, then its variants.

    Sizes are chosen so that the term in question is the peak of its phase.
    """
    common = Case(model="8b", method="lora")
    wide = Case(checkpointing="off")
    yield common
    yield wide  # what layers keep, the plain loss, fused AdamW
    yield replace(common, method="qlora")
    yield Case(sequence_len=512, optimizer="adamw_torch")  # the step's temporaries are the peak
    yield Case(sequence_len=512)  # the end of backward is the peak, with two gradients of the tied table
    yield Case(sequence_len=16384)  # logits are the peak
    yield Case(sequence_len=16384, liger="loss")
    yield Case(zero=2, sequence_len=512)
    yield Case(zero=3, sequence_len=512)
    yield Case(method="lora", checkpointing="off", sequence_len=4096)  # what adapters keep
    yield replace(wide, attention="flash_attention_2")
    yield replace(wide, attention="eager")
    yield Case(eval_batch_size=8, sequence_len=4096, method="lora")  # evaluation is the peak
    yield Case(model="3b", sequence_len=8192, checkpointing="non-reentrant")
    yield Case(model="3b", sequence_len=8192)
    yield replace(common, expandable_segments=True)
    yield replace(wide, expandable_segments=True)
    yield from (replace(case, cap=cap) for cap in (1.02, 1.06, 1.12) for case in (common, wide))
    yield Case(optimizer="adamw_bnb_8bit", sequence_len=512)
    yield Case(trainer="axolotl", checkpointing="off")  # embeddings and norms in fp32
    yield Case(gradient_accumulation_steps=2, sequence_len=4096)
    yield replace(wide, padded=True, micro_batch_size=2)
    yield Case(model="8b", method="qlora", sequence_len=8192, prepare_kbit=True)
    yield Case(liger="all", checkpointing="off")
    yield Case(zero=2, gradient_accumulation_steps=2)
    yield Case(zero=2, offload_optimizer=True)
    yield Case(zero=3, sequence_len=8192)
    yield Case(model="8b", optimizer="adamw_torch_fused")
    yield Case(method="lora", checkpointing="off", lora_targets="qv", lora_r=64)
    caps = product((1.0, 1.01, 1.04), (False, True))
    yield from (replace(wide, cap=cap, expandable_segments=expandable) for cap, expandable in caps)
    yield from (replace(common, cap=cap, expandable_segments=True) for cap in (1.0, 1.02, 1.06))


def grid() -> Iterator[Case]:
    """The rest: every method, size, length and batch, which give the slopes."""
    checkpointing = ("reentrant", "off", "non-reentrant")
    kernels = ("sdpa", "flash_attention_2")
    for kernel, kept, model, method in product(kernels, checkpointing, MODELS, ("full", "lora", "qlora")):
        if model.startswith("tiny"):
            continue
        for length, rows in ((1024, 1), (4096, 1), (2048, 4), (16384, 1)):
            yield Case(model, method, length, rows, checkpointing=kept, attention=kernel)


def matrix() -> list[Case]:
    """Every case, the most informative first; one limited to a share of memory comes after the same without."""
    return list(dict.fromkeys([*most_informative(), *grid()]))


def runs_on_cpu(case: Case) -> bool:
    """Whether the CPU can run it, and what it then allocates would also lie on the GPU."""
    only_on_gpus = case.liger != "off" or case.attention == "flash_attention_2"
    return not (only_on_gpus or case.offload_optimizer or case.cap)


def tiny_matrix() -> list[Case]:
    """The same in two layers, tied as Llama-3.2 or not as Llama-3.1, without what takes a GPU."""
    cases = (
        replace(
            case,
            model="tiny-untied" if case.model == "8b" else "tiny",
            sequence_len=min(case.sequence_len, 4096) // 16,
        )
        for case in most_informative()
        if runs_on_cpu(case) and not case.expandable_segments
    )
    return list(dict.fromkeys(cases))


def without_limit(case: Case) -> Case:
    """The case whose peak a limit is measured by."""
    return replace(case, cap=0.0)


def cases_from(values: Iterable[Mapping[str, Any]]) -> list[Case]:
    """Cases from mappings of their fields."""
    return [Case(**value) for value in values]
