"""Odd calls: options that nobody tested together, on mutated configs, and launch lines with nothing behind them."""

import os
import shlex
from pathlib import Path
from typing import Any
from unittest import mock

from advisor.plugins.axolotl.advise import advise
from hypothesis import strategies as st

from advisor.cli import launch
from advisor.report import FORMATS

from .check import files_in, run
from .mutations import LINES, TOKENS, mutated

Values = tuple[list[str], list[str]]
"""Of an option: those that can be meant, however odd, and those that cannot."""
SIZES = ["1", "8", "512", "131072", "999999999999999999"], ["0", "-1", "1e3", "9" * 60, "many"]
TOKEN_COUNTS = ["1", "200M", "1.5B", "3T", "999999T"], ["0", "-5", "nan", "1e400", "9" * 400, "M", ""]
PRICES = ["0", "1.5", "1e308", "1e-300"], ["-1", "nan", "inf", "free"]
GPUS = (
    ["1x t4", "1x rtx-4090", "8x a100-80gb", "1024n8x h100", "1x h200 link=pcie net=1Gb/s", "3x rtx-3060", "1x mi300x", "2n1x t4 net=10Gb/s", "1x t4 host=1GiB"],
    ["1x nothing", "8x", "", "0x t4", "-1x t4", "1x t4 host=1", "1x h100 host=" + "9" * 30 + "TiB", "2x a100", "1.5x t4", "٣x t4", "3x rtx-3060 net=0Gb/s"],
)  # fmt: skip
STACKS = (
    [
        "installed", "torch=2.9.0", "trainer=trl-sft", "trainer=HF,amp=true", "zero_init=false,padding=packed", "base_dtype=float32",
        "axolotl=0.12.0", "transformers=>=4.48", "expandable_segments=true", "trainer=hf-trainer,padding=longest,prepare_kbit=true",
    ],
    ["=", ",", "torch=", "torch=2.9.0,torch=1.0", "nothing=1", "prepare_kbit=maybe", "torch=" + "9" * 400],
)  # fmt: skip
RULES = ["does-not-fit", "zero-2,zero-3", "unknown-key", "qlora", "smaller-micro-batch"], ["no-such-rule", "", ","]
FILES = ["prices.toml"], ["nowhere.toml", "run.yaml", ".", "/dev/null", "\x00"]
OF_A_RUN: dict[str, Values] = {
    "--gpus": GPUS,
    "--stack": STACKS,
    "--images": (["1x1x1", "8x1024x1024", "1x28x28", "0x0x0", "9999x99999x99999", "2x1x99999"], ["-1x1x1", "many", "1x1", "٣x1x1", "", "1x1024x0"]),
    "--flowchart": (["default", "huggingface", "pytorch", "safe-first"], ["nothing", "chart.toml", "run.yaml", ".", ""]),
    "--model-config": (["Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B", "google/gemma-3-4b-it"], [".", "ds.json", "config.json", "nobody/nothing", "run.yaml", ""]),
}  # fmt: skip
OF_A_CHECK: dict[str, Values] = {
    "--row-length": SIZES, "--select": RULES, "--ignore": RULES, "--fail-on": (["error", "note"], ["none"]), "--exclude": (["**/**", "run.*", "[", ""], []),
}  # fmt: skip
OF_AN_ESTIMATE: dict[str, Values] = {
    "--row-length": SIZES, "--tokens": TOKEN_COUNTS, "--price": PRICES, "--prices": FILES, "--timeline": (["step.svg"], ["."]),
    "--max": (["sequence_len", "micro_batch_size"], ["lora_r", ""]), "--output-format": (["full", "json", "html"], ["text"]),
}  # fmt: skip
OF_HARDWARE: dict[str, Values] = {
    "--cards": (["t4,h100", "a100", "l40s"], ["nothing", ",", ""]), "--tokens": TOKEN_COUNTS, "--price": PRICES, "--prices": FILES,
    "--within": (["6h", "2d", "999999h"], ["0h", "1e400h", "nan", ""]), "--under": PRICES, "--output-format": (["full", "json", "markdown"], ["text"]),
}  # fmt: skip
WRITING = [["--fix"], ["--diff"], ["--fix", "--unsafe-fixes"], ["--fix", "--faster"], ["--diff", "--faster", "--unsafe-fixes"], ["--unsafe-fixes"], ["--fix", "--output-dir", "out"], []]  # fmt: skip
HUGE = [
    "micro_batch_size: 32768", "micro_batch_size: 8192", "sequence_len: 131072", "sequence_len: 8", "sequence_len: 1", "sequence_len: 999999999999",
    "gradient_accumulation_steps: 1000000", "num_epochs: 1e9", "max_steps: 1", "lora_r: 65536", "eval_batch_size: 8192", "val_set_size: 0.5", "num_generations: 4096",
    "processor_type: AutoProcessor", "image_size: 1", "image_size: 99999", "rl: dpo", "adapter: -.inf", "fsdp_config: {a: 1}", "trl: {vllm_gpu_memory_utilization: 7}",
    "base_model: Qwen/Qwen2-VL-7B-Instruct", "base_model: Qwen/Qwen3-30B-A3B", "base_model: google/gemma-3-4b-it", "base_model: mistralai/Magistral-Small-2507",
]  # fmt: skip
"""Lines with which more has gone wrong than with others."""
PRICE_FILES = ["t4 = 1.0", '"a100-80gb" = "free"', "t4 = nan", "[t4]\nusd = 1", "t4 = -1", "= 1", ""]
STARTS = [
    "axolotl train run.yaml", "python -m axolotl.cli.train run.yaml", "accelerate launch --num_processes 4 -m axolotl.cli.train run.yaml",
    "torchrun --nproc_per_node=8 --nnodes=2 -m axolotl.cli.train run.yaml", "deepspeed --num_gpus 2 --module axolotl.cli.train run.yaml",
    "srun -N 2 --ntasks-per-node=8 axolotl train run.yaml", "env CUDA_VISIBLE_DEVICES=0,1 axolotl train run.yaml", "bash -c 'axolotl train run.yaml'",
    "bash run.sh", "axolotl train run.yaml --launcher torchrun -- --nproc_per_node=4", "axolotl train run.yaml --cloud cloud.yaml", "axolotl inference run.yaml",
    "python scripts/finetune.py run.yaml", "axolotl", "python", "sh -c", "accelerate launch --config_file acc.yaml -m axolotl.cli.train run.yaml", "axolotl train ds.json",
]  # fmt: skip
WORDS = [
    "--micro_batch_size=32768", "--sequence-len", "1", "--adapter", "-.inf", "--fsdp_config.fsdp_version=2", "--deepspeed", "ds.json", "--no-sample-packing",
    "--base_model=Qwen/Qwen3-30B-A3B", "--datasets=[{a: 1}]", "--a.b.c=1", "--=", "--", "-", "", "--num_processes", "999999999", "-N", "0", "--nnodes=1:4", "RANK=1", "A=$(x)", "$X", "'", "*",
]  # fmt: skip
SCRIPTS = ["axolotl train run.yaml\n", "set -e\nexport A=1\nfor i in 1 2; do axolotl train run.yaml; done\n", "if true; then\n", "bash run.sh\n", "cat <<EOF\naxolotl train\n"]  # fmt: skip
CLOUDS = ["provider: modal\ngpu: h100\ngpu_count: 8\n", "provider: nothing\n", "gpu: [1]\n", "- a\n", "", "provider: modal\ngpu: 7\ngpu_count: many\n"]  # fmt: skip
VARIABLES = {
    "RANK": ["0", "1", "x"], "LOCAL_RANK": ["3", ""], "SLURM_JOB_NUM_NODES": ["2", "-1"], "CUDA_VISIBLE_DEVICES": ["0,1", "", "GPU-1"],
    "ADVISOR_GPUS": ["1x t4", "1x nothing"], "ADVISOR_FAIL_ON": ["note", "zzz"], "ADVISOR_RULES": ["nowhere", ":"], "ADVISOR_FLOWCHART": ["nothing"], "ADVISOR_NARROW": ["1"],
}  # fmt: skip


