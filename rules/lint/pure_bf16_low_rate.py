"""A full fine-tune whose updates are smaller than bf16 can tell."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without
from advisor.learning import rate_of

LOW = 2e-5
DIGITS = 2**9
"""Half a step of bf16, which keeps eight binary digits: a number moves by at least 1/512 of itself, or not at all."""

TYPICAL = 0.02
"""A usual size of a weight: GPT-2's initializer_range, and that of most since."""
FALLING = {"cosine", "linear", "polynomial", "one_cycle"}


def finds(run: Run) -> Iterator[Hit]:
    """All weights in bf16 without fp32 masters, at a rate at which AdamW moves few of them, now or as it falls."""
    rate = rate_of(run)
    if rate is None or run.has_masters or run.precision != "bf16" or "adam" not in run.optimizer:
        return
    head = "updates are lost in bf16 without fp32 masters"
    remedy = "DeepSpeed keeps them"
    moves = "AdamW moves a weight by about"
    if rate <= LOW:
        lost = f"{moves} {rate:g} a step, which no weight above {rate * DIGITS:.2g} can tell"
        yield Hit("learning_rate", f"{head}: {lost}; {remedy}")
    elif run.config.has("pretraining_dataset") and lowest(run, rate) < TYPICAL / DIGITS:
        least = f"{TYPICAL / DIGITS:.0e}".replace("e-0", "e-")
        lost = f"{moves} the rate, and below {least} typical weights of {TYPICAL:g} cannot tell"
        yield Hit("learning_rate", f"{head}: {lost}; {remedy}")


def lowest(run: Run, rate: float) -> float:
    """The rate at the end of the schedule: cosine is axolotl's own, and goes to zero unless told."""
    ratio = run.config.get("cosine_min_lr_ratio")
    if str(run.config.get("lr_scheduler") or "cosine") not in FALLING or run.config.get("cosine_constant_lr_ratio"):
        return rate
    return rate * ratio if isinstance(ratio, int | float) else 0.0


rule = Rule(
    id="pure-bf16-low-rate",
    stage="lint",
    title="Keep fp32 masters where the learning rate is low",
    finds=finds,
    level="note",
    proof="read",
    safe=False,
    why="""
        bf16 keeps eight binary digits, so an update below 1/512 of a weight rounds to nothing. AdamW's update is about
        as large as the learning rate, and typical weights are around 0.02: at 1e-5 most of them never move. Plain
        axolotl, DDP and FSDP2 train the bf16 weights themselves; DeepSpeed updates fp32 copies. A pretraining starts
        higher, and its schedule comes down to such rates in its last quarter.
    """,
    source="https://arxiv.org/abs/2010.06192; axolotl/loaders/model.py:779-810@0.19.0",
    examples=lambda: (
        only("base_model: nobody/knows-this", "learning_rate: 1e-5", fires=True),
        but("learning_rate: 1e-4"),
        without("learning_rate"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"),
        but("fp16: true", "bf16: false"),
        but("optimizer: adafactor"),
        but("fsdp_version: 1", "fsdp_config: {reshard_after_forward: true}", gpus="2x a100-80gb"),
        but("fsdp_version: 2", "fsdp_config: {reshard_after_forward: true}", gpus="2x a100-80gb", fires=True),
        but(
            "deepspeed: ds.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
        ),
        only(
            "base_model: nobody/knows-this",
            "learning_rate: 3e-4",
            "pretraining_dataset: allenai/c4",
            "max_steps: 10000",
            fires=True,
        ),
        but("lr_scheduler: constant_with_warmup"),
        but("cosine_min_lr_ratio: 0.2"),
        but("cosine_constant_lr_ratio: 0.5"),
        without("pretraining_dataset"),
    ),
)
