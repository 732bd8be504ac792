"""Epochs, ranks and adapters' scales far from what is usual for the method."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without
from advisor.learning import band_of
from advisor.learning.schedule import number

KEYS = {"num_epochs": "epochs", "lora_r": "ranks"}


BEYOND = 2
"""Times outside of its band from which on a scale is worth a word."""


def finds(run: Run) -> Iterator[Hit]:
    """Each that is above its band; a scale on either side of it."""
    for key, what in KEYS.items():
        value, band = number(run, key), band_of(run, key=key)
        if value is not None and band is not None and value > band.high and not run.config.get("max_steps"):
            message = f"`{key}: {value:g}` could overfit: published runs take {band.low:g} to {band.high:g} {what}"
            yield Hit(key, f"{message}, most of them {band.default:g}")
    alpha, rank, band = number(run, "lora_alpha"), number(run, "lora_r"), band_of(run, key="lora_scale")
    if alpha and rank and band is not None and not run.is_on("peft_use_rslora"):
        scale = alpha / rank
        if max(scale / band.high, band.low / scale) >= BEYOND:
            message = f"`lora_alpha: {alpha:g}` at rank {rank:g} scales by {scale:.2g}"
            yield Hit("lora_alpha", f"{message}; usual are {band.low:g} to {band.high:g}")


rule = Rule(
    id="training-unusual",
    stage="lint",
    title="Epochs, ranks or scales far from what is usual",
    finds=finds,
    level="note",
    proof="accepts",
    why="""
        From the fifth pass over the same rows a model mostly learns them by heart: the loss of training falls, that of
        evaluation rises. A rank above 256 has room for that, and makes the best rate harder to find. `lora_alpha` over
        `lora_r` multiplies what adapters add: a small scale slows them down as a small rate does. The table has
        published configs.
    """,
    source="advisor/learning/bands.json; https://thinkingmachines.ai/blog/lora/",
    examples=lambda: (
        only("base_model: Qwen/Qwen3-8B", "num_epochs: 10", fires=True),
        but("num_epochs: 3"),
        but("num_epochs: 10", "max_steps: 100"),
        but("num_epochs: 10", "rl: grpo"),
        but("adapter: lora", "lora_r: 512", "lora_alpha: 256", "lora_target_linear: true", "num_epochs: 1", fires=True),
        but("adapter: lora", "lora_r: 256", "lora_alpha: 256", "lora_target_linear: true", "num_epochs: 1"),
        but("lora_r: 512", "num_epochs: 1"),
        only("base_model: Qwen/Qwen3-8B", "adapter: lora", "lora_r: 256", "lora_alpha: 16", fires=True),
        but("lora_alpha: 2048", fires=True),
        but("lora_alpha: 64"),
        but("peft_use_rslora: true"),
        without("lora_alpha"),
        without("lora_r"),
        without("adapter"),
    ),
)
