"""Answers made by hand, for the reports in ``samples``."""

from dataclasses import replace

from advisor.engine.answer import Answer, AnswerStep, Option

from .samples import DOES_NOT_FIT, FITS, ZERO_2, estimate, gib

ZERO_2_STEP = AnswerStep(
    "zero-2",
    "ZeRO-2",
    "Each GPU holds a part of the gradients.",
    "No extra traffic.",
    True,
    memory=(gib(95), gib(72.1)),
    seconds=(7.1, 7.3),
    diff=ZERO_2.fix.diff if ZERO_2.fix else "",
)
SAME = Option(
    "A",
    "same",
    "same training",
    (ZERO_2_STEP,),
    diff="--- ./llama.yaml\n+++ ./llama.yaml\n@@ -3 +3 @@\n-deepspeed: a.json\n+deepspeed: b.json\n",
    command="advisor check --gpus '8x a100-80gb' --fix ./llama.yaml",
    flags="--fix",
    end=estimate(70, 71, 72.1),
    recommended=True,
)
NO_WAY = Option("A", "same", "same training", end=estimate(80, 81, 82))
OTHER = replace(
    SAME,
    letter="B",
    training="changes",
    title="LoRA",
    command="advisor check --gpus '8x a100-80gb' --fix --unsafe-fixes ./llama.yaml",
    flags="--fix --unsafe-fixes",
)
HEADLINE = "Does not fit: needs 95.0 GiB on each of 8x A100-80GB SXM, which have 78.2."
ANSWERED = replace(
    DOES_NOT_FIT,
    answer=Answer(
        "does-not-fit",
        True,
        None,
        HEADLINE,
        "1 edit brings it down to 72.1 GiB, same training: add --fix",
        options=(SAME,),
        tokens_per_second=12000.0,
    ),
)
ONLY_OTHER = replace(
    DOES_NOT_FIT,
    answer=Answer("does-not-fit", True, None, HEADLINE, "Only by training less", options=(NO_WAY, OTHER)),
)
HOPELESS = replace(
    DOES_NOT_FIT,
    answer=Answer("does-not-fit", True, None, HEADLINE, "No edits make it fit.", options=(NO_WAY,)),
)
WELL = replace(FITS, answer=Answer("fits", True, None, "Fits: needs 66.2 of 78.2 GiB.", "", tokens_per_second=9000.0))
