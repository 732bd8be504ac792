"""Inputs that are short texts, each with what holds of every one: logs, hardware as it is written, settings."""

import json
import math
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from advisor.cli.crash_log import read_death
from advisor.errors import InputError
from advisor.hardware import find_gpu, gpu_names, parse_hardware
from advisor.hardware.detection import Card, gpu_of
from advisor.hardware.instances import instances
from advisor.settings import load_settings

from .check import files_in, run
from .mutations import LONG, TOKENS, mutated

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of "
    "which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.09 GiB memory in use. Of the allocated "
    "memory 75.38 GiB is allocated by PyTorch, and 1.73 GiB is reserved by PyTorch but unallocated."
)
OLD_OOM = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 21.98 GiB already "
    "allocated; 11.69 MiB free; 22.31 GiB reserved in total by PyTorch)"
)
LOG_LINES = [
    OOM, OLD_OOM, OOM.replace(". ", ".\n"), OOM.replace("capacity", "capacty").replace("79.15", "14.58"),
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.66 GB, other allocations: 384.00 KB, max allowed: 18.13 GB). "
    "Tried to allocate 500.00 MB on private pool.",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
    "Error out of memory at line 380 in file /src/csrc/pythonInterface.cpp", "CUDA error: out of memory",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "[rank1]: NCCL error in: ProcessGroupNCCL.cpp, ncclRemoteError", "exits with return code = -9", "OOMKilled",
    "run.sh: line 3:   812 Killed                  axolotl train run.yaml", "numpy.core._exceptions.MemoryError: no memory",
    "Traceback (most recent call last):", '  File "/x/transformers/trainer.py", line 3749, in training_step',
    '  File "/x/torch/autograd/graph.py", line 865, in _engine_run_backward', '  File "/x/torch/optim/adamw.py", line 4, in step',
    '  File "/x/modeling_utils.py", line 4, in from_pretrained', "NVIDIA A100-SXM4-40GB", "world_size: 8", "",
]  # fmt: skip
NUMBERS = ["0.00", "79.15", "80.00", "1024.00", "0.01", "999999.00", "9" * 30, "9" * 400, "-1", "nan", "1e9", "bytes"]
SETTINGS = """\
gpus = "8x a100-80gb"
fail-on = "warning"
select = ["unknown-key", "does-not-fit"]
ignore = [
    "qlora",  # not here
]
flowchart = "safe-first"
output-format = "concise"
exclude = ["old/**"]

[per-file-ignores]
"*.json" = ["lora"]

[models]
"ours/7b" = "Qwen/Qwen2.5-7B"

[flowcharts]
short = ["zero-2"]

[stack]
torch = "2.6.0"
trainer = "hf-trainer"
zero_init = false
"""
SETTING_LINES = [
    'rules = ["nowhere"]', 'output-format = "json=out.json"', 'fail-on = "note"', "[stack]", 'axolotl = "0.19.0"', "gpus = 8",
    'flowchart = "short"', "[flowcharts.short]", 'short = [{name = "a", steps = ["zero-2"]}]', "[tool.advisor]", "isolated = true",
]  # fmt: skip
DEEPSPEED = (
    '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto"}\n'
)
NAMES = [*gpu_names(), *sorted(instances()), "a100", "v100", "4090", "NVIDIA A100-SXM4-80GB", "nothing", "h100 nvl", ""]
FORMS = ["{name}", "{count}x {name}", "{name}:{count}", "{name} x{count}", "{count}n{count}x {name}", "{count} {name}s", "{count}×{name}"]  # fmt: skip
OPTIONS = ["", " host=512GiB", ", host = 2TB", " link=pcie", " net=100Gb/s", " host=", " host=0B", " net=1e3Gb/s", " host=1x host=2G", " link=nvlink net=3.2Tb/s"]  # fmt: skip
COUNTS = ["1", "2", "4", "8", "8", "16", "0", "128", "129", "-1", "1.5", "", "9" * 5000, "٣", "4096"]


