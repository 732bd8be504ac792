"""Real runs of several processes: launched, waited for, and what each rank measured."""

import contextlib
import json
import os
import signal
import subprocess
import sys
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
    command = [sys.executable, "-m", f"{__package__}.forked", worker, str(world), str(own), str(own / "meeting")]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            process.wait(60 * MINUTES)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    logs = [log for log in (own / f"{rank}.log" for rank in range(world)) if log.exists()]
    assert not process.returncode, "\n".join(log.read_text()[-3000:] for log in logs)
    return [json.loads((own / f"{rank}.json").read_text()) for rank in range(world)]


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
