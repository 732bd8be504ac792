"""``batch_size`` alone, or with ``gradient_accumulation_steps``."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run
from advisor.documents import Remove


def finds(run: Run) -> Iterator[Hit]:
    """The two combinations that axolotl refuses; blank and zero count as not given, as there."""
    given = run.config.get
    if not given("batch_size"):
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
    title="`batch_size` alone, or with `gradient_accumulation_steps`",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Of `micro_batch_size`, `gradient_accumulation_steps` and `batch_size` axolotl derives the third from the first
        and one other. `batch_size` needs `micro_batch_size`, and no accumulation.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:220-230,275-283@0.19.0",
    examples=(
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
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                micro_batch_size:
                gradient_accumulation_steps:
                batch_size: 16
            """,
            fires=True,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                batch_size: 16
                micro_batch_size: 2
                gradient_accumulation_steps:
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
            """,
        ),
    ),
)
