"""Owner and version stand in many texts, and are written in all of them at once."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.about import REPOSITORY, VERSION

from .places import PLACES, ROOT, UNTIL_THEN, named, write

OWNER = REPOSITORY.split("/")[-2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that git knows, without their tests."""
    for name in tracked():
        if not name.startswith("tests/"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize(("what", "value"), [("owner", OWNER), ("version", VERSION)])
def test_every_text_names_the_same(what: str, value: str):
    found = named(ROOT, what)
    assert {name: names for name, names in found.items() if names != {value}} == {}
    least = {"README.md", "advisor/about.py", "plugins/zed/extension.toml", "plugins/language_server/README.md"}
    assert least <= found.keys()


@pytest.mark.parametrize("what", ["owner", "version"])
def test_no_other_text_names_it(copy: Path, what: str):
    known = named(copy, what)
    others = [
        path.relative_to(copy).as_posix()
        for path in copy.rglob("*")
        if path.is_file() and path.suffix != ".png" and PLACES[what].search(path.read_text(encoding="utf-8"))
    ]
    assert sorted(others) == sorted(known)


def test_an_owner_is_written_everywhere_and_another_over_it(copy: Path):
    for name in ("acme-labs", "Zoe"):
        assert write(copy, "owner", name)
        assert {owner for owners in named(copy, "owner").values() for owner in owners} == {name}
        assert not any("OWNER" in (copy / file).read_text() for file in named(copy, "owner"))
        assert write(copy, "owner", name) == []


def test_the_readme_explains_the_placeholder_until_there_is_an_owner(copy: Path):
    assert (UNTIL_THEN in (ROOT / "README.md").read_text(encoding="utf-8")) == (OWNER == "OWNER")
    write(copy, "owner", "acme")
    readme = (copy / "README.md").read_text(encoding="utf-8")
    assert UNTIL_THEN not in readme and "```\n\n\n" not in readme
    assert "pip install git+https://github.com/acme/axolotl-advisor@v" in readme


def test_a_version_is_written_everywhere(copy: Path):
    write(copy, "version", "10.20.30")
    assert {number for numbers in named(copy, "version").values() for number in numbers} == {"10.20.30"}
    assert "rev: v10.20.30" in (copy / "README.md").read_text(encoding="utf-8")
    write(copy, "version", VERSION)
    assert (copy / "README.md").read_text(encoding="utf-8") == (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a-", "a--b", "a/b", "a_b", "a\n", "$(id)", "a" * 40])
def test_what_is_no_account_is_refused_in_one_line(copy: Path, name: str):
    before = (copy / "README.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape("make owner NAME=your-account")) as caught:
        write(copy, "owner", name)
    assert "\n" not in str(caught.value)
    assert (copy / "README.md").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("number", ["", "1", "1.2", "v1.2.3", "1.2.3rc1", "1.2.3\n"])
def test_what_is_no_version_is_refused(copy: Path, number: str):
    with pytest.raises(ValueError, match=re.escape("make version NUMBER=0.3.0")):
        write(copy, "version", number)


@pytest.mark.parametrize(("name", "code"), [("acme", 0), ("a b; touch hacked", 2)])
def test_the_verb_writes_or_says_why_not(copy: Path, name: str, code: int):
    shutil.copytree(ROOT / "tests" / "release", copy / "tests" / "release")
    done = subprocess.run(
        ["make", "-s", "owner", f"NAME={name}"], cwd=copy, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == (code != 0), done.stderr
    assert not (copy / "hacked").exists()
    if code:
        assert done.stderr.splitlines()[0].startswith(f"error: '{name}' is not an account on GitHub")
        assert "Traceback" not in done.stderr
    else:
        assert "README.md" in done.stdout.splitlines()
