"""axolotl's zero2.json, which offloads the optimizer."""

from collections.abc import Iterator
from pathlib import PurePath

from advisor import Hit, Rule, Run, but, only
from advisor.memory import estimate

FILES = frozenset({"zero2.json", "zero2_torch_compile.json"})


def finds(run: Run) -> Iterator[Hit]:
    """Where the file is used and nobody can tell whether it must; with an estimate, ``less-offload`` says so."""
    name = PurePath(run.deepspeed_named or "").name
    if name in FILES and run.zero is not None and run.zero.offload_optimizer != "gpu" and estimate(run) is None:
        yield Hit(
            "deepspeed",
            f"`{name}` moves the optimizer to the host: each step runs on the CPU; if the states fit the GPUs, take "
            f"`zero1.json` or a copy without `offload_optimizer`",
        )


rule = Rule(
    id="zero2-file-offloads",
    stage="lint",
    title="axolotl's zero2.json, which offloads the optimizer",
    finds=finds,
    level="note",
    proof="read",
    why="""
        The two files that axolotl ships for ZeRO-2 set `offload_optimizer` to the CPU, which their names do not say;
        no shipped file is plain ZeRO-2. `zero1.json` shards the optimizer's states as well, and keeps them on the GPU.
        Where model and GPUs are known, the advisor offers to move them back if they fit.
    """,
    cost="",
    safe=False,
    source="axolotl deepspeed_configs/zero2.json@0.19.0; accelerate/accelerator.py:2353-2362@1.13.0",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero2.json", gpus="", fires=True),
        but(
            "deepspeed: zero2.json",
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2, "overlap_comm": true},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto"
                }
            """,
        ),
        but(gpus="1x a100-80gb"),
        but("deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json"),
        but("fsdp:\n  - full_shard\n  - auto_wrap", gpus="1x a100-80gb"),
    ),
)
