"""The one way in: config, options, hardware and stack -> everything that is found. All front ends call it."""

from advisor.session.check_config import CheckedRun, check_config, check_loaded
from advisor.session.lenient import lenient_session
from advisor.session.options import RunOptions
from advisor.session.session import Session, session_for
from advisor.session.text import check_config_text, plain_session, text_session

__all__ = [
    "CheckedRun",
    "RunOptions",
    "Session",
    "check_config",
    "check_config_text",
    "check_loaded",
    "lenient_session",
    "plain_session",
    "session_for",
    "text_session",
]
