"""Real runs of several processes: launched, waited for, and what each rank measured."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from advisor.memory.ledger import Term

ROOT = Path(__file__).parents[2]
MINUTES = 15


class Case(Protocol):
    """One run that the ranks make."""

    @property
    def name(self) -> str: ...


def trained_by(worker: str, world: int, folder: Path, cases: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What ``world`` processes of a worker measured of the cases, by rank and by the case's name.

    The worker gets the folder, in which ``config.json`` lies and ``cases.json`` and the answers will, and the file
    that the ranks meet through.
    """
    own = folder / f"{world} ranks"
    own.mkdir()
    (own / "cases.json").write_text(json.dumps(list(cases)))
    (own / "config.json").write_text((folder / "config.json").read_text())
    logs = [own / f"{rank}.log" for rank in range(world)]
    command = ["-m", f"{__package__}.{worker}", str(own), str(own / "meeting")]
    processes = [launched(command, rank, world, log) for rank, log in enumerate(logs)]
    wait(processes)
    assert not any(process.returncode for process in processes), "\n".join(log.read_text()[-3000:] for log in logs)
    return [json.loads((own / f"{rank}.json").read_text()) for rank in range(world)]


def launched(arguments: list[str], rank: int, world: int, log: Path) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
    with log.open("w") as stream:
        command = [sys.executable, *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stream, stderr=stream)


def wait(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Until all have ended or one has failed, for which the others would wait in vain."""
    deadline = time.monotonic() + 60 * MINUTES
    try:
        while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
            if any(process.poll() for process in processes):
                break
            time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def each(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """A test for each of the cases."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases])


def differences(case: object) -> str:
    """A name for a frozen dataclass's instance: what is not at its default."""
    fields = cast("Any", type(case)).__dataclass_fields__
    given = {key: value for key, value in vars(case).items() if value != fields[key].default}
    return ", ".join(f"{key} {value}" for key, value in given.items())


def total(terms: Iterable[Term]) -> int:
    return sum(term.bytes for term in terms)
