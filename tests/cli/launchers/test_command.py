"""What a launch command is about to train, on how many processes."""

import shlex

import pytest

from advisor.cli.launchers import read_command
from advisor.cli.launchers.launchers import ENVIRONMENT


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


def counts(command: str, gpus: int = 8, nodes: int = 1) -> tuple[int, int]:
    return read_command(shlex.split(command)).scale.counts(gpus, nodes)


@pytest.mark.parametrize(
    "command",
    [
        "axolotl train cfg.yml",
        "/opt/venv/bin/axolotl train cfg.yml --learning-rate 1e-5",
        "axolotl train --learning-rate 1e-5 cfg.yml",
        "accelerate launch -m axolotl.cli.train cfg.yml",
        "python -m accelerate.commands.launch --mixed_precision bf16 -m axolotl.cli.train cfg.yml",
        "torchrun --nproc_per_node=8 -m axolotl.cli.train cfg.yml",
        "python3 -m torch.distributed.run --nproc-per-node 2 -m axolotl.cli.train cfg.yml",
        "deepspeed --num_gpus 4 --module axolotl.cli.train cfg.yml",
        "srun -N 2 --ntasks-per-node 8 python -m axolotl.cli.train cfg.yml",
        "env CUDA_VISIBLE_DEVICES=0 nohup python -m axolotl.cli.train --config=cfg.yml",
        "python -m axolotl.cli.main train cfg.yml",
        "accelerate launch scripts/finetune.py cfg.yml --deepspeed zero2.json",
        "torchrun src/axolotl/cli/train.py cfg.yml",
        "bash -c 'axolotl train cfg.yml'",
        "sh -lc 'cd . && exec axolotl train cfg.yml'",
        "bash -euxo pipefail -c 'accelerate launch -m axolotl.cli.train cfg.yml 2>&1 | tee log.txt'",
        "docker run --gpus all image bash -lc 'axolotl train cfg.yml'",
        "nohup bash -c 'torchrun --nproc_per_node 8 -m axolotl.cli.train cfg.yml'",
        "bash -c 'axolotl train $0' cfg.yml",
        "bash -c 'axolotl train \"$@\"' run cfg.yml",
        "axolotl train cfg.yml --cloud cloud.yml",
    ],
)
def test_the_config_is_found_behind_any_launcher(command: str):
    assert read_command(shlex.split(command)).config == "cfg.yml"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("axolotl preprocess cfg.yml", "preprocess"),
        ("accelerate launch -m axolotl.cli.evaluate cfg.yml", "evaluate"),
        ("axolotl train cfg.yml --sweep sweep.yml", "sweep"),
        ("axolotl train https://host/cfg.yml", "the config is at a URL, which is not fetched"),
        ("python -m axolotl.cli.main preprocess cfg.yml", "`axolotl preprocess` trains nothing"),
        ("python -m axolotl.cli.main", "does not run `axolotl train`"),
        ("accelerate launch scripts/finetune.py cfg.yml --merge_lora", "merge_lora"),
        ("python scripts/finetune.py cfg.yml --prepare_ds_only=True", "prepare_ds_only"),
        ("bash -c 'echo axolotl train cfg.yml.bak | wc'", "bash -c has no plain"),
        ("bash no-such-script.sh", "does not run `axolotl train`"),
        ("bash", "does not run `axolotl train`"),
        ("axolotl train", "names no config"),
        ("python train.py cfg.yml", "does not run `axolotl train`"),
        ("axolotl", "does not run `axolotl train`"),
    ],
)
def test_what_trains_no_config_is_said(command: str, reason: str):
    found = read_command(shlex.split(command))
    assert found.config is None
    assert reason in found.reason


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("axolotl train c.yml", (8, 1)),
        ("axolotl train c.yml --num-processes 4", (4, 1)),
        ("axolotl train c.yml --launcher python", (1, 1)),
        ("axolotl train c.yml --launcher torchrun -- --nproc_per_node=2 --nnodes=2", (2, 2)),
        ("axolotl train c.yml -- --num_processes 16 --num_machines 2", (8, 2)),
        ("accelerate launch --num_processes 16 --num_machines=4 -m axolotl.cli.train c.yml", (4, 4)),
        ("accelerate launch --num-processes=2 -m axolotl.cli.train c.yml", (2, 1)),
        ("torchrun --nproc-per-node gpu --nnodes 2:4 -m axolotl.cli.train c.yml", (8, 2)),
        ("torchrun --standalone --nproc_per_node 4 -m axolotl.cli.train c.yml", (4, 1)),
        ("deepspeed --num_nodes 2 --num_gpus 4 -m axolotl.cli.train c.yml", (4, 2)),
        ("srun -N 2 --ntasks-per-node=4 python -m axolotl.cli.train c.yml", (4, 2)),
        ("srun --nodes=2 --ntasks=2 torchrun --nproc_per_node=8 --nnodes=2 -m axolotl.cli.train c.yml", (8, 2)),
        ("srun -N 4 --ntasks-per-node=1 accelerate launch --num_processes 32 -m axolotl.cli.train c.yml", (8, 4)),
        ("accelerate launch --num_processes many -m axolotl.cli.train c.yml", (8, 1)),
        ("python -m axolotl.cli.main train c.yml --num-processes 4", (4, 1)),
        ("srun -N 2 bash -c 'torchrun --nproc_per_node 4 -m axolotl.cli.train c.yml'", (4, 2)),
        ("bash -c 'PET_NPROC_PER_NODE=2 torchrun -m axolotl.cli.train c.yml'", (8, 1)),
        ("bash -c 'export PET_NPROC_PER_NODE=2; torchrun -m axolotl.cli.train c.yml'", (2, 1)),
        ("axolotl train c.yml --cloud x.yml --launcher python", (1, 1)),
        ("axolotl train c.yml --cloud x.yml --launcher torchrun -- --nproc_per_node=2", (2, 1)),
    ],
)
def test_processes_and_nodes_are_the_launchers(command: str, expected: tuple[int, int]):
    assert counts(command) == expected


