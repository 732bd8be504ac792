"""FSDP is to wrap a class of layers that the model does not have."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, Set, but, only
from advisor.models.layer_classes import layer_classes

KEYS = ("transformer_layer_cls_to_wrap", "fsdp_transformer_layer_cls_to_wrap")


def finds(run: Run) -> Iterator[Hit]:
    """Each name that is a layer of another family, and not of this one."""
    if run.model is None or run.config.get("trust_remote_code"):
        return
    own = layer_classes(run.model.model_type)
    key = next((key for key in KEYS if run.config.at(f"fsdp_config.{key}")), None)
    if key is None or not own:
        return
    written = str(run.config.at(f"fsdp_config.{key}"))
    for name in (one.strip() for one in written.split(",")):
        if name not in own and name in layer_classes():
            at, meant = f"fsdp_config.{key}", own[0] if len(own) == 1 else ""
            message = f"`{name}` is no class of `{run.base_model}`, and FSDP stops once the model is loaded"
            edits = (Set(at, meant),) if meant and written == name else ()
            yield Hit(at, f"{message}; its layers are {' or '.join(f'`{one}`' for one in own)}", edits)


rule = Rule(
    id="wrapped-class-missing",
    stage="lint",
    title="FSDP is to wrap a class that the model does not have",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    safe=True,
    why="""
        accelerate looks for a module of that name in the model: "Could not find the transformer layer class". That is
        after the download and the load, on every GPU.
    """,
    source=(
        "accelerate/utils/dataclasses.py:2053-2060@1.13.0, accelerate/utils/fsdp_utils.py:780-784@1.13.0; "
        "axolotl/monkeypatch/accelerate/fsdp2.py:475@0.19.0"
    ),
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen3-8B",
            "fsdp_version: 2",
            "fsdp_config:\n  transformer_layer_cls_to_wrap: LlamaDecoderLayer",
            gpus="2x a100-80gb",
            fires=True,
        ),
        but("fsdp_config:\n  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer", fires=True),
        but("fsdp_config:\n  transformer_layer_cls_to_wrap: Qwen3DecoderLayer"),
        but("fsdp_config:\n  transformer_layer_cls_to_wrap: Embedding"),
        but("fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP"),
        but("trust_remote_code: true"),
        but("base_model: nobody/knows-this"),
        but("base_model: llava-hf/llava-1.5-7b-hf", "fsdp_config:\n  transformer_layer_cls_to_wrap: Qwen2DecoderLayer"),
    ),
)
