"""The former name of ``variant_and_norm``, which rules of older releases import."""

from advisor.memory.activations.variant_and_norm import family_and_norm

__all__ = ["family_and_norm"]
