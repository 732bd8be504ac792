"""Every key of axolotl's schema has a class, and what is not counted never fits."""

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import advisor
from advisor.cli.main import main
from advisor.engine.blocking import in_one_line
from advisor.memory import uncounted
from advisor.memory.generation import generation_terms
from advisor.schemas.table import axolotl_keys, deepspeed_keys

from .small import small

TABLE: Any = json.loads(Path(uncounted.__file__).with_name("keys.json").read_text(encoding="utf-8"))
DEEPSPEED: Any = json.loads(Path(uncounted.__file__).with_name("deepspeed_keys.json").read_text(encoding="utf-8"))
FITTING = {"base_model": "Qwen/Qwen2.5-0.5B", "sequence_len": 512, "datasets": [{"path": "d"}], "learning_rate": 1e-5}
LARGE = {"base_model": "meta-llama/Llama-3.1-8B"}
MORE = {"use_eaft": True}
CARD, SMALL_CARD = "1x a100-80gb", "1x rtx-4090"


def schema() -> Iterator[tuple[str, str]]:
    """Level and key of all that axolotl accepts; of a plugin's keys the plugin."""
    table = axolotl_keys()
    levels: dict[str, Mapping[str, Any]] = {level: table.rows(level) for level in table.levels}
    levels |= {plugin.rsplit(".", 1)[-1]: rows for plugin, rows in table.plugins.items()}
    for level, rows in levels.items():
        for key in rows:
            yield level, key


def words(lines: list[str]) -> list[str]:
    """The words of several lines."""
    return [word for line in lines for word in line.split()]


def patterns(level: str, kind: str, table: Any = TABLE) -> list[str]:
    """The keys and prefixes that a level has in a class."""
    return words(table["levels"].get(level, {}).get(kind, ()))


def classes(level: str, key: str, table: Any = TABLE) -> list[str]:
    """The classes of a key."""
    found = [kind for kind in ("counted", "none") if any(fnmatchcase(key, p) for p in patterns(level, kind, table))]
    return [*found, *{"unknown" for row in table["unknown"] if (row["level"], row["key"]) == (level, key)}]


def test_every_key_of_the_schema_has_a_class() -> None:
    assert [at for at in schema() if not classes(*at)] == []


def of_deepspeed() -> list[tuple[str, str]]:
    """Level and key of all that DeepSpeed's JSON may have."""
    return [(level, key) for level in deepspeed_keys().levels for key in deepspeed_keys().rows(level)]


def test_every_key_of_deepspeed_has_a_class() -> None:
    assert [at for at in of_deepspeed() if not classes(*at, table=DEEPSPEED)] == []
    assert classes("DeepSpeedZeroConfig", "keeps_a_second_copy", table=DEEPSPEED) == []


def test_no_key_of_deepspeed_without_effect_has_another_class() -> None:
    twice = [at for at in of_deepspeed() if "none" in (found := classes(*at, table=DEEPSPEED)) and len(found) > 1]
    assert twice == []


def test_no_row_is_about_a_key_of_deepspeed_that_is_gone() -> None:
    rows = [(level, p) for level, kinds in DEEPSPEED["levels"].items() for kind in kinds.values() for p in words(kind)]
    rows += [(row["level"], row["key"]) for row in DEEPSPEED["unknown"]]
    gone = [at for at in rows if not any(level == at[0] and fnmatchcase(key, at[1]) for level, key in of_deepspeed())]
    assert gone == []
    assert DEEPSPEED["version"] == deepspeed_keys().version


def test_no_key_without_effect_has_another_class() -> None:
    assert [at for at in schema() if "none" in classes(*at) and len(classes(*at)) > 1] == []


def test_no_row_is_about_a_key_that_is_gone() -> None:
    keys = list(schema())
    rows = [(level, p) for level in TABLE["levels"] for kind in ("counted", "none") for p in patterns(level, kind)]
    rows += [(row["level"], row["key"]) for row in TABLE["unknown"]]
    gone = [at for at in rows if not any(level == at[0] and fnmatchcase(key, at[1]) for level, key in keys)]
    assert gone == []
    assert TABLE["version"] == axolotl_keys().version


