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
from advisor.schemas.table import axolotl_keys

from .small import small

TABLE: Any = json.loads(Path(uncounted.__file__).with_name("keys.json").read_text(encoding="utf-8"))
FITTING = {"base_model": "Qwen/Qwen2.5-0.5B", "sequence_len": 512, "datasets": [{"path": "d"}], "learning_rate": 1e-5}
LARGE = {"base_model": "meta-llama/Llama-3.1-8B"}
MORE = {"reinit_weights": True}
CARD, SMALL_CARD = "1x a100-80gb", "1x rtx-4090"


def schema() -> Iterator[tuple[str, str]]:
    """Level and key of all that axolotl accepts; of a plugin's keys the plugin."""
    table = axolotl_keys()
    levels: dict[str, Mapping[str, Any]] = {level: table.rows(level) for level in table.levels}
    levels |= {plugin.rsplit(".", 1)[-1]: rows for plugin, rows in table.plugins.items()}
    for level, rows in levels.items():
        for key in rows:
            yield level, key


def patterns(level: str, kind: str) -> list[str]:
    """The keys and prefixes that a level has in a class."""
    return [pattern for line in TABLE["levels"].get(level, {}).get(kind, ()) for pattern in line.split()]


def classes(level: str, key: str) -> list[str]:
    """The classes of a key."""
    found = [kind for kind in ("counted", "none") if any(fnmatchcase(key, p) for p in patterns(level, kind))]
    return [*found, *{"unknown" for row in TABLE["unknown"] if (row["level"], row["key"]) == (level, key)}]


def test_every_key_of_the_schema_has_a_class() -> None:
    assert [at for at in schema() if not classes(*at)] == []


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
        ({"reinit_weights": None}, CARD, "fits"),
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
    assert "`reinit_weights` is not counted (weights that are built from the config" in found.message
    assert "no verdict" in found.message


def test_a_run_that_does_not_fit_without_it_gets_no_plan() -> None:
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
    assert "GiB are counted" in said("check", file, "--gpus", CARD)


def test_json_names_the_key(file: str) -> None:
    found = json.loads(said("estimate", file, "--gpus", CARD, "--output-format", "json"))
    assert found["verdict"] == "unknown"
    what = "weights that are built from the config: in its dtype, and never quantized"
    assert found["memory"]["uncounted"] == [{"key": "reinit_weights", "what": what, "memory": "more"}]


def test_a_launch_is_told_that_there_is_no_verdict() -> None:
    assert in_one_line(advisor.check({**FITTING, **MORE}, gpus=CARD)).startswith(
        "no verdict: `reinit_weights` is not counted; "
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
