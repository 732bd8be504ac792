"""What an expert would ask next: are few bits needed, who keeps fp32 masters, what would vLLM take?"""

from collections.abc import Iterator, Mapping

from advisor.documents import Change, Remove, Set
from advisor.engine.pace import SAME_TIME
from advisor.engine.regression import new_errors
from advisor.engine.rule import Rule
from advisor.engine.states import State
from advisor.engine.steps import alternatives, host_suffices, run_after
from advisor.memory.vllm_share import vllm_share_needed
from advisor.run import Run
from advisor.run.build import with_config
from advisor.util import regex

BITS: Mapping[str, tuple[str, str]] = {"nf4": ("4 bits", "load_in_4bit"), "int8": ("8 bits", "load_in_8bit")}
GAIN = 0.95
"""Of a step's time: where the base's own precision takes more, few bits cost nothing worth a word."""
ROOMY = 0.6
"""Of a card: where the base's own precision takes less, few bits only cost quality, unless they are faster."""
WORTH = 0.9
"""Of a step's time: what leaves more of it needs no other package."""
EIGHT_BIT = regex(r"^(?:paged_)?adamw\w*_8bit$")
WHOLE_STATES = "adamw_torch_fused"
MASTERS: Mapping[str, str] = {
    "zero-1": "ZeRO-1 (`deepspeed_configs/zero1.json`)",
    "zero-2": "ZeRO-2",
    "zero-3": "ZeRO-3 (`deepspeed_configs/zero3_bf16.json`)",
}
"""The rules that bring DeepSpeed's fp32 masters, the one that sends least first, and axolotl's file where one does."""
FSDP_KEYS = ("fsdp", "fsdp_config", "fsdp_version")
SLOWER = 0.1
"""Of a step's time: what fp32 masters may take more."""


def without_few_bits(run: Run) -> str:
    """``4 bits are not needed here: ...``, of adapters on a quantized base that fit without; or nothing.

    Where that is faster, or where there is much room and it is no slower.
    """
    few, key = BITS.get(run.quantization or "", ("", ""))
    if not few or not run.config.get(key):
        return ""
    before, after = State(run), State(with_config(run, list(_whole(run, key))))
    time = _ratio(before, after)
    if time is None or after.run.quantization is not None:
        return ""
    is_good = after.verdict == "fits" and not after.estimate.has_little_room and host_suffices(before, after)
    needed = after.estimate.needed.high / after.estimate.usable
    if not is_good or time > (1 if needed <= ROOMY else GAIN) or new_errors(run, after.run):
        return ""
    takes = f"LoRA on the base as released takes {after.estimate.filled}, {_time(time)}"
    return f"{few} are not needed here: {takes} ({_said(run, key)})."


def with_vllm(run: Run) -> str:
    """What vLLM takes on the GPU that trains, where the model itself makes GRPO's answers and waits for them."""
    if run.rollouts is None or run.rollouts.engine != "model" or run.model is None or run.hardware is None:
        return ""
    share = vllm_share_needed(run)
    keys = {"trl.use_vllm": True, "trl.vllm_mode": "colocate", "vllm.gpu_memory_utilization": share}
    before, after = State(run), State(with_config(run, [Set(key, value) for key, value in keys.items()]))
    time = _ratio(before, after)
    if time is None or after.verdict != "fits" or time > WORTH or new_errors(run, after.run):
        return ""
    said = ", ".join(f"`{key}: {str(value).lower()}`" for key, value in keys.items())
    takes = f"vLLM on the same card would take {1 - time:.0%} off the time, {after.estimate.filled}"
    return f"The model itself makes the answers: {takes} ({said}; `axolotl[vllm]` installs it)."


def without_few_bits_of_states(run: Run) -> str:
    """``An 8-bit optimizer is not needed here: ...``, of all weights whose states fit whole; or nothing."""
    if run.adapter is not None or run.zero is not None or not EIGHT_BIT.search(run.optimizer):
        return ""
    before, after = State(run), State(with_config(run, [Set("optimizer", WHOLE_STATES)]))
    if after.verdict != "fits" or after.estimate.has_little_room or new_errors(run, after.run):
        return ""
    time = _ratio(before, after)
    if time is None or not host_suffices(before, after):
        return ""
    takes = f"`optimizer: {WHOLE_STATES}` takes {after.estimate.filled}, {_time(time)}"
    return "" if time > 1 + SLOWER else f"An 8-bit optimizer is not needed here: {takes}."


def _whole(run: Run, key: str) -> Iterator[Change]:
    """The edits after which the base keeps the precision that it is released in."""
    if run.config.get("adapter") == "qlora":
        yield Set("adapter", "lora")
    yield Set(key, False)
    if run.config.get("quantize_moe_experts"):
        yield Remove("quantize_moe_experts")


def _said(run: Run, key: str) -> str:
    """The same in words."""
    adapter = "`adapter: lora`, " if run.config.get("adapter") == "qlora" else ""
    return f"{adapter}`{key}: false`"


def with_masters(run: Run, rules: Mapping[str, Rule]) -> str:
    """``... ZeRO-1 keeps fp32 masters, 27.4 of 38.3 GiB, +0% time.``: of whole weights in bf16 alone; or nothing.

    Of several GPUs, and where it takes about as long; whether the rate asks for it, a finding says.
    """
    if run.has_masters or run.adapter is not None:
        return ""
    start, place = (without_fsdp(run), " in place of FSDP") if run.fsdp is not None else (run, "")
    before = State(run)
    for name, words in MASTERS.items():
        made = _made_by(rules.get(name), start)
        if made is None or not made.has_masters or new_errors(run, made):
            continue
        after = State(made)
        time = _ratio(before, after)
        if after.verdict == "fits" and time is not None:
            kept = f"{words}{place} keeps fp32 masters, {after.estimate.filled}, {_time(time)}."
            return f"Weights are in bf16 alone, and the rate is low for that: {kept}" if time <= 1 + SLOWER else ""
    return ""


def without_fsdp(run: Run) -> Run:
    """The run without FSDP, and with its checkpoints asked for by axolotl's own key."""
    changes: list[Change] = [Remove(key) for key in FSDP_KEYS if run.config.has(key)]
    if run.fsdp is not None and run.fsdp.activation_checkpointing and not run.config.get("gradient_checkpointing"):
        changes.append(Set("gradient_checkpointing", True))
    return with_config(run, changes)


def _made_by(rule: Rule | None, run: Run) -> Run | None:
    """The run after the first way of a rule, where that is asked for and possible."""
    if rule is None or not rule.when(run):
        return None
    return run_after(run, next(iter(alternatives(rule, run))), rule)


def _ratio(before: State, after: State) -> float | None:
    """A step's time after, of that before; None where one of them is not known."""
    if before.shown_seconds is None or after.shown_seconds is None:
        return None
    return after.shown_seconds / before.shown_seconds


def _time(ratio: float) -> str:
    """``-8% time``, ``same time``, of a step's time in place of another."""
    return "same time" if abs(ratio - 1) < SAME_TIME else f"{ratio - 1:+.0%} time"
