"""Which name was meant: the nearest by edits, where one is clearly nearest."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The one candidate that it abbreviates, or within a quarter of its length in edits and nearer than all others.

    One that differs in signs alone is nearer than any: ``qwen2_5`` is ``qwen_25``, not ``qwen3_5``.
    """
    return _nearest(name, tuple(candidates))


@lru_cache(maxsize=1024)
def _nearest(name: str, candidates: tuple[str, ...]) -> str | None:
    same = [candidate for candidate in candidates if _unsigned(candidate) == _unsigned(name) and candidate != name]
    if len(same) == 1:
        return same[0]
    longer = sorted((candidate for candidate in candidates if _abbreviates(name, candidate)), key=len)
    if longer and all(candidate.startswith(longer[0]) for candidate in longer):
        return longer[0]
    most = len(name) // 4
    best: list[str] = []
    letters = Counter(name.lower())
    for candidate in candidates:
        if abs(len(candidate) - len(name)) > most or candidate == name or apart(letters, candidate) > most:
            continue
        edits = distance(name.lower(), candidate.lower())
        if edits < most or (edits == most and not best):
            best = [candidate] if edits < most else [*best, candidate]
            most = edits
        elif edits == most:
            best.append(candidate)
    return best[0] if len(best) == 1 else None


@lru_cache(maxsize=4096)
def _unsigned(name: str) -> str:
    """Its letters and digits alone."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def apart(letters: Counter[str], other: str) -> int:
    """No more than the edits between two words, from their letters alone: a swap changes none of them."""
    wanted = _letters_of(other)
    return max((letters - wanted).total(), (wanted - letters).total())


@lru_cache(maxsize=4096)
def _letters_of(name: str) -> Counter[str]:
    """How often each letter occurs."""
    return Counter(name.lower())


def _abbreviates(one: str, other: str) -> bool:
    """Word by word, one word the beginning of the other: ``pad_to_seq_len``, ``pad_to_sequence_len``."""
    words, wanted = one.lower().split("_"), other.lower().split("_")
    return (
        one != other
        and len(words) == len(wanted) > 1
        and all(
            len(word) > 1 and (a.startswith(b) or b.startswith(a))
            for word, a, b in zip(words, words, wanted, strict=True)
        )
    )


@lru_cache(maxsize=1 << 16)
def distance(one: str, other: str) -> int:
    """Letters to insert, delete, replace or swap with a neighbour until the two are equal."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row, earlier = row, [i], before
        for j, wanted in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]
