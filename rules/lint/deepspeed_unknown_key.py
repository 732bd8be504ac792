"""A key that DeepSpeed refuses."""

from collections.abc import Iterator

from advisor import Example, Hit, Rename, Rule, Run, but, json_hit, only
from advisor.schemas import Found, deepspeed_keys, nearest


def finds(run: Run) -> Iterator[Hit]:
    """Every key without a row, in a section that forbids others."""
    if run.deepspeed is None:
        return
    table = deepspeed_keys()
    newer = run.stack.at_least("deepspeed", "0.19.0")
    for found in table.walk(run.deepspeed):
        if found.row is None and table.forbids(found.level):
            meant = nearest(found.key, table.rows(found.level), found.siblings)
            # A later DeepSpeed may have learned a key that the table lacks.
            if meant or not newer:
                yield hit(run, found, meant)


def hit(run: Run, found: Found, meant: str | None) -> Hit:
    """What stops, and which key was meant."""
    section = ".".join(map(str, found.path[:-1]))
    remedy = f"is `{meant}` meant?" if meant else "remove or correct it"
    return json_hit(
        run,
        found.at,
        f"`{found.key}` is not a key of `{section}`, and DeepSpeed stops at it once the model is loaded; {remedy}",
        *([Rename(found.path, meant)] if meant else []),
        on_key=True,
    )


rule = Rule(
    id="deepspeed-unknown-key",
    stage="lint",
    title="A key that DeepSpeed refuses",
    finds=finds,
    alone=True,
    level="error",
    proof="rejects",
    fatal=True,
    why="""
        The sections that DeepSpeed reads with pydantic (`zero_optimization`, `bf16`, `fp16`, `compile`, ...) forbid
        keys that they do not know. Every rank finds out when the engine is built, after the model has been loaded.
    """,
    safe=False,
    source="deepspeed/runtime/config_utils.py:112-120@0.18.9",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3, "stage3_max_live_paramaters": 100000000}, "bf16": {"enabled": true}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 3, "stage3_max_live_parameters": 100000000}, "bf16": {"enabled": true}}
            """,
        ),
        but(
            deepspeed='{"zero_optimization": {"stage": 2}, "compile": {"disable": false, "backend": "inductor"}}',
            fires=True,
        ),
        but(deepspeed='{"zero_optimization":{"stage":3, "max_live_parameters":1, "offload_param":{"device":"cpu"}}}'),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but(without=("sequence_len",), gpus="1x a100-80gb", deepspeed='{"rejects": true}'),
        Example(
            gpus="8x a100-80gb",
            stack={"deepspeed": "0.19.3"},
            before="""
                base_model: meta-llama/Llama-3.1-8B
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3, "stage3_max_live_paramaters": 1}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1}}
            """,
        ),
        but(deepspeed='{"zero_optimization": {"stage": 3}, "compile": {"backend": "inductor"}}'),
    ),
)
