"""Offloaded weights below ZeRO-3."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, json_hit, only


def finds(run: Run) -> Iterator[Hit]:
    """Where weights are to be offloaded that no stage below 3 can offload."""
    if run.zero is None or run.zero.stage == 3 or run.deepspeed is None:
        return
    zero = "zero_optimization."
    for key, offloads in (
        ("offload_param", run.deepspeed.at(zero + "offload_param.device") in ("cpu", "nvme")),
        ("cpu_offload_param", run.deepspeed.at(zero + "cpu_offload_param") is True),
    ):
        if offloads:
            message = (
                f"`{key}` has no effect under `stage: {run.zero.stage}`: every GPU keeps all weights; remove it, or "
                f"set `stage` to 3 if they are to leave the GPU"
            )
            yield json_hit(run, zero + key, message, Remove(zero + key), on_key=True)


rule = Rule(
    id="offload-param-below-stage-3",
    stage="lint",
    title="Offloaded weights below ZeRO-3",
    finds=finds,
    alone=True,
    level="warning",
    proof="accepts",
    why="""
        DeepSpeed's config takes `offload_param` at any stage, and hands it to ZeRO-3 alone; the optimizer of stages 1
        and 2 never sees it. Weights that are not partitioned are not offloaded.
    """,
    safe=True,
    source="deepspeed/runtime/engine.py:1936-1966,1989,2037, runtime/zero/config.py:157@0.18.9",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: zero.json
            """,
            deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "offload_param": {"device": "cpu", "pin_memory": true},
                    "overlap_comm": true
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {
                    "stage": 2,
                    "overlap_comm": true
                  },
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        but("deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_params.json", deepspeed=""),
        but("deepspeed: deepspeed_configs/zero1.json", gpus="1x a100-80gb", deepspeed=""),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but(
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2, "offload_param": {"device": "none"}},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto",
                  "gradient_accumulation_steps": "auto"
                }
            """
        ),
        but(without=("deepspeed",), deepspeed=""),
    ),
)
