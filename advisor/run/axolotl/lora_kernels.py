"""axolotl's fused LoRA kernels: the models into whose attention they cannot be patched."""

from advisor.run import Run
from advisor.run.axolotl.read import LORA_KERNELS
from advisor.run.edits import RunEdits

KEYS = (*LORA_KERNELS.values(), "lora_embedding_kernel")


def stops(run: Run) -> bool:
    """Whether the kernels for attention stop a run of this model."""
    return why_stops(run) != ""


def why_stops(run: Run) -> str:
    """What happens to a run with the kernels for attention; empty if they work."""
    if run.classifier is not None:  # PEFT has a class of its own for it: axolotl/loaders/adapter.py:129-137@0.19.0
        return "take no reward model: axolotl stops once the adapter is there"
    if run.model is None:
        return ""
    kind = run.model.model_type
    match run.model.family.lora_kernels:
        case "unpatchable":
            return f"cannot be patched into the attention of `{kind}`: axolotl stops before the model is loaded"
        case "unbound":
            return f"are not bound to the attention of `{kind}`, which calls them: the first forward stops"
        case "need half-precision norms" if run.autocast and run.precision != "fp32":
            return f"cannot add what the fp32 norms of `{kind}` give them: the first forward stops"
        case _:
            return ""


def for_attention(run: Run) -> RunEdits:
    """What an adapter asks for with it: axolotl would turn the kernels on by itself, and stop."""
    alone = run.rl is None and not run.config.get("trust_remote_code") and not run.config.get("nvfp4_merge_aware")
    named = [run.config.get(key) for key in KEYS]
    asked = any(run.config.get(key) for key in ("lora_qkv_kernel", "lora_o_kernel"))
    comes = asked or (alone and all(value is None for value in named))
    return {"lora_attention_kernels": False} if stops(run) and comes else {}
