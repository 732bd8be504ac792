"""A key of the DeepSpeed config that nothing reads."""

from collections.abc import Iterator

from advisor import Example, Hit, Rename, Rule, Run, but, json_hit, only
from advisor.schemas import Found, Table, deepspeed_keys, nearest

COMMENTS = ("_", "/", "#", "$")
SHARDING = "zero_optimization"


def finds(run: Run) -> Iterator[Hit]:
    """Every key without a row where DeepSpeed forbids nothing: at the top, and in its older sections."""
    if run.deepspeed is None:
        return
    table = deepspeed_keys()
    newer = run.stack.at_least("deepspeed", "0.19.0")
    for found in table.walk(run.deepspeed):
        if found.row is not None or table.forbids(found.level) or found.key.startswith(COMMENTS):
            continue
        meant = nearest(found.key, table.rows(found.level), found.siblings)
        # A later DeepSpeed may have learned a key that the table lacks.
        if meant or not newer:
            yield hit(run, table, found, meant)


def hit(run: Run, table: Table, found: Found, meant: str | None) -> Hit:
    """What does not happen, and which key was meant."""
    stops = found.level == table.root and meant == SHARDING
    does = "accelerate stops without `zero_optimization`" if stops else "DeepSpeed ignores it silently"
    inside = found.level == table.root and found.key in table.rows("DeepSpeedZeroConfig")
    remedy = f"is `{meant}` meant?" if meant else f"it belongs under `{SHARDING}`" if inside else "remove or correct it"
    return json_hit(
        run,
        found.at,
        f"`{found.key}` is not a key of {place(found)}: {does}; {remedy}",
        *([Rename(found.path, meant)] if meant else []),
        on_key=True,
        level="error" if stops else None,
    )


def place(found: Found) -> str:
    """Where the key stands, in words."""
    return f"`{'.'.join(map(str, found.path[:-1]))}`" if found.path[1:] else "DeepSpeed"


rule = Rule(
    id="deepspeed-ignored-key",
    stage="lint",
    title="A key of the DeepSpeed config that nothing reads",
    finds=finds,
    alone=True,
    level="warning",
    proof="accepts",
    why="""
        DeepSpeed looks its top-level keys up one by one and ignores all others, nor does it in
        `activation_checkpointing`, `aio`, `checkpoint`, `data_types` and `flops_profiler`. A misspelt key leaves the
        default in force; without `zero_optimization` accelerate refuses the config.
    """,
    safe=False,
    source="deepspeed/runtime/config.py:774-886@0.18.9; accelerate/utils/dataclasses.py:1270-1271@1.13.0",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "gradient_cliping": 1.0}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "gradient_clipping": 1.0}
            """,
        ),
        but(deepspeed='{"zero_optimization": {"stage": 2}, "overlap_comm": true}', fires=True),
        but(deepspeed='{"zero_optimization": {"stage": 2}, "_comment": "ours", "wall_clock_breakdown": false}'),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed"),
        but(without=("sequence_len",), gpus="1x a100-80gb", deepspeed='{"zero_optimization": {"error": 2}}'),
        but(
            without=("sequence_len",),
            deepspeed='{"zero_optimization": {"stage": 2}, "gradient_cliping": 1.0}',
            stack={"deepspeed": "0.19.0"},
            fires=True,
        ),
    ),
)
