"""Gradients of earlier micro-steps, which FSDP1 drops where weights are on the host."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but

SYNC = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch"


def finds(run: Run) -> Iterator[Hit]:
    """Where gradients are reduced, and moved to the host, more than once a step."""
    steps = run.gradient_accumulation_steps
    if run.offloads_fsdp1 and run.sync_each_batch and steps > 1:
        message = (
            f"`sync_each_batch: true` with FSDP1's `offload_params`: of {steps} micro-steps only the last counts, since"
            " each gradient takes the place of the one on the host; remove it, or write `fsdp_version: 2`"
        )
        yield Hit(SYNC, message, edits=(Remove(SYNC),))


rule = Rule(
    id="fsdp1-offload-loses-gradients",
    stage="lint",
    title="Only the last micro-step counts",
    finds=finds,
    level="warning",
    proof="read",
    safe=True,
    why="""
        FSDP1 adds the gradients of micro-steps up on the GPU, as long as they are not reduced in between. Once it has
        reduced them and weights are offloaded, they lie on the host, and the next reduction overwrites them. FSDP2 adds
        to what is on the host.
    """,
    cost="Every GPU keeps the gradients of all trained weights whole until the last micro-step.",
    source=(
        "torch/distributed/fsdp/fully_sharded_data_parallel.py:193-197@2.13.0; "
        "torch/distributed/fsdp/_flat_param.py:1640-1656@2.13.0; "
        "torch/distributed/fsdp/_runtime_utils.py:970-987@2.13.0"
    ),
    examples=lambda: (
        Example(
            gpus="2x rtx-4090",
            before="""
                base_model: Qwen/Qwen2.5-7B
                gradient_accumulation_steps: 4
                accelerator_config:
                  gradient_accumulation_kwargs:
                    sync_each_batch: true
                fsdp_version: 1
                fsdp_config:
                  offload_params: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                gradient_accumulation_steps: 4
                accelerator_config:
                  gradient_accumulation_kwargs: {}
                fsdp_version: 1
                fsdp_config:
                  offload_params: true
            """,
        ),
        but("fsdp_version: 2"),
        but("gradient_accumulation_steps: 1"),
        but("fsdp_config: {offload_params: false}"),
        but("accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: false}}"),
    ),
)
