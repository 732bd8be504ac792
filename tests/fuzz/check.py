"""One input: every command takes it with exit code 0, 1 or 2, and what is written holds what was meant."""

import faulthandler
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
import yaml
from click.testing import CliRunner

from advisor.cli import group as commands
from advisor.cli.main import main
from advisor.documents import Document, PatchError
from advisor.documents.discovery import gathered
from advisor.documents.node import same
from advisor.engine.fix import fixed
from advisor.engine.options import Options
from advisor.errors import InputError
from advisor.opening import Context, open_run
from advisor.schemas.sweeps import as_config

SECONDS = 60
"""CPU time of one command; nothing that is measured, only more than a hang will wait."""
Files = dict[str, bytes]


OWN_FAULT = re.compile(r"not checked: (?!OSError|InputError)\w*(?:Error|Exit|Exception|Iteration): ")
"""What a launch says of a fault of the advisor's own, which stops nothing there."""


def run(*arguments: str, command: click.Command = main) -> tuple[int, str]:
    """One command. A fault of the advisor's own, which is one line for its users, is raised; what hangs ends this process."""
    with watched(SECONDS), mock.patch.object(commands, "in_one_line", raised):
        result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code in (0, 1, 2), result.exit_code
    assert "Traceback" not in result.output
    assert not OWN_FAULT.search(result.output), result.output
    return result.exit_code, result.stdout


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """After so much CPU time, or twenty times as long by the clock, this process ends with what it is at."""
    faulthandler.register(signal.SIGPROF, chain=True, file=sys.__stderr__)
    faulthandler.dump_traceback_later(20 * seconds, exit=True, file=sys.__stderr__)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def raised(error: Exception) -> str:
    """In place of the line about it."""
    raise error


def files_in(folder: Path) -> Files:
    """What lies in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


LOOKS = ("estimate", "folder")
"""Ways to look at an input besides the formats of a check."""


def checked(folder: Path, raw: bytes, other: tuple[str, bytes | None], gpus: str, look: str) -> str:
    """What became of an input: ``refused``, ``as it was``, ``patched``, or ``not to be edited``.

    It is looked at in one way, a format of a check or one of ``LOOKS``; a diff and a fix every input gets.
    """
    os.chdir(folder)
    (folder / "run.yaml").write_bytes(raw)
    name, content = other
    if content is not None:
        (folder / name).write_bytes(content)
    given = ("--isolated", "--gpus", gpus)
    looked_at(look, given)
    before = files_in(folder)
    code, _ = run("check", *given, "--diff", "--unsafe-fixes", "run.yaml")
    assert files_in(folder) == before, "--diff wrote something"
    meant = intended(gpus)
    fixed_code, _ = run("check", *given, "--fix", "--unsafe-fixes", "run.yaml")
    after = files_in(folder)
    assert (fixed_code == 2) == (meant is None)
    if meant is None:
        assert after == before, "a file was written all the same"
        return "refused" if run("check", *given, "run.yaml")[0] == 2 else "not to be edited"
    assert code != 2, "--diff refused what --fix wrote"
    others = before.keys() - meant
    assert {name: after.get(name) for name in others} == {name: before[name] for name in others}
    assert after.keys() - before.keys() <= meant.keys(), "a file was left behind"
    for name, values in meant.items():
        assert same(values_of(name, after[name], before.get(name, b"")), values), name
    if meant:
        assert run("check", *given, "run.yaml")[0] in (0, 1), "the patched config cannot be read"
    return "patched" if meant else "as it was"


def looked_at(look: str, given: tuple[str, ...]) -> None:
    """The input as one command shows it; what is meant for machines can be read by them."""
    if look == "estimate":
        run("estimate", *given, "run.yaml")
    elif look == "folder":
        run("check", *given, ".")
    else:
        _, said = run("check", *given, "--output-format", look, "run.yaml")
        if look in ("json", "sarif", "gitlab") and said:
            json.loads(said)


def intended(gpus: str) -> dict[str, dict[str, Any]] | None:
    """The values that the edits mean, by file, worked out without writing; None where input or edits are refused."""
    judged = (as_config(document, named=True) for document in gathered(["run.yaml"]))
    found = list(judged)
    if any(isinstance(document, InputError) for document in found):
        return None
    result: dict[str, dict[str, Any]] = {}
    for document in found:
        if not isinstance(document, Document):
            continue
        try:
            opened = open_run(document, Context(gpus=gpus))
        except InputError:
            return None
        outcome = fixed(opened, Options(), unsafe=True)
        result |= {Path(d.file).name: dict(d.values_mapping) for d in outcome.documents}
        try:
            outcome.files()
        except PatchError:
            return None
    return result


def values_of(name: str, raw: bytes, before: bytes) -> Any:
    """The values of a written file, as a library that is not ours reads them.

    The loader in C takes some tabs that the one in Python refuses: the latter is asked where it could read the original.
    """
    if name.endswith(".json"):
        return json.loads(raw.decode("utf-8-sig"))
    try:
        yaml.safe_load(before)
    except yaml.YAMLError:
        return yaml.load(raw, yaml.CSafeLoader)
    return yaml.safe_load(raw)
