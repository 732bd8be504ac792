"""The axes of the search: what a run can be changed in, and the ways there are in each."""

from collections.abc import Iterable, Iterator, Sequence

from advisor.engine.points import BATCH, Moves, Walk, at_batch

Way = tuple[str, ...]
"""Rules that are moved by together, in this order."""

HALF = "mixed-precision"
AT_ONCE: tuple[Way, ...] = (
    (HALF,),
    ("flash-attention",),
    ("smaller-eval-batch",),
    ("smaller-vllm-share",),
)
"""What costs no time: tried with every point, and left out again where the end does without."""
LOSS: tuple[Way, ...] = (("fused-loss",),)
LAYERS: Way = ("fused-kernels",)
"""Of Liger, once its plugin is there for the loss; as free as what comes at once."""
METHOD: tuple[Way, ...] = (
    ("lora",),
    ("qlora",),
    ("quantize-moe-experts",),
    ("qlora", "quantize-moe-experts"),
    ("fsdp-qlora",),
    ("qlora", "fsdp-qlora"),
    ("half-precision-offload",),
    ("eight-bit-optimizer",),
    ("lora", "eight-bit-optimizer"),
    ("qlora", "eight-bit-optimizer"),
)
SHARDING: tuple[Way, ...] = (
    ("zero-1",),
    ("zero-2",),
    ("zero-3",),
    ("without-deepspeed",),
    ("half-masters",),
    ("zero-2", "half-masters"),
    ("zero-3", "half-masters"),
    ("fsdp-2",),
    ("lower-zero-stage",),
    ("hsdp",),
    ("fsdp-2", "hsdp"),
    ("hpz",),
    ("zero-3", "hpz"),
    ("plain-ddp",),
)
CONTEXT: tuple[Way, ...] = (("context-parallel",), ("tiled-mlp",))
"""Long rows: shared by GPUs, or in tiles; after what shards, of which one takes FSDP2 alone, the other DeepSpeed."""
BACK = "less-offload"
OFFLOAD: tuple[Way, ...] = (
    (BACK,),
    (BACK, "lower-zero-stage"),
    (BACK, "plain-ddp"),
    ("offload-optimizer",),
    ("offload-params",),
    ("offload-optimizer", "offload-params"),
)
LESS_CHECKPOINTED: tuple[Way, ...] = (
    ("no-activation-offloading", "no-checkpointing"),
    ("no-checkpointing",),
    ("no-activation-offloading",),
)
OFFLOADED = "activation-offloading"
CHECKPOINTED: tuple[Way, ...] = (
    ("gradient-checkpointing",),
    (OFFLOADED,),
    ("gradient-checkpointing", OFFLOADED),
)
BUCKETS = ("right-sized-buckets",)
SYNC: tuple[Way, ...] = (("sync-each-batch",), ("smaller-micro-batch", "sync-each-batch"))
"""Without accumulation a smaller batch comes first; which one, is decided last."""
RESHARD: tuple[Way, ...] = (("fsdp-reshard",), ("fsdp-no-reshard",))
LENGTH = "shorter-sequences"
FIRST = "quantize-as-asked"
"""What the YAML asks for itself comes before all that would make up for it."""
EXPERTS = "quantize-moe-experts"
"""So do the bits of experts that it asks for, as long as the run fits with them."""
GROUPS = (AT_ONCE, LOSS, METHOD, SHARDING, CONTEXT, RESHARD, SYNC, OFFLOAD, LESS_CHECKPOINTED, CHECKPOINTED)
COME_ALONG = frozenset(rule for way in (*AT_ONCE, BUCKETS, LAYERS) for rule in way)
"""What is tried with every point that it applies to."""
REBUILDS = frozenset(
    rule for ways in (METHOD, SHARDING, CONTEXT, OFFLOAD, CHECKPOINTED) for way in ways for rule in way if rule != BACK
)
"""What changes the engine, where things lie, or what is computed again."""
SMALL, REBUILD = 2, 3
"""What an edit weighs: two of them are more than one that rebuilds. Little room weighs as much as a small one."""
KNOWN = {*BATCH, LENGTH, FIRST, *BUCKETS, *LAYERS, *(rule for ways in GROUPS for way in ways for rule in way)}


