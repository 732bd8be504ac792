"""A learning rate far from what is usual for the method, for what is trained and for the size."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without
from advisor.learning import band_of, rate_of, rate_shown
from advisor.learning.bands import bands
from advisor.learning.rates import follows_adam

BEYOND = 2
"""Times outside of a band from which on it is worth a word: its ends are where published configs end."""
BEYOND_WEAK = 10
FAR = 20
"""From here on it is a warning."""
FAR_OF_ALL_WEIGHTS = 4
"""The same above the band of all weights, where answers degrade sooner: of preferences, and of large models."""
FAR_OF_ADAPTERS = 10
"""The same below the band of adapters, which learn next to nothing there."""
OF_ADAPTERS = 10
"""Times the rate of all weights, which adapters learn best at: https://thinkingmachines.ai/blog/lora/."""
LARGE = 4e9
"""Parameters: smaller ones are trained from scratch, too, at far higher rates."""
KINDS = {"full": "all weights", "lora": "LoRA", "qlora": "QLoRA"}


def finds(run: Run) -> Iterator[Hit]:
    """Outside the band of this run; or outside all of them, whatever is trained."""
    rate = rate_of(run)
    if rate is None or not follows_adam(run) or run.is_on("use_onebitllms") or run.unfrozen_parameters:
        return
    if run.adapter is None and run.config.get("adapter"):
        return  # a variable, or a method that is not known
    rates = [band for band in bands() if band.key == "learning_rate"]
    low, high = min(band.low for band in rates), max(band.high for band in rates)
    band = band_of(run)
    if outside(rate, low, high) > BEYOND:
        usual = band.default if band is not None else low if rate < low else high
        message = (
            f"`learning_rate: {rate_shown(rate)}` is silently useless, beyond all that is published for any method"
        )
        yield Hit("learning_rate", f"{message}; {rate_shown(usual)} is usual", level="warning")
    elif band is not None and (beyond := outside(rate, band.low, band.high)) >= (BEYOND_WEAK if band.weak else BEYOND):
        ends = f"{rate_shown(band.low)} to {rate_shown(band.high)}"
        what = f"{KINDS[run.adapter or 'full']}{f' with `rl: {run.rl}`' if run.rl else ''}"
        level = "warning" if beyond >= far_of(run, rate > band.high) and not band.weak else None
        side = "above" if rate > band.high else "below"
        said = f"is {beyond:.0f} times {side} what is published" if level else "could be a slip"
        message = f"`learning_rate: {rate_shown(rate)}` {said}: runs of {what} take {ends}"
        yield Hit("learning_rate", f"{message}, most of them about {rate_shown(band.default)}", level=level)
    elif band is not None and run.rl is not None and run.adapter is not None and rate <= band.default / OF_ADAPTERS:
        message = f"`learning_rate: {rate_shown(rate)}` is what all weights take: adapters learn little at it"
        yield Hit("learning_rate", f"{message}; with `rl: {run.rl}` {rate_shown(band.default)} is usual for them")


def far_of(run: Run, above: bool) -> int:
    """How many times outside of its band a rate spoils a run."""
    if above:
        return FAR_OF_ALL_WEIGHTS if degrades_soon(run) else FAR
    return FAR_OF_ADAPTERS if run.adapter is not None else FAR


def degrades_soon(run: Run) -> bool:
    """Whether a rate of a few times too much undoes what the model knows."""
    large = run.model is not None and run.model.parameters >= LARGE
    return run.adapter is None and (run.rl is not None or large)


def outside(rate: float, low: float, high: float) -> float:
    """How many times a rate is beyond the nearer end of a band; below 1 inside."""
    return round(max(rate / high, low / rate), 9)


rule = Rule(
    id="learning-rate-unusual",
    stage="lint",
    title="A learning rate far from what is usual",
    finds=finds,
    level="note",
    proof="accepts",
    why="""
        axolotl takes any number. What is usual differs by a thousand: an adapter's rate is ten times a full
        fine-tune's, preference training takes a fortieth of that, and larger models take less. The table has published
        configs and papers. A note from twice outside of them, ten times where they disagree; a warning from twenty
        times, from ten times below them for adapters, from four times above them where preferences or a large model
        train all weights, and beyond all. A note also where adapters learn from preferences at the rate of all weights.
    """,
    source="advisor/learning/bands.json; axolotl/utils/schemas/training.py:116@0.19.0; https://thinkingmachines.ai/blog/lora/",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.1-8B", "learning_rate: 2e-4", fires=True),
        but("learning_rate: 1e-4", fires=True),
        but("learning_rate: 5e-5"),
        but("learning_rate: 1e-7", fires=True),
        but("learning_rate: 2", fires=True),
        but("learning_rate: 2", "base_model: nobody/knows-this", fires=True),
        but("learning_rate: 1e-9", "base_model: nobody/knows-this", fires=True),
        but("base_model: nobody/knows-this"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "lora_target_linear: true", "rl: dpo"),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "learning_rate: 1e-2",
            fires=True,
        ),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "rl: dpo", "learning_rate: 5e-7", fires=True),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "rl: orpo", "learning_rate: 5e-6", fires=True),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "rl: orpo", "learning_rate: 8e-6"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "rl: simpo", "learning_rate: 5e-7"),
        only("base_model: meta-llama/Llama-3.1-8B", "rl: dpo", "learning_rate: 5e-8"),
        only("base_model: meta-llama/Llama-3.1-8B", "learning_rate: 2e-4", fires=True),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "learning_rate: 2e-5"),
        but("adapter: lora", "lora_r: 16", "lora_alpha: 32", "learning_rate: 2e-6", fires=True),
        but("adapter: ${ADAPTER}"),
        but("rl: dpo", fires=True),
        but("optimizer: muon"),
        but("use_onebitllms: true"),
        but("unfrozen_parameters: [lm_head.weight]"),
        without("learning_rate"),
    ),
)
