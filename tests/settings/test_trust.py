"""Rules that settings name are code: they run once their folder is trusted, as long as it is as it was then."""

import importlib
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import advisor
from advisor.cli.main import main
from advisor.settings import ENVIRONMENT, NARROW, trust

CONFIG = "base_model: Qwen/Qwen3-8B\nlearning_rate: 1e-5\ndatasets: [{path: tatsu-lab/alpaca, type: alpaca}]\n"
RULE = """\
from pathlib import Path
from advisor import Example, Hit, Rule
Path({mark!r}).touch()
rule = Rule(
    id="house-rule", stage="lint", title="t", level="error", why="w", source="s",
    finds=lambda run: [Hit("base_model", "says the house")],
    examples=(Example(before="base_model: gpt2", fires=True),),
)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose settings name rules, as the working directory; ``ran`` next to it is there once they ran."""
    for variable in (*ENVIRONMENT, NARROW):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "repo"
    (folder / "house").mkdir(parents=True)
    (folder / "house" / "house_rule.py").write_text(RULE.format(mark=str(tmp_path / "ran")))
    (folder / "advisor.toml").write_text('rules = ["house"]\n')
    (folder / "run.yaml").write_text(CONFIG)
    monkeypatch.chdir(folder)
    return folder


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def ran(here: Path) -> bool:
    """Whether the rules ran since the last question. Modules that ran are run again where they are loaded again."""
    mark = here.parent / "ran"
    found = mark.exists()
    mark.unlink(missing_ok=True)
    for name, module in list(sys.modules.items()):
        if name.startswith("advisor_rule_") and str(module.__file__).startswith(str(here.parent)):
            del sys.modules[name]
    return found


def said(result: Result) -> str:
    """The one line about rules that did not run."""
    (line,) = [line for line in result.stderr.splitlines() if "are not run" in line]
    return line


CALLS = [
    ("check", "run.yaml"),
    ("check", "--output-format", "json", "."),
    ("check", "--fix", "run.yaml"),
    ("estimate", "--gpus", "1x h200", "run.yaml"),
    ("hardware", "--cards", "h200", "run.yaml"),
    ("oom", "--config", "run.yaml", "--gpus", "1x t4", "train.log"),
    ("rule",),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call[:2]))
def test_rules_of_the_working_directory_run_only_once_they_are_trusted(here: Path, call: tuple[str, ...]):
    (here / "train.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0\n")
    assert "advisor.toml:1" in said(run(*call)) and not ran(here)
    assert run("trust").exit_code == 0 and not ran(here)
    assert "are not run" not in run(*call).stderr and ran(here)


def test_from_python_they_run_only_once_they_are_trusted(here: Path):
    advisor.check_text(CONFIG, file="run.yaml", settings=True)
    assert not ran(here)
    run("trust", ".")
    found = advisor.check_text(CONFIG, file="run.yaml", settings=True).findings
    assert ran(here) and "house-rule" in {finding.rule for finding in found}