@st.composite
def log(draw: Any) -> str:
    """A log of a few lines with one to four harms, its figures among them."""
    lines = draw(st.lists(st.sampled_from(LOG_LINES), min_size=1, max_size=8))
    text = "\n".join([*lines, ""])
    for _ in range(draw(st.integers(0, 2))):
        old = draw(
            st.sampled_from(["2.00", "79.15", "1.05", "75.38", "1.73", "20.00", "23.69", "3", "GiB", "17.66", ". "])
        )
        text = text.replace(old, draw(st.sampled_from([*NUMBERS, "MiB", "KiB", "TB", "\r", ""])))
    for _ in range(draw(st.integers(0, 2))):
        text = mutated(draw, st, text, LOG_LINES)
    return text


@st.composite
def hardware(draw: Any) -> str:
    """Hardware as people may write it, mostly with a slip."""
    text = draw(st.sampled_from(FORMS)).format(
        name=draw(st.sampled_from(NAMES)), count=draw(st.sampled_from(COUNTS))
    ) + draw(st.sampled_from(OPTIONS))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))):
        at = draw(st.integers(0, len(text)))
        piece = draw(
            st.one_of(st.sampled_from([*TOKENS, " ", "x", "-", "gb", ":"]), st.characters(exclude_categories=["Cs"]))
        )
        text = text[:at] + piece + text[at + draw(st.integers(0, 3)) :]
    return text


@st.composite
def settings_file(draw: Any) -> str:
    """An ``advisor.toml`` with one to four harms."""
    text = SETTINGS
    for _ in range(draw(st.integers(1, 4))):
        harm = draw(st.integers(0, 3))
        rows = text.split("\n")
        if harm == 0 and rows:
            at = draw(st.integers(0, len(rows) - 1))
            rows[at] = (
                rows[at].partition("=")[0] + "= " + draw(st.sampled_from([*TOKENS, *LONG, '"text"', "[1]", "{a = 1}"]))
            )
            text = "\n".join(rows)
        else:
            text = mutated(draw, st, text, SETTING_LINES)
    return text


def log_read(folder: Path, text: str) -> str:
    """What became of a log: ``refused`` or ``explained``, in figures that are numbers of this world."""
    os.chdir(folder)
    Path("log.txt").write_text(text, encoding="utf-8", newline="")
    try:
        death = read_death(text)
    except InputError as error:
        assert error.line and error.message.isprintable(), error
        death = None
    code, said = run("oom", "--isolated", "log.txt")
    assert (code == 2) == (death is None), (code, death)
    if death is None:
        return "refused"
    sizes = [
        value for key, value in asdict(death).items() if isinstance(value, int) and key not in {"line", "followed"}
    ]
    assert all(0 <= size < 1 << 63 and math.isfinite(size) for size in sizes), death
    assert death.line <= text.count("\n") + text.count("\r") + 1, death
    assert f"log.txt:{death.line}" in said and "None" not in said, said
    return "explained"


def hardware_read(folder: Path, text: str) -> str:
    """What became of a text: ``refused`` in one line, or ``read``, and then written it reads back to the same."""
    del folder
    card = Card(0, "GPU-0", text, 24 << 30, 20 << 30, (8, 6), sliced=False)
    assert gpu_of(card).total_bytes > 0
    find_gpu(text)
    try:
        found = parse_hardware(text)
    except InputError as error:
        assert error.message and error.remedy, error
        return "refused"
    again = parse_hardware(found.spec)
    assert replace(again, source="") == replace(found, source=""), (found.spec, found, again)
    return "read"


def settings_read(folder: Path, text: str) -> str:
    """What became of settings: ``refused`` or ``read``; a check under them does the same, and writes nothing."""
    os.chdir(folder)
    Path("advisor.toml").write_text(text, encoding="utf-8", newline="")
    Path("ds.json").write_text(DEEPSPEED, encoding="utf-8")
    before = files_in(folder)
    try:
        found = load_settings(folder)
    except InputError as error:
        assert "\n" not in error.message, error
        found = None
    code, said = run("check", "ds.json")
    assert files_in(folder) == before, "a check under these settings wrote something"
    if found is None:
        assert code == 2, said
        return "refused"
    if code != 2 and found.output_format in ("json", "sarif", "gitlab") and said:
        json.loads(said)
    return "read" if code != 2 else "read, and not possible"
