"""Which published model a name may mean: one that is misspelt, or the base that a fine-tune is called after."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.models import catalogue
from advisor.record import record
from advisor.util import regex

SIZE = regex(r"(\d+x)?\d+(\.\d+)?[bm]")
ACTIVE = regex(r"a\d+(\.\d+)?b")
CLOSE = 0.85


@record
class Parts:
    """What a name says of itself: ``llama``, ``3.1`` | ``8b`` | ``instruct``."""

    family: tuple[str, ...]
    size: str
    rest: tuple[str, ...]

    @property
    def active(self) -> str:
        """The active parameters of a sparse model, where its name has them."""
        return next((word for word in self.rest if ACTIVE.fullmatch(word)), "")


def misspelt(name: str) -> str | None:
    """The published name of the same size that differs from this one by the fewest letters; None if by many."""
    from difflib import get_close_matches

    known = {each.lower(): each for each in catalogue.catalogue_ids()}
    close = get_close_matches(name.lower(), known, n=4, cutoff=CLOSE)
    organisation = name.lower().partition("/")[0]
    of_its_size = [each for each in close if _size_of(each) == _size_of(name)]
    return next((known[each] for each in of_its_size if alike(organisation, each.partition("/")[0])), None)


def _size_of(name: str) -> str:
    """The size that a name has; empty where it has none."""
    parts = parts_of(name)
    return parts.size if parts is not None else ""


def alike(one: str, other: str) -> bool:
    """Whether two organisations may be one, misspelt."""
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio() >= CLOSE


def base_of(name: str) -> str | None:
    """The published model whose family and size a name holds; None where there is none.

    A guess to ask about: a name proves nothing.
    """
    wanted = parts_of(name)
    if wanted is None:
        return None
    found = [(fit, published) for published, parts in _published_parts() if (fit := _closeness(wanted, parts))]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _closeness(wanted: Parts, parts: Parts) -> tuple[int, int, int] | None:
    """How much of a published name another one holds; None if not family and size."""
    if (wanted.size, wanted.active) != (parts.size, parts.active):
        return None
    family = "".join(parts.family)
    if not any("".join(wanted.family[at:]) == family for at in range(len(wanted.family))):
        return None
    foreign = [word for word in parts.rest if word not in wanted.rest]
    return len(family), -len(foreign), len(parts.rest)


def _published_parts() -> Iterator[tuple[str, Parts]]:
    """The published models by what their names say; copies by others stand for the original."""
    for entry in catalogue.entries():
        publisher = entry["id"].partition("/")[0]
        for name in catalogue.names(entry):
            parts = parts_of(name)
            if parts is not None:
                yield name if name.startswith(publisher + "/") else entry["id"], parts


def parts_of(name: str) -> Parts | None:
    """Family, size and what follows; None for a name without a size, or with a size alone."""
    words = [word for word in re.split(r"[-_\s]+", name.rstrip("/").rpartition("/")[2].lower()) if word]
    at = next((index for index, word in enumerate(words) if index and SIZE.fullmatch(word)), None)
    if at is None:
        return None
    family = tuple(word.replace(".", "") for word in words[:at] if word != "meta")
    return Parts(family, words[at], tuple(words[at + 1 :])) if family else None
