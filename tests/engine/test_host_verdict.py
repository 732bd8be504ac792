"""The host in the verdict: stated or detected memory decides, common memory never does."""

import json
from pathlib import Path
from typing import Literal

import pytest
import yaml
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.memory import estimate
from advisor.memory.ledger import Range, Uncounted
from advisor.opening import open_configs
from advisor.record import replace
from advisor.util import GIB

FULL = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "datasets": [{"path": "org/data", "type": "alpaca"}],
    "sequence_len": 2048,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 4,
    "learning_rate": 1e-5,
    "bf16": True,
    "optimizer": "adamw_torch_fused",
    "gradient_checkpointing": True,
    "attn_implementation": "flash_attention_2",
    "deepspeed": "offload.json",
}
OFFLOADS = {
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}},
    "bf16": {"enabled": True},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
}
PAGED = {**{key: value for key, value in FULL.items() if key != "deepspeed"}, "optimizer": "paged_adamw_8bit"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("offload.json").write_text(json.dumps(OFFLOADS))


def called(command: str, gpus: str, config: dict[str, object] = FULL, *options: str) -> tuple[int, str]:
    Path("run.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    found = CliRunner().invoke(main, [command, "run.yaml", "--gpus", gpus, "--isolated", *options])
    return found.exit_code, found.output


def checked(gpus: str, config: dict[str, object] = FULL) -> tuple[int, dict[str, object], set[str]]:
    code, said = called("check", gpus, config, "--output-format", "json")
    (run,) = json.loads(said)["runs"]
    return code, run, {finding["rule"] for finding in run["findings"] if finding["level"] != "note"}


def test_a_stated_host_that_is_too_small_does_not_fit():
    code, run, rules = checked("4x a100-80gb host=64GiB")
    assert (code, run["verdict"]) == (1, "does-not-fit")
    assert "host-memory-exceeded" in rules and "does-not-fit" not in rules
    code, said = called("estimate", "4x a100-80gb host=64GiB")
    assert code == 1 and "does not fit" in said and "of 64 GiB of host memory a node" in " ".join(said.split())


def test_less_offload_is_planned_where_the_host_is_too_small():
    _, run, _ = checked("4x a100-80gb host=64GiB")
    steps = [finding["rule"] for finding in run["findings"] if finding["rule"] == "less-offload"]
    assert steps and run["plan"]
    code, _ = called("check", "4x a100-80gb host=64GiB", FULL, "--fix")
    assert code == 0
    assert called("estimate", "4x a100-80gb host=64GiB", yaml.safe_load(Path("run.yaml").read_text()))[0] == 0


CPU = {"device": "cpu", "pin_memory": True}
ZERO_3 = {
    **OFFLOADS,
    "gradient_clipping": "auto",
    "zero_optimization": {"stage": 3, "offload_optimizer": CPU, "offload_param": CPU},
}
FSDP = {"offload_params": True, "auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "state_dict_type": "FULL_STATE_DICT"}


@pytest.mark.parametrize("offload", ["ZeRO-3", 1, 2])
def test_whatever_is_offloaded_comes_back_where_the_host_is_too_small_and_a_fresh_check_is_clean(offload: str | int):
    config = FULL
    if isinstance(offload, int):
        config = {**{k: v for k, v in FULL.items() if k != "deepspeed"}, "fsdp_version": offload, "fsdp_config": FSDP}
    Path("offload.json").write_text(json.dumps(ZERO_3))
    here = "4x a100-80gb host=32GiB"
    _, run, rules = checked(here, config)
    assert run["verdict"] == "does-not-fit" and "host-memory-exceeded" in rules
    assert called("check", here, config, "--fix")[0] == 0
    code, run, rules = checked(here, yaml.safe_load(Path("run.yaml").read_text()))
    assert (code, run["verdict"], rules) == (0, "fits", set())
    assert run["memory"]["host_peak"] == 0


def test_between_the_ends_of_the_range_a_run_is_tight():
    found = estimate_of("4x a100-80gb")
    assert found.host_needed.low < found.host_needed.high == found.host_peak
    between = (found.host_needed.low + found.host_needed.high) // 2 // GIB
    code, run, rules = checked(f"4x a100-80gb host={between}GiB")
    assert (code, run["verdict"], "tight-fit" in rules) == (0, "tight", True)
    enough = -(-found.host_needed.high // GIB)
    assert checked(f"4x a100-80gb host={enough}GiB")[1]["verdict"] == "fits"


def test_a_run_written_for_more_than_is_common_keeps_its_verdict():
    code, run, rules = checked("1x l40s")
    assert (code, run["verdict"]) == (0, "fits")
    assert "host-memory-unstated" in rules


def test_paged_states_that_the_gpu_holds_need_no_host():
    code, run, rules = checked("1x h200 host=12GiB", PAGED)
    memory = run["memory"]
    assert memory["host_needed"]["low"] == 0 < memory["host_needed"]["high"]
    assert code == 0 and "host-memory-exceeded" not in rules


def test_paged_states_that_the_gpu_cannot_hold_need_the_host():
    found = estimate_of("1x a100-40gb", PAGED)
    spare = max(0, found.usable - found.needed.low)
    assert found.host_needed.low == found.host_peak - spare > 0


def estimate_of(gpus: str, config: dict[str, object] = FULL):
    Path("run.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    found = estimate(open_configs(Path("run.yaml"), None, gpus).run)
    assert found is not None
    return found


@pytest.mark.parametrize("pinned", [True, False])
def test_swap_counts_for_what_is_pageable_alone(pinned: bool):
    offloads = {
        **OFFLOADS,
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": pinned}},
    }
    Path("offload.json").write_text(json.dumps(offloads))
    Path("run.yaml").write_text(yaml.safe_dump(FULL, sort_keys=False))
    run = open_configs(Path("run.yaml"), None, "4x a100-80gb").run
    found = estimate(run)
    assert found is not None
    assert run.hardware is not None
    pageable = sum(term.bytes for term in found.host if not term.pinned)
    assert 0 < pageable <= found.host_peak
    assert (pageable == found.host_peak) is not pinned
    here = replace(run.hardware, host_bytes=found.host_needed.low - pageable, swap_bytes=0)
    swapping = replace(here, swap_bytes=1 << 50)
    without, with_swap = (estimate(replace(run, hardware=one)) for one in (here, swapping))
    assert without is not None
    assert with_swap is not None
    assert without.verdict == "does-not-fit"
    assert with_swap.host_usable == here.host_bytes + pageable
    assert with_swap.verdict != "does-not-fit"


def test_what_processes_take_brings_a_full_host_near_its_limit():
    """Offloaded are up to 159.8 GiB; four ranks and the system take up to 10 more."""
    verdicts = {host: checked(f"4x a100-80gb host={host}GiB")[1]["verdict"] for host in (161, 169, 170)}
    assert verdicts == {161: "tight", 169: "tight", 170: "fits"}


@pytest.mark.parametrize("host", ["64GiB", "1TiB"])
def test_a_launch_is_blocked_where_the_host_is_too_small(host: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))  # an axolotl that is there would take the place of this process
    Path("run.yaml").write_text(f"# advisor: gpus=4x a100-80gb host={host}\n" + yaml.safe_dump(FULL))
    found = CliRunner().invoke(main, ["launch", "--isolated", "--", "axolotl", "train", "run.yaml", "--no-such-option"])
    assert ("does not fit: 169.8 of 64.0 GiB of host memory a node" in found.output) == (host == "64GiB")


def test_a_comment_lets_a_run_through_whose_host_is_too_small():
    ignored = "# advisor: file-ignore[host-memory-exceeded] swap on NVMe\n"
    Path("run.yaml").write_text(ignored + yaml.safe_dump(FULL))
    found = CliRunner().invoke(main, ["check", "run.yaml", "--gpus", "4x a100-80gb host=64GiB", "--isolated"])
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize(
    ("memory", "low", "high", "verdict"),
    [
        (None, 1, 2, "fits"),
        (None, 1, 9, "tight"),
        ("more", 1, 2, "unknown"),
        ("more", 1, 9, "unknown"),
        ("more", 8, 9, "does-not-fit"),
    ],
)
def test_the_worse_of_gpu_and_host_is_the_verdict_and_unknown_is_worse_than_tight(
    memory: Literal["more"] | None, low: int, high: int, verdict: str
):
    """A GPU with room, but for what is not counted; a host of 5 bytes."""
    found = estimate(
        open_configs({key: value for key, value in FULL.items() if key != "deepspeed"}, gpus="8x h200").run
    )
    assert found is not None
    there = (Uncounted("key", "something", memory, "test"),) if memory else ()
    roomy = replace(found, usable=found.needed.high, uncounted=there, host_needed=Range(low, high), host_usable=5)
    assert roomy.verdict == verdict
