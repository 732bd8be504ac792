"""bf16 on a card without bf16 units."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.engine.locations import owns_json
from advisor.record import replace
from advisor.speed import StepTime, step_time
from advisor.util import seconds

FOLLOWS = '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}}'


def finds(run: Run) -> Iterator[Hit]:
    """Where bf16 is asked for, or "auto" turns it on, and the card cannot compute in it."""
    if run.hardware is None or run.hardware.gpu.bf16:
        return
    given = run.config.get("bf16")
    asked = next((key for key in ("bf16", "bfloat16") if run.is_on(key)), None)
    if asked is None and (given not in (None, "auto") or run.is_on("fp16")):
        return
    half = run.adapter is not None or run.zero is not None
    json = json_edits(run)
    also = ", and the same in DeepSpeed's config" if json else ""
    remedy = (
        f"write `bf16: false` and `fp16: true`{also}" if half else "write `bf16: false`, or train an adapter in fp16"
    )
    card, default = run.hardware.gpu.title, "" if given else " (the default)"
    what = f"`{asked}: true` on {card}" if asked else f"`bf16: auto`{default} becomes true even on {card} and"
    message = f"{what} {slower(run)}: it has no bf16 units, torch emulates them; {remedy}"
    at = asked or ("bf16" if given else "base_model")
    follows = run.adapter is not None and run.fsdp is None and (not json or owns_json(run))
    editable = follows or gains_fp32(run)
    yield Hit(at, message, edits(run) if editable else (), json_edits=json if editable else ())


def gains_fp32(run: Run) -> bool:
    """Whether fp32 is what is left: whole weights without DeepSpeed, which fp16 cannot train and fp32 trains alike."""
    return run.adapter is None and run.sharding is None


def slower(run: Run) -> str:
    """How many times as long a step takes as in fp16."""
    old, new = step_time(replace(run, precision="bf16")), step_time(replace(run, precision="fp16"))
    if not (isinstance(old, StepTime) and isinstance(new, StepTime)):
        return "is slow"
    times = f"{old.expected / new.expected:.1f} times as long as fp16"
    return f"takes {times} ({seconds(old.expected)} s a step, not {seconds(new.expected)})"


def json_edits(run: Run) -> tuple[Change, ...]:
    """What DeepSpeed's config must say so that it follows the YAML; nothing where it does."""
    section = run.deepspeed
    if run.zero is None or section is None:
        return ()
    fp16 = () if section.at("fp16.enabled") in ("auto", True) else (Set("fp16.enabled", "auto"),)
    bf16 = () if section.at("bf16.enabled") in ("auto", None, False) else (Set("bf16.enabled", "auto"),)
    return (*bf16, *fp16)


def edits(run: Run) -> tuple[Change, ...]:
    """fp16 instead; an adapter's own weights are in fp32, so that loss scaling works. Else fp32."""
    stale = tuple(Remove(key) for key in ("bfloat16",) if run.config.has(key))
    if gains_fp32(run):
        return (Set("bf16", False), *stale)
    return (Set("bf16", False), Set("fp16", True, after="bf16"), *stale)


rule = Rule(
    id="bf16-unsupported",
    stage="lint",
    title="bf16 on a card that only emulates it",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Cards before Ampere have no arithmetic for bf16. torch counts emulation as support, so neither axolotl's "auto"
        nor the trainer's check stops: the run starts, and its matrix products pass the tensor cores by. fp16 uses them.
        It cannot train weights that are themselves in fp16, only an adapter, or under DeepSpeed, which keeps fp32 ones.
    """,
    cost=(
        "fp16 has a narrower range: gradients need scaling, and a model that was trained in bf16 can overflow; in fp32 "
        "weights and activations take twice the memory."
    ),
    safe=gains_fp32,
    source=(
        "torch/cuda/__init__.py:191-220@2.13.0; transformers/utils/import_utils.py:611-618@5.16.1; "
        "axolotl/utils/config/__init__.py:163-175@0.19.0; https://github.com/pytorch/pytorch/pull/148322"
    ),
    examples=lambda: (
        Example(
            gpus="1x t4",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: false
                fp16: true
            """,
        ),
        Example(
            gpus="1x v100-32gb",
            before="""
                base_model: Qwen/Qwen2.5-0.5B
                bf16: auto
            """,
            after="""
                base_model: Qwen/Qwen2.5-0.5B
                bf16: false
            """,
        ),
        but(
            "base_model: Qwen/Qwen2.5-1.5B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fp16: true",
            gpus="1x t4",
        ),
        but("base_model: Qwen/Qwen2.5-1.5B", "bf16: true", gpus="1x a100-40gb"),
        only("base_model: Qwen/Qwen2.5-1.5B", gpus=""),
        Example(
            gpus="2x t4",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: true
                deepspeed: ds.json
            """,
            deepspeed=FOLLOWS,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: false
                fp16: true
                deepspeed: ds.json
            """,
        ),
        Example(
            gpus="2x t4",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: true
                deepspeed: ds.json
            """,
            deepspeed='{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "fp16": {"enabled": "auto"}}',
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                bf16: false
                fp16: true
                deepspeed: ds.json
            """,
            after_deepspeed=FOLLOWS,
        ),
        but(without=("adapter", "lora_r", "lora_alpha", "lora_target_linear"), deepspeed=FOLLOWS, kept=True),
        but("deepspeed: deepspeed_configs/zero2.json", kept=True),
        but(
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("deepspeed",),
            deepspeed="",
            kept=True,
        ),
        only(
            "base_model: Qwen/Qwen2.5-1.5B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "bfloat16: 2",
            gpus="1x t4",
            fires=True,
        ),
    ),
)