def test_a_new_key_would_be_found() -> None:
    assert classes("AxolotlInputConfig", "keeps_a_second_copy") == []


@pytest.mark.parametrize(
    ("keys", "card", "verdict"),
    [
        ({}, CARD, "fits"),
        (MORE, CARD, "unknown"),
        ({**MORE, **LARGE}, SMALL_CARD, "does-not-fit"),
        ({"use_eaft": None}, CARD, "fits"),
        ({"reinit_weights": True}, CARD, "fits"),
        ({"reinit_weights": True, "bf16": False}, CARD, "unknown"),
        ({"reinit_weights": True, "model_type": "Qwen2ForCausalLM"}, CARD, "unknown"),
        ({"reinit_weights": True, "model_type": "AutoModelForCausalLM"}, CARD, "fits"),
        ({"reinit_weights": True, "adapter": "qlora", "load_in_4bit": True}, CARD, "unknown"),
        ({"layer_offloading": True}, CARD, "fits"),
        ({"layer_offloading": True, **LARGE}, SMALL_CARD, "unknown"),
        ({"layer_offloading": False, **LARGE}, SMALL_CARD, "does-not-fit"),
        ({"experts_implementation": "grouped_mm"}, CARD, "fits"),
        ({"experts_implementation": "batched_mm"}, CARD, "unknown"),
        ({"dense_mixer": True}, CARD, "fits"),
        ({"dense_mixer": True, "plugins": ["axolotl.integrations.densemixer.DenseMixerPlugin"]}, CARD, "unknown"),
        ({"plugins": ["axolotl.integrations.grokfast.GrokfastPlugin"]}, CARD, "unknown"),
        ({"selective_checkpointing": {"save": ["attention"]}}, CARD, "fits"),
        ({"selective_checkpointing": {"save": ["attention"]}, "gradient_checkpointing": True}, CARD, "unknown"),
        ({"device_map": {"": 0}}, CARD, "fits"),
        ({"device_map": {"": 0, "lm_head": 1}}, CARD, "unknown"),
        ({"neftune_noise_alpha": 5, "relora": True, "profiler_steps": 3, "use_tensorboard": True}, CARD, "fits"),
    ],
)
def test_a_verdict_says_no_more_than_what_is_counted(keys: dict[str, Any], card: str, verdict: str) -> None:
    assert advisor.estimate({**FITTING, **keys}, gpus=card).verdict == verdict


def test_the_finding_names_the_key_and_what_is_counted() -> None:
    report = advisor.check({**FITTING, **MORE}, gpus=CARD)
    found = next(finding for finding in report.findings if finding.rule == "memory-not-counted")
    assert report.verdict == "unknown"
    assert report.estimate is not None
    assert "`use_eaft` is not counted (copies of the logits in its loss" in found.message
    assert "no verdict" in found.message


