"""The question itself, on standard error, for what is started may have standard output for itself."""

import sys
from collections.abc import Sequence
from typing import Literal

import click

from advisor.cli.prompt.loop import Prompt, reviewed
from advisor.cli.prompt.proposal import Review
from advisor.cli.question.blocked import Blocked, action_of, blocked_by, headline_of
from advisor.cli.question.own_files import are_own, is_asked
from advisor.engine.finding import Finding
from advisor.engine.fix import Fixed
from advisor.errors import InputError
from advisor.record import record
from advisor.report.answer_text import options_table, step_lines
from advisor.report.snippet import diff_lines
from advisor.report.style import Style
from advisor.report.terminal import colored, draws, width
from advisor.session import CheckedRun
from advisor.streams import aside, tell

Outcome = Literal["no", "written", "interrupted", "unasked"]
"""``unasked``: nobody is there to ask, or there is nothing to choose, or what would be written is not theirs."""


class _Aside(Prompt):
    """The prompt of ``-p``, on standard error."""

    def show(self, lines: Sequence[str]) -> None:
        """A block of lines."""
        click.echo("\n".join(lines), err=True, color=self.style.color)

    def read(self, words: str) -> str:
        """One answer; the end of the input quits."""
        click.echo(words, nl=False, err=True, color=self.style.color)
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            return "not a letter"
        if not line:
            click.echo(err=True)
            return "q"
        return line.strip().lower()


@record(eq=False)
class Question:
    """What is asked: about which run, and whether ``y`` also starts it."""

    blocked: Blocked
    starts: bool

    @property
    def letters(self) -> str:
        """The answers that there are; none where there is nothing to choose."""
        answer = self.blocked.answer
        others = "o" if any(way.command or way.end for way in answer.options) else ""
        if self.blocked.way is not None:
            return f"ynde{others}"
        return f"n{others}" if others and answer.starts else ""

    @property
    def words(self) -> str:
        """With a blank behind it."""
        named = {"y": "[y]es", "n": "[n]o", "d": "[d]iff", "e": "[e]ach step", "o": "[o]ther ways"}
        answers = ", ".join(named[letter] for letter in self.letters)
        if self.blocked.way is None:
            return f"Nothing to apply. {answers} "
        return f"{'Apply and start' if self.starts else 'Apply'}? {answers} "


def ask(checked: CheckedRun, against: tuple[Finding, ...], *, starts: bool, here: bool) -> Outcome:
    """Asks about a run that is blocked, if there is somebody to ask. Trouble of our own is a line, and asks nothing."""
    try:
        if not is_asked():
            return "unasked"
        question = Question(blocked_by(checked, against, here=here), starts)
        return _put(question) if question.letters and question.blocked.is_own else "unasked"
    except KeyboardInterrupt:
        aside("\ninterrupted: nothing was written")
        return "interrupted"
    except BaseException as error:  # SystemExit too, which a rule may raise
        tell(f"not asked: {type(error).__name__}: {error}")
        return "unasked"


def _put(question: Question) -> Outcome:
    """Nothing is written unless that is said."""
    prompt = _Aside(Style(colored(sys.stderr), width(), draws(sys.stderr)), question.blocked.context)
    tell(f"{headline_of(question.blocked)}. {action_of(question.blocked)}")
    try:
        return _answered(question, prompt)
    except InputError as error:
        place = f"{error.file}: " if error.file else ""
        tell(f"nothing was written: {place}{error.message}")
        return "no"


def _answered(question: Question, prompt: Prompt) -> Outcome:
    """Asks until an answer decides. No answer is a no."""
    blocked = question.blocked
    while True:
        match prompt.read(question.words):
            case "" | "n" | "q":
                return "no"
            case letter if len(letter) != 1 or letter not in question.letters:
                prompt.show([f"one letter is expected: {', '.join(question.letters)}"])
            case "y":
                return _written(blocked.made)
            case "d":
                prompt.show(list(diff_lines(blocked.made.diff(), prompt.style)))
            case "e":
                return _each_step(blocked, prompt)
            case _:
                prompt.show(_other_ways(blocked, prompt.style))


def _other_ways(blocked: Blocked, style: Style) -> list[str]:
    """The table of options, and the steps of the one that changes training."""
    other = blocked.answer.option("B")
    steps = step_lines(other, style) if other is not None else []
    return [*options_table(blocked.report, blocked.answer, style), *([""] if steps else []), *steps]


def _each_step(blocked: Blocked, prompt: Prompt) -> Outcome:
    """What is accepted, one edit at a time."""
    opened, options = blocked.checked.opened, blocked.checked.options
    review, _ = reviewed(Review(opened, opened.run, options), prompt)
    if not review.done:
        return "no"
    return _written(Fixed(opened.run, review.run, review.done, None, opened.context))


def _written(made: Fixed) -> Outcome:
    """Writes, if all of it is the user's. ``InputError`` where a file is no longer what was shown."""
    from advisor.cli.patch import write

    files = made.files()
    if not are_own(files):
        raise InputError("a file outside the working directory's repository, or read-only, would be written")
    write([made])
    return "written"
