"""``batch_size`` alone, or with ``gradient_accumulation_steps``; before 0.19.0 any of the three alone."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.schemas.refusals import refused


def finds(run: Run) -> Iterator[Hit]:
    """The combinations that axolotl refuses; blank and zero count as not given, as there."""
    given = run.config.get
    if not given("batch_size"):
        yield from one_alone(run)
        return
    if given("gradient_accumulation_steps"):
        yield both_given(run)
    elif not given("micro_batch_size"):
        yield Hit(
            "batch_size",
            "`batch_size` alone does not determine the other two, and axolotl refuses it; give `micro_batch_size` and"
            " `gradient_accumulation_steps` instead",
            on_key=True,
        )


def one_alone(run: Run) -> Iterator[Hit]:
    """What 0.19.0 takes one for, and what earlier versions refuse (validation.py:220-226@0.18.0)."""
    alone = [key for key in ("micro_batch_size", "gradient_accumulation_steps") if run.config.get(key)]
    if len(alone) != 1 or run.stack.at_least("axolotl", "0.19.0"):
        return
    other = "gradient_accumulation_steps" if alone == ["micro_batch_size"] else "micro_batch_size"
    because = f"before 0.19.0 it takes no default for `{other}`"
    yield Hit(
        alone[0],
        refused(run, f"`{alone[0]}` alone", because, f"write `{other}: 1`"),
        (Set(other, 1, after=alone[0]),),
        on_key=True,
    )


def both_given(run: Run) -> Hit:
    """Both given: the one can go where the other says the same."""
    product = run.micro_batch_size * run.gradient_accumulation_steps
    agrees = str(run.config.get("batch_size")) == str(product)
    return Hit(
        "batch_size",
        "axolotl refuses `batch_size` with `gradient_accumulation_steps`; "
        + ("remove it, the other keys set the same" if agrees else f"remove one of them: the others make {product}"),
        (Remove("batch_size"),) if agrees else (),
        on_key=True,
    )


rule = Rule(
    id="batch-size-keys",
    stage="lint",
    title="Keys of the batch that axolotl does not take together, or alone",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Of `micro_batch_size`, `gradient_accumulation_steps` and `batch_size` axolotl derives the third from the first
        and one other. `batch_size` needs `micro_batch_size`, and no accumulation. From 0.19.0 on a missing
        `micro_batch_size` or `gradient_accumulation_steps` is 1; earlier versions refuse one of them alone.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:220-230,275-283@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                batch_size: 16
                micro_batch_size: 2
                gradient_accumulation_steps: 8
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                micro_batch_size: 2
                gradient_accumulation_steps: 8
            """,
        ),
        but("micro_batch_size:", "gradient_accumulation_steps:", fires=True),
        but("gradient_accumulation_steps:"),
        only("base_model: Qwen/Qwen2.5-7B"),
        Example(
            stack={"axolotl": "0.18.0"},
            before="""
                base_model: Qwen/Qwen2.5-7B
                micro_batch_size: 2
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                micro_batch_size: 2
                gradient_accumulation_steps: 1
            """,
        ),
        but("gradient_accumulation_steps: 4"),
        but(stack={}),
    ),
)
