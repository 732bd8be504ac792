"""Models that join a decoder with towers for images or sound: one table row a model type."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import isqrt

from advisor.errors import InputError
from advisor.models import audio, vision, visual
from advisor.models.config import Config
from advisor.models.family import (
    LIGER,
    LIGER_LAYERS,
    LIGER_LOSS,
    LIGER_WITHOUT_ROPE,
    MLP_TARGETS,
    Family,
    variant_of,
)
from advisor.models.layer_variant import LayerVariant
from advisor.models.parts import Tensors, linear, loose, norm, of_kind, within
from advisor.models.tower import Layers, Tower, following, tower
from advisor.record import record, replace

Build = Callable[[Config], Tensors]
Projector = Callable[[Config, Config, Config], Tensors]
"""From the outer config, the tower's and the decoder's."""


@record(eq=False)
class Multimodal:
    """How a multimodal model is put together, and what its parts are called.

    ``text`` is the decoder's model type where the config does not name it. ``towers`` are (config section,
    prefix, builders by the section's model type, "" for any other), ``projectors`` (config section, prefix,
    builder).
    """

    text: str
    towers: tuple[tuple[str, str, dict[str, Build]], ...]
    projectors: tuple[tuple[str, str, Projector], ...] = ()
    prefix: str = "model.language_model"
    head_prefix: str = ""
    text_class: str = ""
    """The class that AutoModelForCausalLM loads, where that is the decoder alone."""
    ties: bool = True
    """Whether the head can be tied at all: some classes name no tied weights, whatever the config says."""
    pools: bool = False
    """Whether the projector averages patches to ``mm_tokens_per_image``: Gemma3MultiModalProjector@5.16.1."""

    @property
    def variant(self) -> LayerVariant:
        """What its decoder does differently from Llama's."""
        return variant_of(self.text)


def _llava_projector(c: Config, tower: Config, text: Config) -> Tensors:
    """Two linears from the tower's width to the decoder's."""
    bias = c.flag("multimodal_projector_bias", True)
    return (
        *linear("linear_1", tower.hidden, text.hidden, "projector", bias),
        *linear("linear_2", text.hidden, text.hidden, "projector", bias),
    )


def _mistral_projector(c: Config, tower: Config, text: Config) -> Tensors:
    """Neighbouring patches merged, then two linears."""
    width, bias = tower.hidden, c.flag("multimodal_projector_bias")
    merged = width * c.size("spatial_merge_size", 2) ** 2
    return (
        *norm("norm", width),
        *linear("patch_merger.merging_layer", merged, width, "projector"),
        *linear("linear_1", width, text.hidden, "projector", bias),
        *linear("linear_2", text.hidden, text.hidden, "projector", bias),
    )


def _internvl_projector(c: Config, tower: Config, text: Config) -> Tensors:
    """Pixel shuffle, a norm and two linears."""
    ratio = c.get("downsample_ratio")
    scale = round(1 / ratio) if isinstance(ratio, float) else 2
    merged = tower.hidden * scale**2
    return (
        *norm("layer_norm", merged, True),
        *linear("linear_1", merged, text.hidden, "projector", True),
        *linear("linear_2", text.hidden, text.hidden, "projector", True),
    )


def _lfm2_projector(c: Config, tower: Config, text: Config) -> Tensors:
    """Pixel unshuffle, a norm, and two linears over a width of their own."""
    merged, inner = tower.hidden * c.size("downsample_factor", 2) ** 2, c.size("projector_hidden_size")
    bias = c.flag("projector_bias", True)
    return (
        *(norm("layer_norm", merged, True) if c.flag("projector_use_layernorm", True) else ()),
        *linear("linear_1", merged, inner, "projector", bias),
        *linear("linear_2", inner, text.hidden, "projector", bias),
    )


def _smolvlm_projector(c: Config, tower: Config, text: Config) -> Tensors:
    """Pixel shuffle and one linear."""
    merged = tower.hidden * c.size("scale_factor", 2) ** 2
    return linear("modality_projection.proj", merged, text.hidden, "projector")


def _paddle_projector(_: Config, tower: Config, text: Config) -> Tensors:
    """A norm, four patches joined, two linears."""
    merged = tower.hidden * tower.size("spatial_merge_size", 2) ** 2
    return (
        *norm("pre_norm", tower.hidden, True),
        *linear("linear_1", merged, merged, "projector", True),
        *linear("linear_2", merged, text.hidden, "projector", True),
    )


