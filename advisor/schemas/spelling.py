"""Which name was meant: the nearest by edits, where one is clearly nearest."""

from collections import Counter
from collections.abc import Container, Iterable
from functools import lru_cache

from advisor.record import record


def nearest(name: str, candidates: Iterable[str], taken: Container[str] = ()) -> str | None:
    """The one candidate that it abbreviates, or within a quarter of its length in edits and nearer than all others.

    One that differs in signs alone is nearer than any: ``qwen2_5`` is ``qwen_25``, not ``qwen3_5``. None that is taken,
    and none that is another of its kind: ``phi_4`` is not ``phi_3``.
    """
    like = _like(name, tuple(candidates))
    same = [one for one in like.same if one not in taken]
    if len(same) == 1:
        return same[0]
    longer = [one for one in like.longer if one not in taken]
    if longer and all(one.startswith(longer[0]) for one in longer):
        return longer[0]
    near = [(edits, one) for edits, one in like.near if one not in taken]
    best = [one for edits, one in near if edits == near[0][0]]
    return best[0] if len(best) == 1 else None


@record
class _Like:
    """What a name may have been meant as."""

    same: tuple[str, ...]
    """But for signs."""
    longer: tuple[str, ...]
    """What it abbreviates, the shortest first."""
    near: tuple[tuple[int, str], ...]
    """After how many edits, the fewest first."""


@lru_cache(maxsize=1024)
def _like(name: str, candidates: tuple[str, ...]) -> _Like:
    """Which candidates are like a name; a config is asked many times, and the names are the same."""
    others = [one for one in candidates if one != name]
    longer = sorted((one for one in others if _abbreviates(name, one)), key=len)
    most, letters = len(name) // 4, Counter(name.lower())
    close = [one for one in others if abs(len(one) - len(name)) <= most and apart(letters, one) <= most]
    close = [one for one in close if _numberless(one) != _numberless(name)]
    near = ((distance(name.lower(), one.lower()), one) for one in close)
    return _Like(
        tuple(one for one in others if _unsigned(one) == _unsigned(name)),
        tuple(longer),
        tuple(sorted((one for one in near if one[0] <= most), key=lambda one: one[0])),
    )


@lru_cache(maxsize=4096)
def _unsigned(name: str) -> str:
    """Its letters and digits alone."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


@lru_cache(maxsize=4096)
def _numberless(name: str) -> str:
    """The same whatever its numbers are."""
    return "".join("#" if letter.isdigit() else letter for letter in name.lower())


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
