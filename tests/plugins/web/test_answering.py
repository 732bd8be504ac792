"""What Python answers to the page: soon to a key, in full to a pause."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from advisor.plugins.web import answering
from advisor.plugins.web.showing import LOOKS
from click.testing import CliRunner

from advisor.allocations import refine
from advisor.cli.main import main
from advisor.memory import Estimate
from advisor.run import Run

CONFIG = """\
base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: {length}
micro_batch_size: 1
gradient_accumulation_steps: 1
learning_rate: 0.0002
optimizer: adamw_torch_fused
bf16: true
gradient_checkpointing: true
datasets: [{{path: tatsu-lab/alpaca, type: alpaca}}]
"""


def request(length: int) -> str:
    return json.dumps({"config": CONFIG.format(length=length), "files": {}, "gpus": "1x rtx-4090"})


def answer(text: str) -> dict[str, Any]:
    return json.loads(text)


def test_a_key_waits_for_no_replay_and_a_pause_settles_the_verdict(monkeypatch: pytest.MonkeyPatch):
    lengths = range(1024, 16384, 128)
    tight = next(length for length in lengths if answer(answering.quick(request(length)))["verdict"] == "tight")
    asked: list[Run] = []

    def settled(run: Run, found: Estimate) -> Estimate:
        asked.append(run)
        return found

    monkeypatch.setattr(refine, "settled", settled)
    answering.quick(request(tight))
    assert not asked
    answering.full(request(tight))
    assert asked


def test_the_memory_after_a_pause_is_that_of_the_report():
    words = "the reserved range rests on a replay"
    assert words not in answer(answering.quick(request(1024)))["memory"]
    assert words in answer(answering.reserved(request(1024)))["memory"]


def test_what_cannot_be_read_is_an_error_once():
    broken = json.dumps({"config": "base_model: [", "files": {}, "gpus": "1x rtx-4090"})
    assert "not YAML" in answer(answering.quick(broken))["error"]
    assert answer(answering.reserved(broken)) == {}
    assert answer(answering.full(broken))["html"] == "" and answer(answering.matrix(broken))["html"] == ""


COMMENT = "# advisor: gpus=2n8x a100-80gb host=1TiB link=pcie net=100Gb/s\n"


def test_gpus_that_a_comment_states_count_until_the_fields_have_them():
    asked = {"config": COMMENT + CONFIG.format(length=1024), "files": {}, "gpus": "1x rtx-4090"}
    found = answer(answering.quick(json.dumps(asked)))
    assert "2 nodes of 8x A100-80GB SXM" in found["top"]
    said = "2n8x a100-80gb host=1TiB link=pcie net=100Gb/s"
    fields = {"count": 8, "card": "a100-80gb-sxm", "nodes": 2, "host": 1024, "link": "pcie", "net": "100Gb/s"}
    assert found["stated"] == {"said": said, **fields}
    found = answer(answering.quick(json.dumps({**asked, "taken": said})))
    assert "1x RTX 4090" in found["top"] and found["stated"] is None


def test_a_comment_with_an_unknown_gpu_is_an_error_at_its_line():
    asked = {"config": "# advisor: gpus=8x abacus\n" + CONFIG.format(length=1024), "files": {}, "gpus": "1x rtx-4090"}
    assert "unknown GPU" in answer(answering.quick(json.dumps(asked)))["error"]


def large(**given: Any) -> str:
    """A run that does not fit, with a question about it."""
    config = CONFIG.format(length=2048).replace("micro_batch_size: 1", "micro_batch_size: 8")
    return json.dumps({"config": config, "files": {}, "gpus": "1x rtx-4090", **given})


def test_a_key_shows_the_headline_and_a_pause_what_to_do_and_its_cost():
    soon, later = (answer(asked(large(tokens=20e6))) for asked in (answering.quick, answering.full))
    assert "Does not fit" in soon["top"] and LOOKS in soon["top"]
    assert "same training" in later["top"] and "20M tokens after A: " in later["top"] and "$" in later["top"]
    assert "--fix" not in later["top"] and LOOKS not in later["top"]


def test_an_option_writes_what_its_command_writes(tmp_path: Path):
    (tmp_path / "run.yaml").write_text(json.loads(large())["config"])
    flags = ["check", "--gpus", "1x rtx-4090", "--fix", "--output-dir", f"{tmp_path}/out", f"{tmp_path}/run.yaml"]
    assert CliRunner().invoke(main, flags).exit_code == 0
    ways = answer(answering.full(large()))["ways"]
    assert ways["A"]["files"] == {"run.yaml": (tmp_path / "out" / "run.yaml").read_text()}


def test_the_faster_way_after_one_that_changes_the_training_writes_what_its_command_writes(tmp_path: Path):
    config = CONFIG.format(length=2048).replace("adapter: lora\n", "")
    (tmp_path / "run.yaml").write_text(config)
    flags = ["--gpus", "1x a100-40gb", "--fix", "--unsafe-fixes", "--faster", "--output-dir", f"{tmp_path}/out"]
    assert CliRunner().invoke(main, ["check", *flags, f"{tmp_path}/run.yaml"]).exit_code == 0
    ways = answer(answering.full(large(config=config, gpus="1x a100-40gb")))["ways"]
    assert ways["F"]["files"] == {"run.yaml": (tmp_path / "out" / "run.yaml").read_text()}


def test_other_hardware_has_its_fields():
    answering.full(large())
    found = answer(answering.others(large()))
    assert found["ways"]["C1"]["gpus"]["count"] == 2 and "On 2x RTX 4090" in found["options"]
    assert found["ways"]["A"] == answer(answering.full(large()))["ways"]["A"]


def test_cards_are_told_by_cost_and_for_these_tokens():
    found = answer(answering.matrix(large(tokens=50e6)))
    costs = [float(each) for each in re.findall(r"[$]([\d.]+)</td>", found["html"])]
    assert costs == sorted(costs) and len(costs) > 3
    assert len(found["cards"]) == found["html"].count("data-card=") and {"count", "card"} <= set(found["cards"][0])
    twice = answer(answering.matrix(large(tokens=100e6)))
    assert float(re.findall(r"[$]([\d.]+)</td>", twice["html"])[0]) == pytest.approx(2 * costs[0], abs=0.02)


@pytest.mark.parametrize(
    ("changed", "method"),
    [
        ("", "lora"),
        ("adapter: qlora\nload_in_4bit: true", "qlora"),
        ("learning_rate: 1e-5", "full"),
        ("adapter: lora\nrl: dpo", "dpo"),
        ("adapter: lora\nrl: kto", ""),
    ],
)
def test_the_menus_show_what_the_config_says(changed: str, method: str):
    config = CONFIG.format(length=4096)
    if changed:
        config = re.sub("(?m)^adapter: lora$|^learning_rate.*$", "", config) + changed
    if method == "full":
        config = re.sub("(?m)^lora_.*$", "", config)
    fields = answer(answering.quick(json.dumps({"config": config, "files": {}, "gpus": "1x h100"})))["fields"]
    assert (fields["method"], fields["length"], fields["batch"]) == (method, 4096, 1)


def test_an_unknown_model_is_named_and_the_page_says_what_the_page_can_do():
    config = CONFIG.format(length=1024).replace("meta-llama/Llama-3.1-8B", "nobody/mine")
    found = answer(answering.quick(json.dumps({"config": config, "files": {}, "gpus": "1x h100"})))
    assert found["fields"]["unknown"] == "nobody/mine"
    assert "config.json" in found["top"] and "--online" not in found["top"] and "--model-config" not in found["top"]


def test_the_picture_says_what_the_screen_says():
    said = answer(answering.full(large()))["picture"]
    assert said["role"] == "does-not-fit" and said["after"] < said["usable"] < said["needed"]
    assert "same training" in said["action"] and "`" not in said["headline"] + said["action"]
