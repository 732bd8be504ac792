"""Layers are checkpointed by FSDP and by the trainer."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, is_mapping, only
from advisor.run.axolotl.sharding import spelled


def finds(run: Run) -> Iterator[Hit]:
    """Both are on; where saved tensors are offloaded, axolotl has switched the trainer's off."""
    if run.fsdp is None or not run.fsdp.activation_checkpointing or not run.activation_checkpointing:
        return
    if run.activation_offloading in {"saved-tensors", "legacy"}:
        return
    key = fsdp_key(run)
    changes = edits(run, key)
    yield Hit(
        "gradient_checkpointing",
        "`gradient_checkpointing` with FSDP's `activation_checkpointing` stops the trainer once the model is loaded;"
        f" set `{'activation_checkpointing' if changes[0].path == key else 'gradient_checkpointing'}: false`",
        edits=changes,
    )


def fsdp_key(run: Run) -> str:
    """FSDP's key, as it is spelled here."""
    return spelled(run, "activation_checkpointing") or "fsdp_config.fsdp_activation_checkpointing"


def edits(run: Run, key: str) -> tuple[Change, ...]:
    """The trainer's goes, unless something else is built on it."""
    if run.activation_offloading is not None or run.config.get("selective_checkpointing"):
        return (Set(key, False),)
    kwargs = run.config.get("gradient_checkpointing_kwargs")
    stale = (Remove("gradient_checkpointing_kwargs"),) if is_mapping(kwargs) else ()
    return (Set("gradient_checkpointing", False), *stale)


rule = Rule(
    id="double-checkpointing",
    stage="lint",
    title="Layers are checkpointed by FSDP and by the trainer",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    safe=True,
    why="""
        Either one keeps layer inputs alone and recomputes the rest. axolotl accepts both; transformers refuses them
        when the trainer is built, after the model has been loaded. It prefers FSDP's, which gathers a layer once less.
    """,
    source="transformers/trainer.py:844-849@5.16.1; axolotl/core/builders/base.py:593-619@0.19.0;"
    " axolotl/utils/trainer.py:603-604@0.19.0",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                gradient_checkpointing: true
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                gradient_checkpointing: false
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: true
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                gradient_checkpointing: true
                activation_offloading: hidden_states
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                gradient_checkpointing: true
                activation_offloading: hidden_states
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  activation_checkpointing: false
            """,
        ),
        but("gradient_checkpointing: false", without=("activation_offloading",)),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "gradient_checkpointing: offload",
            "fsdp_config:\n  activation_checkpointing: true",
        ),
        only("base_model: Qwen/Qwen2.5-7B"),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "gradient_checkpointing: true",
            "fsdp_config:\n  activation_checkpointing: false",
        ),
    ),
)
