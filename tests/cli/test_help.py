"""``--help``: commands in the order of their use, options in groups, examples that parse, and no cut word."""

import os
import re
import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from advisor.cli.help import EXAMPLES, FEW, GROUPS, ORDER, REST
from advisor.cli.main import main

from ..texts import page

COMMANDS = ["", *sorted(main.commands)]
CUT = re.compile(r"\w-$")


def shown(command: str, columns: int = 80) -> str:
    """The help on a terminal that wide; click's runner has one width alone."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(columns))
        group = main.make_context("advisor", [], resilient_parsing=True)
        own = main.commands[command] if command else main
        return own.get_help(click.Context(own, parent=group, info_name=command) if command else group)


def options_of(name: str) -> list[click.Option]:
    return [param for param in main.commands[name].params if isinstance(param, click.Option)]


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(command: str, columns: int):
    lines = shown(command, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert not [line for line in lines if CUT.search(line)]


def test_the_commands_stand_in_the_order_of_their_use():
    named = re.findall(r"^  (\w\S*)  +\S", shown("").partition("Commands:")[2], re.MULTILINE)
    assert set(ORDER) == set(main.commands)
    assert named[: len(ORDER)] == list(ORDER)
    assert {"mcp", "server", "web"} <= set(named[len(ORDER) :])


def test_each_command_has_one_line_at_80_columns():
    lines = shown("").partition("Commands:\n")[2].splitlines()
    assert [line for line in lines if not re.match(r"  \w", line)] == []


@pytest.mark.parametrize("name", sorted(main.commands))
def test_each_option_is_in_one_group_and_shown_once(name: str):
    grouped = [option for names in GROUPS.values() for option in names]
    assert len(grouped) == len(set(grouped))
    text = shown(name).partition(":\n")[2]
    for option in options_of(name):
        assert len(re.findall(rf"^  (?:-\w, )?{option.opts[-1]}(?![\w-])", text, re.MULTILINE)) == 1
        assert len(options_of(name)) < FEW or option.name in grouped


def test_check_has_its_groups_in_order():
    titles = re.findall(r"^(\w.*):$", shown("check"), re.MULTILINE)
    assert titles == ["What runs and where", "Fix", "Output", "Which rules", "Git and folders", REST, "Examples"]


@pytest.mark.parametrize("line", [line for examples in EXAMPLES.values() for line, _ in examples])
def test_an_example_is_a_command_that_parses(line: str):
    advisor, name, *words = shlex.split(line)
    assert advisor == "advisor"
    assert main.commands[name].make_context(name, words)
    assert f"\n  {line}\n" in shown(name, 60)


def test_quiet_and_verbose_contradict_each_other():
    result = CliRunner().invoke(main, ["check", "-q", "-v", "run.yaml"])
    assert result.exit_code == 2
    assert "--quiet and --verbose contradict each other" in result.output


@pytest.mark.parametrize(
    ("shell", "words", "number", "completed"),
    [("bash", "advisor ch", "1", "plain,check"), ("bash", "advisor check --qu", "2", "plain,--quiet")],
)
def test_a_shell_completes_what_the_page_says(shell: str, words: str, number: str, completed: str):
    assert f"_ADVISOR_COMPLETE={shell}_source advisor" in page("settings")
    asked = {"_ADVISOR_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": number}
    code = "from advisor.cli.main import main; main(prog_name='advisor')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [completed]
