"""Reports that wait in a file."""

import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.report_spool import ReportSpool
from advisor.documents import read
from advisor.engine.finding import Report
from advisor.record import replace
from advisor.report import FORMATS, render_check
from advisor.session import RunOptions, Session, check_config, session_for

SAMPLES = sorted((Path(__file__).parents[2] / "sample_configs").glob("*.yaml"))


@pytest.fixture(scope="module")
def session() -> Session:
    asked = session_for([str(path) for path in SAMPLES], RunOptions(isolated=True, gpus="8x h100-80gb", details=True))
    return replace(asked, formats=tuple(FORMATS)).answering.with_outlook


@pytest.fixture(scope="module")
def reports(session: Session) -> list[Report]:
    return [check_config(read(path), session).report for path in SAMPLES]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same_of_reports_that_waited_in_a_file(name: str, reports: list[Report]):
    kept = ReportSpool(iter(reports), most=1)
    assert len(kept.held) == 1 and len(kept) == len(reports)
    assert render_check(kept, name) == render_check(reports, name)
    assert kept[-1].file == reports[-1].file and [one.file for one in kept[1:3]] == [one.file for one in reports[1:3]]


def test_without_room_for_a_file_all_are_held(reports: list[Report], monkeypatch: pytest.MonkeyPatch):
    files: Iterator[Any] = iter([Full(2)])
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: next(files))
    kept = ReportSpool(reports, most=1)
    assert [one.file for one in kept] == [one.file for one in reports]
    assert len(kept.held) == len(reports)


class Full:
    """A file on a disk that is full after some reports."""

    def __init__(self, room: int) -> None:
        self.file, self.room = BytesIO(), room

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def flush(self) -> None:
        if not self.room:
            raise OSError(28, "No space left on device")
        self.room -= 1
