import re
from dataclasses import replace

import pytest

from advisor.engine.example import Example
from advisor.engine.rule import Rule
from advisor.report import render_rule, render_rules, rule_page_json

ZERO_2 = Rule(
    id="zero-2",
    stage="fit",
    title="Shard optimizer states and gradients across the GPUs (ZeRO-2)",
    why="""
        Mixed-precision Adam keeps 12 bytes of optimizer states and 2 of gradient for each trained parameter.
        ZeRO-2 keeps a share of them on each GPU.

        With one GPU there is nothing to share.
    """,
    cost="None in traffic: a reduce-scatter and an all-gather take the place of the all-reduce.",
    safe=True,
    source="https://arxiv.org/abs/1910.02054",
    examples=(
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: zero1.json
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: config.zero-2.json
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 2}
                }
            """,
            memory="42.1 -> 29.0 GiB",
        ),
        Example(gpus="1x a100-80gb", before="base_model: meta-llama/Llama-3.1-8B"),
    ),
)
NO_EPOCHS = Rule(
    id="no-epochs",
    stage="lint",
    title="Training ends before it begins",
    why="`num_epochs: 0` trains nothing.",
    source="axolotl/utils/schemas/config.py:100@0.19.0",
    level="error",
    proof="accepts",
    fatal=True,
    examples=(Example(before="num_epochs: 0", fires=True),),
)


def page(rule: Rule, **options: bool | int) -> str:
    return "\n" + render_rule(rule, **options) + "\n"  # pyright: ignore[reportArgumentType]


def test_a_page_is_written_from_the_rule():
    expected = """
zero-2 (fit)
Shard optimizer states and gradients across the GPUs (ZeRO-2)

Why
  Mixed-precision Adam keeps 12 bytes of optimizer states and 2 of gradient for
  each trained parameter. ZeRO-2 keeps a share of them on each GPU.

  With one GPU there is nothing to share.

Cost
  None in traffic: a reduce-scatter and an all-gather take the place of the
  all-reduce.

Is the edit safe?
  Yes: it does not change what is trained.

Example on 8x a100-80gb: 42.1 -> 29.0 GiB per GPU
  --- config.yaml
  +++ config.yaml
  @@ -1,2 +1,2 @@
   base_model: meta-llama/Llama-3.1-8B
  -deepspeed: zero1.json
  +deepspeed: config.zero-2.json
  --- /dev/null
  +++ deepspeed.json
  @@ -0,0 +1,3 @@
  +{
  +  "zero_optimization": {"stage": 2}
  +}

No finding for this one on 1x a100-80gb
  base_model: meta-llama/Llama-3.1-8B

Source
  https://arxiv.org/abs/1910.02054
"""
    assert page(ZERO_2) == expected


def test_a_lint_rule_without_edit_shows_level_proof_and_text():
    expected = """
no-epochs (lint, error, blocks a launch)
Training ends before it begins

Why
  `num_epochs: 0` trains nothing.

Proof
  tested: the library itself accepts the example

Example on 1x a100-80gb
  num_epochs: 0

Source
  axolotl/utils/schemas/config.py:100@0.19.0
"""
    assert page(NO_EPOCHS) == expected


def depends(run: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("safe", "words"),
    [(True, "Yes: it does not change"), (False, "No: it changes"), (depends, "It depends on the run")],
)
def test_a_page_says_whether_the_edit_is_safe(safe: bool, words: str):
    assert f"\nIs the edit safe?\n  {words}" in page(replace(ZERO_2, safe=safe))


@pytest.mark.parametrize("rule", [ZERO_2, NO_EPOCHS], ids=lambda rule: rule.id)
def test_colour_changes_no_character_and_prose_keeps_to_the_width(rule: Rule):
    colored = page(rule, color=True)
    assert "\x1b[1m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == page(rule)
    assert max(len(line) for line in page(rule, width=50).splitlines()) <= 50


def test_the_list_is_grouped_by_stage():
    more = replace(ZERO_2, id="gradient-checkpointing", title="Keep less")
    expected = """
lint: always consulted
  no-epochs  Training ends before it begins

fit: steps of the flowchart, while the run does not fit
  zero-2                  Shard optimizer states and gradients across the GPUs
                          (ZeRO-2)
  gradient-checkpointing  Keep less
"""
    assert "\n" + render_rules([ZERO_2, more, NO_EPOCHS]) + "\n" == expected


def test_the_page_as_json_has_the_example_and_its_diff():
    value = rule_page_json(ZERO_2)
    assert value["rule"] == "zero-2"
    assert value["applicability"] == "safe"
    assert value["proof"] is None
    first, silent = value["examples"]
    assert first["fires"]
    assert first["before"] == "base_model: meta-llama/Llama-3.1-8B\ndeepspeed: zero1.json"
    assert "-deepspeed: zero1.json\n+deepspeed: config.zero-2.json\n" in first["diff"]
    assert (silent["fires"], silent["after"], silent["diff"]) == (False, None, "")


def test_the_json_of_a_lint_rule_has_its_level_and_proof():
    value = rule_page_json(NO_EPOCHS)
    assert (value["level"], value["proof"], value["fatal"]) == ("error", "accepts", True)
