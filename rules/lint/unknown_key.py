"""A key that axolotl does not know."""

from collections.abc import Iterator
from functools import lru_cache

from advisor import Change, Example, Hit, Remove, Rename, Rule, Run, Set, but, is_list, is_mapping, only
from advisor.run.stack import release
from advisor.schemas import (
    DATASETS_BY_LOSS,
    Found,
    Table,
    axolotl_keys,
    bare,
    fits,
    levels_in,
    listed_plugins,
    nearest,
    plugin_of,
)
from advisor.schemas.synonyms import Synonym, synonyms

# Keys that people keep anchors and notes under.
NOTES = ("_", ".", "x-", "x_")
MOST = 50
"""A file with more is no config of axolotl's; each one would be searched for in the whole table."""
# What these change is the user's to weigh: the global batch.
OF_THE_BATCH = frozenset(
    ["batch_size", "context_parallel_size", "gradient_accumulation_steps", "micro_batch_size", "tensor_parallel_size"]
)
# What happens without these as well (accelerate/utils/dataclasses.py:1733-1738@1.13.0; axolotl's
# prompt_strategies/dpo/chat_template.py:19-37, stepwise_supervised.py:113-115@0.19.0).
AS_THEY_ARE: dict[str, dict[str, object]] = {
    "FSDPConfig": {"limit_all_gathers": True},
    "DPODataset": {
        "message_property_mappings": {"role": "role", "content": "content"},
        "roles": {"system": ["system"], "user": ["user"], "assistant": ["assistant"]},
    },
    "SFTDataset": {"step_separator": "\n", "train_on_last_step_only": False},
}
TYPES = {".parquet": "parquet", ".arrow": "arrow", ".csv": "csv", ".txt": "text"}
# The rule fsdp-sharding-strategy-ignored speaks of it.
SAID_ELSEWHERE = "sharding_strategy"


def finds(run: Run) -> Iterator[Hit]:
    """Every key without a row at its level, less what a plugin that is not listed would add."""
    table = axolotl_keys()
    foreign = len(plugins_of(run)) > len(listed_plugins(table, run.config))
    unknown = [found for found in table.walk(run.config) if is_unknown(table, found)]
    yield from (too_new(run, found) for found in table.walk(run.config) if is_too_new(run, found))
    for found in unknown[:MOST]:
        synonym = synonyms().get(found.key.lower()) if found.level == table.root else None
        if synonym is not None:
            yield from_elsewhere(run, found, synonym)
            continue
        place_of_it = elsewhere(table, found)
        meant = None if place_of_it else nearest(found.key, candidates(found.level), found.siblings)
        if place_of_it or meant or found.level != table.root or not foreign:
            yield hit(run, table, found, meant, place_of_it)
    if rest := [found for found in unknown[MOST:] if found.level != table.root or not foreign]:
        refused = any(table.forbids(found.level) for found in rest)
        message = f"{len(rest)} more keys are not axolotl's; correct the first {MOST} and check again"
        yield Hit(rest[0].at, message, on_key=True, level="error" if refused else None)


def is_too_new(run: Run, found: Found) -> bool:
    """Whether a key came with a newer axolotl than this run has."""
    since = (found.row or {}).get("since")
    return since is not None and found.value is not None and not run.stack.at_least("axolotl", since)


def too_new(run: Run, found: Found) -> Hit:
    """What becomes of it there."""
    since, theirs = (found.row or {})["since"], ".".join(map(str, release(run.stack.axolotl)))
    message = f"`{found.key}` comes with axolotl {since}: {theirs} drops it silently; update axolotl, or remove it"
    return Hit(found.at, message, on_key=True)


def is_unknown(table: Table, found: Found) -> bool:
    """Whether a key has no row at its level, is set, and is nobody's notes or plugin's."""
    if found.row is not None or found.value is None:
        return False
    if found.level == "FSDPConfig" and bare(found.key) == SAID_ELSEWHERE:
        return False
    return found.level != table.root or not (plugin_of(table, found.key) or found.key.startswith(NOTES))


def plugins_of(run: Run) -> list[object]:
    """What ``plugins:`` lists. A plugin of somebody's own may add keys that no table knows."""
    listed = run.config.get("plugins")
    return listed if is_list(listed) else []


