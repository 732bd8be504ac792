"""``advisor new``: 0 written, 1 nothing fits and nothing is written, 2 could not run."""

import os
import sys
from typing import Any

import click

from advisor.documents import write_all
from advisor.documents.repository import refuse_links
from advisor.errors import InputError
from advisor.new import Request, Way, Ways, answered, questions, ways, which_way
from advisor.new.methods import method_named
from advisor.new.request import Question
from advisor.progress import doing, shown
from advisor.record import record
from advisor.report.terminal import own_style
from advisor.report.ways_text import ways_text, written_text
from advisor.session import RunOptions, Session, session_for
from advisor.session.amounts import parse_tokens
from advisor.streams import is_terminal

MOST_QUESTIONS = 6


@record
class Writing:
    """How it is asked and written: ``yes`` takes every default, ``force`` writes over files that are there."""

    yes: bool = False
    force: bool = False


def new_command(request: Request, asked: Writing) -> int:
    """Ask what is open, look for the ways, write the one that is taken."""
    asks = not asked.yes and is_asked()
    session = session_for([request.file], request.options, detects=True)
    if asks:
        request = _told(request, session)
        session = session_for([request.file], request.options, detects=True)
    if not asked.force:
        _refuse_existing(request.file)
    with shown(), doing(f"{request.model}: full, LoRA, QLoRA"):
        found = ways(request, session)
    style = own_style()
    click.echo(ways_text(found, style), color=True)
    way = _chosen(found, asks=asks)
    if way is None:
        return 1
    if not asked.force:
        for file in way.files:
            _refuse_existing(file)
    refuse_links(way.files)
    _write(way)
    click.echo("\n" + written_text(found, way, style), color=True)
    return 0


def is_asked() -> bool:
    """Whether somebody is there to answer."""
    unattended = os.environ.get("CI") or os.environ.get("PRE_COMMIT")
    return not unattended and is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _told(request: Request, session: Session) -> Request:
    """The request with answers to what it leaves open."""
    for _ in range(MOST_QUESTIONS - 1):
        question = next(iter(questions(request, session)), None)
        if question is None:
            break
        request = answered(request, question, _answer(question))
    return request


def _answer(question: Question) -> str:
    """One answer; an empty one is the default, the end of the input interrupts."""
    words = [choice.word for choice in question.choices]
    for choice in question.choices:
        click.echo(f"  {choice.word:<8}{choice.title}")
    shown_default = f" [{question.default}]" if question.default else ""
    while True:
        click.echo(f"{question.text}{shown_default}: ", nl=False)
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        answer = line.strip() or question.default
        if not words or answer in words:
            return answer
        click.echo(f"one of {', '.join(words)}")


def _chosen(found: Ways, *, asks: bool) -> Way | None:
    """The way to write."""
    question = which_way(found) if asks else None
    if question is None:
        return found.chosen
    click.echo()
    answer = _answer(question)
    return next(way for way in found.ways if way.training == answer)


def _refuse_existing(file: str) -> None:
    """Nothing is written over."""
    if os.path.lexists(file):
        raise InputError("is there already", file, remedy="write elsewhere with -o, or over it with --force")


def _write(way: Way) -> None:
    """All files, or none. ``InputError`` where one cannot be written."""
    folder = os.path.dirname(next(iter(way.files)))
    if folder:
        os.makedirs(folder, exist_ok=True)
    write_all({name: text.encode() for name, text in way.files.items()})


OF_REQUEST = ("sequence_len", "hours", "price", "rows_as", "chats")


def request_of(
    model: str, data: str | None, tokens: str | None, method: str, file: str, given: dict[str, Any]
) -> Request:
    """The request of a call."""
    own = {name: given.pop(name) for name in OF_REQUEST}
    return Request(
        model=model,
        data=data,
        method=method_named(method),
        tokens=None if tokens is None else parse_tokens(tokens),
        file=file,
        options=RunOptions(**given),
        **own,
    )
