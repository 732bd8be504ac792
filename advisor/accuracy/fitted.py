"""What in the arithmetic was fitted to measurements or assumed rather than derived, and what nobody has measured."""

from advisor.record import record


@record
class _Fitted:
    """One constant: its value, the function that has it, and what it rests on."""

    name: str
    value: str
    place: str
    rests_on: str


FITTED = (
    _Fitted(
        "live parameters of ZeRO-3 with several GPUs",
        "2 x max_live_parameters, or max_reuse_distance",
        "advisor/memory/deepspeed.py: live_terms",
        "12 runs of Llama-3-8B; DeepSpeed holds one set, freed blocks await the stream",
    ),
    _Fitted(
        "cuBLAS workspaces",
        "2 x 8,519,680 B, 2 x 32 MiB from Hopper on",
        "advisor/memory/workspaces.py: workspace_bytes",
        "the size is torch's; that there are two is what the runs with DeepSpeed leave over",
    ),
    _Fitted(
        "outputs of the projections of linear attention whose kernel no formula knows, kept",
        "2 x",
        "advisor/memory/activations/approximate.py: width_amounts",
        "assumed: before and after a convolution or norm; no run of such a model is published",
    ),
)
BY_HAND = {
    "FMS-105": "plausible: needed ends just below what the card has, and the failure is not certain",
}
"""What a person makes of failures that are inferred and yet called ``fits``."""
MISSING = (
    "No run with FSDP2, with data parallelism alone (DDP), or with ZeRO-1.",
    "No run with ZeRO-2 that keeps the optimizer on the GPU.",
    "No full fine-tune with DeepSpeed in bf16: those here are fp16.",
    "Nothing on transformers 5, nor on any axolotl: the trainers are transformers' and TRL's.",
    "Expandable segments, which axolotl turns on, with ZeRO-3 on one GPU alone.",
    "No mixture of experts but Mixtral; no vision, no linear attention, no preference training.",
)