@lru_cache(maxsize=64)
def candidates(level: str) -> tuple[str, ...]:
    """The names of a level that are not deprecated, plugins' keys among them."""
    table = axolotl_keys()
    rows = [table.rows(level), *(table.plugins.values() if level == table.root else ())]
    return tuple(name for part in rows for name, row in part.items() if "deprecated" not in row)


def from_elsewhere(run: Run, found: Found, synonym: Synonym) -> Hit:
    """A key of another trainer's, under its name here. One that is written twice is not renamed."""
    means = synonym.means
    head = f"`{found.key}` is not a key of axolotl, which drops it silently"
    if means in found.siblings:
        is_said = synonym.when_true and found.value is True and run.config.get(means) == synonym.when_true
        edits = (Remove(found.path),) if is_said else ()
        return Hit(found.at, f"{head}; `{means}` is there already: remove it", edits, on_key=True)
    if synonym.when_true and found.value is True:
        edits = (Remove(found.path), Set(means, synonym.when_true))
        return Hit(found.at, f"{head}; write `{means}: {synonym.when_true}`", edits, on_key=True)
    if not synonym.same:
        return Hit(found.at, f"{head}; here the key is `{means}`, with other values", on_key=True)
    edits = (Rename(found.path, means),) if means not in OF_THE_BATCH else ()
    return Hit(found.at, f"{head}; `{means}` is its name here", edits, on_key=True)


def elsewhere(table: Table, found: Found) -> tuple[str, ...]:
    """Where axolotl has a key of just this name, if at one other place alone; an empty path if nowhere."""
    if found.level != table.root:
        return (found.key,) if found.key in table.rows(table.root) else ()
    owners = owners_of(found.key)
    return (owners[0], found.key) if len(owners) == 1 else ()


def moved(run: Run, table: Table, found: Found, to: tuple[str, ...]) -> tuple[Change, ...]:
    """The key at the place where axolotl reads it, if that is free and takes the value."""
    owner, key = to[0], to[-1]
    row = table.rows(table.root)[owner]
    levels = levels_in(row["kinds"]) if key != owner else []
    row = table.rows(levels[0])[key] if levels else row
    in_list = any(isinstance(part, int) for part in found.path)
    if in_list or run.config.has(".".join(to)) or key in OF_THE_BATCH or not fits(row["kinds"], found.value):
        return ()
    return () if levels and not is_mapping(run.config.get(owner)) else (Remove(found.path), Set(to, found.value))


def renamed(table: Table, found: Found, meant: str) -> tuple[Change, ...]:
    """The key under the name that was meant, if that takes the value."""
    row = table.rows(found.level).get(meant)
    takes = row is None or fits(row["kinds"], found.value)
    return (Rename(found.path, meant),) if takes and meant not in OF_THE_BATCH else ()


def hit(run: Run, table: Table, found: Found, meant: str | None, place_of_it: tuple[str, ...]) -> Hit:
    """What axolotl does with it, and which key was meant."""
    refused = table.forbids(found.level)
    name = bare(found.key) if found.level == "FSDPConfig" else found.key
    idle = meant is None and (AS_THEY_ARE.get(found.level, {}).get(name) == found.value or is_guessed(found))
    does = "axolotl refuses the config" if refused else "axolotl drops it silently"
    return Hit(
        found.at,
        f"`{found.key}` is not a key of {place(table, found)}: {does}"
        + (", and does the same without it; remove it" if idle else f"; {remedy(meant, place_of_it)}"),
        renamed(table, found, meant) if meant else moved(run, table, found, place_of_it) if place_of_it else (),
        on_key=True,
        level="error" if refused else "note" if idle else None,
    )


def is_guessed(found: Found) -> bool:
    """Whether axolotl takes rows for what the key says anyway, by the name of their file.

    axolotl/utils/data/shared.py:102-119@0.19.0.
    """
    path = str(found.siblings.get("path"))
    return found.key == "ds_type" and found.value == next((TYPES[end] for end in TYPES if end in path), "json")


def place(table: Table, found: Found) -> str:
    """Where the key stands, in words."""
    if found.level == table.root:
        return "axolotl"
    if found.level in DATASETS_BY_LOSS.values():
        return "a dataset under this `rl`"
    return f"`{'.'.join(str(part) for part in found.path[:-1] if isinstance(part, str))}`"


