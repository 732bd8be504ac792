"""The plugin where ``advisor verify`` has started the training: it changes the config, and ends before a save."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.verifying.request import VARIABLE, Request, changed, write_request

Cfg = Callable[..., dict[str, Any]]
TRACKED = {
    "use_wandb": True,
    "wandb_project": "p",
    "hub_model_id": "me/it",
    "mlflow_tracking_uri": "u",
    "use_comet": True,
}
SAVED = {"save_steps": 10, "saves_per_epoch": 2, "load_best_model_at_end": True, "early_stopping_patience": 3}
RESUMED = {"resume_from_checkpoint": "./out/checkpoint-1", "auto_resume_from_checkpoints": True}


@pytest.fixture
def request_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    """A request that this process was started with."""
    made = Request(str(folder / "asked"), steps=4, evaluates=True)
    (folder / "asked").mkdir()
    write_request(made)
    monkeypatch.setenv(VARIABLE, made.folder)
    return made


def test_the_values_of_the_command_line_are_changed_too(plugin: Any, cfg: Cfg, request_here: Request):
    values = cfg(output_dir="/data/out", max_steps=1000, advisor={"gpus": "1x rtx-3060"}, **TRACKED)
    plugin.register(values)  # what does not fit there is not blocked: it is what is tried
    assert values["max_steps"] == 4 and values["output_dir"].startswith(request_here.folder)
    assert not TRACKED.keys() & values.keys()


def test_it_ends_before_anything_is_saved(plugin: Any, cfg: Cfg, request_here: Request):
    plugin.register(cfg())
    with pytest.raises(SystemExit) as left:
        plugin.post_train(None, None)
    assert left.value.code == 0


def test_without_a_request_a_training_is_left_alone(plugin: Any, cfg: Cfg):
    values = cfg(advisor={"mode": "off"}, **TRACKED)
    before = json.dumps(values, default=str)
    plugin.register(values)
    plugin.post_train(None, None)
    assert json.dumps(values, default=str) == before


@pytest.mark.parametrize("key", [*TRACKED, *SAVED, *RESUMED])
def test_a_key_that_reports_saves_or_resumes_goes(key: str):
    assert key not in changed({**TRACKED, **SAVED, **RESUMED}, Request("/f", 3, evaluates=False))


def test_the_plugin_comes_first_and_others_stay():
    liger = "axolotl.integrations.liger.LigerPlugin"
    found = changed({"plugins": [liger], "eval_steps": 5, "sequence_len": 8}, Request("/f", 3, evaluates=True))
    assert found["plugins"] == ["advisor.plugins.axolotl.AdvisorPlugin", liger]
    assert (found["eval_strategy"], found["eval_steps"], found["sequence_len"]) == ("steps", 3, 8)


def test_synthetic_rows_stay_in_their_order_and_the_configs_own_as_they_are():
    orders = [changed({}, Request("/f", 3, evaluates=False, rows=rows)) for rows in ("synthetic", "packed", "own")]
    assert [each.get("shuffle_merged_datasets") for each in orders] == [False, False, None]
