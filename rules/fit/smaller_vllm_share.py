"""Give vLLM no more of the card than its answers take."""

from advisor import Example, Rule, Run, RunEdits, but
from advisor.memory.vllm_share import vllm_share_needed


def applies(run: Run) -> bool:
    """Whether vLLM is on the GPUs that train, and takes more; of a server elsewhere the share is 0."""
    made = run.rollouts
    if run.model is None or run.hardware is None or made is None:
        return False
    return made.share > vllm_share_needed(run)


def edits(run: Run) -> RunEdits:
    """What is enough."""
    return {"vllm_share": vllm_share_needed(run)}


def label(before: Run, after: Run) -> str:
    """``vLLM's share 0.85 -> 0.3``."""
    old, new = (run.rollouts.share if run.rollouts is not None else 0.0 for run in (before, after))
    return f"vLLM's share of the card {old:g} -> {new:g}"


rule = Rule(
    id="smaller-vllm-share",
    stage="fit",
    title="Give vLLM no more of the card than its answers take",
    label=label,
    when=applies,
    edits=edits,
    why="""
        On the GPU that trains, vLLM reserves its share of the whole card before the first step and keeps it. What is
        beyond the weights holds the keys and values of the answers that are made at once. A batch of GRPO is small
        next to what a server is asked for, so that a smaller share makes the same answers as fast.
    """,
    cost="None: the share still has room for a batch of answers at once, and for one row of full length.",
    because="What vLLM reserves of the card stays reserved while the model is trained.",
    price="None: all answers of a batch still fit in its cache at once.",
    safe=True,
    source=(
        "vllm/v1/worker/utils.py:217-237@0.17.0; trl/generation/vllm_generation.py:351-366@1.9.0; "
        "trl/trainer/grpo_config.py:154@1.9.0: 0.3 by default"
    ),
    examples=lambda: (
        Example(
            gpus="4x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-3B
                rl: grpo
                trl:
                  use_vllm: true
                  vllm_mode: colocate
                  num_generations: 8
                  max_completion_length: 1024
                vllm:
                  gpu_memory_utilization: 0.85
                sequence_len: 2048
                micro_batch_size: 8
                gradient_accumulation_steps: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-3B
                rl: grpo
                trl:
                  use_vllm: true
                  vllm_mode: colocate
                  num_generations: 8
                  max_completion_length: 1024
                vllm:
                  gpu_memory_utilization: 0.3
                sequence_len: 2048
                micro_batch_size: 8
                gradient_accumulation_steps: 4
                gradient_checkpointing: true
                attn_implementation: flash_attention_2
            """,
            memory="117.1 -> 73.6 GiB",
        ),
        but("vllm:\n  gpu_memory_utilization: 0.3"),
        but("base_model: Qwen/Qwen2.5-14B", "vllm:\n  gpu_memory_utilization: 0.9", fires=True),
        but("trl:\n  use_vllm: true\n  num_generations: 8"),
        but("trl:\n  num_generations: 8"),
        but("rl: dpo", without=("trl", "vllm")),
        but(gpus=""),
        but("base_model: nobody/knows-this"),
    ),
)
