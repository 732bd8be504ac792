"""A value of a type that DeepSpeed refuses."""

from collections.abc import Iterator
from typing import Any

from advisor import Hit, Rule, Run, but, is_mapping, json_hit, only
from advisor.schemas import Found, deepspeed_keys, fits

WORDS = {"bool": "true or false", "int": "an integer", "float": "a number", "str": "a string", "null": "null"}


def finds(run: Run) -> Iterator[Hit]:
    """Every value in a section read with pydantic that none of its key's kinds takes; "auto" is another rule's."""
    if run.deepspeed is None:
        return
    table = deepspeed_keys()
    for found in table.walk(run.deepspeed):
        if found.row is None or not table.forbids(found.level) or found.value == "auto":
            continue
        if is_plain(found) and not fits(found.row["kinds"], found.value):
            yield hit(run, found, found.row["kinds"])


def is_plain(found: Found) -> bool:
    """Whether pydantic judges the value as it stands: a stage, leaf modules and lists are converted before."""
    kinds: list[Any] = (found.row or {})["kinds"]
    judged = all(kind in WORDS if isinstance(kind, str) else not {"values", "level"}.isdisjoint(kind) for kind in kinds)
    return judged and found.key not in {"stage", "leaf_module"}


def hit(run: Run, found: Found, kinds: list[Any]) -> Hit:
    """What is refused, and what would be taken."""
    value = found.value
    given = "a mapping" if is_mapping(value) else "a list" if isinstance(value, list) else f"`{in_json(value)}`"
    wanted = " or ".join(in_words(kind) for kind in kinds)
    message = f"`{found.key}` is {given}, and DeepSpeed stops at it once the model is loaded: it takes {wanted}"
    return json_hit(run, found.at, f"{message}; correct it")


def in_json(value: object) -> str:
    """A single value as JSON has it, for people."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return f'"{value[:40]}"'
        case _:
            return str(value)[:40]


def in_words(kind: Any) -> str:
    """A kind, for people."""
    if isinstance(kind, str):
        return WORDS[kind]
    return ", ".join(f'"{value}"' for value in kind["values"]) if "values" in kind else "a mapping"


rule = Rule(
    id="deepspeed-wrong-type",
    stage="lint",
    title="A value of a type that DeepSpeed refuses",
    finds=finds,
    alone=True,
    level="error",
    proof="rejects",
    fatal=True,
    why="""
        The sections that DeepSpeed reads with pydantic (`zero_optimization`, `bf16`, `fp16`, `compile`, ...) convert
        `"1"` to 1 and 5e8 to an integer, but not null, a fraction or any other string. Every rank finds out when the
        engine is built, after the model has been loaded.
    """,
    source="deepspeed/runtime/config_utils.py:112-120@0.18.9, by way of advisor/schemas/deepspeed.json",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "sequence_len: 4096",
            "deepspeed: zero.json",
            gpus="8x a100-80gb",
            deepspeed='{"zero_optimization":{"stage":3, "round_robin_gradients":"maybe"}, "bf16":{"enabled":true}}',
            fires=True,
        ),
        but(
            deepspeed='{"zero_optimization": {"stage": 2, "offload_optimizer": "cpu"}, "bf16": {"enabled": true}}',
            fires=True,
        ),
        but(
            deepspeed='{"zero_optimization":{"stage":2, "elastic_checkpoint":"yes", "reduce_bucket_size":500000000.0}}'
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero1.json"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but(without=("sequence_len",), gpus="1x a100-80gb", deepspeed='{"zero_optimization": {"stage": "two"}}'),
        but(
            without=("sequence_len",),
            gpus="1x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 3, "leaf_module": {"classes": 1}}}',
        ),
        but(without=("sequence_len",), deepspeed='{"zero_optimization": {"stage": 2, "round_robin": "maybe"}}'),
        but(
            without=("sequence_len",), deepspeed='{"zero_optimization": {"stage": 2}, "wall_clock_breakdown": "maybe"}'
        ),
    ),
)