def test_the_line_names_the_command_that_trusts_them(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(here.parent)
    (here / "-x y").mkdir()
    line = said(run("check", "repo/run.yaml"))
    assert line.endswith("nobody has trusted these; read them, then `advisor trust repo`")
    assert run("trust", "repo").output == "trusted: repo/house (1 file)\n"
    assert "[house-rule]" in run("check", "repo/run.yaml").stdout
    for name in ("advisor.toml", "house"):
        (here / name).rename(here / "-x y" / name)
    monkeypatch.chdir(here)
    assert said(run("check", "./-x y")).endswith("`advisor trust './-x y'`")


@pytest.mark.parametrize("how", ["option", "environment"])
def test_rules_that_the_call_names_run_untrusted(here: Path, monkeypatch: pytest.MonkeyPatch, how: str):
    if how == "environment":
        monkeypatch.setenv("ADVISOR_RULES", str(here / "house"))
    options = ("--rules", "house") if how == "option" else ()
    result = run("check", *options, "run.yaml")
    assert result.exit_code == 1 and "[house-rule]" in result.stdout and ran(here)
    assert "are not run" not in result.stderr
    assert "house-rule" in run("rule", *options).stdout


def test_the_call_goes_before_the_environment_and_that_before_the_settings(here: Path, monkeypatch: pytest.MonkeyPatch):
    (here / "other").mkdir()
    monkeypatch.setenv("ADVISOR_RULES", str(here / "house"))
    assert "[house-rule]" not in run("check", "--rules", "other", "run.yaml").stdout
    assert run("check", "--rules", "nowhere", "run.yaml").stderr.startswith("error: no such folder of rules")
    run("trust")
    monkeypatch.setenv("ADVISOR_RULES", str(here / "other"))
    assert "[house-rule]" not in run("check", "run.yaml").stdout


def test_settings_may_speak_of_rules_that_do_not_run(here: Path):
    (here / "advisor.toml").write_text(
        'rules = ["house"]\nignore = ["house-rule"]\nflowchart = "ours"\n[flowcharts]\nours = ["house-step", "zero-2"]\n'
    )
    result = run("check", "run.yaml")
    assert result.exit_code == 0 and said(result)
    assert "unknown step `house-step`" in run("check", "--rules", "house", "run.yaml").stderr
    (here / "advisor.toml").write_text('rules = ["house"]\nignore = ["hose-rule"]\n')
    run("trust")
    assert "did you mean `house-rule`?" in run("check", "run.yaml").stderr


@pytest.mark.parametrize("change", ["changed", "new", "gone", "data", "bytecode", "link"])
def test_a_folder_that_is_not_as_it_was_is_trusted_again_first(here: Path, change: str):
    house = here / "house"
    (house / "allowed.json").write_text("[]")
    if change == "link":
        (here / "elsewhere.txt").write_text("one")
        (house / "linked.txt").symlink_to(here / "elsewhere.txt")
    run("trust")
    name, how = "house_rule.py", "has changed"
    match change:
        case "changed":
            (house / name).write_text((house / name).read_text() + "# more\n")
        case "new":
            name, how = "inner/more.py", "is new"
            (house / "inner").mkdir()
            (house / name).write_text("raise SystemExit\n")
        case "gone":
            name, how = "allowed.json", "is gone"
            (house / name).unlink()
        case "data":
            name = "allowed.json"
            (house / name).write_text('["evil"]')
        case "bytecode":
            name, how = "__pycache__/house_rule.cpython-311.pyc", "is new"
            (house / "__pycache__").mkdir()
            (house / name).write_bytes(b"x")
        case _:
            name = "linked.txt"
            (here / "elsewhere.txt").write_text("two")
    line = said(run("check", "run.yaml"))
    assert f"house/{name} {how} since they were trusted" in line and not ran(here)
    assert f"house/{name} {how}" in run("trust", "--list").stdout
    run("trust")
    assert "[house-rule]" in run("check", "run.yaml").stdout and ran(here)


def test_bytecode_is_not_believed(here: Path, tmp_path: Path):
    """A pyc that is never compared with its source (PEP 562's unchecked kind) says otherwise than the source."""
    compiling = importlib.import_module("advisor.plugins.web.compiling")
    source = here / "house" / "house_rule.py"
    cached = Path(importlib.util.cache_from_source(str(source)))
    cached.parent.mkdir()
    cached.write_bytes(compiling.bytecode(str(source), b"from pathlib import Path\nPath('pwned').touch()\n"))
    for options in (("--rules", "house"), ()):
        run("trust")
        assert "[house-rule]" in run("check", *options, "run.yaml").stdout and ran(here)
    assert run("test", "house").exit_code in (0, 1) and ran(here)
    assert not (here / "pwned").exists()


NEIGHBOURS = """\
import sys
from pathlib import Path
here = Path(__file__).parent
sys.path.insert(0, str(here))
for name in ("_{pack}_shared.py", "{pack}_library/inner.py"):
    (here / name).write_text("raise SystemExit('not what was read')")
import _{pack}_shared
from {pack}_library.inner import WORDS
sys.path.remove(str(here))
from advisor import Hit, Rule
rule = Rule(
    id="house-rule", stage="lint", title="t", level="error", why="w", source="s", examples=(),
    finds=lambda run: [Hit("base_model", _{pack}_shared.SAID + WORDS)],
)
"""


def test_what_runs_is_what_was_compared_in_modules_next_to_a_rule_too(here: Path):
    """The rule itself changes its neighbours on disk before it imports them."""
    house = here / "house"
    (house / "house_rule.py").write_text(NEIGHBOURS.format(pack="pinned"))
    (house / "pinned_library").mkdir()
    (house / "pinned_library" / "__init__.py").write_text("")
    (house / "pinned_library" / "inner.py").write_text("WORDS = ' and the library'\n")
    (house / "_pinned_shared.py").write_text("SAID = 'says the neighbour'\n")
    run("trust")
    assert "says the neighbour and the library" in run("check", "run.yaml").stdout
    assert not list(house.rglob("__pycache__"))
    assert "_pinned_shared.py has changed" in said(run("check", "run.yaml"))


def test_a_pack_with_neighbours_runs_where_the_call_names_it(here: Path):
    house = here / "house"
    text = NEIGHBOURS.format(pack="plain").replace(".write_text(", ".exists() or print(")
    (house / "house_rule.py").write_text(text)
    (house / "plain_library").mkdir()
    (house / "plain_library" / "inner.py").write_text("WORDS = ' and the library'\n")
    (house / "_plain_shared.py").write_text("SAID = 'says the neighbour'\n")
    assert "says the neighbour and the library" in run("check", "--rules", "house", "run.yaml").stdout
    assert not list(house.rglob("__pycache__"))


def test_what_is_trusted_is_a_folder_by_its_real_path(here: Path, monkeypatch: pytest.MonkeyPatch):
    """Another folder with the same files is not; a link that leads elsewhere is not; one to the same folder is."""
    run("trust")
    other = here.parent / "other"
    (other / "house").mkdir(parents=True)
    for name in ("advisor.toml", "run.yaml", "house/house_rule.py"):
        (other / name).write_bytes((here / name).read_bytes())
    assert said(run("check", str(other / "run.yaml"))) and not ran(here)
    (here / "house").rename(here / "real")
    (here / "house").symlink_to(other / "house")
    assert said(run("check", "run.yaml")) and not ran(here)
    (here / "house").unlink()
    (here / "real").rename(here / "house")
    (other / "advisor.toml").write_text('rules = ["linked"]\n')
    (other / "linked").symlink_to(here / "house")
    assert "[house-rule]" in run("check", str(other / "run.yaml")).stdout and ran(here)


def test_rules_behind_a_link_find_what_lies_next_to_their_real_folder(here: Path):
    """Next to the link lies somebody else's repository, whose modules a rule would import."""
    (here / "house" / "house_rule.py").write_text(
        "import os, sys\n"
        "sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), 'lib'))\n"
        "import of_the_linked_house\n"
        "del sys.path[0]\n" + RULE.format(mark=str(here.parent / "ran"))
    )
    hostile = here.parent / "hostile"
    for folder, text in ((here, ""), (hostile, f"open({str(here.parent / 'theirs')!r}, 'w').close()\n")):
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "of_the_linked_house.py").write_text(text)
    run("trust")
    (hostile / "advisor.toml").write_text('rules = ["linked"]\n')
    (hostile / "run.yaml").write_text(CONFIG)
    (hostile / "linked").symlink_to(here / "house")
    assert "[house-rule]" in run("check", str(hostile / "run.yaml")).stdout and ran(here)
    assert not (here.parent / "theirs").exists()


