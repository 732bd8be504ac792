"""Texts, on disk or not -> everything that is found, for editors, pages and agents."""

from collections.abc import Mapping

from advisor.documents import parse
from advisor.record import replace
from advisor.session.check_config import CheckedRun, check_config
from advisor.session.options import RunOptions
from advisor.session.rule_selection import Tell, on_stderr
from advisor.session.session import Session, session_for
from advisor.settings import Settings
from advisor.util import Buffers


def plain_session(options: RunOptions) -> Session:
    """A session that no file and no environment variable has a say in."""
    return session_for(["."], options, settings=Settings(), detects=False)


def text_session(
    file: str,
    options: RunOptions,
    *,
    files: Mapping[str, str] | None = None,
    settings: bool = False,
    tell: Tell = on_stderr,
) -> Session:
    """The session of a text that is called ``file``; ``files`` and ``settings`` as in ``advisor.check_text``."""
    session = session_for([file], options, detects=False, tell=tell) if settings else plain_session(options)
    context = replace(session.context, buffers=Buffers.next_to(file, files or {}))
    return replace(session, context=context)


def check_config_text(text: str, file: str, session: Session, *, speed: bool = True) -> CheckedRun:
    """Everything that is found of a text. ``InputError``, with line and remedy, where it cannot be read."""
    return check_config(parse(text.encode(), file, "yaml"), session, speed=speed)
