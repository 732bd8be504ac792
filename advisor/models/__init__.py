"""Which architecture a run trains: its tensors and blocks, found without torch and without the network."""

from advisor.models.architecture import Architecture
from advisor.models.blocks import Attention, Block, Kind, LinearShape, Mlp, WeightShape
from advisor.models.catalogue import catalogue_ids
from advisor.models.count import describe
from advisor.models.search import Unknown, copy_in_bf16, resolve, resolve_with_config

__all__ = [
    "Architecture",
    "Attention",
    "Block",
    "Kind",
    "LinearShape",
    "Mlp",
    "Unknown",
    "WeightShape",
    "catalogue_ids",
    "copy_in_bf16",
    "describe",
    "resolve",
    "resolve_with_config",
]