def test_rules_outside_of_the_repository_and_settings_in_pyproject_are_no_other_case(here: Path):
    (here / "house").rename(here.parent / "common")
    (here / "advisor.toml").unlink()
    (here / "pyproject.toml").write_text('[tool.advisor]\nrules = ["../common"]\n')
    assert "pyproject.toml:2" in said(run("check", "run.yaml")) and not ran(here)
    assert run("trust").exit_code == 0
    assert "[house-rule]" in run("check", "run.yaml").stdout and ran(here)


def test_of_two_folders_the_one_that_is_trusted_runs(here: Path):
    run("trust")
    (here / "more").mkdir()
    (here / "advisor.toml").write_text('rules = ["house", "more"]\n')
    result = run("check", "run.yaml")
    assert said(result) and "[house-rule]" in result.stdout


def entries(here: Path) -> list[Path]:
    return sorted(path for path in (here.parent / "state").rglob("*") if path.is_file())


def test_what_is_trusted_is_written_whole_for_its_user_alone(here: Path, monkeypatch: pytest.MonkeyPatch):
    run("trust")
    (entry,) = entries(here)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600 and stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    before = entry.read_bytes()
    (here / "house" / "more.txt").write_text("more")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    result = run("trust")
    assert result.exit_code == 2 and "cannot be written down: No space left on device" in result.stderr
    assert entries(here) == [entry] and entry.read_bytes() == before


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "HOME"])
def test_state_in_the_folder_that_is_looked_at_counts_for_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, variable: str
):
    run("trust")
    inner = "x" if variable == "XDG_STATE_HOME" else "x/.local/state"
    (here / inner).parent.mkdir(parents=True, exist_ok=True)
    (here.parent / "state").rename(here / inner)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(here.parent))
    monkeypatch.setenv(variable, "x")
    result = run("check", "run.yaml")
    assert said(result) and not ran(here) and result.exit_code == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"folder": 1, "files": 2}', "[" * 100_000, "\0\x80"])
