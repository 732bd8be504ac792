"""Offloading replaces the optimizer."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but
from advisor.memory.optimizers import is_known
from advisor.run import WITHOUT_DEEPSPEED

# These stay AdamW with fp32 states, only on the host; of the platforms' own kinds and of LOMO nothing is known.
SAME = frozenset(["adamw_torch", "adamw_torch_fused", "paged_adamw_32bit"])
NOT_TRIED = frozenset(["adamw_torch_xla", "adamw_torch_npu_fused", "lomo", "adalomo"])
NARROW_ADAMW = frozenset(
    ["adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit", "adamw_torch_8bit", "adamw_torch_4bit", "ao_adamw_fp8"]
)
# What the replacement chokes on: a keyword of Adam's, or groups with settings of another shape.
STOPS = frozenset(
    [
        "adafactor",
        "adagrad",
        "lion_32bit",
        "paged_lion_32bit",
        "ademamix",
        "ademamix_8bit",
        "paged_ademamix_32bit",
        "paged_ademamix_8bit",
    ]
)
REPLACED = "becomes DeepSpeedCPUAdam, since the DeepSpeed config offloads it"


def finds(run: Run) -> Iterator[Hit]:
    """Anything but AdamW in 32 bits, where accelerate puts DeepSpeed's in its place."""
    name = run.optimizer
    if not replaces(run) or not is_known(name) or name in SAME | NOT_TRIED | WITHOUT_DEEPSPEED:
        return
    if name in STOPS:
        message = f"`optimizer: {name}` cannot be offloaded: accelerate's replacement for it fails and stops the run"
        remedy = "use `adamw_torch_fused`, or do not offload the optimizer"
        yield Hit("optimizer", f"{message}; {remedy}", level="error")
    elif name in NARROW_ADAMW:
        decay = ", and decay is Adam's L2" if run.config.get("weight_decay") else ""
        message = f"`optimizer: {name}` {REPLACED}: its states are fp32 on the host{decay}"
        edits = (Set("optimizer", "adamw_torch_fused"),)
        yield Hit("optimizer", f"{message}; use `adamw_torch_fused`, or do not offload", edits=edits)
    else:
        message = f"`optimizer: {name}` {REPLACED}: this trains with Adam at the same learning rate"
        yield Hit("optimizer", f"{message}; use `adamw_torch_fused`, or do not offload the optimizer")


def replaces(run: Run) -> bool:
    """Whether accelerate replaces the optimizer that the trainer has built."""
    zero = run.zero
    if zero is None or run.deepspeed is None or zero.own_optimizer or not zero.force_cpu_adam:
        return False
    device = run.deepspeed.at("zero_optimization.offload_optimizer.device")
    return zero.offload_optimizer != "gpu" and device in ("cpu", "nvme")


def trains_the_same(run: Run) -> bool:
    """Without decay, the Adam that would have run and AdamW are one."""
    return run.optimizer in NARROW_ADAMW and not run.config.get("weight_decay")


rule = Rule(
    id="cpu-offload-replaces-optimizer",
    stage="lint",
    title="Offloading replaces the optimizer",
    finds=finds,
    level="warning",
    proof="accepts",
    safe=trains_the_same,
    why="""
        With `offload_optimizer` in the DeepSpeed config, accelerate throws the trainer's optimizer away and builds
        DeepSpeedCPUAdam over the same groups: fp32 moments on the host, AdamW only if torch's AdamW or a 32-bit one of
        bitsandbytes was asked for, else Adam. Adafactor, Adagrad, Lion in 32 bits and AdEMAMix stop there instead.
        axolotl's `zero2.json` offloads the optimizer, though its name does not say so.
    """,
    source="accelerate/accelerator.py:2353-2363@1.13.0; accelerate/utils/deepspeed.py:29-97@1.13.0;"
    " deepspeed/ops/lion/cpu_lion.py:16@0.18.9",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_bnb_8bit
                weight_decay: 0.1
                deepspeed: deepspeed_configs/zero2.json
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_torch_fused
                weight_decay: 0.1
                deepspeed: deepspeed_configs/zero2.json
            """,
        ),
        but("optimizer: lion_8bit", without=("weight_decay",), fires=True),
        but("optimizer: adafactor", without=("weight_decay",), fires=True),
        but("optimizer: paged_adamw_32bit", without=("weight_decay",)),
        but("deepspeed: deepspeed_configs/zero1.json", without=("weight_decay",)),
        but("optimizer: nothing_known", without=("weight_decay",), gpus="1x a100-80gb"),
        but(
            "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json",
            without=("weight_decay",),
            gpus="1x a100-80gb",
        ),
        but("fsdp:\n  - full_shard\n  - auto_wrap", without=("optimizer", "weight_decay"), gpus="1x a100-80gb"),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: lion_8bit
                deepspeed: deepspeed_configs/zero2.json
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: lion_8bit
                deepspeed: deepspeed_configs/zero2.json
            """,
        ),
        but(
            "optimizer: adamw_bnb_8bit",
            "deepspeed: zero.json",
            deepspeed='{"zero_optimization": {"stage": 2, "cpu_offload": true}}',
        ),
        but(
            "optimizer: adamw_bnb_8bit",
            "deepspeed: zero.json",
            deepspeed='{"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}',
        ),
        but(
            "optimizer: adamw_bnb_8bit",
            "deepspeed: zero.json",
            deepspeed="""
                {
                  "optimizer": {
                    "type": "AdamW"
                  },
                  "zero_optimization": {
                    "stage": 2,
                    "offload_optimizer": {
                      "device": "cpu"
                    }
                  }
                }
            """,
        ),
    ),
)
