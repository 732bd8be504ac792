"""Expert parallelism that axolotl goes on without."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but

SIZE = "expert_parallel_size"
STOPS = "expert_parallel_fallback_on_unsupported"


def finds(run: Run) -> Iterator[Hit]:
    """Where a missing package only takes the division away."""
    if run.expert_parallel_size > 1 and run.config.get(STOPS) is not False:
        message = (
            f"`{SIZE}: {run.expert_parallel_size}` needs the package `deep_ep`, which is built from git: without it"
            f" axolotl warns, and each GPU gets all experts; set `{STOPS}: false`, which stops instead"
        )
        yield Hit(SIZE, message, (Set(STOPS, value=False, after=SIZE),))


rule = Rule(
    id="expert-parallel-falls-back",
    stage="lint",
    title="Expert parallelism that axolotl goes on without",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        DeepEP sends tokens to the GPUs that have their experts. axolotl looks whether it can be imported, and where it
        cannot, it warns in one line and divides no experts: a run that was to hold an eighth of them on each of eight
        GPUs then has them all. The estimate is that of a run with DeepEP. It needs NVLink between all GPUs of a node.
    """,
    cost="Without `deep_ep` the run stops as the model is loaded.",
    safe=True,
    source=(
        "axolotl/integrations/expert_parallel/plugin.py:480-491@0.19.0; "
        "axolotl/integrations/expert_parallel/args.py:37@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                lora_r: 16
                lora_target_modules: [q_proj, v_proj]
                plugins:
                  - axolotl.integrations.expert_parallel.ExpertParallelPlugin
                expert_parallel_size: 8
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                lora_r: 16
                lora_target_modules: [q_proj, v_proj]
                plugins:
                  - axolotl.integrations.expert_parallel.ExpertParallelPlugin
                expert_parallel_size: 8
                expert_parallel_fallback_on_unsupported: false
            """,
        ),
        but("expert_parallel_size: 1"),
        but(fixed=True),
        but(without=("plugins",)),
    ),
)
