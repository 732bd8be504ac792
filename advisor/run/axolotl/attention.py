"""The attention kernel under the name that axolotl knows it by, and which models lack one."""

from advisor.record import record
from advisor.run import Run
from advisor.run.axolotl.read import LEGACY_ATTENTION
from advisor.util import regex

PACKS = frozenset({"flash", "flex", "xformers", "sage"})
"""Kernels that keep packed samples apart without a mask."""
NAMES = {"flash": "flash_attention_2", "flex": "flex_attention"}
"""What axolotl calls the kernels of its old flags, where it is not the flag's own word."""
FLASH = regex(r"flash_attention_[234]")
# Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp, mha_fwd.
WIDEST_FLASH_HEAD = 256


@record
class Kernel:
    """``name`` is axolotl's, ``key`` where it was asked for, ``said`` with what value; all empty if it was not."""

    name: str = ""
    key: str = ""
    said: str = ""

    @property
    def base(self) -> str:
        """The name without revision and suffix: axolotl/utils/schemas/enums.py:171-175@0.19.0."""
        return self.name.split(":")[0].split("@")[0].strip()

    @property
    def is_flash(self) -> bool:
        """Whether it is one of FlashAttention's own."""
        return FLASH.fullmatch(self.base) is not None


def kernel(run: Run) -> Kernel:
    """The kernel that the YAML asks for: axolotl/utils/schemas/config.py:1545-1591@0.19.0."""
    name = run.config.get("attn_implementation")
    if isinstance(name, str) and name:
        return Kernel(name, "attn_implementation", name)
    for key, word in LEGACY_ATTENTION.items():
        if run.config.get(key):
            return Kernel(NAMES.get(word, word), key, str(run.config.get(key)).lower())
    hybrid = "gemma4_hybrid_attn_impl"
    return Kernel("flash_attention_2", hybrid, "true") if run.config.get(hybrid) else Kernel()


def can_flash(run: Run) -> bool:
    """Whether FlashAttention 2 runs on this card and with this model; an unknown one gets the benefit of the doubt."""
    card = run.hardware is None or run.hardware.gpu.flash_attention
    model = run.model is None or (run.model.supports_flash_attention and widest_head(run) <= WIDEST_FLASH_HEAD)
    return card and model


def plain(run: Run) -> str:
    """The best kernel that runs on every card: ``sdpa``, or ``eager`` where the model has none."""
    return "sdpa" if run.model is None or run.model.family.sdpa else "eager"


def without_scores(run: Run) -> str:
    """A kernel of this model and this card that keeps no scores; ``eager`` or ``sdpa`` where there is none.

    gpt-oss has its sinks in flex attention: for FlashAttention 2 transformers takes vLLM's kernel of FlashAttention 3
    (models/gpt_oss/modeling_gpt_oss.py:399, modeling_utils.py:1829-1845@5.16.1).
    """
    if run.model is not None and run.model.variant.sinks:
        return "flex_attention"
    if masks_images(run):
        return plain(run)
    return "flash_attention_2" if can_flash(run) else plain(run)


def masks_images(run: Run) -> bool:
    """Whether the run trains on images whose tokens see each other both ways, as FlashAttention has them not."""
    return run.model is not None and run.model.family.image_mask and run.uses_images


def widest_head(run: Run) -> int:
    """Elements of the widest head of softmax attention."""
    blocks = run.model.blocks if run.model is not None else ()
    found = (block.attention for block in blocks)
    return max((one.head_dim for one in found if one is not None and one.kind == "softmax"), default=0)


def may_pack(run: Run) -> bool:
    """Whether rows have labels of their own, and the kernel keeps packed samples apart."""
    return run.rl is None and run.classifier is None and run.attention in PACKS