def _paligemma_projector(c: Config, tower: Config, text: Config) -> Tensors:
    """One linear."""
    return linear("linear", tower.hidden, c.size("projection_dim", text.hidden), "projector", True)


def _newline_projector(c: Config, tower: Config, text: Config) -> Tensors:
    """LLaVA-NeXT: LLaVA's two linears, and a vector that ends each row of patches."""
    return (
        *loose("image_newline", (text.hidden,), "projector"),
        *within("multi_modal_projector", _llava_projector(c, tower, text)),
    )


def _gemma3_projector(_: Config, tower: Config, text: Config) -> Tensors:
    """One matrix after a norm."""
    matrix = loose("mm_input_projection_weight", (tower.hidden, text.hidden), "projector")
    return (*matrix, *norm("mm_soft_emb_norm", tower.hidden))


def _gemma3n_embedder(_: Config, tower: Config, text: Config) -> Tensors:
    """Gemma 3n: an embedding for the modality's hard tokens next to the projection of soft ones."""
    width = tower.hidden
    return (
        *loose("embedding.weight", (tower.size("vocab_size", 128), width), "projector"),
        *norm("hard_embedding_norm", width),
        *norm("soft_embedding_norm", width),
        *linear("embedding_projection", width, text.hidden, "projector"),
    )


def _gemma4_embedder(_: Config, tower: Config, text: Config) -> Tensors:
    """Gemma 4: one projection."""
    return linear("embedding_projection", tower.maybe("output_proj_dims") or tower.hidden, text.hidden, "projector")


def _unified_vision_embedder(_: Config, tower: Config, text: Config) -> Tensors:
    """Gemma 4 without a tower: patches through one dense layer and factorised positions."""
    patch = 3 * (tower.size("patch_size", 16) * tower.size("pooling_kernel_size", 3)) ** 2
    width = tower.size("mm_embed_dim")
    return (
        *norm("patch_ln1", patch, True),
        *linear("patch_dense", patch, width, "projector", True),
        *norm("patch_ln2", width, True),
        *loose("pos_embedding", (tower.size("mm_posemb_size"), 2, width), "projector"),
        *norm("pos_norm", width, True),
        *linear(
            "multimodal_embedder.embedding_projection",
            tower.size("output_proj_dims"),
            text.hidden,
            "projector",
        ),
    )


def _unified_audio_embedder(_: Config, tower: Config, text: Config) -> Tensors:
    """Gemma 4 without a tower: sound frames through one projection."""
    return linear("embedding_projection", tower.size("output_proj_dims"), text.hidden, "projector")


def _llama4_projector(_: Config, tower: Config, text: Config) -> Tensors:
    """One linear from the adapter's output."""
    return linear("linear_1", tower.size("vision_output_dim"), text.hidden, "projector")


def _mllama_projector(_: Config, tower: Config, text: Config) -> Tensors:
    """One linear from the tower's last and intermediate states."""
    return linear("multi_modal_projector", tower.size("vision_output_dim"), text.hidden, "projector", True)


def _voxtral_projector(_: Config, tower: Config, text: Config) -> Tensors:
    """Four frames joined, then two linears."""
    return (
        *linear("linear_1", tower.size("intermediate_size"), text.hidden, "projector"),
        *linear("linear_2", text.hidden, text.hidden, "projector"),
    )


def parts(row: Multimodal, c: Config, text: Config) -> Tensors:
    """Towers and projectors of a model, with full names. Sections that the config leaves out are absent."""
    tensors: list[Tensors] = []
    for key, prefix, towers in row.towers:
        section = c.section(key)
        if section is None:
            continue
        build = towers.get(section.model_type) or towers.get("")
        if build is None:
            raise _unknown_tower(c, key, section)
        tensors.append(within(prefix, of_kind("audio" if key == "audio_config" else "vision", build(section))))
    for key, prefix, project in row.projectors:
        section = c.section(key)
        if section is not None:
            built = of_kind("projector", project(c, section, text))
            tensors.append(within(prefix, built) if prefix else built)
    return tuple(t for group in tensors for t in group)


