"""Kinds of runs, as far as torch's allocator is concerned: method, sharding, checkpointing, expandable segments."""

from collections.abc import Iterator

from advisor.run import Fsdp, Run, Zero

ANY = "any"


def kinds_of(run: Run) -> Iterator[str]:
    """The run's kind, then wider ones."""
    yield kind_of(run)
    yield f"{sharding_of(run)}, {checkpointing_of(run)}"
    yield sharding_of(run)
    yield ANY


def kind_of(run: Run) -> str:
    """Method, sharding and checkpointing in words."""
    method = "full" if run.adapter is None else ("QLoRA" if run.quantization else "LoRA")
    return f"{method}, {sharding_of(run)}, {checkpointing_of(run)}"


def checkpointing_of(run: Run) -> str:
    """Whether layers are recomputed in backward."""
    return "checkpointing" if run.activation_checkpointing else "no checkpointing"


def sharding_of(run: Run) -> str:
    """How the run is spread over GPUs."""
    match run.sharding:
        case Zero(stage=1 | 2 | 3 as stage, offload_optimizer=device):
            return f"ZeRO-{stage}" + (" with offload" if device != "gpu" else "")
        case Fsdp(version=version):
            return f"FSDP{version}"
        case _:
            return "one GPU" if run.world_size == 1 else "DDP"


def expandable_segments(run: Run) -> bool:
    """axolotl's command line sets expandable segments from torch 2.2 on: axolotl/utils/__init__.py:81-97@0.19.0."""
    if run.stack.expandable_segments is not None:
        return run.stack.expandable_segments
    return run.stack.trainer == "axolotl" and run.stack.at_least("torch", "2.2.0")
