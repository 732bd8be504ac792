"""What to do after a death, where no config says more."""

from collections.abc import Mapping

from advisor.cli.crash_log.parse import Cause, Death

STEPS: Mapping[Cause, tuple[str, ...]] = {
    "gpu": (
        "next: `micro_batch_size: 1` with more `gradient_accumulation_steps`, `gradient_checkpointing: true`, flash "
        "attention, a fused loss (`liger_fused_linear_cross_entropy`), ZeRO-2 then ZeRO-3 on several GPUs, "
        "`adapter: lora` or `qlora`, offload, a shorter `sequence_len`",
        "`--config run.yaml` shows which of them suffice, and what each frees",
    ),
    "apple": (
        "next: a smaller `micro_batch_size` or `sequence_len`, `adapter: lora`; 4-bit needs CUDA",
        "`PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0` lifts the limit, and the system may then swap or stop",
    ),
    "vllm": (
        "next: if vLLM has the card to itself, raise `vllm.gpu_memory_utilization`; if training is on the same card "
        "(`trl.vllm_mode: colocate`), make training smaller first",
        "a smaller `vllm.max_model_len`, or `vllm.tensor_parallel_size` over more GPUs, needs less of it",
    ),
    "host": (
        "next: more memory for the job or container, fewer `dataloader_num_workers`, no `offload_optimizer` or "
        "`offload_param`, one model load at a time (`fsdp_config.cpu_ram_efficient_loading`, ZeRO-3's `zero.Init`)",
        "`--config run.yaml` shows how much offloading alone keeps there",
    ),
    "elsewhere": ("next: read the logs of all ranks; the first `out of memory`, or the first traceback, is the cause",),
}
TOO_LARGE = (
    "no batch size frees that much: look at the tensor that the last frames build. Logits of sequence x vocabulary, "
    "attention scores of sequence x sequence without flash attention, a mask, or a wrong dimension",
)
PIECES = (
    "next: `PYTORCH_ALLOC_CONF=expandable_segments:True` lets torch join the pieces (axolotl sets it from torch 2.2 on)"
)
PAGED = "paged optimizers take memory that host and GPU share: free host memory, or use an optimizer without `paged_`"


def next_steps(death: Death) -> tuple[str, ...]:
    """The steps for a death, a line each."""
    if death.too_large:
        return TOO_LARGE
    steps = STEPS[death.cause]
    if death.in_pieces:
        return (PIECES, *steps)
    return (PAGED, *steps) if "paged" in death.teller else steps
