"""The one way in: config, options, hardware and stack -> everything that is found. All front ends call it."""

from advisor.session.examine import Examined, examine, examined
from advisor.session.lenient import lenient_session
from advisor.session.options import RunOptions
from advisor.session.session import Session, session_for
from advisor.session.text import examine_text, plain_session, text_session

__all__ = [
    "Examined",
    "RunOptions",
    "Session",
    "examine",
    "examine_text",
    "examined",
    "lenient_session",
    "plain_session",
    "session_for",
    "text_session",
]
