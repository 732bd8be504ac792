"""Each clause of a rule decides: without it, some example of the rule does not do as it says."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.engine.registry import STAGES, built_in_folder, built_in_rules, load_rule
from advisor.engine.rule import Rule

from .guards import Guarded

RULES = [rule for stage in STAGES for rule in built_in_rules(stage).values()]
SECTION = "a run has ZeRO only with a section; the types ask"
BOTH = "both estimates are there, or neither is; the types ask"
FSDP = "with `fsdp_config` there is FSDP; the types ask"
TYPES = "asked before, or not to be had otherwise; the types ask"
WORDS = "chooses words"
PLACE = "chooses the key that the finding points at, which an example leaves open"
LEVEL = "chooses the level, which an example leaves open"
TWICE = "keeps one thing from being found twice"
QUICK = "saves time: what follows comes to the same"
PLANNER = "the planner takes no step that adds an error, and the lint rule finds one"
EDITLESS = "without it there is nothing to edit; underused-gpu asks `when` alone"
MODEL = "an estimate is made with a model alone; the types ask"
HARDWARE = "an estimate is made with hardware alone; the types ask"
EQUIVALENT: Mapping[str, str] = {
    "nvme-without-path: finds: without `section is None`": SECTION,
    "wrapped-class-missing: finds: without `key is None`": TYPES,
    "allgather-bucket-no-effect: finds: without `run.zero_stage < 3`": LEVEL,
    "allgather-bucket-no-effect: finds: without `section is None`": SECTION,
    "allgather-bucket-no-effect: finds: without `size % 2`": LEVEL,
    "attention-refused: finds: without `name`": WORDS,
    "bf16-unsupported: finds: without `'bf16' if given else 'base_model'`": PLACE,
    "bf16-unsupported: finds: without `asked`": PLACE,
    "bf16-unsupported: finds: without `run.adapter is not None`": WORDS,
    "bf16-unsupported: finds: without `run.zero is not None`": WORDS,
    "context-parallel: all_attend: without `run.attention == 'flash'`": PLANNER,
    "context-parallel: applies: without `alone`": PLANNER,
    "context-parallel: predicts_tokens: without `run.rl is None`": PLANNER,
    "cpu-offload-replaces-optimizer: replaces: without `run.deepspeed is None`": SECTION,
    "deepspeed-and-fsdp: finds: without `other == 'fsdp_config'`": LEVEL,
    "deepspeed-and-fsdp: finds: without `run.rl is not None`": LEVEL,
    "deepspeed-batch-mismatch: finds: without `section is None`": SECTION,
    "deepspeed-batch-missing: finds: without `section is None`": SECTION,
    "deepspeed-single-gpu: finds: without `found is None`": BOTH,
    "deepspeed-single-gpu: finds: without `found.verdict != 'fits'`": LEVEL,
    "deepspeed-single-gpu: finds: without `plain is None`": BOTH,
    "deepspeed-single-gpu: finds: without `plain.verdict == 'fits'` (the 2. such)": LEVEL,
    "default-buckets-on-small-card: finds: without `zero.reduce_bucket_size <= BUCKET`": QUICK,
    "does-not-fit: finds: without `run.hardware is not None`": HARDWARE,
    "eval-peak-exceeds-gpu: finds: without `if run.config.has(key)`": PLACE,
    "flash-attention: applies: without `run.precision == 'fp32'`": PLANNER,
    "fp16-full-finetune: with_masters: without `if not run.takes_deepspeed`": WORDS,
    "fp32-embeddings: finds: without `cast is None`": BOTH,
    "fp32-training: finds: without `run.hardware is None`": HARDWARE,
    "fused-loss: cut_is_of_use: without `run.model is not None`": MODEL,
    "fp32-embeddings: finds: without `if run.config.get(key)`": PLACE,
    "fp32-embeddings: finds: without `not run.embeddings_fp32`": QUICK,
    "fp32-embeddings: finds: without `now is None`": BOTH,
    "fsdp-combination-refused: finds: without `run.fsdp is None`": FSDP,
    "fsdp-combination-refused: pinned: without `run.fsdp is None`": FSDP,
    "fsdp-offload-8bit: offloads: without `run.fsdp is not None`": "asked before the call; the types ask",
    "fsdp-sharding-strategy-ignored: finds: without `run.fsdp is None`": FSDP,
    "fsdp1-deprecated: finds: without `if given is None`": WORDS,
    "fsdp1-deprecated: finds: without `if run.config.at(key) is not None`": PLACE,
    "gather-on-save: finds: without `section is None`": SECTION,
    "gradient-clipping-off: finds: without `section is None`": SECTION,
    "grpo-batch: finds: without `not is_mapping(trl)`": TYPES,
    "grpo-batch: accumulation: without `if run.config.at('trl.generation_batch_size') is not None`": WORDS,
    "host-memory-exceeded: finds: without `run.hardware is not None`": HARDWARE,
    "host-memory-exceeded: finds: without `if name in names`": WORDS,
    "host-memory-unstated: finds: without `hardware is None`": HARDWARE,
    "initial-scale-power: scales_dynamically: without `section is None`": SECTION,
    "large-vocabulary-logits: finds: without `logits(found) < LEAST`": QUICK,
    "large-vocabulary-logits: finds: without `run.model is None`": MODEL,
    "larger-micro-batch: when: without `run.gradient_accumulation_steps > 1`": EDITLESS,
    "learning-rate-unusual: far_of: without `if above`": LEVEL,
    "learning-rate-unusual: degrades_soon: without `run.adapter is None`": LEVEL,
    "learning-rate-unusual: degrades_soon: without `run.model is not None`": MODEL,
    "learning-rate-unusual: degrades_soon: without `run.model.parameters >= LARGE`": LEVEL,
    "learning-rate-unusual: degrades_soon: without `run.rl is not None or large`": LEVEL,
    "less-offload: applies: without `run.zero.offload_optimizer != 'gpu' or run.zero.offload_params != 'gpu'`": EDITLESS,
    "lora-kernels-unpatchable: finds: without `if run.config.get(key)`": PLACE,
    "lora-kernels-unpatchable: finds: without `run.lora is not None`": TYPES,
    "lower-zero-stage: when: without `run.zero is not None`": TYPES,
    "mics-without-its-init: finds: without `section is None`": SECTION,
    "moe-experts-not-quantized: finds: without `model is None`": MODEL,
    "modules-to-save-embeddings: finds: without `if not named`": QUICK,
    "offload-param-below-stage-3: finds: without `run.deepspeed is None`": SECTION,
    "optimizer-in-deepspeed-json: finds: without `section is None`": SECTION,
    "packing-without-varlen-attention: stands_for: without `name != 'flash_attention_2'`": WORDS,
    "packing-without-varlen-attention: stands_for: without `name`": WORDS,
    "packing-without-varlen-attention: stands_for: without `not run.stack.at_least('transformers', '5.0.0')`": WORDS,
    "packing-without-varlen-attention: stands_for: without `run.model.family.flash_stand_in`": WORDS,
    "precision-mismatch: contradictions: without `section is None`": SECTION,
    "quantized-checkpoint-untrainable: finds: without `if run.is_on(key)`": WORDS,
    "required-key-missing: finds: without `if run.is_json_alone`": "an example is a YAML",
    "required-key-missing: inside: without `id(found.siblings) in seen`": TWICE,
    "required-key-missing: inside: without `not needed`": QUICK,
    "schedule-keys-missing: stops_early: without `if run.config.get(key)`": WORDS,
    "schedule-keys-missing: stops_early: without `if not run.config.get(key)`": WORDS,
    "smaller-eval-batch: when: without `run.eval_batch_size > 1`": EDITLESS,
    "tight-fit: finds: without `if verdict == 'tight'`": WORDS,
    "tight-fit: finds: without `run.hardware is not None`": HARDWARE,
    "tokens-without-saved-embeddings: finds: without `not run.config.get(TYING)`": WORDS,
    "unknown-chat-template: finds: without `found.level != 'SFTDataset'`": "at other levels no `type` names the strategy",
    "unknown-chat-template: finds: without `found.row is None`": TYPES,
    "unknown-key: finds: without `not foreign` (the 2. such)": "without such a plugin the first keys are found anyway; here the others are counted",
    "unreadable-value: finds: without `if found.placeholder`": WORDS,
    "unreadable-value: finds: without `if may_hold_placeholders(run.config)`": QUICK,
    "unreadable-value: finds: without `if not (found.placeholder or found.absent)`": LEVEL,
    "unreadable-value: finds: without `len(path) > 1`": WORDS,
    "unreadable-value: finds: without `may_hold_placeholders(section.document)`": QUICK,
    "unreadable-value: finds: without `not section.prefix`": TWICE,
    "unreadable-value: finds: without `path[0] == 'deepspeed'`": WORDS,
    "value-refused: is_pattern: without `if name.replace('_', '').isalnum()`": QUICK,
    "value-refused: rates: without `isinstance(rate, str)`": TYPES,
    "wrong-type: finds: without `len(found.row) > 1`": QUICK,
    "wrong-type: in_words: without `if isinstance(kind, str)`": WORDS,
    "wrong-type: in_words: without `is_mapping(kind)`": WORDS,
    "wrong-type: in_words: without `is_mapping(kind)` (the 2. such)": WORDS,
    "zero-raises-memory: finds: without `found is None`": BOTH,
    "zero-raises-memory: finds: without `found.verdict != 'fits'`": LEVEL,
    "zero-raises-memory: finds: without `plain is None`": BOTH,
    "zero-raises-memory: finds: without `plain.verdict == 'fits'`": LEVEL,
    "zero-raises-memory: sized: without `found`": BOTH,
    "zero3-loads-fp32: finds: without `section is None`": SECTION,
    "zero3-prefetch-disabled: finds: without `section is None`": SECTION,
    "vllm-server-gpus: finds: without `left is not None`": LEVEL,
    "vllm-server-gpus: finds: without `here <= made.server_gpus`": LEVEL,
    "vllm-server-gpus: finds: without `run.hardware is not None`": HARDWARE,
    "vllm-server-gpus: finds: without `if not made.server_here`": WORDS,
}
"""Clauses without which a rule is the same, and why they stand there all the same."""


def file_of(rule: Rule) -> Path:
    return built_in_folder() / rule.stage / f"{rule.id.replace('-', '_')}.py"


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_some_example_fails_without_each_clause(rule: Rule):
    survivors = set(Guarded(rule, file_of(rule)).survivors())
    excused = {clause for clause in EQUIVALENT if clause.startswith(f"{rule.id}: ")}
    lacking = sorted(survivors - excused)
    assert not lacking, "\n".join(["give an example that fails", *lacking])
    stale = sorted(excused - survivors)
    assert not stale, "\n".join(["an example fails, so take it off the list", *stale])


def test_only_rules_that_exist_are_excused():
    ids = {rule.id for rule in RULES}
    assert {clause.partition(": ")[0] for clause in EQUIVALENT} <= ids


GUARDED = """
from advisor import Example, Hit, Rule


