"""Standard streams that are closed or full: a good run starts as it was left, a bad one is stopped all the same."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REST = "sequence_len: 1024\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\ngradient_checkpointing: true\n"
SMALL = "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
CONFIGS = {"small.yml": f"base_model: meta-llama/Llama-3.2-1B\n{SMALL}", "large.yml": "base_model: Qwen/Qwen2.5-72B\n"}
TRAINED = "import os, stat\nfound = [n for n in range(3) if os.path.exists(f'/proc/self/fd/{n}')]\n"
"""Which streams there are when the training starts, in the name of a folder: that can be made where nothing can be written."""
LEFT = f"{TRAINED}os.mkdir('trained ' + ' '.join(map(str, found)))\n"
PLUGIN = f"""\
import sys; sys.argv = ["axolotl", "train", sys.argv[1]]
import yaml
from advisor.plugins.axolotl import AdvisorPlugin
with open(sys.argv[2]) as file:
    config = yaml.safe_load(file)
AdvisorPlugin().register({{**config, "axolotl_config_path": sys.argv[2], "advisor": {{"gpus": "1x rtx-4090"}}}})
{LEFT}"""
ADVISE = "import sys; from advisor.plugins.axolotl.advise import advise; advise(prog_name='axolotl advise')"
STREAMS = {
    "2>/dev/full": "0 1 2",
    "2>errors": "0 1 2",
    ">/dev/full": "0 1 2",
    "2>&-": "0 1",
    ">&-": "0 2",
    "<&-": "1 2",
    "<&- >&- 2>&-": "",
}
"""Redirections, ``2>errors`` where no byte can be written to a file, and the streams that a command then has."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    base = tmp_path / "axolotl" / "integrations" / "base.py"
    train = tmp_path / "axolotl" / "cli" / "train.py"
    for module, text in ((base, "class BasePlugin: ...\n"), (train, LEFT)):
        module.parent.mkdir(parents=True)
        (module.parent / "__init__.py").touch()
        module.write_text(text)
    (tmp_path / "axolotl" / "__init__.py").touch()
    for name, text in CONFIGS.items():
        (tmp_path / name).write_text(text + REST)
    return tmp_path


def run(folder: Path, streams: str, *command: str) -> tuple[int, list[str]]:
    """The exit code, and what of the training is there."""
    limit = "ulimit -f 0; " if "errors" in streams else ""
    done = subprocess.run(
        ["bash", "-c", f"{limit}{shlex.join([sys.executable, *command])} {streams}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    for name, text in CONFIGS.items():
        assert (folder / name).read_text() == text + REST
    return done.returncode, [path.name for path in folder.glob("trained*")]


def launch(config: str) -> tuple[str, ...]:
    trained = ("--", sys.executable, "-m", "axolotl.cli.train", config)
    return ("-m", "advisor", "launch", "--gpus", "1x rtx-4090", *trained)


def advise(config: str) -> tuple[str, ...]:
    return ("-c", ADVISE, config, "--gpus", "1x rtx-4090")


@pytest.mark.slow
@pytest.mark.parametrize("streams", STREAMS)
def test_a_launch_needs_no_stream_and_leaves_them_as_they_are(folder: Path, streams: str):
    assert run(folder, streams, *launch("small.yml")) == (0, [f"trained {STREAMS[streams]}"])


@pytest.mark.slow
@pytest.mark.parametrize("streams", STREAMS)
def test_a_launch_is_blocked_where_nothing_can_be_said(folder: Path, streams: str):
    assert run(folder, streams, *launch("large.yml")) == (1, [])


@pytest.mark.slow
@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize(("config", "code"), [("small.yml", 0), ("large.yml", 1)])
def test_advise_exits_by_its_verdict_whatever_the_streams(folder: Path, streams: str, config: str, code: int):
    lines = (folder / config).read_text() + "learning_rate: 1e-5\ndatasets: [{path: a/b, type: alpaca}]\n"
    (folder / "run.yml").write_text(lines)
    assert run(folder, streams, *advise("run.yml"))[0] == code


@pytest.mark.slow
@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize(("config", "code"), [("small.yml", 0), ("large.yml", 1)])
def test_the_plugin_decides_whatever_the_streams(folder: Path, streams: str, config: str, code: int):
    trained = [f"trained {STREAMS[streams]}"] if code == 0 else []
    assert run(folder, streams, "-c", PLUGIN, config) == (code, trained)


def test_what_the_plugin_says_goes_into_no_file_that_took_the_place_of_a_closed_stream(folder: Path):
    opened = "import os\ntaken = os.open('model.bin', os.O_CREAT | os.O_RDWR)\nassert taken == 2\n"
    assert run(folder, "2>&-", "-c", opened + PLUGIN, "large.yml") == (1, [])
    assert (folder / "model.bin").read_bytes() == b""


def test_what_is_opened_takes_the_place_of_no_closed_stream(folder: Path):
    code = "from advisor import streams; streams.take_places(); file = open('model.bin', 'w'); assert file.fileno() > 2"
    assert run(folder, "<&- >&- 2>&-", "-c", code)[0] == 0


@pytest.mark.parametrize("streams", [">/dev/full", ">&-"])
def test_a_report_that_cannot_be_written_is_an_error_with_its_cause(folder: Path, streams: str):
    command = shlex.join([sys.executable, "-m", "advisor", "check", "--gpus", "1x t4", "small.yml"])
    done = subprocess.run(["bash", "-c", f"{command} {streams}"], cwd=folder, stderr=subprocess.PIPE, check=False)
    causes = {">/dev/full": b"No space left on device", ">&-": b"Bad file descriptor"}
    assert (done.returncode, done.stderr) == (2, b"error: OSError: %b\n" % causes[streams])


def test_an_error_that_cannot_be_said_keeps_its_code(folder: Path):
    for streams in ("2>/dev/full", "2>&-"):
        assert run(folder, streams, "-m", "advisor", "check", "nothing.yml")[0] == 2


def test_json_is_whole_where_standard_error_is_closed(folder: Path):
    command = shlex.join([sys.executable, "-m", "advisor", "check", "--output-format", "json", "small.yml"])
    done = subprocess.run(["bash", "-c", f"{command} 2>&-"], cwd=folder, stdout=subprocess.PIPE, check=False)
    assert json.loads(done.stdout)["version"] == 1
