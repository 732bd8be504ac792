"""A sharding strategy that nothing reads."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rename, Rule, Run, Set, but, is_mapping
from advisor.documents import Path
from advisor.run import Fsdp

KEYS = ("sharding_strategy", "fsdp_sharding_strategy")
RESHARD = "reshard_after_forward"
# accelerate/utils/constants.py, FSDP_SHARDING_STRATEGY@1.13.0, which may be given by number.
STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
INSTEAD = {
    "SHARD_GRAD_OP": "`fsdp_version: 2` with `reshard_after_forward: false` does that",
    "NO_SHARD": "remove `fsdp_config` for plain data parallelism",
    "HYBRID_SHARD": "`fsdp_version: 2` with `dp_replicate_size` and `dp_shard_size` does that",
    "HYBRID_SHARD_ZERO2": "`fsdp_version: 2` with `dp_replicate_size` and `dp_shard_size` does that",
}


def finds(run: Run) -> Iterator[Hit]:
    """The key in ``fsdp_config``, under either name."""
    config = run.config.get("fsdp_config")
    if run.fsdp is None or not is_mapping(config):
        return
    for key in KEYS:
        strategy = name_of(config.get(key))
        if config.get(key) is not None and strategy != in_effect(run.fsdp):
            yield hit(run, key, strategy)


def in_effect(fsdp: Fsdp) -> str:
    """The strategy that the run has already: the key is idle and does no harm."""
    return "FULL_SHARD" if fsdp.reshard_after_forward else "SHARD_GRAD_OP"


def name_of(value: object) -> str:
    """The strategy, which may be written small or as a number from 1."""
    if isinstance(value, int) and 1 <= value <= len(STRATEGIES):
        return STRATEGIES[value - 1]
    return str(value).upper()


def hit(run: Run, key: str, strategy: str) -> Hit:
    """What happens instead: everything is sharded, unless ``reshard_after_forward`` says otherwise."""
    assert run.fsdp is not None
    path: Path = ("fsdp_config", key)
    at, what = f"fsdp_config.{key}", f"`{key}: {strategy}` is read by nothing"
    given = any(run.config.at(("fsdp_config", name)) is not None for name in (RESHARD, f"fsdp_{RESHARD}"))
    if given:
        return Hit(at, f"{what}: `{RESHARD}` decides; remove it", (Remove(path),), on_key=True, level="note")
    edits: tuple[Change, ...] = ()
    if strategy == "SHARD_GRAD_OP" and run.fsdp.version == 2:
        edits = (Rename(path, RESHARD), Set(("fsdp_config", RESHARD), False))
    message = f"{what}: axolotl drops it, and FSDP shards everything; {INSTEAD.get(strategy, 'remove it')}"
    return Hit(at, message, edits, on_key=True)


def had_no_effect(run: Run) -> bool:
    """Whether only keys go that changed nothing."""
    return all(hit.level == "note" for hit in finds(run))


rule = Rule(
    id="fsdp-sharding-strategy-ignored",
    stage="lint",
    title="A sharding strategy that nothing reads",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        axolotl's schema of `fsdp_config` has no `sharding_strategy` and drops it, under FSDP1 as well. FSDP2 knows
        `reshard_after_forward` instead: `true` frees gathered weights after the forward, as FULL_SHARD does; `false`
        keeps them, as SHARD_GRAD_OP does, for 2 bytes a parameter on every GPU.
    """,
    safe=had_no_effect,
    source=(
        "axolotl/utils/schemas/fsdp.py:10-82, utils/trainer.py:590-624@0.19.0; "
        "transformers/training_args.py:2811-2820@5.16.1"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                fsdp_version: 2
                fsdp_config:
                  fsdp_sharding_strategy: SHARD_GRAD_OP
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                fsdp_version: 2
                fsdp_config:
                  reshard_after_forward: false
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        but(
            "fsdp_version: 1",
            "fsdp_config:\n  sharding_strategy: HYBRID_SHARD\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="2n8x h100-80gb",
            fires=True,
        ),
        but(fixed=True),
        but("fsdp_config:\n  sharding_strategy: FULL_SHARD\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP"),
        but("fsdp: [full_shard, auto_wrap]", without=("sequence_len", "fsdp_version", "fsdp_config")),
        but("fsdp_config:\n  sharding_strategy: 9", without=("sequence_len",), fires=True),
    ),
)
