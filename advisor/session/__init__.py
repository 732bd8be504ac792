"""The one way in: config, options, hardware and stack -> everything that is found. All front ends call it."""

from advisor.session.check_config import CheckedRun, check_config, check_loaded
from advisor.session.options import RunOptions
from advisor.session.session import Session, session_for

__all__ = ["CheckedRun", "RunOptions", "Session", "check_config", "check_loaded", "session_for"]
