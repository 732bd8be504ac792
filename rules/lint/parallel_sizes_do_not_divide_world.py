"""Parallel sizes that do not make up all GPUs."""

from collections.abc import Iterator
from math import prod

from advisor import Example, Hit, Remove, Rule, Run, Set, but, only

CONTEXT = "context_parallel_size"
DATA = ("dp_replicate_size", "dp_shard_size")


def finds(run: Run) -> Iterator[Hit]:
    """Only what is given counts: axolotl works the missing size out for loading, and does not tell accelerate."""
    sizes = given(run)
    if run.hardware is None or not sizes or (run.fsdp is not None and run.fsdp.version == 1):
        return
    total, world = prod(sizes.values()), run.world_size
    if total == world:
        yield from without_sharding(run, sizes)
        return
    edits = completed(run, sizes) or fitted(sizes, world)
    written = " x ".join(f"`{name}: {size}`" for name, size in sizes.items())
    remedy = spoken(edits[0]) if edits else f"use {gpus(total)}, or sizes that make {world}"
    need = "need" if len(sizes) > 1 else "needs"
    are = "is" if world == 1 else "are"
    message = f"{written} {need} {gpus(total)}, and there {are} {world}: the trainer stops; {remedy}"
    yield Hit(next(iter(sizes)), message, edits)


def gpus(number: int) -> str:
    """A number of them."""
    return "1 GPU" if number == 1 else f"{number} GPUs"


def given(run: Run) -> dict[str, int]:
    """The sizes above one."""
    context = CONTEXT if run.config.get(CONTEXT) else "sequence_parallel_degree"
    sizes = {
        "dp_shard_size": run.dp_shard_size or 1,
        "dp_replicate_size": run.dp_replicate_size,
        context: run.context_parallel_size,
        "tensor_parallel_size": run.tensor_parallel_size,
        "expert_parallel_size": run.expert_parallel_size,
    }
    return {key: size for key, size in sizes.items() if size > 1}


def completed(run: Run, sizes: dict[str, int]) -> tuple[Set, ...]:
    """The size that axolotl fills in for loading, where that makes up the world: how often, or over how many."""
    missing = "dp_replicate_size" if "dp_shard_size" in sizes else "dp_shard_size"
    others = prod(sizes.values())
    fits = run.fsdp is not None and others < run.world_size and run.world_size % others == 0
    experts = missing == "dp_replicate_size" and "expert_parallel_size" in sizes
    if not fits or experts or missing in sizes:
        return ()
    return (Set(missing, run.world_size // others, after=next(iter(sizes))),)


def fitted(sizes: dict[str, int], world: int) -> tuple[Set | Remove, ...]:
    """The size that makes up the world with the others: of data parallelism first, else the only one that can."""
    total = prod(sizes.values())
    fit = {key: world * size // total for key, size in sizes.items() if world * size % total == 0}
    key = next((key for key in DATA if key in fit), next(iter(fit)) if len(fit) == 1 else None)
    if key is None:
        return ()
    return (Set(key, fit[key]) if fit[key] > 1 else Remove(key),)


def spoken(edit: Set | Remove) -> str:
    """``set `dp_shard_size: 4```."""
    return f"set `{edit.path}: {edit.value}`" if isinstance(edit, Set) else f"remove `{edit.path}`"


def without_sharding(run: Run, sizes: dict[str, int]) -> Iterator[Hit]:
    """Sizes that need FSDP."""
    split = sizes.keys() & {CONTEXT, "sequence_parallel_degree", "tensor_parallel_size"}
    if "dp_shard_size" in sizes and run.fsdp is None:
        stops = bool(split)
        does = "axolotl stops while it loads the model" if stops else "nothing is sharded"
        message = (
            f"`dp_shard_size: {sizes['dp_shard_size']}` without `fsdp_config`: {does}; add `fsdp_config`, or remove it"
        )
        yield Hit("dp_shard_size", message, level=None if stops else "warning")
    elif "dp_replicate_size" in sizes and "dp_shard_size" not in sizes and split:
        others = " and ".join(f"`{name}`" for name in sorted(split))
        message = (
            f"`dp_replicate_size: {sizes['dp_replicate_size']}` with {others} without `dp_shard_size`: accelerate"
            " refuses to replicate what is not sharded as well; use `dp_shard_size` instead"
        )
        yield Hit("dp_replicate_size", message)


rule = Rule(
    id="parallel-sizes-do-not-divide-world",
    stage="lint",
    title="Parallel sizes that do not make up all GPUs",
    finds=finds,
    level="error",
    proof="read",
    why="""
        As soon as one of the sizes is above 1, accelerate arranges all processes in a mesh, and raises unless the sizes
        multiply to their number. A size that is not given is 1 to it. axolotl works out what is missing for loading the
        model, which is why this comes up only when the trainer is made.
    """,
    safe=True,
    source=(
        "axolotl/utils/trainer.py:631-661, utils/distributed.py:319-382@0.19.0; "
        "accelerate/parallelism_config.py:329-334, 372-376@1.13.0; tried with Accelerator in four processes"
    ),
    examples=lambda: (
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                tensor_parallel_size: 2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                tensor_parallel_size: 2
                dp_shard_size: 4
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        Example(
            gpus="2n8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                dp_shard_size: 8
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                dp_shard_size: 8
                dp_replicate_size: 2
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        Example(
            gpus="4x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 65536
                attn_implementation: flash_attention_2
                context_parallel_size: 8
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 65536
                attn_implementation: flash_attention_2
                context_parallel_size: 4
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                dp_replicate_size: 2
                dp_shard_size: 8
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 8192
                dp_shard_size: 8
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 8192",
            "context_parallel_size: 3",
            "tensor_parallel_size: 4",
            gpus="8x h100-80gb",
            fires=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 8192",
            "dp_shard_size: 8",
            gpus="8x h100-80gb",
            fires=True,
        ),
        but(
            "dp_shard_size: 4",
            "tensor_parallel_size: 2",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        ),
        but(without=("sequence_len",), gpus="1x a100-80gb", fires=True),
        only("base_model: meta-llama/Llama-3.1-8B", "tensor_parallel_size: 2", gpus=""),
        only("base_model: meta-llama/Llama-3.1-8B", gpus="4x h100-80gb"),
        but("fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", without=("sequence_len",), gpus="1x a100-80gb"),
        only("base_model: meta-llama/Llama-3.1-8B", "context_parallel_size: 8", gpus="8x a100-80gb"),
        but(
            "dp_replicate_size: 2",
            "dp_shard_size: 2",
            "tensor_parallel_size: 2",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        ),
        but(
            "dp_replicate_size: 8",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("dp_shard_size",),
        ),
    ),
)
