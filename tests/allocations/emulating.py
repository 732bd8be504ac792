"""The run that a recorded setting stands for, its tape, and how two tapes differ."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from advisor.allocations.autograd.autograd import Event, Tape
from advisor.allocations.layers.loading import Loader
from advisor.allocations.shared import Batch
from advisor.allocations.step.assembly import COLUMNS, SEPARATE, batch_of, comparison
from advisor.allocations.step.building import base_model
from advisor.allocations.step.ddp import Buckets, replicated
from advisor.allocations.step.step import Trainer
from advisor.models import Architecture, describe
from advisor.models.classifier import classifier
from advisor.record import replace
from advisor.run import Images, Lora, Run
from advisor.run.stack import Stack


def model_of(setting: Mapping[str, Any]) -> Architecture | None:
    """The model of a setting, as a classifier where it is one."""
    found = describe(dict(setting["config"]), "recorded", "test")
    kind = setting["classifier"]
    if kind is None or found is None:
        return found
    return classifier(found, 1 if kind == "sequence" else 2, bias=kind == "token")


def run_of(setting: Mapping[str, Any]) -> Run:
    """The run of a setting."""
    method, targets, images = setting["method"], setting["targets"], setting["images"]
    adapter = {"full": None, "lora": "lora", "qlora": "qlora", "int8": "lora"}[method]
    lora = Lora(
        rank=setting["rank"],
        alpha=16,
        dropout=setting["dropout"],
        targets=(targets,) if isinstance(targets, str) else targets,
        targets_pattern=isinstance(targets, str),
        kernels=frozenset(setting["kernels"]),
        modules_to_save=tuple(setting["saved"]),
    )
    return Run(
        config=cast("Any", {"processor_type": "AutoProcessor"} if images else {}),
        deepspeed=None,
        model=model_of(setting),
        hardware=None,
        stack=Stack(padding="full"),
        adapter=adapter,
        lora=lora if adapter else None,
        quantization={"qlora": "nf4", "int8": "int8"}.get(method),
        micro_batch_size=setting["rows"],
        gradient_accumulation_steps=setting["micro_steps"],
        sequence_len=setting["length"],
        attention=setting["attention"],
        rl=setting["preferences"],
        chosen_cross_entropy=setting["preferences"] == "orpo" or setting["chosen"],
        reference_model=method == "full" and setting["preferences"] in {"dpo", "kto"},
        activation_checkpointing=bool(setting["checkpointing"]),
        reentrant=setting["checkpointing"] == "reentrant",
        optimizer=setting["optimizer"],
        embeddings_fp32=setting["fp32_embeddings"],
        loss=setting["loss"],
        liger=frozenset(setting["liger"]),
        classifier=setting["classifier"],
        unfrozen_parameters=tuple(setting["unfrozen"]),
        quantize_moe_experts=setting["packed_experts"],
        sample_packing=setting["packed"],
        upcasts_unquantized=setting["upcast"],
        images=Images(*images, "test") if images else None,
    )


def emulated(setting: Mapping[str, Any], steps: int = 2) -> Tape:
    """The tape of a setting under the conditions of a recording: no cuBLAS, gradients added into new tensors."""
    run = run_of(setting)
    assert run.model is not None
    tape = Tape(adds_in_place=False)
    loader = Loader(tape, run, run.model)
    model = base_model(loader)
    model = loader.prepare(model)
    columns = COLUMNS[run.rl] if run.rl else 1 + setting["padded"]
    kept, separate = setting["checkpointing"] or "", run.rl in SEPARATE
    batch = Batch(
        setting["rows"], setting["length"], kept, setting["padded"], columns, separate_chosen_rejected=separate
    )
    if setting["images"]:
        batch = batch_of(run)
    if run.rl is not None:
        model = replace(model, compare=comparison(tape, run))
    tape.mark("load")
    reducer = None
    if setting["replicas"]:
        model, reducer = replicated(tape, loader, model, BUCKETS[setting["replicas"]])
    trainer = Trainer(tape, model, batch, setting["micro_steps"], setting["optimizer"], workspace=0, reducer=reducer)
    for _ in range(steps):
        trainer.step()
    tape.events = list(tape.events)
    return tape


BUCKETS = {
    "usual": Buckets(),
    "capped": Buckets(1 << 20, 1 << 20),
    "finds unused": Buckets(finds_unused=True),
}
OLD = -1
"""A free of what was allocated before the first event."""
NUMBER = 8
"""Bytes of the largest number: the norms of gradients and what is made of them are not compared."""
ROWS = 64
NEXT_TO_GRADIENTS = 512
"""What DDP sends of buffers and of the order of gradients."""


def canonical(events: Sequence[Event], start: int, least: int = NUMBER) -> list[int]:
    """Events from ``start`` on: sizes, and for a free below zero how many allocations came after its own.

    Frees with no allocation between them are sorted. What was allocated before is not told apart.
    """
    numbers: dict[int, int] = {}
    found: list[int] = []
    freed: list[int] = []
    last = -1
    small = {one for one, size in events if 0 < size <= least}
    for number, size in events[start:]:
        if number in small or not number:
            continue
        if size:
            found += [OLD if one < 0 else OLD - 1 - last + one for one in sorted(freed)]
            freed = []
            last = numbers[number] = len(numbers)
            found.append(size)
        else:
            freed.append(numbers.get(number, -1))
    return found


def least_compared(setting: Mapping[str, Any]) -> int:
    """Bytes up to which tensors of a setting are not compared: numbers, and in preferences those of rows."""
    if setting["replicas"]:
        return NEXT_TO_GRADIENTS
    by_row = setting["preferences"] or setting["images"] or setting["classifier"] == "sequence"
    return ROWS if by_row else NUMBER
