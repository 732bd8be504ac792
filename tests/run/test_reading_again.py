"""A run whose documents change is read again only where they did, and comes out as if it were read from nothing."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from advisor.documents import Set
from advisor.run import Run
from advisor.run.axolotl import reader
from advisor.run.build import rebuilt, with_config
from advisor.run.deepspeed import Section

TEXT = """
base_model: meta-llama/Llama-3.1-8B
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
datasets: [{path: a/b}]
"""
VALUES: tuple[tuple[str, Any], ...] = (
    ("micro_batch_size", 1),
    ("micro_batch_size", True),
    ("micro_batch_size", "4"),
    ("micro_batch_size", "${N}"),
    ("gradient_checkpointing", True),
    ("gradient_checkpointing", 1),
    ("gradient_checkpointing", None),
    ("gradient_checkpointing", "offload"),
    ("gradient_checkpointing_kwargs.use_reentrant", True),
    ("gradient_checkpointing_kwargs.use_reentrant", False),
    ("adapter", "lora"),
    ("adapter", "qlora"),
    ("lora_r", 16),
    ("lora_target_modules", ["q_proj"]),
    ("lora_target_modules", "q_proj"),
    ("load_in_4bit", True),
    ("fsdp_config.reshard_after_forward", False),
    ("fsdp_version", 2),
    ("plugins.0", "axolotl.integrations.liger.LigerPlugin"),
    ("liger_fused_linear_cross_entropy", True),
    ("accelerator_config.gradient_accumulation_kwargs.sync_each_batch", True),
    ("test_datasets", [{"path": "c/d"}]),
    ("val_set_size", 0.1),
    ("rl", "dpo"),
    ("optimizer", 3),
)


def facts(run: Run) -> dict[str, Any]:
    """All that was read, its documents left out."""
    found = {name: str(value) for name, value in vars(run).items() if name not in {"config", "deepspeed", "unreadable"}}
    return {**found, "unreadable": [(one.key, one.message) for one in run.unreadable]}


def from_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The run read again as if nothing had been read before."""
    monkeypatch.setattr(reader, "READINGS", {})
    return rebuilt(run, run.config, run.deepspeed)


@pytest.mark.parametrize("seed", range(4))
def test_edits_in_any_order_are_read_as_from_nothing(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, seed: int
):
    dice, start = random.Random(seed), make_run(TEXT, "2x a100-80gb")
    run = start
    for _ in range(40):
        run = start if dice.random() < 0.2 else run
        run = with_config(run, [Set(*dice.choice(VALUES))])
        kept = reader.READINGS
        assert facts(run) == facts(from_nothing(run, monkeypatch))
        monkeypatch.setattr(reader, "READINGS", kept)


def test_a_change_is_seen_by_what_reads_its_key_alone(make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch):
    run, asked = make_run(TEXT, "2x a100-80gb"), list[str]()
    at = reader.Watched.at
    monkeypatch.setattr(reader.Watched, "at", lambda self, path, default=None: asked.append(path) or at(self, path))
    with_config(run, [Set("gradient_checkpointing", True)])
    assert "gradient_checkpointing" in asked and "micro_batch_size" not in asked


def test_a_deepspeed_config_is_read_once_for_all_edits_of_the_yaml(make_run: Callable[..., Run]):
    run = make_run(TEXT, "2x a100-80gb", deepspeed='{"zero_optimization": {"stage": 2}}')
    section = run.deepspeed
    assert section is not None
    assert with_config(run, [Set("lora_r", 8)]).sharding is run.sharding
    changed = Section(section.document.changed(Set("zero_optimization.stage", 3)))
    assert rebuilt(run, run.config, changed).zero_stage == 3
