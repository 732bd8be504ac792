"""What Python answers to the page: soon to a key, in full to a pause."""

import json
from typing import Any

import pytest
from advisor.plugins.web import answering

from advisor.allocations import refine
from advisor.memory import Estimate
from advisor.run import Run

CONFIG = """\
base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
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
    assert words not in answer(answering.quick(request(1024)))["top"]
    assert words in answer(answering.reserved(request(1024)))["top"]


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