@st.composite
def harmed_config(draw: Any, text: str) -> str:
    """A config with none to three harms, some of which are huge."""
    for _ in range(draw(st.integers(0, 3))):
        text = mutated(draw, st, text, [*LINES, *4 * HUGE])
    key = draw(st.sampled_from([None, *HUGE])) or "#"
    kept = [line for line in text.split("\n") if not line.startswith(key.partition(":")[0] + ":")]
    return "\n".join([*kept, key, ""])


def options(draw: Any, known: dict[str, Values], most: int = 4) -> list[str]:
    """Some options with a value each, seldom one that cannot be meant."""
    names = draw(st.lists(st.sampled_from(sorted(known)), max_size=most, unique=True))
    return [word for name in names for word in (name, value(draw, known[name]))]


def value(draw: Any, values: Values) -> str:
    """One of them."""
    meant, odd = values
    return draw(st.sampled_from(meant if draw(st.integers(0, 9)) else [*odd, *TOKENS]))


@st.composite
def call(draw: Any) -> list[str]:
    """One command on the config, with odd options."""
    of_a_run = options(draw, OF_A_RUN)
    given = of_a_run if "--gpus" in of_a_run or not draw(st.integers(0, 3)) else [*of_a_run, "--gpus", "1x rtx-4090"]
    match draw(st.sampled_from(["check", "check", "fix", "estimate", "estimate", "hardware", "oom"])):
        case "check":
            form = draw(st.sampled_from(list(FORMATS)))
            return ["check", *given, *options(draw, OF_A_CHECK), "--output-format", form, "run.yaml"]
        case "fix":
            return ["check", *given, *options(draw, OF_A_CHECK, 2), *draw(st.sampled_from(WRITING)), "run.yaml"]
        case "estimate":
            ledger = draw(st.sampled_from([[], ["--ledger"]]))
            return ["estimate", *given, *options(draw, OF_AN_ESTIMATE, 3), *ledger, "run.yaml"]
        case "hardware":
            return ["hardware", *given, "--cards", "t4,rtx-4090,h100", *options(draw, OF_HARDWARE, 3), "run.yaml"]
        case _:
            return ["oom", *given, "--config", "run.yaml", "log.txt"]


