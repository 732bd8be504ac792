"""Settings of fp8 without what they are settings of."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, is_mapping, only

GATHER = "fp8_enable_fsdp_float8_all_gather"
RECIPE = "tensorwise"


def finds(run: Run) -> Iterator[Hit]:
    """A recipe without fp8; fp8 between the GPUs without FSDP2, or with a recipe that scales by rows."""
    recipe = run.config.at("fp8_config.recipe", RECIPE)
    if is_mapping(run.config.get("fp8_config")) and not run.config.get("fp8"):
        message = "`fp8_config` without `fp8: true` is refused by axolotl; set `fp8: true`, or remove it"
        yield Hit("fp8_config", message, on_key=True)
    if not run.config.get(GATHER):
        return
    value = str(run.config.get(GATHER)).lower()
    if run.config.get("fsdp_version") != 2:
        message = f"`{GATHER}: {value}` without FSDP2 is refused by axolotl"
        if run.fsdp is None:
            yield Hit(GATHER, f"{message}, and has nothing to gather; remove it", (Remove(GATHER),))
        elif run.fsdp.version == 2:
            where = "which it looks for at the top level, as a number: set `fsdp_version: 2` there"
            yield Hit(GATHER, f"{message}, {where}", (Set("fsdp_version", 2),))
        else:
            yield Hit(GATHER, f"{message}; remove it, or set `fsdp_version: 2`", (Remove(GATHER),))
    if recipe != RECIPE:
        message = f"`{GATHER}: {value}` with `recipe: {recipe}` is refused by axolotl; it needs `{RECIPE}`; remove it"
        yield Hit(GATHER, message, (Remove(GATHER),))


rule = Rule(
    id="fp8-settings-refused",
    stage="lint",
    title="Settings of fp8 without what they are settings of",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        FSDP2 can gather weights that are fp8 already, with one scale for a tensor; scales by rows cannot be gathered
        so, and FSDP1 and DDP have no such step. axolotl looks for the number 2 in `fsdp_version` at the top level,
        before it looks into `fsdp_config`.
    """,
    cost="Weights travel between the GPUs in bf16, twice the bytes.",
    safe=True,
    source="axolotl/utils/schemas/validation.py:427-470@0.19.0",
    examples=lambda: (
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                fp8_enable_fsdp_float8_all_gather: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                fp8_enable_fsdp_float8_all_gather: true
                fsdp_config:
                  fsdp_version: 2
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                fp8_enable_fsdp_float8_all_gather: true
                fsdp_config:
                  fsdp_version: 2
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
                fsdp_version: 2
            """,
        ),
        but(
            "fp8: true",
            "fp8_config:\n  recipe: rowwise",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
            "  transformer_layer_cls_to_wrap: LlamaDecoderLayer",
            fires=True,
            fixed=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "fp8_config:\n  recipe: rowwise", gpus="8x h100-80gb", fires=True),
        but(
            "fp8_config:",
            "fp8_enable_fsdp_float8_all_gather: true",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
            "  transformer_layer_cls_to_wrap: LlamaDecoderLayer",
        ),
        but("torch_compile: true", "fp8: true", "fp8_config:\n  recipe: tensorwise"),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                fp8_enable_fsdp_float8_all_gather: true
                fsdp_version: 1
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                fsdp_version: 1
                fsdp_config:
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
                  transformer_layer_cls_to_wrap: LlamaDecoderLayer
            """,
        ),
    ),
)
