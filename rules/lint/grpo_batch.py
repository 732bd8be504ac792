"""A batch that GRPO cannot divide into groups of answers."""

from collections.abc import Iterator
from math import lcm

from advisor import Example, Hit, Rule, Run, Set, but, is_mapping, only
from advisor.schemas.refusals import refused

LEAST = 2


def finds(run: Run) -> Iterator[Hit]:
    """Groups of one; a batch that is no multiple of a group; fewer groups than GPUs."""
    trl = run.config.get("trl")
    group = trl.get("num_generations") if run.config.get("rl") == "grpo" and is_mapping(trl) else None
    if not isinstance(group, int) or not is_mapping(trl):
        return
    head = f"`num_generations: {group}`"
    if group < LEAST:
        because = "an answer is judged by the others of its group"
        yield Hit("trl.num_generations", refused(run, head, because, "write 2 at least, such as 8"))
        return
    batch, said = batch_of(run, trl.get("generation_batch_size"))
    if batch % group:
        because = f"{said} is not a multiple of it, which would cut a group"
        yield hit(run, group, head, because, accumulation(run, group))
    elif batch < group * run.world_size:
        wanted = group * run.world_size
        because = f"{said} is less than the {wanted} that axolotl asks for on {run.world_size} GPUs"
        least = f"raise `gradient_accumulation_steps` until the batch is {wanted}"
        yield hit(run, group, head, because, least)


def hit(run: Run, group: int, head: str, because: str, otherwise: str) -> Hit:
    """With the batch of all GPUs written out where it holds whole groups: TRL takes the same by itself."""
    batch = run.micro_batch_size * run.gradient_accumulation_steps
    whole = batch * run.world_size
    if run.config.at("trl.generation_batch_size") is not None or batch < group or whole % group:
        return Hit("trl.num_generations", refused(run, head, because, otherwise))
    remedy = f"write `generation_batch_size: {whole}`, the batch of all {run.world_size} GPUs"
    edits = (Set("trl.generation_batch_size", whole),)
    return Hit("trl.num_generations", refused(run, head, because, remedy), edits)


def batch_of(run: Run, given: object) -> tuple[int, str]:
    """The answers of one generation as axolotl counts them, on one GPU, and how that is written."""
    if isinstance(given, int):
        return given, f"`generation_batch_size: {given}`"
    micro, steps = run.config.get("micro_batch_size") or 1, run.config.get("gradient_accumulation_steps") or 1
    product = run.micro_batch_size * run.gradient_accumulation_steps
    return product, f"micro batch {micro} times accumulation {steps}"


def accumulation(run: Run, group: int) -> str:
    """The least accumulation that does."""
    if run.config.at("trl.generation_batch_size") is not None:
        return f"make it a multiple of {group}"
    steps = lcm(group, run.micro_batch_size) // run.micro_batch_size
    return f"write for example `gradient_accumulation_steps: {steps}`"


rule = Rule(
    id="grpo-batch",
    stage="lint",
    title="A batch that GRPO cannot divide into groups of answers",
    finds=finds,
    level="error",
    safe=True,
    proof="rejects",
    why="""
        GRPO lets the model answer each prompt several times, and compares the answers. The batch must hold whole
        groups, and each GPU one of them. axolotl counts the batch of one GPU.
    """,
    source="axolotl/utils/schemas/validation.py:828-907@0.19.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "rl: grpo",
            "micro_batch_size: 2",
            "gradient_accumulation_steps: 1",
            "trl:\n  num_generations: 4",
            fires=True,
        ),
        but("micro_batch_size: 2", gpus="4x a100-80gb", fires=True),
        but("micro_batch_size: 4", "gradient_accumulation_steps: 4", gpus="4x a100-80gb"),
        only("base_model: Qwen/Qwen2.5-7B", "rl: grpo", "trl:\n  use_vllm: true"),
        but("trl:\n  num_generations: 4\n  generation_batch_size: 8"),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "rl: grpo",
            "micro_batch_size: 4",
            "trl:\n  num_generations: 4\n  generation_batch_size: 8",
            gpus="4x a100-80gb",
            fires=True,
        ),
        Example(
            gpus="4x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                rl: grpo
                micro_batch_size: 4
                gradient_accumulation_steps: 2
                trl:
                  num_generations: 4
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                rl: grpo
                micro_batch_size: 4
                gradient_accumulation_steps: 2
                trl:
                  num_generations: 4
                  generation_batch_size: 32
            """,
        ),
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                rl: grpo
                micro_batch_size: 6
                trl:
                  num_generations: 4
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                rl: grpo
                micro_batch_size: 6
                trl:
                  num_generations: 4
                  generation_batch_size: 12
            """,
        ),
        but("micro_batch_size: 2", gpus="2x a100-80gb", fires=True),
    ),
)
