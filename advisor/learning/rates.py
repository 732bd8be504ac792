"""The learning rate that an adapter asks for in place of a full fine-tune's."""

import math

from advisor.learning.bands import Band, band_of
from advisor.run import Adapter, Run
from advisor.run.edits import RunEdits

TIMES = 10
"""LoRA's best rate by a full fine-tune's, about independent of rank: https://thinkingmachines.ai/blog/lora/."""
USUAL = 0.5
"""Of the band's default: from here on a written rate is about what an adapter takes."""
OTHER_RATES = ("lr_groups", "loraplus_lr_ratio", "loraplus_lr_embedding", "embedding_lr", "embedding_lr_scale")
"""Keys whose rates are given next to ``learning_rate``, or as a share of it."""
OTHER_STEPS = ("galore", "apollo", "schedule_free")
"""In names of optimizers that scale Adam's step, so that their rates do not compare with Adam's."""
KINDS = {"lora": "LoRA", "qlora": "QLoRA"}


def rate_edits(run: Run, adapter: Adapter) -> RunEdits:
    """Ten times a full fine-tune's rate, within the band of its method and size; nothing where the rate stays."""
    rate, band = rate_of(run), band_of(run, adapter)
    if rate is None or band is None or _why_it_stays(run, adapter):
        return {}
    return {"learning_rate": _raised(rate, band)}


def rate_caveat(before: Run, after: Run) -> str:
    """Why the rate stays where a full fine-tune gets an adapter, as a sentence; empty where it is raised."""
    if before.adapter is not None or after.adapter is None:
        return ""
    return _why_it_stays(before, after.adapter)


def _why_it_stays(run: Run, adapter: Adapter) -> str:
    rate, band, kind = rate_of(run), band_of(run, adapter), KINDS[adapter]
    if rate is None:
        lacks = "is missing" if run.config.get("learning_rate") is None else "is no rate"
        return f"`learning_rate` {lacks}: {kind} usually takes {rate_shown(band.default) if band else 'more'}."
    if other := _other_than_one_rate_for_adam(run):
        return f"`learning_rate` stays, since {other}; {kind} usually takes more."
    if band is None:
        return f"`learning_rate` stays: what {kind} takes here is not known, usually more."
    if rate >= USUAL * band.default or _raised(rate, band) <= rate:
        return f"`learning_rate` stays: {rate_shown(rate)} is enough for {kind}."
    return ""


def _raised(rate: float, band: Band) -> float:
    """Ten times a rate, within a band, without the noise of the last binary digit."""
    return float(f"{min(max(TIMES * rate, band.low), band.high):.12g}")


def follows_adam(run: Run) -> bool:
    """Whether the written rate is that of all that is trained, and of Adam's kind, so that it compares with others'."""
    return not _other_than_one_rate_for_adam(run)


def _other_than_one_rate_for_adam(run: Run) -> str:
    """What ten times the rate is not known to hold for, as a clause: rates of their own, other optimizers."""
    other = next((key for key in OTHER_RATES if run.config.get(key) is not None), None)
    if other is not None:
        return f"`{other}` is set too"
    own = run.zero.own_optimizer if run.zero is not None else None
    if own is not None and run.deepspeed is not None and run.deepspeed.at("optimizer.params.lr") != "auto":
        return "the DeepSpeed JSON's optimizer does not read it"
    name = (own or run.optimizer).lower()
    if "adam" not in name or any(part in name for part in OTHER_STEPS):
        return f"`{own or run.optimizer}` is not plain Adam"
    return ""


def rate_of(run: Run) -> float | None:
    """The written learning rate, as a number or as text, as which YAML reads ``1e-5``; None where it is none."""
    value = run.config.get("learning_rate")
    try:
        rate = float(value) if isinstance(value, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        return None
    return rate if 0 < rate < math.inf else None


def rate_shown(rate: float) -> str:
    """``2e-5``."""
    digits, _, power = f"{rate:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
