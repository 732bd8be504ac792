"""The command with its core dependencies alone: it installs, checks and fixes, and loads nothing heavy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import advisor

ROOT = Path(__file__).parents[1]
SHIPPED = ("pyproject.toml", "README.md", "LICENSE", "advisor", "rules", "plugins", "sample_configs")
HEAVY = ("torch", "transformers", "deepspeed", "pydantic", "jsonschema", "numpy", "axolotl")
CONFIG = """\
base_model: meta-llama/Llama-3.1-8B
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 8
optimizer: adamw_torch_fused
learning_rate: 0.00002
bf16: true
gradient_checkpointing: true
attn_implementation: flash_attention_2
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
"""
COMMAND = """
import sys

import advisor
from advisor.cli.main import main

try:
    main()
except SystemExit as error:
    code = error.code or 0
print("from", advisor.__file__, file=sys.stderr)
print("loaded", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""
GPUS = ("--isolated", "--gpus", "1x a100-40gb")


def run(python: str, folder: Path, *arguments: str) -> tuple[int, str, list[str], str]:
    """One command in a process of its own: its code, what it says, the packages that it loaded, and where it lies."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "COLUMNS"}}
    done = subprocess.run(
        [python, "-c", COMMAND, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"NO_COLOR": "1"},
    )
    told = [line.split(" ") for line in done.stderr.splitlines()]
    loaded = next((line[1:] for line in told if line[0] == "loaded"), None)
    assert loaded is not None, done.stderr
    place = next(line[1] for line in told if line[0] == "from")
    return done.returncode, done.stdout, loaded, place


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "config.yaml"
    path.parent.mkdir()
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("check", "--diff"), ("estimate",), ("estimate", "--ledger"), ("check", "--output-format", "json")],
    ids=" ".join,
)
def test_a_command_loads_nothing_heavy_even_where_it_is_installed(config: Path, arguments: tuple[str, ...]):
    code, _, loaded, _ = run(sys.executable, config.parent, *arguments, *GPUS, config.name)
    assert code == 1
    assert not set(HEAVY) & set(loaded)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment that holds this project and its core dependencies alone."""
    folder = tmp_path_factory.mktemp("bare")
    # A copy, since a build leaves its files in the source tree.
    source = folder / "source"
    source.mkdir()
    for name in SHIPPED:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    installing = [str(python), "-m", "pip", "install", "--quiet", str(source)]
    done = subprocess.run(installing, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode and ("connection" in done.stderr.lower() or "resolve" in done.stderr.lower()):
        pytest.skip(f"no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return str(python)


@pytest.mark.oracle
def test_a_bare_install_checks_a_config(bare: str, config: Path):
    code, said, loaded, place = run(bare, config.parent, "check", *GPUS, config.name)
    assert code == 1
    assert said.startswith("Does not fit")
    assert not set(HEAVY) & set(loaded)
    assert Path(place).is_relative_to(Path(bare).parents[1])


@pytest.mark.oracle
def test_a_bare_install_makes_a_run_fit(bare: str, config: Path):
    code, _, loaded, _ = run(bare, config.parent, "check", "--fix", "--unsafe-fixes", *GPUS, config.name)
    assert code == 0
    assert not set(HEAVY) & set(loaded)
    assert config.read_text(encoding="utf-8") != CONFIG
    code, said, _, _ = run(bare, config.parent, "check", *GPUS, config.name)
    assert code == 0
    assert said.startswith("Fits")


@pytest.mark.oracle
def test_a_bare_install_keeps_the_promises_of_its_rules(bare: str, config: Path):
    """``advisor test`` runs every example inside the installed rules."""
    code, said, _, _ = run(bare, config.parent, "test")
    assert code == 0, said


@pytest.mark.oracle
def test_a_bare_install_has_its_command(bare: str, config: Path):
    advisor = Path(bare).with_name("advisor")
    done = subprocess.run([str(advisor), "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "check" in done.stdout


@pytest.mark.oracle
def test_a_bare_install_has_the_version_that_the_package_says(bare: str):
    code = "from importlib.metadata import version; print(version('axolotl-advisor'))"
    done = subprocess.run([bare, "-c", code], capture_output=True, text=True, check=True, cwd=Path(bare).parent)
    assert done.stdout.strip() == advisor.__version__


@pytest.mark.oracle
def test_a_bare_install_ships_the_schema_of_its_json(bare: str):
    code = "import importlib.resources as r; print(r.files('advisor.report').joinpath('schema.json').read_text())"
    done = subprocess.run([bare, "-c", code], capture_output=True, text=True, check=True, cwd=Path(bare).parent)
    assert done.stdout.strip() == (ROOT / "advisor" / "report" / "schema.json").read_text(encoding="utf-8").strip()
