"""Embeddings, head and norms that axolotl keeps in fp32."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, gib, only
from advisor.memory import estimate
from advisor.models import Architecture
from advisor.record import replace

LEAST = 0.05
NAMED = "attn_implementation"


def finds(run: Run) -> Iterator[Hit]:
    """Where the cast back to half precision is skipped, and that costs a twentieth of the GPU or more."""
    if not run.embeddings_fp32 or run.model is None or not names_embeddings(run.model):
        return
    now, cast = estimate(run), estimate(replace(run, embeddings_fp32=False, fp32_residual_stream=False))
    if now is None or cast is None:
        return
    saved = now.allocated_peak - cast.allocated_peak
    if saved < LEAST * now.usable:
        return
    at = next((key for key in (NAMED, "sdp_attention", "eager_attention") if run.config.get(key)), "")
    said = f"`{at}: {run.attention if at == NAMED else 'true'}`" if at else f"no `{NAMED}`"
    way = "`flash_attention_2`, or the plugin CutCrossEntropyPlugin, casts them to half precision"
    message = f"{said}: axolotl leaves embeddings, head and norms in fp32, {gib(saved)} more at the peak; {way}"
    yield Hit(at or "base_model", message)


def names_embeddings(model: Architecture) -> bool:
    """Whether axolotl finds them: it goes by the name, and knows few."""
    known, _ = model.family.embedding_modules
    return any(tensor.kind == "embedding" and known in tensor.module for tensor in model.tensors)


rule = Rule(
    id="fp32-embeddings",
    stage="lint",
    title="Embeddings, head and norms that stay in fp32",
    finds=finds,
    level="note",
    proof="read",
    why="""
        axolotl turns these to fp32 while it makes the model ready, and casts them back for an adapter, for sharding,
        for a fused loss, and for attention kernels that need it. A full fine-tune with torch's own attention is none of
        these: weights, gradients and optimizer states of the embeddings take 4 bytes each, and so does the stream
        between the layers. That is more exact, and may be wanted.
    """,
    cost="Embeddings and norms are then trained in half precision.",
    safe=False,
    source=(
        "axolotl/loaders/model.py:435-489,1153-1175@0.19.0; axolotl/loaders/utils.py:306-316@0.19.0; "
        "axolotl/utils/schemas/enums.py:168@0.19.0"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 4096",
            "gradient_checkpointing: true",
            "attn_implementation: sdpa",
            gpus="1x h200",
            fires=True,
        ),
        but("attn_implementation: flash_attention_2"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"),
        only("base_model: meta-llama/Llama-3.1-8B", "unfrozen_parameters:\n  - model.layers.31"),
        only("base_model: nobody/knows-this"),
        only(
            "base_model: bigscience/bloom-1b7",
            "sequence_len: 1024",
            "micro_batch_size: 1",
            "gradient_checkpointing: true",
            gpus="1x rtx-3090",
        ),
    ),
)
