"""Bytes per token as a sum of symbols: ``16 h + 8 f`` with the widths that the symbols stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.models.blocks import Block
    from advisor.run import Run

Amount = tuple[int, str]
"""Bytes per unit of a symbol, and the symbol; the empty symbol is one token."""
Amounts = Iterable[Amount]
Moment = list[Amount]
"""What is live at once."""

ONE = ""


@lru_cache(maxsize=16)
def widths(run: Run, block: Block) -> Mapping[str, int]:
    """What each symbol stands for, in units per token.

    ``h`` hidden, ``q`` ``k`` ``v`` widths of queries, keys and values, ``f`` width of the MLP or of one
    expert, ``S`` the length of a row (with context parallelism still the whole row: keys of all ranks pass
    by), ``r`` the LoRA rank; ``f of one`` what one of the experts gets of a token if all get as many.
    """
    known = {ONE: 1, "h": block.hidden, "S": run.sequence_len, "r": run.lora.rank if run.lora else 0}
    if (attention := block.attention) is not None:
        own = attention.own_keys
        known |= {"q": attention.query_width, "k": own * attention.key_width, "v": own * attention.value_width}
        known |= {
            "heads": attention.heads,
            "kv heads": own * attention.kv_heads,
            "heads S": attention.heads * run.sequence_len,
        }
        known["head_dim"] = attention.head_dim
        known["out"] = attention.heads * (attention.value_width // max(1, attention.kv_heads))
    if (mlp := block.mlp) is not None:
        known |= {"f": mlp.width, "f shared": mlp.shared_width, "experts": mlp.experts}
        known["routed"] = mlp.latent or block.hidden
        if mlp.experts:
            part = {f"{name} of one": mlp.experts_per_token * known[name] // mlp.experts for name in ("f", "routed")}
            known |= part
    return known


def total(amounts: Amounts, known: Mapping[str, int]) -> int:
    """Bytes per token."""
    return sum(coefficient * known[symbol] for coefficient, symbol in amounts)


def written(amounts: Amounts, known: Mapping[str, int]) -> str:
    """The sum as text: ``16 h + 4 q + 4 kv + 8 f + 4 heads + 8 = 200,840 B/token``."""
    collected: dict[str, int] = {}
    for coefficient, symbol in amounts:
        name = merged(symbol, known)
        collected[name] = collected.get(name, 0) + coefficient
    constant = collected.pop(ONE, 0)
    parts = [f"{coefficient:,} {symbol}" for symbol, coefficient in collected.items() if coefficient]
    parts += [f"{constant:,}"] if constant or not parts else []
    return f"{' + '.join(parts)} = {total(amounts, known):,} B/token"


def merged(symbol: str, known: Mapping[str, int]) -> str:
    """The symbol to print: ``kv`` where keys and values are equally wide, ``q`` for attention's output."""
    if symbol in {"k", "v"} and known["k"] == known["v"]:
        return "kv"
    if symbol == "routed" and known["routed"] == known["h"]:
        return "h"
    return "q" if symbol == "out" and known["out"] == known["q"] else symbol


def freed(amounts: Iterable[Amount]) -> Iterator[Amount]:
    """The amounts, taken off: what is freed by then."""
    return ((-coefficient, symbol) for coefficient, symbol in amounts)
