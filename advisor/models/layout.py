"""How a family's tensors are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from advisor.models.layer_variant import LayerVariant


class Layout(Protocol):
    """A ``Decoder``, or a ``Multimodal`` with a decoder inside; ``count`` knows both. Families name it without them."""

    @property
    def variant(self) -> LayerVariant:
        """What the decoder does differently from Llama's."""
        ...
