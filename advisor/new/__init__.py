"""`Request` -> `Ways`: a complete config from a blank page, in the three kinds of training."""

from advisor.new.questions import answered, questions, which_way
from advisor.new.request import METHODS, Choice, Method, Question, Request, Seen
from advisor.new.ways import TITLES, Way, Ways, drafted, ways

__all__ = [
    "METHODS",
    "TITLES",
    "Choice",
    "Method",
    "Question",
    "Request",
    "Seen",
    "Way",
    "Ways",
    "answered",
    "drafted",
    "questions",
    "ways",
    "which_way",
]