def finds(run):
    if run.rl is not None or run.adapter is not None:
        return
    if run.base_model.startswith("gpt2"):
        yield Hit("base_model", "no")


rule = Rule(id="our-rule", stage="lint", title="t", why="w", source="s", finds=finds, examples=(
    Example(before="base_model: gpt2", fires=True),
    Example(before="base_model: gpt2\\nrl: dpo"),
    OTHER
))
"""


@pytest.mark.parametrize(
    ("other", "survivors"),
    [
        (
            'Example(before="base_model: EleutherAI/pythia-14m"),',
            ["our-rule: finds: without `run.adapter is not None`"],
        ),
        (
            'Example(before="base_model: gpt2\\nadapter: lora"),',
            ["our-rule: finds: without `if run.base_model.startswith('gpt2')`"],
        ),
    ],
)
def test_the_clause_without_an_example_is_named(tmp_path: Path, other: str, survivors: list[str]):
    file = tmp_path / "our_rule.py"
    file.write_text(GUARDED.replace("OTHER", other))
    assert list(Guarded(load_rule(str(file)), file).survivors()) == survivors


def test_an_example_that_fails_anyway_guards_nothing(tmp_path: Path):
    file = tmp_path / "our_rule.py"
    file.write_text(GUARDED.replace("OTHER", 'Example(before="base_model: gpt2"),'))
    with pytest.raises(AssertionError, match=re.escape("examples [3] of our-rule fail as they are")):
        list(Guarded(load_rule(str(file)), file).survivors())
