"""What an expert would ask next: are the few bits needed, and which smaller model would train as it is written?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.documents import Change, Remove, Set
from advisor.engine.regression import new_errors
from advisor.engine.rule import Rule
from advisor.engine.states import State
from advisor.engine.steps import alternatives, host_suffices, run_after
from advisor.memory.vllm_share import vllm_share_needed
from advisor.models import Unknown, resolve
from advisor.models.catalogue import entries, lookup, names
from advisor.record import replace
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
INSTALLED = "installed by `axolotl[vllm]`"
SLOWER = 0.1
"""Of a step's time: what fp32 masters may take more."""
MOST = 6
"""Smaller models that are tried, the largest first."""
SIZE = regex(r"\d+(?:\.\d+)?[bm](?=-|$)")
GENERATION = regex(r"(llama-3)\.\d")
"""Sizes of Llama 3 came out under several numbers."""


def without_few_bits(run: Run) -> str:
    """``4 bits are not needed here: ...``, of adapters on a quantized base that fit without; or nothing.

    Where that is faster, or where there is much room and it is no slower.
    """
    few, key = BITS.get(run.quantization or "", ("", ""))
    if not few or not run.config.get(key):
        return ""
    before, after = State(run), State(with_config(run, list(_whole(run, key))))
    if before.shown_seconds is None or after.shown_seconds is None or after.run.quantization is not None:
        return ""
    is_good = after.verdict == "fits" and not after.estimate.has_little_room and host_suffices(before, after)
    time = after.shown_seconds / before.shown_seconds
    needed = after.estimate.needed.high / after.estimate.usable
    if not is_good or time > (1 if needed <= ROOMY else GAIN) or new_errors(run, after.run):
        return ""
    takes = f"LoRA on the base as released takes {after.estimate.filled}, {time - 1:+.0%} time"
    return f"{few} are not needed here: {takes} ({_said(run, key)})."


def with_vllm(run: Run) -> str:
    """What vLLM takes on the GPU that trains, where the model itself makes GRPO's answers and waits for them."""
    if run.rollouts is None or run.rollouts.engine != "model" or run.model is None or run.hardware is None:
        return ""
    share = vllm_share_needed(run)
    keys = {"trl.use_vllm": True, "trl.vllm_mode": "colocate", "vllm.gpu_memory_utilization": share}
    before, after = State(run), State(with_config(run, [Set(key, value) for key, value in keys.items()]))
    if before.shown_seconds is None or after.shown_seconds is None or after.verdict != "fits":
        return ""
    time = after.shown_seconds / before.shown_seconds
    if time > WORTH or new_errors(run, after.run):
        return ""
    said = ", ".join(f"`{key}: {str(value).lower()}`" for key, value in keys.items())
    takes = f"vLLM on the same card would take {1 - time:.0%} off the time, {after.estimate.filled}"
    return f"The model itself makes the answers: {takes} ({said}; {INSTALLED})."


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
    rule = rules.get("zero-1")
    if rule is None or run.has_masters or run.adapter is not None or not rule.when(run):
        return ""
    before, made = State(run), run_after(run, next(iter(alternatives(rule, run))), rule)
    if made is None or not made.has_masters or new_errors(run, made):
        return ""
    after = State(made)
    if after.verdict != "fits" or before.shown_seconds is None or after.shown_seconds is None:
        return ""
    time = after.shown_seconds / before.shown_seconds - 1
    low = "Weights are in bf16 alone, and the rate is low for that"
    return "" if time > SLOWER else f"{low}: ZeRO-1 keeps fp32 masters, {after.estimate.filled}, {time:+.0%} time."


def smaller_model(run: Run) -> str:
    """The largest smaller model of the same make that fits as the run is written; empty where none is known."""
    for name in _smaller(run):
        other = resolve(name)
        if isinstance(other, Unknown):
            continue
        made = with_config(replace(run, model=other), [Set("base_model", name)])
        after = State(made)
        if after.verdict == "fits" and not new_errors(run, made):
            how = ", trained in full" if run.adapter is None else ""
            return f"`{name}` would fit as written{how}: {after.estimate.filled}."
    return ""


def _smaller(run: Run) -> list[str]:
    """Names of smaller models of the run's make, the largest first."""
    own = lookup(run.base_model) if run.model is not None and run.base_model else None
    if own is None:
        return []
    makes = (_make(run.base_model), _make(own["id"]))
    found = {name: each["parameters"] for each in entries() if (name := _of_make(each, makes))}
    smaller = [name for name in found if found[name] < own["parameters"]]
    return sorted(smaller, key=lambda name: (-found[name], _sized(name) != _sized(run.base_model)))[:MOST]


def _of_make(entry: dict[str, Any], makes: Sequence[str]) -> str:
    """The name under which a model is of the first make that it has a name of: ``-Instruct`` of ``-Instruct``."""
    by_make = {_make(name): name for name in reversed(names(entry))}
    return next((by_make[make] for make in makes if make in by_make), "")


def _make(name: str) -> str:
    """What models of a make are called alike."""
    return GENERATION.sub(r"\1", _sized(name))


def _sized(name: str) -> str:
    """A model's name without its size."""
    return SIZE.sub("#", name.lower())
