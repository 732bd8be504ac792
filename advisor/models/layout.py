"""How a family's tensors are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from advisor.models.deviations import Deviations


class Layout(Protocol):
    """A ``Decoder``, or a ``Multimodal`` with a decoder inside; ``count`` knows both. Families name it without them."""

    @property
    def deviations(self) -> Deviations:
        """What the decoder does differently from Llama's."""
        ...
