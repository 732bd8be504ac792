# pyright: basic
"""Small encoders of real families, traced layer by layer, and what the advisor says of the same configs."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor
from transformers import CLIPVisionConfig, CLIPVisionModel, SiglipVisionConfig, SiglipVisionModel
from transformers.models.gemma3n.configuration_gemma3n import Gemma3nAudioConfig
from transformers.models.gemma3n.modeling_gemma3n import Gemma3nAudioConformerBlock, Gemma3nAudioEncoder
from transformers.models.gemma4.configuration_gemma4 import Gemma4AudioConfig, Gemma4VisionConfig
from transformers.models.gemma4.modeling_gemma4 import (
    Gemma4AudioLayer,
    Gemma4AudioModel,
    Gemma4VisionEncoderLayer,
    Gemma4VisionModel,
)
from transformers.models.glm4v.configuration_glm4v import Glm4vVisionConfig
from transformers.models.glm4v.modeling_glm4v import Glm4vVisionBlock, Glm4vVisionModel
from transformers.models.internvl.configuration_internvl import InternVLVisionConfig
from transformers.models.internvl.modeling_internvl import InternVLVisionModel
from transformers.models.llama4.configuration_llama4 import Llama4VisionConfig
from transformers.models.llama4.modeling_llama4 import Llama4VisionModel
from transformers.models.mllama.configuration_mllama import MllamaVisionConfig
from transformers.models.mllama.modeling_mllama import MllamaVisionEncoderLayer, MllamaVisionModel
from transformers.models.paddleocr_vl.configuration_paddleocr_vl import PaddleOCRVisionConfig
from transformers.models.paddleocr_vl.modeling_paddleocr_vl import PaddleOCRVisionEncoderLayer, PaddleOCRVisionModel
from transformers.models.pixtral.configuration_pixtral import PixtralVisionConfig
from transformers.models.pixtral.modeling_pixtral import PixtralVisionModel
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    Qwen2_5_VisionTransformerPretrainedModel,
    Qwen2_5_VLVisionBlock,
)
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel, Qwen2VLVisionBlock
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionBlock, Qwen3VLVisionModel
from transformers.models.smolvlm.configuration_smolvlm import SmolVLMVisionConfig
from transformers.models.smolvlm.modeling_smolvlm import SmolVLMEncoderLayer, SmolVLMVisionTransformer
from transformers.models.voxtral.configuration_voxtral import VoxtralEncoderConfig
from transformers.models.voxtral.modeling_voxtral import VoxtralEncoder

from advisor.models import audio, vision, visual
from advisor.models.config import Config
from advisor.models.tower import Grid, Tower, following, tower
from advisor.tracing.allocations import Trace
from advisor.tracing.cuda_emulation import CudaHabits
from advisor.tracing.recorder import Recorder, materialise

from .trace import Setting, as_on_cuda, decoder_layers, watch

SIDE, PATCHES = 128, 256
POSITIONS = 744
"""Of sound, in whole chunks."""
WIDTHS: dict[str, Any] = {
    "hidden_size": 192,
    "intermediate_size": 640,
    "num_attention_heads": 6,
    "num_hidden_layers": 3,
    "image_size": SIDE,
    "patch_size": 8,
}
BLOCKS: dict[str, Any] = {"depth": 3, "hidden_size": 192, "num_heads": 6, "patch_size": 8}


class Blocks(torch.nn.Module):
    """The layers of an encoder whose embedding looks at the values of its input, which a fake tensor has not."""

    def __init__(self, block: Any, config: Any) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([block(config) for _ in range(3)])

    def forward(self, hidden: torch.Tensor, **given: Any) -> torch.Tensor:
        for layer in self.layers:
            hidden = layer(hidden, **given)
        return hidden


def pixels(model: Any) -> torch.Tensor:
    image = torch.zeros(1, 3, SIDE, SIDE, dtype=torch.bfloat16)
    return model(pixel_values=image).last_hidden_state


def sized_pixels(model: Any) -> torch.Tensor:
    return model(pixel_values=torch.zeros(1, 3, SIDE, SIDE), image_sizes=[(SIDE, SIDE)]).last_hidden_state


def sound(model: Any) -> torch.Tensor:
    return model(torch.zeros(1, 16, 2 * PATCHES)).last_hidden_state


def hidden(model: Any) -> torch.Tensor:
    start = torch.zeros(PATCHES, 192, dtype=torch.bfloat16, requires_grad=True) * 1
    tables = (torch.zeros(PATCHES, 32), torch.zeros(PATCHES, 32))
    with mock.patch.object(FakeTensor, "tolist", lambda _tensor: [PATCHES], create=True):
        return model(start, cu_seqlens=torch.tensor([0, PATCHES], dtype=torch.int32), position_embeddings=tables)


def tiles(model: Any) -> torch.Tensor:
    start = torch.zeros(1, PATCHES, 192, dtype=torch.bfloat16, requires_grad=True) * 1
    return model(start, attention_mask=torch.zeros(1, 1, PATCHES, PATCHES, dtype=torch.bfloat16))


def placed(model: Any) -> torch.Tensor:
    start = torch.zeros(1, PATCHES, 192, dtype=torch.bfloat16, requires_grad=True) * 1
    tables = (torch.zeros(1, PATCHES, 32, dtype=torch.bfloat16), torch.zeros(1, PATCHES, 32, dtype=torch.bfloat16))
    return model(start, position_embeddings=tables, position_ids=torch.zeros(1, PATCHES, 2, dtype=torch.long))


def rows(model: Any) -> torch.Tensor:
    start = torch.zeros(1, PATCHES, 192, dtype=torch.bfloat16, requires_grad=True) * 1
    return model(start, attention_mask=None)


def heard(model: Any) -> torch.Tensor:
    start = torch.zeros(1, POSITIONS, 1024, dtype=torch.bfloat16, requires_grad=True) * 1
    mask = torch.zeros(1, 1, POSITIONS // 12, 12, 24, dtype=torch.bool)
    return model(start, attention_mask=mask, position_embeddings=torch.zeros(1, 13, 1024, dtype=torch.bfloat16))


def heard_3n(model: Any) -> torch.Tensor:
    start = torch.zeros(1, POSITIONS, 1536, dtype=torch.bfloat16, requires_grad=True) * 1
    return model(start, audio_mel_mask=torch.zeros(1, POSITIONS, dtype=torch.bool))


TILED = MllamaVisionConfig(**WIDTHS, attention_heads=6, num_global_layers=2)
TOWERS: dict[str, tuple[Callable[[Config], Any], Any, Any, Callable[[Any], torch.Tensor]]] = {
    "clip": (vision.clip, CLIPVisionModel, CLIPVisionConfig(**WIDTHS), pixels),
    "siglip": (
        vision.siglip,
        SiglipVisionModel,
        SiglipVisionConfig(**WIDTHS, vision_use_head=False, hidden_act="gelu_pytorch_tanh"),
        pixels,
    ),
    "smolvlm": (vision.smolvlm, SmolVLMEncoderLayer, SmolVLMVisionConfig(**WIDTHS), rows),
    "paddleocr": (vision.paddleocr, PaddleOCRVisionEncoderLayer, PaddleOCRVisionConfig(**WIDTHS), hidden),
    "pixtral": (vision.pixtral, PixtralVisionModel, PixtralVisionConfig(**WIDTHS), sized_pixels),
    "mllama": (vision.mllama, MllamaVisionEncoderLayer, TILED, tiles),
    "mllama's gated layers": (vision.mllama, partial(MllamaVisionEncoderLayer, is_gated=True), TILED, tiles),
    "gemma4": (
        vision.gemma4,
        partial(Gemma4VisionEncoderLayer, layer_idx=0),
        Gemma4VisionConfig(**WIDTHS, num_key_value_heads=6, head_dim=32),
        placed,
    ),
    "gemma4's ear": (audio.gemma4, partial(Gemma4AudioLayer, layer_idx=0), Gemma4AudioConfig(), heard),
    "gemma3n's ear": (audio.gemma3n, Gemma3nAudioConformerBlock, Gemma3nAudioConfig(), heard_3n),
    "llama4": (
        vision.llama4,
        Llama4VisionModel,
        Llama4VisionConfig(
            **WIDTHS | {"intermediate_size": 4 * 192},
            projector_input_dim=256,
            projector_output_dim=256,
            vision_output_dim=256,
        ),
        pixels,
    ),
    "internvl": (vision.internvl, InternVLVisionModel, InternVLVisionConfig(**WIDTHS), pixels),
    "qwen2": (
        visual.qwen2,
        Qwen2VLVisionBlock,
        Qwen2VLVisionConfig(**BLOCKS | {"hidden_size": 256, "embed_dim": 192}),
        hidden,
    ),
    "qwen2_5": (
        visual.qwen2_5,
        Qwen2_5_VLVisionBlock,
        Qwen2_5_VLVisionConfig(**BLOCKS, intermediate_size=640, out_hidden_size=256),
        hidden,
    ),
    "qwen3": (
        visual.qwen3,
        Qwen3VLVisionBlock,
        Qwen3VLVisionConfig(**BLOCKS, intermediate_size=640, out_hidden_size=256),
        hidden,
    ),
    "glm4v": (
        visual.glm4v,
        Glm4vVisionBlock,
        Glm4vVisionConfig(**BLOCKS, intermediate_size=320, out_hidden_size=640),
        hidden,
    ),
    "voxtral": (
        audio.voxtral,
        VoxtralEncoder,
        VoxtralEncoderConfig(
            **{key: value for key, value in WIDTHS.items() if key not in {"image_size", "patch_size"}},
            num_mel_bins=16,
            max_source_positions=PATCHES,
        ),
        sound,
    ),
}

BY_LAYER = (hidden, rows, tiles, placed, heard, heard_3n)
ENCODERS: dict[str, Any] = {
    "qwen2": Qwen2VisionTransformerPretrainedModel,
    "qwen2_5": Qwen2_5_VisionTransformerPretrainedModel,
    "qwen3": Qwen3VLVisionModel,
    "glm4v": Glm4vVisionModel,
    "paddleocr": PaddleOCRVisionModel,
    "smolvlm": SmolVLMVisionTransformer,
    "mllama": MllamaVisionModel,
    "mllama's gated layers": MllamaVisionModel,
    "gemma4": Gemma4VisionModel,
    "gemma4's ear": Gemma4AudioModel,
    "gemma3n's ear": Gemma3nAudioEncoder,
}
WHOLE = {name: partial(ENCODERS.get(name, module), config) for name, (_, module, config, _) in TOWERS.items()}
"""Whole encoders, with their embeddings."""


def known(name: str) -> Tower:
    """What the advisor knows of an encoder."""
    build, _, config, _ = TOWERS[name]
    shapes = {**vision.LAYERS, **visual.LAYERS, **audio.LAYERS}
    section = Config(config.to_dict(), config.model_type, name)
    kind = "audio" if build.__module__.endswith("audio") else "vision"
    found = tower(kind, "tower", section, shapes[build], build(section), ())
    if "gated" in name and (last := shapes[build].then) is not None:
        found = following(found, "tower", section, last, build(section))
    # Of an image in tiles one is traced, and of padded ones fewer patches.
    apart = found.grid.rule in {"split", "canvas"} or "gemma" in name
    count = POSITIONS if found.traced is not None else PATCHES
    return replace(found, grid=Grid("padded", found.grid.patch, most=count)) if apart else found


def traced(name: str, *, autocast: bool, trained: bool) -> Trace:
    """Forward and backward of an encoder over one image."""
    _, module, config, call = TOWERS[name]
    config._attn_implementation = "sdpa"
    with torch.device("meta"):
        model: Any = (Blocks(module, config) if call in BY_LAYER else module(config)).to(torch.bfloat16).train()
    result = Trace()
    recorder = Recorder(result)
    with as_on_cuda(Setting()):
        materialise(model, recorder.weights, recorder.mark_gradient)
        if not trained:
            model.requires_grad_(False)
            if call not in BY_LAYER:
                model.enable_input_require_grads()
        watch(decoder_layers(model), recorder)
        with recorder:
            hooks = torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda tensor: tensor)
            with hooks, CudaHabits(), torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
                output = call(model)
            recorder.mark("backward")
            with CudaHabits():
                output.sum().backward()
            recorder.mark("done")
            del output
    return result