def remedy(meant: str | None, place_of_it: tuple[str, ...]) -> str:
    """What to write instead."""
    match place_of_it:
        case (owner, _):
            return f"it belongs under `{owner}`"
        case (_,):
            return "it belongs at the top level"
        case _:
            return f"is `{meant}` meant?" if meant else "remove or correct it"


@lru_cache(maxsize=1024)
def owners_of(key: str) -> tuple[str, ...]:
    """The keys of the top level that have this one below them."""
    table = axolotl_keys()
    rows = table.rows(table.root).items()
    return tuple(owner for owner, row in rows for level in levels_in(row["kinds"]) if key in table.rows(level))


rule = Rule(
    id="unknown-key",
    stage="lint",
    title="A key that axolotl does not know",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        axolotl's schema silently drops what it does not know, at every level but `fp8_config` and `advisor`.
        A misspelt key leaves its default in force: no checkpointing, no packing, no parallelism. So does the name that
        another trainer has for it: `epochs: 3` trains one epoch.
    """,
    safe=False,
    source="axolotl/utils/schemas/config.py:214, fp8.py:16, utils/config/__init__.py:472-496@0.19.0",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                gradient_checkpointng: true
                pad_to_seq_len: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                gradient_checkpointing: true
                pad_to_sequence_len: true
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                use_flash_attention: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                attn_implementation: flash_attention_2
            """,
        ),
        but("use_flash_attention: false", fires=True, kept=True),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                use_flash_attention: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                attn_implementation: flash_attention_2
            """,
        ),
        but("attn_implementation: sdpa", fires=True, kept=True),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                max_seq_length: 4096
                num_train_epochs: 3
                lr: 2e-5
                flash_attn: fa2
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                num_epochs: 3
                learning_rate: 2e-5
                flash_attn: fa2
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                special_tokens:
                  pad_token: <|endoftext|>
                  eot_tokens: ["<|im_end|>"]
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                special_tokens:
                  pad_token: <|endoftext|>
                eot_tokens:
                  - <|im_end|>
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                special_tokens:
                  pad_token: <|endoftext|>
                eos_token: <|im_end|>
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                special_tokens:
                  pad_token: <|endoftext|>
                  eos_token: <|im_end|>
            """,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "trl:\n  entropy_coef: 0.1", stack={"axolotl": "0.18.0"}, fires=True),
        but("trl:\n  beta: 0.1"),
        but(stack={"axolotl": "0.19.0"}),
        but("trl:\n  entropy_coef:"),
        only(
            "base_model: Qwen/Qwen2.5-7B", "plugins:\n  - somebody.elses.Plugin", "bos_token: <|im_start|>", fires=True
        ),
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                fsdp_version: 2
                fsdp_config:
                  backward_prefetch: BACKWARD_POST
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
            """,
            fires=True,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                rl: dpo
                datasets:
                  - path: argilla/dpo-mix-7k
                    type: chat_template.default
                    ds_type: json
            """,
            fires=True,
        ),
        but(
            """
                model_type: AutoModelForCausalLM
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_rms_norm: true
                datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                    ds_type: json
            """,
            without=("rl",),
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "plugins:\n  - somebody.elses.Plugin",
            "gradient_checkpointng: true",
            fires=True,
        ),
        but("fp8: true", "fp8_config:\n  colour_of_the_sky: 1", without=("gradient_checkpointng",), fires=True),
        only("base_model: Qwen/Qwen2.5-7B", "colour_of_the_sky: 1", fires=True),
        but("colour_of_the_sky:"),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                    _colour_of_the_sky: 1
            """,
            fires=True,
        ),
        but("sharding_strategy: FULL_SHARD", without=("datasets",), fires=True),
        Example(
            before="base_model: Qwen/Qwen2.5-7B\nplugins: [somebody.elses.Plugin]\n"
            + "".join(f"colour_of_the_sky_{number}: 1\n" for number in range(MOST))
            + "fp8_config:\n  colour_of_the_sky: 1\n",
            fires=True,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "flash_atention: true", "plugins:\n  - my.own.Plugin"),
        only("base_model: Qwen/Qwen2.5-7B", "sequence_len: 2048", "sequence_lenn: 4096", "plugins:\n  - my.own.Plugin"),
    ),
)
