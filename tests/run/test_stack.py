"""The stack: what its fields may be, wherever it is said."""

import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

import advisor
from advisor.cli.main import main
from advisor.errors import InputError
from advisor.run.stack import KINDS, PACKAGES, BaseDtype, Padding, Stack, Trainer, installed_versions, read_stack

YAML = "base_model: meta-llama/Llama-3.2-1B\nsequence_len: 1024\nmicro_batch_size: 1\n"


@pytest.mark.parametrize(("key", "kind"), [("trainer", Trainer), ("base_dtype", BaseDtype), ("padding", Padding)])
def test_every_word_of_a_field_is_allowed_and_named_where_another_is_refused(key: str, kind: object):
    for word in get_args(kind):
        assert getattr(read_stack({key: word}), key) == word
    with pytest.raises(InputError) as caught:
        read_stack({key: "typo"})
    assert caught.value.message == f"`{key}` is `typo` in stack"
    assert all(word in caught.value.remedy for word in get_args(kind))


@pytest.mark.parametrize("key", [key for key, kind in KINDS.items() if kind is str])
def test_a_version_that_is_none_is_refused(key: str):
    for value in ("", "latest", "x2.0", "2.6;0", ">=", "2.6,", "2 6", "<<2"):
        with pytest.raises(InputError, match="write a version"):
            read_stack({key: value})
    with pytest.raises(InputError, match="write a version"):
        read_stack({key: 2.6})


@pytest.mark.parametrize(
    "version",
    [
        "2",
        "2.13.0",
        "v2.6",
        "2.6.0+cu124",
        "2.9.0a0+145a3a7",
        "0.19.0.dev0",
        "5.0.0rc1",
        ">=0.18.6,<0.19",
        "~=4.48, !=4.49",
    ],
)
def test_versions_and_ranges_as_pip_has_them_are_allowed(version: str):
    assert read_stack({"torch": version}).torch == version


@pytest.mark.parametrize("key", ["zero_init", "amp", "prepare_kbit", "expandable_segments"])
def test_a_flag_takes_true_or_false(key: str):
    assert getattr(read_stack({key: False}), key) is False
    for value in ("yes", "", 1):
        with pytest.raises(InputError, match="write true or false"):
            read_stack({key: value})


def test_what_the_default_says_is_allowed():
    default = {key: getattr(Stack(), key) for key in KINDS}
    assert read_stack(default) == read_stack(None) or default == {
        key: getattr(read_stack(default), key) for key in KINDS
    }


@pytest.mark.parametrize("command", ["check", "estimate"])
@pytest.mark.parametrize("stack", ["trainer=typo", "torch=newest", "amp=maybe", "padding", "trainer=llama-factory"])
def test_the_command_line_refuses_it_with_two(tmp_path: Path, command: str, stack: str):
    (tmp_path / "run.yaml").write_text(YAML)
    arguments = [command, str(tmp_path / "run.yaml"), "--gpus", "1x a100-80gb", "--stack", stack]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "in stack" in result.output and "write " in result.output


def test_python_refuses_it_too():
    with pytest.raises(InputError, match="axolotl, hf-trainer, trl-sft"):
        advisor.check(
            {"base_model": "meta-llama/Llama-3.2-1B"}, gpus="1x a100-80gb", stack={"trainer": "llama-factory"}
        )


def test_installed_versions_are_those_of_the_metadata():
    known: dict[str, str] = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            known[package] = version(package)
    assert installed_versions() == known


def test_the_first_folder_counts_and_a_checkout_says_its_version_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folders = {
        "a": ("torch-2.9.0+cu128.dist-info", "Peft-0.18.0-py3.11.egg-info", "torchao-9.dist-info"),
        "b": ("torch-2.1.0.dist-info",),
    }
    for folder, names in folders.items():
        for name in names:
            (tmp_path / folder / name).mkdir(parents=True)
    (tmp_path / "c" / "axolotl.egg-info").mkdir(parents=True)
    (tmp_path / "c" / "axolotl.egg-info" / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: axolotl\nVersion: 0.15.0\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / name) for name in ("nowhere", *"abc")])
    assert installed_versions() == {"axolotl": "0.15.0", "torch": "2.9.0+cu128", "peft": "0.18.0"}


def test_installed_versions_load_no_library_for_them():
    code = (
        "import sys; from advisor.run.stack import installed_versions; installed_versions(); print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "email" not in done.stdout and "torch" not in done.stdout
