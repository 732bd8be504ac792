"""``"auto"`` where nothing fills it in."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor import Example, Hit, Remove, Rule, Run, but, is_mapping, json_hit, only
from advisor.documents import Path
from advisor.schemas import deepspeed_keys

# What the trainer fills in there stands in no table: axolotl refuses both blocks (accelerate/accelerator.py:2231-2252).
BLOCKS = frozenset({"optimizer", "scheduler"})


def finds(run: Run) -> Iterator[Hit]:
    """Every ``"auto"`` that accelerate refuses, or takes for a constant."""
    if run.deepspeed is None:
        return
    rows = {found.path: found.row or {} for found in deepspeed_keys().walk(run.deepspeed)}
    for path in autos(run.deepspeed, ()):
        filled = rows.get(path, {}).get("auto")
        if path[0] not in BLOCKS and filled is not True:
            yield hit(run, path, filled)


def hit(run: Run, path: Path, filled: object) -> Hit:
    """What stands there in the end."""
    at = ".".join(map(str, path))
    if filled is None:
        message = f'nothing fills in `"{path[-1]}": "auto"`, and accelerate stops at it once the model is loaded'
        return json_hit(run, at, f"{message}; give a value, or remove it for DeepSpeed's default", Remove(path))
    value = str(filled).lower() if isinstance(filled, bool) else f'"{filled}"'
    message = f'`"{path[-1]}": "auto"` becomes `{value}` in any run; write the value you want'
    return json_hit(run, at, message, level="warning")


def autos(values: Mapping[Any, Any], above: Path) -> Iterator[Path]:
    """The paths of all ``"auto"``, through mappings alone, as accelerate goes."""
    for key, value in values.items():
        if value == "auto":
            yield (*above, key)
        elif is_mapping(value):
            yield from autos(value, (*above, key))


rule = Rule(
    id="deepspeed-auto-ignored",
    stage="lint",
    title='`"auto"` where nothing fills it in',
    finds=finds,
    alone=True,
    level="error",
    proof="read",
    fatal=True,
    why="""
        transformers fills in batch sizes, clipping, precision and three bucket sizes. accelerate then walks through all
        that is left, takes offload devices and the gathering of weights for off, and refuses every other "auto".
    """,
    safe=False,
    source=(
        "accelerate/utils/dataclasses.py:1273-1287, raised at 1362-1366, called in accelerator.py:2334@1.13.0;"
        " transformers/integrations/deepspeed.py:133-238@5.16.1"
    ),
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                deepspeed: zero.json
            """,
            deepspeed="""
                {"zero_optimization": {"stage": 3, "sub_group_size": "auto"}, "bf16": {"enabled": true}}
            """,
            after_deepspeed="""
                {"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}
            """,
        ),
        but(
            deepspeed="""
                {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "auto"}}, "bf16": {"enabled": true}}
            """,
            fires=True,
        ),
        but(deepspeed='{"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}, "gradient_clipping": "auto"}'),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but(without=("sequence_len",), gpus="1x a100-80gb", deepspeed='{"optimizer": "auto"}'),
    ),
)
