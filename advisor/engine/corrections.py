"""What a person must correct of a run that errors stop: what no edit repairs comes first."""

from collections.abc import Sequence

from advisor.engine.answer import Option, Stop
from advisor.engine.answer_steps import stop_of
from advisor.engine.finding import Finding

LONGEST = 80
"""Characters of a remedy that is told whole next to what else is to be done."""


def by_hand_first(stops: Sequence[Finding], options: Sequence[Option]) -> list[Finding]:
    """The errors that are left after the edits of the option to take, else after as many edits as there are, first."""
    option = next((way for way in options if way.recommended and way.left), None) or _most_able(options)
    by_hand = set(option.left) if option is not None else set[Stop]()
    return sorted(stops, key=lambda stop: stop_of(stop) not in by_hand)


def corrections(stops: Sequence[Stop], options: Sequence[Option]) -> str:
    """``--fix repairs 9 of 10; correct line 215 by hand: ...``: what edits repair, then what is left for a person."""
    option = _most_able(options)
    left = option.left if option is not None and option.left else tuple(stops)
    repaired = sum(stop not in left for stop in stops)
    if option is None or not repaired:
        return f"Correct {left[0].place} by hand: {_remedy(left)}"
    changes = "" if option.training == "same" else ", and changes what is trained"
    return (
        f"{option.flags} repairs {repaired} of {len(stops)}{changes}; correct {left[0].place} by hand: {_remedy(left)}"
    )


def _most_able(options: Sequence[Option]) -> Option | None:
    """The option whose edits leave fewest errors; of equals the one that trains the same."""
    return min((way for way in options if way.letter in {"A", "B"}), key=lambda way: len(way.left), default=None)


def _remedy(left: Sequence[Stop]) -> str:
    """What to do about the first error, and where the others are."""
    first, *others = left
    remedy = _in_short(first.remedy)
    places = list(dict.fromkeys(each.place for each in others))
    of_yaml = all(place.removeprefix("line ").isdecimal() for place in places)
    places = [place.removeprefix("line ") for place in places] if of_yaml else places
    if len(others) == 1:
        remedy = f"{remedy}; then {others[0].place}: {others[0].remedy}"
    elif places:
        noun = "" if not of_yaml else "lines " if len(places) > 1 else "line "
        remedy = f"{remedy}; then {noun}{' and '.join(filter(None, (', '.join(places[:-1]), places[-1])))}"
    return f"{remedy}{'' if remedy.endswith('?') else '.'}"


def _in_short(remedy: str) -> str:
    """The first clause of a long remedy: the error itself has the rest."""
    clause, more, _ = remedy.partition(", and ")
    return f"{clause}, as the error says" if more and len(remedy) > LONGEST else remedy
