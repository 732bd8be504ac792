"""The YAML of ``--cloud``: which cards it asks for, and a launch that is checked on them."""

import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli.launchers.cloud import read_cloud
from advisor.errors import InputError
from advisor.hardware.gpu import GIB

SMALL = "base_model: meta-llama/Llama-3.2-1B\nadapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
LARGE = "base_model: meta-llama/Llama-3.1-70B\n"
REST = "sequence_len: 1024\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\ngradient_checkpointing: true\n"
MIDDLE = "base_model: mistralai/Mistral-Nemo-Base-2407\nadapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"


def cloud(folder: Path, text: str):
    (folder / "cloud.yaml").write_text(text)
    return read_cloud(str(folder / "cloud.yaml"))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("gpu: a100\n", "1x a100-40gb-sxm host=128GiB"),
        ("gpu: A100-80GB\ngpu_count: 2\nmemory: 256\n", "2x a100-80gb-sxm host=256GiB"),
        ("provider: modal\ngpu: a10\ngpu_count:\n", "1x a10g host=128GiB"),
        ("gpu: h100\ngpu_count: 8\n", "8x h100-80gb-sxm host=128GiB"),
        ("gpu: l40s\n", "1x l40s host=128GiB"),
        ("gpu: H100:4\n", "4x h100-80gb-sxm host=128GiB"),
        ("provider: baseten\ngpu: h100\ngpu_count: 8\nnode_count: 2\n", "2n8x h100-80gb-sxm"),
        ("provider: baseten\ngpu: a10g\n", "1x h100-80gb-sxm"),
        ("provider: nebius\nplatform: gpu-h200-sxm\npreset: 8gpu-128vcpu-1600gb\n", "8x h200 host=1600GiB"),
        ("provider: other\naccelerator: a100-80gb\nnum_gpus: 4\nmemory: 512GiB\n", "4x a100-80gb-sxm host=512GiB"),
        ("provider: other\ninstance_type: p4d.24xlarge\nnum_nodes: 2\n", "2n8x a100-40gb-sxm host=1152GiB"),
    ],
)
def test_cards_count_nodes_and_memory_are_those_that_axolotl_asks_for(tmp_path: Path, text: str, spec: str):
    assert cloud(tmp_path, text).hardware.spec == spec


def test_a_name_that_leaves_the_size_open_is_the_largest_and_says_so(tmp_path: Path):
    found = cloud(tmp_path, "provider: other\ngpu: v100\n")
    assert found.hardware.gpu.id == "v100-32gb-sxm2"
    assert "checked on V100-32GB SXM2" in found.remarks[0]
    assert cloud(tmp_path, "provider: modal\ngpu: a100\n").remarks == ()


def test_a_provider_that_takes_its_own_card_says_so(tmp_path: Path):
    assert (
        "requests H100-80GB SXM from baseten and ignores `gpu`"
        in cloud(tmp_path, "provider: baseten\ngpu: t4\n").remarks[0]
    )


@pytest.mark.parametrize("text", ["", "provider: modal\n", "gpu: abacus\n", "gpu: [\n", "gpu: {a: 1}\n", "- gpu\n"])
def test_what_names_no_card_is_one_error_with_its_file(tmp_path: Path, text: str):
    with pytest.raises(InputError) as caught:
        cloud(tmp_path, text)
    assert caught.value.file.endswith("cloud.yaml")


