"""A key under its old name."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor import Change, Example, Hit, Remove, Rename, Rule, Run, Set, but, is_mapping, only
from advisor.documents import Path
from advisor.run.axolotl.attention import can_flash
from advisor.run.axolotl.read import LEGACY_ATTENTION
from advisor.schemas import Found, axolotl_keys, bare

# With the new key axolotl refuses these: old-key-beside-new.
REFUSED_WITH_NEW = {*LEGACY_ATTENTION, "liger_swiglu", "pretrain_multipack_buffer_size"}


def finds(run: Run) -> Iterator[Hit]:
    """Keys that still work and will not much longer, and those that no longer do anything."""
    table = axolotl_keys()
    for found in table.walk(run.config):
        row = found.row.get("deprecated") if found.row else None
        if not row or row["effect"] == "refused" or found.value in (None, False) or says_another(run, found.at, row):
            continue
        yield hit(run, found, row["effect"], row.get("to", {}))
    yield from prefixed(run)


def says_another(run: Run, key: str, row: Mapping[str, Any]) -> bool:
    """Whether fsdp1-deprecated, flash-attention-unsupported or old-key-beside-new speaks of this key instead."""
    refused = key in REFUSED_WITH_NEW and any(run.config.get(name) for name in row.get("to", ()))
    return refused or key == "fsdp" or (key == "flash_attention" and not can_flash(run))


def hit(run: Run, found: Found, effect: str, to: dict[str, object]) -> Hit:
    """What happens to it today, and its new name."""
    does = "has no effect any more" if effect == "ignored" else "is deprecated"
    new = " and ".join(f"`{name}`" if value is None else f"`{name}: {value}`" for name, value in to.items())
    remedy = f"write {new}" if new else "it will go in a later version of axolotl"
    return Hit(
        found.at,
        f"`{found.key}` {does}; {remedy}",
        edits(run, found, to),
        on_key=True,
        level="warning" if effect == "ignored" else None,
    )


def edits(run: Run, found: Found, to: dict[str, object]) -> tuple[Change, ...]:
    """The new name in the old one's place; nothing where the new key is there already."""
    above = found.path[:-1]
    targets: list[tuple[Path, object]] = [
        ((*above, *name.split(".")), found.value if value is None else value) for name, value in to.items()
    ]
    if not targets or any(run.config.has(path) for path, _ in targets):
        return ()
    (path, value), *rest = targets
    if len(path) > len(found.path):
        around = run.config.at(path[:-1])
        return (Set(path, value), Remove(found.path)) if around is None or is_mapping(around) else ()
    first: list[Change] = [Rename(found.path, str(path[-1]))]
    if value is not found.value:
        first.append(Set(path, value))
    return (*first, *(Set(other, value, after=str(path[-1])) for other, value in rest))


def prefixed(run: Run) -> Iterator[Hit]:
    """All keys of ``fsdp_config`` with the prefix that axolotl takes off, in one finding."""
    config = run.config.get("fsdp_config")
    if not is_mapping(config):
        return
    known = axolotl_keys().rows("FSDPConfig")
    renamed = [key for key in config if isinstance(key, str) and bare(key) in known and bare(key) not in config]
    if renamed:
        yield Hit(
            f"fsdp_config.{renamed[0]}",
            f"the prefix `fsdp_` inside `fsdp_config` is deprecated; write `{bare(renamed[0])}`"
            + (f", and so on for {len(renamed)} keys" if renamed[1:] else ""),
            tuple(Rename(("fsdp_config", key), bare(key)) for key in renamed),
            on_key=True,
        )


def keeps_training(run: Run) -> bool:
    """A new name for the same thing; not so where the old one had stopped working."""
    return all(hit.level is None for hit in finds(run))


rule = Rule(
    id="deprecated-key",
    stage="lint",
    title="A key under its old name",
    finds=finds,
    level="note",
    proof="accepts",
    why="""
        axolotl moves the value to the new key and says so in a log that scrolls by. The next version may stop at the
        old name, or drop it; `fsdp_final_state_dict_type` is read by nothing already.
    """,
    safe=keeps_training,
    source=(
        "axolotl/utils/schemas/deprecated.py:46-90, config.py:1545-1591,2230-2272,"
        " validation.py:373-410,1194-1212@0.19.0"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                flash_attention: true  # fast
                evaluation_strategy: epoch
                val_set_size: 0.1
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                attn_implementation: flash_attention_2  # fast
                eval_strategy: epoch
                val_set_size: 0.1
            """,
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                fsdp_version: 2
                fsdp_config:
                  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  fsdp_transformer_layer_cls_to_wrap: Qwen2DecoderLayer
                  reshard_after_forward: true
                fsdp_final_state_dict_type: FULL_STATE_DICT
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                fsdp_version: 2
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: Qwen2DecoderLayer
                  reshard_after_forward: true
                  final_state_dict_type: FULL_STATE_DICT
            """,
        ),
        but("flash_attention: true", without=("fsdp_version", "fsdp_config"), gpus="1x t4", fixed=True),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "sequence_len: 4096",
            "flash_attention:",
            "xformers_attention: false",
            "attn_implementation: sdpa",
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "sequence_len: 4096",
            "pretrain_multipack_buffer_size: 10000",
            "streaming_multipack_buffer_size: 5000",
        ),
        only("base_model: Qwen/Qwen2.5-7B", "fsdp: true"),
        only("base_model: meta-llama/Llama-3.2-1B", "fsdp_final_state_dict_type: false"),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        ),
        only("base_model: Qwen/Qwen2.5-7B", "fsdp_version: 2", "fsdp_config:\n  fsdp_colour: 1"),
        only("base_model: Qwen/Qwen2.5-7B", "fsdp_version: 2", "fsdp_config:\n  1: true"),
        only("base_model: Qwen/Qwen2.5-7B", "evaluation_strategy: epoch", "eval_strategy: epoch", fires=True),
        only("base_model: Qwen/Qwen2.5-7B", "max_packed_sequence_len: 2048"),
    ),
)
