"""A full fine-tune whose experts are saved in part."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only

SIZE = "expert_parallel_size"


def finds(run: Run) -> Iterator[Hit]:
    """Where the first process saves the experts that it has, and no adapter is gathered."""
    if run.expert_parallel_size > 1 and run.adapter is None and run.model is not None and run.model.has_experts:
        size = run.expert_parallel_size
        message = (
            f"`{SIZE}: {size}` in a full fine-tune: axolotl saves the experts of one GPU, and all others are silently"
            " lost; train an adapter, or remove it"
        )
        yield Hit(SIZE, message)


rule = Rule(
    id="expert-parallel-loses-experts",
    stage="lint",
    title="A full fine-tune whose experts are saved in part",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Each GPU keeps a slice of every layer's experts as a weight of its own; FSDP2 divides it further over
        `dp_shard_size` alone. axolotl gathers adapters over the GPUs of expert parallelism before it saves them. Whole
        weights it does not: the first process writes its slice, under the names of the first experts.
    """,
    cost="Each GPU then has, or gathers, all experts.",
    safe=False,
    source=(
        "axolotl/train.py:307-316,406-410@0.19.0; axolotl/integrations/expert_parallel/shard.py:197-227@0.19.0; "
        "axolotl/integrations/expert_parallel/plugin.py:358-384@0.19.0; tests/oracles/test_expert_parallel.py"
    ),
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen3-30B-A3B",
            "plugins:\n  - axolotl.integrations.expert_parallel.ExpertParallelPlugin",
            "expert_parallel_size: 8",
            gpus="8x h100-80gb",
            fires=True,
        ),
        but("adapter: lora", "lora_r: 16", "lora_target_modules: [q_proj, v_proj]"),
        but("expert_parallel_size: 1"),
        but("base_model: Qwen/Qwen3-8B"),
        but("base_model: nobody/knows-this"),
    ),
)
