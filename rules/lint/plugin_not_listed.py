"""A plugin's key without the plugin."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, is_list, only
from advisor.run.axolotl.edits import CUT_PLUGIN, LIGER_PLUGIN
from advisor.schemas import axolotl_keys, plugin_of

FUSED = {CUT_PLUGIN, LIGER_PLUGIN}
"""They compute the same, fused."""


def finds(run: Run) -> Iterator[Hit]:
    """Once for each plugin: its first key that asks for something, with all others named."""
    missing = unlisted(run)
    listed = run.config.get("plugins")
    count = len(listed) if is_list(listed) else 0
    for number, (plugin, keys) in enumerate(missing.items()):
        path = ("plugins", count + number) if count or number else ("plugins",)
        others = f" (and `{'`, `'.join(keys[1:])}`)" if keys[1:] else ""
        yield Hit(
            keys[0],
            f"`{keys[0]}`{others} does nothing without its plugin: axolotl drops it silently; list `{plugin}` under"
            " `plugins`",
            (Set(path, plugin if len(path) > 1 else [plugin], after=keys[-1] if len(path) == 1 else None),),
            on_key=True,
        )


def unlisted(run: Run) -> dict[str, list[str]]:
    """The plugins that keys ask for and the list lacks, each with its keys."""
    table = axolotl_keys()
    missing: dict[str, list[str]] = {}
    for found in table.walk(run.config):
        if found.row is None and found.level == table.root and found.value not in (None, False):
            plugin = plugin_of(table, found.key)
            if plugin:
                missing.setdefault(plugin, []).append(found.key)
    return missing


rule = Rule(
    id="plugin-not-listed",
    stage="lint",
    title="A plugin's key without the plugin",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        Keys such as Liger's exist only while their plugin is listed under `plugins:`; otherwise the schema drops them.
        The fused loss that was to save ten gigabytes is then not there.
    """,
    cost="The plugin's package must be installed where axolotl is.",
    safe=lambda run: unlisted(run).keys() <= FUSED,
    source="axolotl/utils/config/__init__.py:465-469, integrations/config.py:27-63@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                liger_rms_norm: true
                liger_fused_linear_cross_entropy: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                liger_rms_norm: true
                liger_fused_linear_cross_entropy: true
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
            """,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                bf16: true
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_rms_norm: true
                cut_cross_entropy: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                sequence_len: 4096
                bf16: true
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin
                liger_rms_norm: true
                cut_cross_entropy: true
            """,
        ),
        but(
            "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
            "liger_rope: false",
            without=("liger_rms_norm",),
        ),
        only("base_model: Qwen/Qwen2.5-7B", "liger_rms_norm: true", "is_multimodal: true", fires=True),
        only("base_model: Qwen/Qwen2.5-7B", "gradient_checkpointng: true"),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                    liger_rms_norm: true
            """,
        ),
    ),
)