def families(walk: Walk, start: Moves) -> list[Moves]:
    """Everything but checkpoints and batch: moves that lead somewhere from ``start``."""
    found = [start]
    for way in AT_ONCE:
        found = [_with_way(walk, moves, way, last=True) or moves for moves in found]
    found = [_with_way(walk, moves, LAYERS) or moves for moves in _branched(walk, found, LOSS)]
    found = _branched(walk, found, [(rule,) for rule in walk.rules if rule not in KNOWN])
    found = _branched(walk, found, METHOD)
    found = _branched(walk, _branched(walk, found, SHARDING), CONTEXT)
    found = [_with_way(walk, moves, BUCKETS) or moves for moves in found]
    found = _branched(walk, _branched(walk, found, RESHARD), SYNC)
    return _branched(walk, found, OFFLOAD)


def leaves(walk: Walk, family: Moves) -> list[Moves]:
    """A family with more and more checkpointed: the last needs least memory on the GPU."""
    return [*leaves_from_least(walk, family)][::-1]


def leaves_from_least(walk: Walk, family: Moves) -> Iterator[Moves]:
    """The same from the last to the first, each made when it is asked for."""
    for way in reversed(CHECKPOINTED):
        yield from _with_alternatives(walk, family, way, last_first=True)
    yield family
    for way in reversed(LESS_CHECKPOINTED):
        yield from _with_alternatives(walk, family, way, last_first=True)


def _branched(walk: Walk, points: Sequence[Moves], ways: Sequence[Way]) -> list[Moves]:
    """Each point as it is, and with each of the ways that applies to it."""
    found: list[Moves] = []
    for moves in points:
        found.append(moves)
        for way in ways:
            found += _with_alternatives(walk, moves, way)
    return found


def _with_alternatives(walk: Walk, moves: Moves, way: Way, *, last_first: bool = False) -> Iterator[Moves]:
    """A point with a way added, once for each alternative of its last rule."""
    *first, rule = way
    if rule not in walk.rules or not _may_end(walk, moves, way):
        return
    # Nothing may stay on the host but under ZeRO.
    before = _with_way(walk, moves, (*first,), last=BACK in first)
    if before is None:
        return
    indices = range(_most_of(walk, before, rule) + 1)
    for index in reversed(indices) if last_first else indices:
        after = (*before, (rule, index))
        if walk.after(after) is not None:
            yield after


def _may_end(walk: Walk, moves: Moves, way: Way) -> bool:
    """Whether the last rule of a way may apply; after another batch, which is cheap to try, that is asked first."""
    if len(way) == 1 or way[0] not in BATCH:
        return True
    return any(walk.rules[way[-1]].when(at_batch(walk, moves, size).run) for size, _ in walk.sizes)


def _with_way(walk: Walk, moves: Moves, way: Way, *, last: bool = False) -> Moves | None:
    """A point with a way added; None where one of its rules is not there or does not apply."""
    if not all(rule in walk.rules for rule in way):
        return None
    for rule in way:
        moves = (*moves, (rule, _most_of(walk, moves, rule) if last else 0))
        if walk.after(moves) is None:
            return None
    return moves


def _most_of(walk: Walk, moves: Moves, rule: str) -> int:
    """The index of a rule's last alternative, which saves most."""
    return max(0, len(walk.offers(moves, rule)) - 1)


def without_batch(moves: Moves) -> Moves:
    """The moves less those of the batch, which another takes the place of."""
    return tuple(move for move in moves if move[0] not in BATCH)


def weight_of(moves: Moves) -> int:
    """What the edits weigh that an end needs at least: what only comes along is left out where the end does without."""
    return weight_of_rules(rule for rule, _ in moves if rule not in COME_ALONG)


def weight_of_rules(rules: Iterable[str]) -> int:
    """What edits weigh by their rules."""
    return sum(REBUILD if rule in REBUILDS else SMALL for rule in rules)
