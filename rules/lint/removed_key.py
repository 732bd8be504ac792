"""A key that axolotl has removed."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.schemas import Found, axolotl_keys


def finds(run: Run) -> Iterator[Hit]:
    """Keys whose mere presence makes axolotl stop."""
    table = axolotl_keys()
    for found in table.walk(run.config):
        gone = found.row is not None and found.row.get("deprecated", {}).get("effect") == "refused"
        if gone and is_set(found):
            assert found.row is not None
            to = next(iter(found.row["deprecated"].get("to", {})), None)
            yield Hit(
                found.at,
                f"`{found.key}` has been removed, and axolotl {table.version} refuses a config with it; "
                + (f"write `{to}`" if to else "remove it"),
                (Set(to, found.value), Remove(found.path)) if to else (Remove(found.path),),
                on_key=True,
            )


def is_set(found: Found) -> bool:
    """axolotl's validators let blank and false pass, but for keys of which it refuses any value."""
    any_value = found.key.startswith(("dpo_", "rpo_"))
    return found.value is not None and (any_value or bool(found.value))


rule = Rule(
    id="removed-key",
    stage="lint",
    title="A key that axolotl has removed",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        These keys are still in axolotl's schema, or named in its validators, for one purpose: to stop the run. What
        they did is gone, or happens elsewhere now.
    """,
    safe=False,
    source="axolotl/utils/schemas/deprecated.py:29-141, validation.py:63-78@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                rope_scaling:
                  rope_type: linear
                  factor: 2.0
                s2_attention: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                overrides_of_model_config:
                  rope_scaling:
                    rope_type: linear
                    factor: 2.0
            """,
        ),
        but("max_packed_sequence_len:", "s2_attention: false", without=("rope_scaling",)),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "rope_scaling:\n  rope_type: linear",
            "expert_parallel_size: 2",
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "rpo_alpha:"),
    ),
)