def test_memory_that_cannot_be_read_is_left_out(tmp_path: Path):
    for memory in ("much", "[1]", "9" * 400 + "GiB"):
        assert cloud(tmp_path, f"provider: other\ngpu: t4\nmemory: {memory}\n").hardware.host_bytes is None
    assert cloud(tmp_path, "gpu: t4\nmemory: 64\n").hardware.host_bytes == 64 * GIB


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu: {a: 1}\n", '1:6: `gpu` is `{"a": 1}`; write a name, or remove it'),
        ("gpu: [a100, h100]\n", '1:6: `gpu` is `["a100", "h100"]`; write a name, or remove it'),
        ("gpu: true\n", "1:6: `gpu` is `true`; write a name, or remove it"),
        ("gpu: t4\ngpu_count: many\n", '2:12: `gpu_count` is `"many"`; write a whole number of 1 at least, or remove'),
        ("gpu: t4\ngpu_count: 0\n", "2:12: `gpu_count` is `0`; write a whole number of 1 at least, or remove it"),
        ("gpu: t4\ngpu_count: [8]\n", "2:12: `gpu_count` is `[8]`; write a whole number of 1 at least, or remove it"),
        ("gpu: t4\ngpu_count: 100000\n", "2:12: `gpu_count` is `100000`; write a whole number below 10000"),
        ("provider: baseten\nnode_count: two\n", '2:13: `node_count` is `"two"`; write a whole number of 1 at least'),
        ("gpu: t4\nmemory: much\n", '2:9: `memory` is `"much"`; write GiB as a number, or a size such as 256GiB'),
        ("gpu: t4\nmemory: [1]\n", "2:9: `memory` is `[1]`; write GiB as a number, or a size such as 256GiB"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_by_line_and_field(tmp_path: Path, text: str, said: str):
    with pytest.raises(InputError) as caught:
        cloud(tmp_path, text)
    assert f"cloud.yaml:{said}" in str(caught.value)


def test_blank_values_and_words_for_numbers_are_taken(tmp_path: Path):
    found = cloud(tmp_path, 'gpu: t4\ngpu_count: "2"\nnode_count:\nmemory:\n')
    assert found.hardware.spec == "2x t4 host=128GiB"


def test_a_good_cloud_is_read_without_pydantic(tmp_path: Path):
    (tmp_path / "cloud.yaml").write_text("gpu: a100\ngpu_count: 2\n")
    code = (
        "import sys\nfrom advisor.cli.launchers.cloud import read_cloud\n"
        f"read_cloud({str(tmp_path / 'cloud.yaml')!r})\nprint('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stub = tmp_path / "axolotl"
    stub.write_text("#!/bin/sh\necho launched\nexit 7\n")
    stub.chmod(0o755)
    for name, text in (("small", SMALL), ("large", LARGE), ("middle", MIDDLE)):
        (tmp_path / f"{name}.yml").write_text(text + REST)
    return tmp_path


def launch(folder: Path, config: str, text: str, *more: str, gpus: str = "") -> "subprocess.CompletedProcess[str]":
    (folder / "cloud.yaml").write_text(text)
    own = ["--gpus", gpus] if gpus else []
    train = ["--", "./axolotl", "train", config, "--cloud", "cloud.yaml", *more]
    command = [sys.executable, "-m", "advisor", "launch", *own, *train]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_a_launch_into_the_cloud_is_checked_on_its_cards(folder: Path):
    done = launch(folder, "large.yml", "gpu: h100\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--gpus '1x h100" in done.stderr
    assert launch(folder, "small.yml", "gpu: l4\n").returncode == 7


@pytest.mark.slow
def test_gpus_on_the_command_line_go_before_the_cloud(folder: Path):
    assert launch(folder, "middle.yml", "gpu: l4\n").returncode == 1
    assert launch(folder, "middle.yml", "gpu: l4\n", gpus="1x b200").returncode == 7
    assert "rtx-4090" in launch(folder, "large.yml", "gpu: [\n", gpus="1x rtx-4090").stderr


@pytest.mark.slow
def test_a_card_left_open_blocks_only_if_its_largest_variant_fails(folder: Path):
    done = launch(folder, "middle.yml", "provider: other\ngpu: v100\n")
    assert done.returncode == 7 and "checked on V100-32GB" in done.stderr
    assert launch(folder, "large.yml", "provider: other\ngpu: v100\n").returncode == 1


@pytest.mark.slow
def test_a_cloud_that_cannot_be_read_is_one_line_and_launches(folder: Path):
    for text in ("gpu: abacus\n", "gpu: [\n", ""):
        done = launch(folder, "large.yml", text)
        assert done.returncode == 7
        assert "not checked" in done.stderr and "cloud.yaml" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_keys_of_the_command_line_that_do_not_reach_the_cloud_are_left_out(folder: Path):
    done = launch(folder, "small.yml", "gpu: l4\n", "--base_model", "meta-llama/Llama-3.1-70B")
    assert done.returncode == 7 and "keys of the command line do not reach it" in done.stderr
    done = launch(folder, "small.yml", "provider: other\ngpu: l4\n", "--base_model", "meta-llama/Llama-3.1-70B")
    assert done.returncode == 1
