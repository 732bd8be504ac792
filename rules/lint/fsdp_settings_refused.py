"""Settings of FSDP that axolotl's schema lets pass and the trainer does not."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, is_list, is_mapping, only

FSDP1_ALONE = frozenset({"no_shard", "hybrid_shard", "hybrid_shard_zero2"})
RESHARD = ("reshard_after_forward", "fsdp_reshard_after_forward")
PARALLEL = ("dp_shard_size", "dp_replicate_size", "tensor_parallel_size")


def finds(run: Run) -> Iterator[Hit]:
    """The deprecated list on its own; then what each version cannot be told."""
    if run.fsdp is None:
        return
    if not run.config.get("fsdp_config"):
        message = (
            "`fsdp` without `fsdp_config` stops axolotl at the start, where it reads the latter; write `fsdp_config`"
        )
        yield Hit("fsdp", message, on_key=True)
    elif run.fsdp.version == 1:
        yield from of_version_1(run)
    else:
        yield from of_version_2(run)


def of_version_1(run: Run) -> Iterator[Hit]:
    """It takes the name of a strategy where axolotl's schema takes true or false alone, and no mesh of GPUs."""
    config = run.config.get("fsdp_config")
    for key in RESHARD:
        value = config.get(key) if is_mapping(config) else None
        if value is not None:
            yield Hit(
                f"fsdp_config.{key}",
                f"`{key}: {str(value).lower()}` stops FSDP1, which looks for a sharding strategy of that name; set"
                " `fsdp_version: 2`, or remove it for full sharding",
                (Remove(f"fsdp_config.{key}"),) if value is True else (),
            )
    for key in PARALLEL:
        value = run.config.get(key)
        if isinstance(value, int) and value > 1:
            yield Hit(key, f"`{key}: {value}` with FSDP1: accelerate stops; set `fsdp_version: 2`, or remove it")
            return


def of_version_2(run: Run) -> Iterator[Hit]:
    """Strategies of the list that only version 1 has."""
    listed = run.config.get("fsdp")
    for number, item in enumerate(listed if is_list(listed) else ()):
        if str(item).lower() in FSDP1_ALONE:
            yield Hit(
                f"fsdp.{number}",
                f"`{item}` in `fsdp` is a strategy of FSDP1 alone, and the trainer stops; with FSDP2"
                " `dp_replicate_size` and `dp_shard_size` say how it is sharded",
            )


rule = Rule(
    id="fsdp-settings-refused",
    stage="lint",
    title="Settings of FSDP that stop the trainer",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        These pass axolotl's schema. `fsdp` alone leads to an AttributeError before anything is loaded. With FSDP1
        transformers turns `reshard_after_forward: true` into the text "true", which accelerate looks up among its
        strategies: KeyError 'TRUE', once the model has been loaded. Sizes of a mesh need FSDP2 in accelerate;
        strategies such as hybrid_shard need FSDP1 in transformers.
    """,
    safe=True,
    source=(
        "axolotl/utils/trainer.py:597-603, 671-673@0.19.0; transformers/training_args.py:2820-2822, 2867-2881@5.16.1; "
        "accelerate/utils/dataclasses.py:1840-1850, accelerate/parallelism_config.py:379-386@1.13.0; each of them tried"
    ),
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 4096",
            "fsdp: [full_shard, auto_wrap]",
            gpus="8x a100-80gb",
            fires=True,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                fsdp_config:
                  reshard_after_forward: true
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        but("fsdp: [hybrid_shard, auto_wrap]", "fsdp_version: 2", gpus="2n8x a100-80gb", fires=True, fixed=True),
        but(
            "dp_shard_size: 8", "dp_replicate_size: 2", "fsdp_version: 1", gpus="2n8x a100-80gb", fires=True, fixed=True
        ),
        but("fsdp: [full_shard, auto_wrap]", "fsdp_version: 2"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        only("base_model: meta-llama/Llama-3.1-8B", "fsdp_config:\n  ? ''\n  : true"),
        but("tensor_parallel_size: 1", "fsdp_version: 1", without=("sequence_len",), fixed=True),
    ),
)
