"""SimPO with the settings of another loss."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only
from advisor.learning.schedule import number

LEAST_BETA = 1.0
"""Half of the smallest that SimPO's authors publish."""


def finds(run: Run) -> Iterator[Hit]:
    """A margin that is missing, DPO's beta, and the term that TRL adds: axolotl/core/builders/rl.py:121-140@0.19.0."""
    if run.config.get("rl") != "simpo":
        return
    if run.config.get("simpo_gamma") is None:
        message = "`rl: simpo` without `simpo_gamma`: TRL divides it by beta and stops at the first step"
        yield Hit("rl", f"{message}; write it, for example 0.5 times `rl_beta`", level="error")
    beta = next((value for key in ("trl.beta", "rl_beta") if (value := number(run, key)) is not None), None)
    if beta is None or beta < LEAST_BETA:
        said = "no `rl_beta`, so TRL's 0.1" if beta is None else f"`rl_beta: {beta:g}`"
        message = (
            f"{said} with `rl: simpo` risks that the margin, divided by it, outweighs rewards averaged over tokens"
        )
        yield Hit("rl" if beta is None else "rl_beta", f"{message}; SimPO's authors take 2 to 10")
    if run.config.get("cpo_alpha") is None:
        message = "`rl: simpo` without `cpo_alpha` is silently CPO-SimPO: TRL adds the loss of the chosen answers"
        yield Hit("rl", f"{message}; set `cpo_alpha: 0.0`", (Set("cpo_alpha", 0.0, after="simpo_gamma"),))


rule = Rule(
    id="simpo-settings",
    stage="lint",
    title="SimPO with the settings of another loss",
    finds=finds,
    level="warning",
    proof="read",
    safe=False,
    why="""
        axolotl hands SimPO to TRL's CPO trainer with `simpo_gamma` as it is, written or not, and with beta and
        `cpo_alpha` only where they are written. TRL's defaults are CPO's: a beta of 0.1, for sums over a row where
        SimPO has means over its tokens, and the whole loss of the chosen answers on top.
    """,
    cost="Without that term the loss takes less memory and is the paper's.",
    source=("trl/experimental/cpo/cpo_trainer.py:714-716,841-889@1.9.0; https://github.com/princeton-nlp/SimPO"),
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                rl: simpo
                rl_beta: 2.0
                simpo_gamma: 1.0
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                rl: simpo
                rl_beta: 2.0
                simpo_gamma: 1.0
                cpo_alpha: 0.0
            """,
        ),
        but("cpo_alpha: 0.0"),
        but("cpo_alpha: 0.0", without=("simpo_gamma",), fires=True),
        but("cpo_alpha: 0.0", "rl_beta: 0.1", fires=True),
        but("cpo_alpha: 0.0", without=("rl_beta",), fires=True),
        but("cpo_alpha: 0.0", "trl:\n  beta: 2.0", without=("rl_beta",)),
        but("rl: dpo"),
        only("base_model: meta-llama/Llama-3.1-8B"),
    ),
)