@st.composite
def line(draw: Any) -> list[str]:
    """A launch line, mostly with a slip."""
    words = shlex.split(draw(st.sampled_from(STARTS)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(words)))
        words[at : at + draw(st.integers(0, 1))] = [draw(st.sampled_from([*WORDS, *TOKENS]))]
    return [word for word in words if "\x00" not in word] or ["axolotl"]


def called(folder: Path, files: dict[str, str], words: list[str]) -> str:
    """What became of a call: its exit code. Where it does not fix, nothing is written but what it names."""
    put(folder, files)
    before = files_in(folder)
    code, _ = run(*words)
    if not {"--fix", "--timeline"} & {*words}:
        assert files_in(folder) == before, "a file was written"
    return f"exit {code}"


def launched(folder: Path, files: dict[str, str], words: list[str], environment: dict[str, str], own: list[str]) -> str:
    """What became of a launch: ``started`` or ``blocked``, or the exit code of advise; it never ends otherwise."""
    put(folder, files)
    started: list[object] = []
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(launch, "become", lambda to: started.append(to) or 0),
    ):
        code, _ = run("launch", *own, "--", *words)
        assert code == 2 or code == (0 if started else 1), code
        if words[:2] == ["axolotl", "train"]:
            run(*words[2:], *own, command=advise)
    return "started" if started else "blocked" if code == 1 else "refused"


def put(folder: Path, files: dict[str, str]) -> None:
    """The files of an input in its folder, which is then the working directory."""
    os.chdir(folder)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
