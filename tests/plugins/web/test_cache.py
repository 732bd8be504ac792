"""The page that ``advisor web`` builds on first use: kept by its sources, whole or not at all, Pyodide fetched once."""

import os
from pathlib import Path

import pytest
from advisor.plugins.web import build, command, fetching

from advisor.errors import InputError

NPM = """\
#!/bin/sh
echo "$@" >> "$NPM_LOG"
test -f package-lock.json || exit 1
mkdir -p node_modules/pyodide
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "axolotl-advisor"


@pytest.fixture
def pages(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the pages that were built; the sources are those of ``key`` at the time."""
    made: list[str] = []

    def written(folder: Path) -> None:
        folder.mkdir()
        (folder / "index.html").write_text("a page")
        made.append(build.key())

    monkeypatch.setattr(build, "build", written)
    return made


def sources_are(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(build, "key", lambda: key)


def test_a_page_is_built_once_for_its_sources(pages: list[str], monkeypatch: pytest.MonkeyPatch):
    for key in ("one", "one", "two", "one"):
        sources_are(monkeypatch, key)
        assert (command.built() / "index.html").read_text() == "a page"
    assert pages == ["one", "two"]


def test_a_build_that_fails_leaves_no_page(cache: Path, pages: list[str], monkeypatch: pytest.MonkeyPatch):
    whole = build.build

    def broken(folder: Path) -> None:
        whole(folder)
        raise InputError("npm cannot fetch Pyodide")

    monkeypatch.setattr(build, "build", broken)
    with pytest.raises(InputError, match="npm cannot fetch"):
        command.built()
    assert list(cache.iterdir()) == []
    monkeypatch.setattr(build, "build", whole)
    assert (command.built() / "index.html").is_file()


def test_the_last_pages_that_were_used_stay(cache: Path, pages: list[str], monkeypatch: pytest.MonkeyPatch):
    for number in range(4):
        old = cache / f"web-{number}"
        old.mkdir(parents=True)
        os.utime(old, (number, number))
    sources_are(monkeypatch, "0")
    command.built()
    sources_are(monkeypatch, "new")
    command.built()
    assert {path.name for path in cache.iterdir()} == {"web-0", "web-3", "web-new"}
    assert pages == ["new"]


def test_a_cache_that_cannot_be_written_is_one_error(tmp_path: Path, pages: list[str], monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot be built there") as caught:
        command.built()
    assert "XDG_CACHE_HOME" in (caught.value.remedy or "")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, with an npm that says how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("npm", "node"):
        (folder / name).write_text(NPM)
        (folder / name).chmod(0o755)
    for name in ("mkdir", "test", "sh"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("NPM_LOG", str(tmp_path / "log"))
    return folder


def test_pyodide_is_fetched_once_and_that_is_said(
    cache: Path, programs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    found = fetching.pyodide()
    said = capsys.readouterr().err
    assert said.startswith("fetching Pyodide ") and "from npm, once" in said and str(found.parent) in said
    assert fetching.pyodide() == found
    assert capsys.readouterr().err == ""
    assert (cache.parent / "log").read_text().count("ci --ignore-scripts") == 1
    assert [path.name for path in cache.iterdir()] == [found.parent.name]


def test_a_fetch_that_fails_leaves_nothing(cache: Path, programs: Path):
    (programs / "npm").write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    with pytest.raises(InputError, match="npm cannot fetch Pyodide: no network"):
        fetching.pyodide()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("missing", ["npm", "node"])
def test_without_node_the_remedy_is_a_built_page(cache: Path, programs: Path, missing: str):
    (programs / missing).unlink()
    with pytest.raises(InputError, match="npm and node") as caught:
        fetching.pyodide()
    assert "--folder DIR" in (caught.value.remedy or "")
    assert not cache.exists()
