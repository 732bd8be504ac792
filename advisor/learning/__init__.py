"""`Run` -> how it learns: the usual values of what decides that, what an adapter asks of them, a family's chats."""

from advisor.learning.bands import Band, Training, band_of, method_of
from advisor.learning.chat import Chat, chat_of, end_of, trimming_templates
from advisor.learning.rates import rate_caveat, rate_edits, rate_of, rate_shown

__all__ = [
    "Band",
    "Chat",
    "Training",
    "band_of",
    "chat_of",
    "end_of",
    "method_of",
    "rate_caveat",
    "rate_edits",
    "rate_of",
    "rate_shown",
    "trimming_templates",
]
