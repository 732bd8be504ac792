"""What usually helps after a death, where no config says what suffices: remedies, mildest first."""

from collections.abc import Mapping

from advisor.cli.crash_log.parse import Cause, Death
from advisor.record import record


@record
class Remedy:
    """What to do, and the lines of YAML that do it."""

    title: str
    lines: tuple[str, ...] = ()


@record
class Advice:
    """Remedies that leave the training as it is, those that change it, and what else there is to know."""

    same: tuple[Remedy, ...] = ()
    changes: tuple[Remedy, ...] = ()
    notes: tuple[str, ...] = ()


ONE_ROW = Remedy("one row at a time", ("micro_batch_size: 1", "gradient_accumulation_steps: N  # same rows a step"))
RECOMPUTED = Remedy("recompute activations", ("gradient_checkpointing: true",))
SHORTER = Remedy("shorter rows", ("sequence_len: 2048  # half, say",))
ADVICE: Mapping[Cause, Advice] = {
    "gpu": Advice(
        same=(
            ONE_ROW,
            Remedy(
                "fused loss (Liger)",
                ("liger_fused_linear_cross_entropy: true", "plugins: [axolotl.integrations.liger.LigerPlugin]"),
            ),
            RECOMPUTED,
            Remedy(
                "share states among GPUs",
                ("deepspeed: deepspeed_configs/zero2.json", "deepspeed: deepspeed_configs/zero3.json  # next"),
            ),
        ),
        changes=(Remedy("adapters", ("adapter: lora  # then qlora",)), SHORTER),
    ),
    "apple": Advice(
        same=(ONE_ROW, RECOMPUTED),
        changes=(Remedy("adapters", ("adapter: lora  # 4 bits need CUDA",)), SHORTER),
        notes=("`PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0` lifts the limit, and the system may then swap or stop.",),
    ),
    "vllm": Advice(
        same=(
            Remedy("a larger share of the card", ("vllm: {gpu_memory_utilization: 0.95}",)),
            Remedy("more GPUs for vLLM", ("vllm: {tensor_parallel_size: 2}",)),
        ),
        changes=(Remedy("shorter answers", ("vllm: {max_model_len: 2048}",)),),
        notes=("If training is on the same card (`trl.vllm_mode: colocate`), it has to become smaller first.",),
    ),
    "host": Advice(
        same=(
            Remedy("fewer data workers", ("dataloader_num_workers: 1",)),
            Remedy("one load at a time (FSDP)", ("fsdp_config: {cpu_ram_efficient_loading: true}",)),
            Remedy("no offload to the host", ("deepspeed: deepspeed_configs/zero3_bf16.json",)),
            Remedy("more memory for the job or container"),
        ),
    ),
    "elsewhere": Advice(
        notes=("Read the logs of all ranks: the first `out of memory`, or the first traceback, is the cause.",)
    ),
}
TOO_LARGE = Advice(
    notes=(
        "No batch size frees that much: look at the tensor that the last frames build. Logits of sequence x "
        "vocabulary, attention scores of sequence x sequence without flash attention, a mask, or a wrong dimension.",
    )
)
PIECES = (
    "Set `PYTORCH_ALLOC_CONF=expandable_segments:True` first: with it torch joins the pieces (axolotl sets it from "
    "torch 2.2 on)."
)
PAGED = "Paged optimizers take memory that host and GPU share: free host memory, or use an optimizer without `paged_`."


def advice(death: Death) -> Advice:
    """What usually helps after such a death."""
    return TOO_LARGE if death.too_large else ADVICE[death.cause]


def first_of_all(death: Death) -> str:
    """What to do before any remedy; mostly nothing."""
    if death.in_pieces:
        return PIECES
    return PAGED if "paged" in death.teller else ""