def test_an_entry_that_cannot_be_understood_trusts_nothing(here: Path, text: str):
    run("trust")
    (entry,) = entries(here)
    entry.write_text(text, encoding="latin-1")
    assert said(run("check", "run.yaml")) and not ran(here)
    assert run("trust", "--list").output == "nothing is trusted\n"
    assert run("trust").exit_code == 0 and "[house-rule]" in run("check", "run.yaml").stdout


def test_an_entry_of_another_folder_trusts_nothing(here: Path):
    run("trust")
    (entry,) = entries(here)
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {"folder": "/elsewhere"}))
    assert said(run("check", "run.yaml")) and not ran(here)


def test_what_is_trusted_is_listed_and_taken_back(here: Path, monkeypatch: pytest.MonkeyPatch):
    assert run("trust", "--list").output == "nothing is trusted\n"
    run("trust")
    assert run("trust", "--list").output == run("trust", "--list", "..").output == "house (1 file): as it was\n"
    assert run("trust", "--list", "house/x").output == "nothing is trusted below house/x\n"
    assert run("trust", "--remove").output == "no longer trusted: house\n"
    assert said(run("check", "run.yaml")) and not ran(here) and entries(here) == []
    assert run("trust", "--remove").output == "nothing of . is trusted\n"
    run("trust")
    (here / "house").rename(here.parent / "moved")
    (here / "advisor.toml").write_text("broken [")
    assert run("trust", "--list").output == "house (1 file): gone\n"
    assert run("trust", "--remove", "house").output == "no longer trusted: house\n"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('gpus = "h100"\n', "nothing to trust: advisor.toml names no rules"),
        ("rules = []\n", "nothing to trust: advisor.toml names no rules"),
        (None, "nothing to trust: there are no settings for ."),
    ],
)
def test_without_rules_there_is_one_line(here: Path, settings: str | None, words: str):
    (here / "advisor.toml").unlink()
    if settings is not None:
        (here / "advisor.toml").write_text(settings)
    result = run("trust")
    assert (result.exit_code, result.output) == (0, words + "\n")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("trust", "nowhere"), "no such folder"),
        (("trust", "--list", "--remove"), "cannot be combined"),
    ],
)
def test_what_cannot_be_done_is_one_error(here: Path, call: tuple[str, ...], words: str):
    result = run(*call)
    assert result.exit_code == 2 and words in result.stderr


@pytest.mark.parametrize("what", ["linked folder", "pipe", "many", "large", "absent"])
def test_a_folder_that_hides_something_cannot_be_trusted(here: Path, monkeypatch: pytest.MonkeyPatch, what: str):
    match what:
        case "linked folder":
            (here / "house" / "inner").symlink_to(here.parent)
            words = "house/inner"
        case "pipe":
            os.mkfifo(here / "house" / "pipe")
            words = "house/pipe"
        case "many":
            monkeypatch.setattr(trust, "MOST_FILES", 1)
            (here / "house" / "more").touch()
            words = "holds more than 1 files"
        case "large":
            monkeypatch.setattr(trust, "MOST_BYTES", 10)
            words = "holds more than"
        case _:
            (here / "advisor.toml").write_text('gpus = "h100"\nrules = ["theirs"]\n')
            words = "advisor.toml:2"
    result = run("trust")
    assert result.exit_code == 2 and words in result.stderr and entries(here) == []


def test_git_may_keep_its_folder_among_them(here: Path):
    """A clone of its own: what git writes there is no code of a rule."""
    (here / "house" / ".git").mkdir()
    run("trust")
    (here / "house" / ".git" / "index").write_text("more")
    assert "[house-rule]" in run("check", "run.yaml").stdout


def test_a_name_that_would_steer_a_terminal_is_shown_without_it(here: Path):
    folder = here / "a\x1b[31mb\nc"
    folder.mkdir()
    (folder / "advisor.toml").write_text('rules = ["house"]\n')
    (folder / "run.yaml").write_text(CONFIG)
    (here / "house").rename(folder / "house")
    assert "\x1b" not in said(run("check", str(folder / "run.yaml")))
    for call in (("trust", str(folder)), ("trust", "--list"), ("trust", "--remove", str(folder))):
        assert "\x1b" not in run(*call).output and len(run(*call).output.splitlines()) == 1