def test_the_environment_says_what_flags_leave_open(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    assert counts("srun torchrun --nproc_per_node 8 -m axolotl.cli.train c.yml") == (8, 4)
    monkeypatch.setenv("PET_NPROC_PER_NODE", "2")
    assert counts("torchrun -m axolotl.cli.train c.yml") == (2, 4)


def test_accelerates_own_file_is_read(tmp_path):
    file = tmp_path / "accelerate.yaml"
    file.write_text("num_machines: 2\nnum_processes: 8\ngpu_ids: all\n")
    assert counts(f"accelerate launch --config_file {file} -m axolotl.cli.train c.yml") == (4, 2)
    assert counts(f"accelerate launch --config_file={file} --num_processes 2 -m axolotl.cli.train c.yml") == (1, 2)
    file.write_text("- not a mapping\n")
    assert counts(f"accelerate launch --config_file {file} -m axolotl.cli.train c.yml") == (8, 1)


def test_chosen_gpus_are_told():
    assert (
        read_command(shlex.split("accelerate launch --gpu_ids 0,1 -m axolotl.cli.train c.yml")).scale.devices == "0,1"
    )
    found = read_command(shlex.split("env CUDA_VISIBLE_DEVICES=2,3 axolotl train c.yml"))
    assert found.environment == {"CUDA_VISIBLE_DEVICES": "2,3"}


def test_overrides_are_keys_of_the_config():
    command = (
        "axolotl train c.yml --micro-batch-size 4 --sequence_len=8192 --no-sample-packing --flash-attention "
        "--trl.beta 0.1 --launcher accelerate --debug --deepspeed zero3.json"
    )
    assert read_command(shlex.split(command)).overrides == {
        "micro_batch_size": "4",
        "sequence_len": "8192",
        "sample_packing": False,
        "flash_attention": True,
        "trl.beta": "0.1",
        "deepspeed": "zero3.json",
    }


@pytest.mark.parametrize("word", ["--=", "--=x", "--no-"])
def test_an_option_without_a_name_is_no_key(word: str):
    command = read_command(["axolotl", "train", word, "cfg.yml", "--lora_r=8"])
    assert (command.config, command.overrides) == ("cfg.yml", {"lora_r": "8"})