def encoders(row: Multimodal, c: Config, text: Config) -> tuple[Tower, ...]:
    """The towers whose layers are known."""
    known: dict[Build, Layers] = {**vision.LAYERS, **visual.LAYERS, **audio.LAYERS}
    found: list[Tower] = []
    for key, prefix, builders in row.towers:
        section = c.section(key)
        build = builders.get(section.model_type if section else "") or builders.get("")
        shape = known.get(build) if build else None
        if section is None or build is None or shape is None:
            continue
        joins = [t for name, _, project in row.projectors if name == key for t in project(c, section, text)]
        kind = "audio" if key == "audio_config" else "vision"
        with suppress(InputError):  # what only the shape of patches needs may be missing: weights count without
            first = tower(kind, prefix, section, shape, build(section), tuple(joins))
            found.append(pooled(c, first) if row.pools else first)
            if shape.then is not None:
                found.append(following(first, prefix, section, shape.then, build(section)))
    return tuple(found)


def pooled(c: Config, one: Tower) -> Tower:
    """The same where the projector averages patches, its norm behind that."""
    merged = isqrt(one.grid.of_side() // c.size("mm_tokens_per_image", 256))
    return replace(one, grid=replace(one.grid, merge=merged), norms=one.norms - 1, pools=True)


def _unknown_tower(c: Config, key: str, section: Config) -> InputError:
    """A tower that is not in the table."""
    return InputError(f"{c.name}: {key} has model type {section.model_type!r}, which is unknown")


_PATCHED = "model.vision_tower"
_JOINED = "model.multi_modal_projector"
_VITS: dict[str, Build] = {
    "clip_vision_model": vision.clip,
    "pixtral": vision.pixtral,
    "siglip_vision_model": vision.siglip,
    "siglip2_vision_model": vision.siglip,
    "internvl_vision": vision.internvl,
}


def _visual(text: str, build: Build, text_class: str = "") -> Multimodal:
    return Multimodal(text, (("vision_config", "model.visual", {"": build}),), text_class=text_class)


def _projected(text: str, projector: Projector) -> Multimodal:
    return Multimodal(text, (("vision_config", _PATCHED, _VITS),), (("vision_config", _JOINED, projector),))


def _newlined(text: str) -> Multimodal:
    return Multimodal(text, (("vision_config", _PATCHED, _VITS),), (("vision_config", "model", _newline_projector),))


FAMILIES: dict[str, Family] = {
    "qwen2_vl": Family(
        _visual("qwen2_vl_text", visual.qwen2),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
        text_is_taped=True,
        vision_tower="by place",
    ),
    "qwen2_5_vl": Family(
        _visual("qwen2_5_vl_text", visual.qwen2_5),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
        text_is_taped=True,
        vision_tower="in windows",
    ),
    "qwen3_vl": Family(_visual("qwen3_vl_text", visual.qwen3), liger=LIGER - {"glu"}, cut=True),
    "qwen3_vl_moe": Family(
        _visual("qwen3_vl_moe_text", visual.qwen3), liger=LIGER, cut=True, lora_kernels="unpatchable"
    ),
    "qwen3_5": Family(
        _visual("qwen3_5_text", visual.qwen3, "Qwen3_5ForCausalLM"),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        text_is_taped=True,
    ),
    "qwen3_5_moe": Family(
        _visual("qwen3_5_moe_text", visual.qwen3, "Qwen3_5MoeForCausalLM"),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        text_is_taped=True,
    ),
    "glm4v": Family(
        _visual("glm4v_text", visual.glm4v),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        lora_kernels="unpatchable",
        text_is_taped=True,
        vision_tower="downsampled",
    ),
    "glm4v_moe": Family(
        _visual("glm4v_moe_text", visual.glm4v),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        lora_kernels="unpatchable",
        expert_targets=MLP_TARGETS,
        merges_experts=True,
    ),
    "llava": Family(
        _projected("llama", _llava_projector),
        liger=LIGER_LOSS,
        cut=True,
        lora_kernels="unpatchable",
        text_is_taped=True,
        one_model_since="4.52.0",
        vision_tower="two linears",
    ),
    "llava_next": Family(_newlined("llama"), lora_kernels="unpatchable"),
    "llava_onevision": Family(_newlined("qwen2"), lora_kernels="unpatchable"),
    "paligemma": Family(
        _projected("gemma", _paligemma_projector), liger=LIGER, lora_kernels="unpatchable", image_mask=True
    ),
    "smolvlm": Family(
        Multimodal(
            "llama",
            (("vision_config", "model.vision_model", {"": vision.smolvlm}),),
            (("vision_config", "model.connector", _smolvlm_projector),),
            prefix="model.text_model",
        ),
        liger=LIGER_LOSS,
        lora_kernels="unpatchable",
        vision_tower="projected",
    ),
    "paddleocr_vl": Family(
        Multimodal(
            "paddleocr_vl_text",
            (("vision_config", "model.visual.vision_model", {"": vision.paddleocr}),),
            (("vision_config", "model.projector", _paddle_projector),),
        ),
        lora_kernels="unpatchable",
        text_is_taped=True,
    ),
    "mistral3": Family(
        _projected("mistral", _mistral_projector),
        cut=True,
        text_is_taped=True,
        vision_tower="merged",
        one_model_since="4.52.0",
    ),
    "internvl": Family(
        _projected("qwen2", _internvl_projector),
        liger=LIGER_LOSS,
        cut=True,
        lora_kernels="unpatchable",
        text_is_taped=True,
        vision_tower="shuffled",
    ),
    "lfm2_vl": Family(
        _projected("lfm2", _lfm2_projector), cut=True, lora_kernels="unpatchable", vision_tower="unshuffled"
    ),
    "gemma3": Family(
        replace(_projected("gemma3_text", _gemma3_projector), pools=True),
        liger=LIGER,
        image_mask=True,
        cut=True,
        mask_taken_out=True,
        text_is_taped=True,
        vision_tower="pooled",
        own_loss=True,
        one_model_since="4.52.0",
    ),
    "gemma3n": Family(
        Multimodal(
            "gemma3n_text",
            (
                ("vision_config", _PATCHED, {"": vision.gemma3n}),
                ("audio_config", "model.audio_tower", {"": audio.gemma3n}),
            ),
            (
                ("vision_config", "model.embed_vision", _gemma3n_embedder),
                ("audio_config", "model.embed_audio", _gemma3n_embedder),
            ),
        ),
        cut=True,
        lora_kernels="unpatchable",
        soft_capped=True,
    ),
    "gemma4": Family(
        Multimodal(
            "gemma4_text",
            (
                ("vision_config", _PATCHED, {"": vision.gemma4}),
                ("audio_config", "model.audio_tower", {"": audio.gemma4}),
            ),
            (
                ("vision_config", "model.embed_vision", _gemma4_embedder),
                ("audio_config", "model.embed_audio", _gemma4_embedder),
            ),
        ),
        liger=LIGER_WITHOUT_ROPE,
        cut=True,
        hybrid_attention=True,
        mask_taken_out=True,
        checkpoints="non-reentrant",
    ),
    "gemma4_unified": Family(
        Multimodal(
            "gemma4_unified_text",
            (),
            (
                ("vision_config", "model.embed_vision", _unified_vision_embedder),
                ("audio_config", "model.embed_audio", _unified_audio_embedder),
            ),
        ),
        liger=LIGER_LAYERS - {"rope"},
        cut=True,
        hybrid_attention=True,
        mask_taken_out=True,
        checkpoints="non-reentrant",
    ),
    "llama4": Family(
        Multimodal(
            "llama4_text",
            (("vision_config", "vision_model", {"": vision.llama4}),),
            (("vision_config", "multi_modal_projector", _llama4_projector),),
            prefix="language_model.model",
            text_class="Llama4ForCausalLM",
            head_prefix="language_model.",
        ),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
        router_returns_choice=True,
        # axolotl/monkeypatch/models/llama4/modeling.py:26-41@0.19.0, linearized.
        expert_linears=("gate_projs.0", "up_projs.0", "down_projs.0"),
    ),
    "mllama": Family(
        Multimodal(
            "mllama_text_model",
            (("vision_config", "model.vision_model", {"": vision.mllama}),),
            (("vision_config", "model", _mllama_projector),),
            text_class="MllamaForCausalLM",
            ties=False,
        ),
        liger=LIGER,
        cut=True,
        lora_kernels="unpatchable",
    ),
    "voxtral": Family(
        Multimodal(
            "llama",
            (("audio_config", "model.audio_tower", {"": audio.voxtral}),),
            (("audio_config", _JOINED, _voxtral_projector),),
            ties=False,
        ),
        cut=True,
        lora_kernels="unpatchable",
        one_model_since="5.10.1",
    ),
}
