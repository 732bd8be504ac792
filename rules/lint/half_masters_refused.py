"""Master weights in half precision that DeepSpeed refuses."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.run import Zero

BF16, STATES = "bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states"
FP16 = "fp16.fp16_master_weights_and_grads"


def finds(run: Run) -> Iterator[Hit]:
    """Stage 0, states without masters, both kinds of masters, or masters alone without ZeRO-Offload."""
    if run.deepspeed is None:
        return
    masters = [key for key in (BF16, FP16) if run.deepspeed.at(key) is True]
    states = run.deepspeed.at(STATES) is True
    if states and BF16 not in masters:
        helps = Set(BF16, value=True) if run.zero_stage else Remove(STATES)
        yield hit(STATES, f"needs `{BF16}: true`, and that a ZeRO stage; set it too, or remove this key", helps)
    elif len(masters) > 1:
        yield hit(FP16, f"excludes `{BF16}: true`; remove one of them")
    else:
        for key in masters:
            yield from alone(run, key, states=states)


def alone(run: Run, key: str, *, states: bool) -> Iterator[Hit]:
    """What one kind of masters needs: a stage, and for fp32 states DeepSpeed's own Adam on the host."""
    if run.zero_stage == 0:
        gone = (Remove(key), Remove(STATES)) if states else (Remove(key),)
        yield hit(key, "needs ZeRO stage 1, 2 or 3; set `zero_optimization.stage`, or remove this key", *gone)
    elif not states and not run_by_cpu_adam(run):
        wants = "`zero_optimization.offload_optimizer.device: cpu` and DeepSpeed's CPU Adam"
        yield hit(
            key, f"needs {wants}; offload so, set `{STATES}: true` too with bf16, or remove this key", Remove(key)
        )


def run_by_cpu_adam(run: Run) -> bool:
    """Whether accelerate puts DeepSpeed's own Adam on the host; with torch's there DeepSpeed stops as well."""
    match run.zero:
        case Zero(offload_optimizer="cpu" | "nvme", force_cpu_adam=True):
            return True
        case _:
            return False


def hit(key: str, why: str, *edits: Set | Remove) -> Hit:
    """One finding at a key of the JSON."""
    return Hit(key, f"`{key}: true` {why}: DeepSpeed stops", document="deepspeed", edits=edits)


rule = Rule(
    id="half-masters-refused",
    stage="lint",
    title="Let DeepSpeed keep master weights in half precision only where it can",
    finds=finds,
    level="error",
    proof="read",
    safe=False,
    why="""
        With master weights and gradients in half precision DeepSpeed updates rounded weights, and asserts that the rest
        agrees: a ZeRO stage, and states in bf16 too or, for fp32 states, its own Adam on the host.
    """,
    source=(
        "deepspeed/runtime/config.py:978-990@0.18.9; deepspeed/runtime/base_optimizer.py:459-472@0.18.9; "
        "deepspeed/runtime/zero/stage_1_and_2.py:273-284@0.18.9; deepspeed/runtime/zero/stage3.py:281-291@0.18.9"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.2-1B",
            "deepspeed: ds.json",
            gpus="2x a100-80gb",
            deepspeed="""
                {"zero_optimization": {"stage": 2}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}}
            """,
            fires=True,
        ),
        but(
            deepspeed='{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true, "bf16_optimizer_states": true}}',
            fires=True,
        ),
        but(
            deepspeed="""
                {
                  "zero_optimization": {"stage": 0},
                  "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}
                }
            """,
            fires=True,
        ),
        but(
            deepspeed="""
                {
                  "zero_optimization": {"stage": 3},
                  "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}
                }
            """
        ),
        but(
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
                  "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}
                }
            """
        ),
        but(
            deepspeed="""
                {"zero_optimization": {"stage": 2}, "fp16": {"enabled": true, "fp16_master_weights_and_grads": true}}
            """,
            fires=True,
        ),
        but(
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
                  "bf16": {"bf16_master_weights_and_grads": true}, "fp16": {"fp16_master_weights_and_grads": true}
                }
            """,
            fires=True,
        ),
        but(deepspeed='{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'),
        but(
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
                  "zero_force_ds_cpu_optimizer": false,
                  "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}
                }
            """,
            fires=True,
        ),
        but(without=("deepspeed",), deepspeed=""),
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.2-1B
                deepspeed: ds.json
            """,
            deepspeed="""
                {
                  "bf16": {
                    "enabled": true,
                    "bf16_master_weights_and_grads": true,
                    "bf16_optimizer_states": true
                  }
                }
            """,
            after_deepspeed="""
                {
                  "bf16": {
                    "enabled": true
                  }
                }
            """,
        ),
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.2-1B
                deepspeed: ds.json
            """,
            deepspeed="""
                {
                  "bf16": {
                    "enabled": true,
                    "bf16_optimizer_states": true
                  }
                }
            """,
            after_deepspeed="""
                {
                  "bf16": {
                    "enabled": true
                  }
                }
            """,
        ),
    ),
)