def test_a_run_that_does_not_fit_without_it_gets_no_plan_nor_a_search_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.engine.plan.plan_fit", lambda *_, **__: pytest.fail("a plan was looked for"))
    report = advisor.check({**FITTING, **LARGE, **MORE}, gpus=SMALL_CARD)
    assert report.verdict == "does-not-fit"
    assert report.plan is None


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A run that asks for what is not counted."""
    written = tmp_path / "run.yaml"
    written.write_text(json.dumps({**FITTING, **MORE}))
    return str(written)


def said(*arguments: str) -> str:
    """What the command prints, its lines joined."""
    return " ".join(CliRunner().invoke(main, arguments).output.split())


def test_the_screens_say_that_there_is_no_verdict(file: str) -> None:
    assert CliRunner().invoke(main, ["estimate", file, "--gpus", CARD]).exit_code == 0
    assert "unknown (not all of it is counted)" in said("estimate", file, "--gpus", CARD)
    assert "is not counted; without it the run needs" in said("check", file, "--gpus", CARD)


def test_json_names_the_key(file: str) -> None:
    found = json.loads(said("estimate", file, "--gpus", CARD, "--output-format", "json"))
    assert found["verdict"] == "unknown"
    what = "copies of the logits in its loss"
    assert found["memory"]["uncounted"] == [{"key": "use_eaft", "what": what, "memory": "more"}]


def test_a_launch_is_told_that_there_is_no_verdict() -> None:
    assert in_one_line(advisor.check({**FITTING, **MORE}, gpus=CARD)).startswith(
        "no verdict: `use_eaft` is not counted; "
    )


def test_another_trainer_does_not_know_axolotls_keys() -> None:
    assert advisor.estimate({**FITTING, **MORE}, gpus=CARD, stack={"trainer": "hf-trainer"}).verdict == "fits"


GENERATES = {"val_set_size": 0.1, "evals_per_epoch": 1, "eval_batch_size": 3, "do_causal_lm_eval": True}


def generating(folder: Path, **keys: Any) -> dict[str, int]:
    """The terms of the moment in which evaluation generates."""
    made = small(folder, **keys)
    return {term.name: term.bytes for term in generation_terms(made.run, made.model, made.weights)}


def test_generating_holds_the_cache_of_each_row(tmp_path: Path) -> None:
    assert generating(tmp_path, eval_max_new_tokens=6, **GENERATES)["key-value cache"] == 2 * 3 * 16 * 200 * (4 + 1)


def test_generating_gathers_what_zero_3_has_cut(tmp_path: Path) -> None:
    keys = {**GENERATES, "zero": {"stage": 3}}
    assert generating(tmp_path, **keys)["weights gathered to generate"] == small(tmp_path, **keys).weights.bytes


def of_zero(stage: int = 3, **more: Any) -> dict[str, Any]:
    """A JSON with more keys of ZeRO's."""
    return {"zero_optimization": {"stage": stage, **more}, "bf16": {"enabled": True}}


@pytest.mark.parametrize(
    ("deepspeed", "key"),
    [
        (of_zero(), None),
        (of_zero(mics_shard_size=8), "zero_optimization.mics_shard_size"),
        (of_zero(mics_shard_size=-1), None),
        (of_zero(2, mics_shard_size=8), None),
        (of_zero(2, zenflow={"topk_ratio": 0.1}), "zero_optimization.zenflow"),
        (of_zero(zero_quantized_nontrainable_weights=True), "zero_optimization.zero_quantized_nontrainable_weights"),
        (of_zero(zero_quantized_nontrainable_weights=False), None),
        (of_zero(memory_efficient_linear=False), "zero_optimization.memory_efficient_linear"),
        (of_zero(memory_efficient_linear=True), None),
        (of_zero(stage3_model_persistence_threshold="auto"), None),
        ({**of_zero(1), "tensor_parallel": {"autotp_size": 4}}, None),
        (
            {**of_zero(1), "tensor_parallel": {"autotp_size": 4, "preset_model": "llama"}},
            "tensor_parallel.preset_model",
        ),
        ({**of_zero(1), "tensor_parallel": {"autotp_size": 0, "preset_model": "llama"}}, None),
        ({**of_zero(1), "sequence_parallel_size": 2}, "sequence_parallel_size"),
        ({**of_zero(1), "sequence_parallel_size": 1}, None),
        ({**of_zero(1), "communication_data_type": "fp32"}, "communication_data_type"),
        ({**of_zero(1), "communication_data_type": "bf16"}, None),
        ({**of_zero(), "amp": {"enabled": False}}, None),
    ],
)
@pytest.mark.parametrize("trainer", ["axolotl", "hf-trainer"])
def test_deepspeeds_keys_that_are_not_counted_are_named(
    deepspeed: dict[str, Any], key: str | None, trainer: str
) -> None:
    found = advisor.estimate(FITTING, deepspeed, gpus="8x a100-80gb", stack={"trainer": trainer})
    assert [one.key for one in found.uncounted] == ([key] if key else [])
    assert (found.verdict == "unknown") is (key is not None and found.uncounted[0].memory != "less")


def test_the_finding_stands_at_the_key_of_the_json() -> None:
    report = advisor.check(FITTING, of_zero(mics_shard_size=8), gpus="8x a100-80gb")
    found = next(finding for finding in report.findings if finding.rule == "memory-not-counted")
    assert "`zero_optimization.mics_shard_size` is not counted" in found.message
