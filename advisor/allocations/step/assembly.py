"""Run -> Tape: the load, and two steps with an evaluation between them, as long as a tape covers the run."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Event, Tape
from advisor.allocations.layers.loading import Loader
from advisor.allocations.losses.dpo import Dpo
from advisor.allocations.losses.kto import Kto
from advisor.allocations.losses.orpo import Orpo
from advisor.allocations.shared import Batch
from advisor.allocations.step.building import base_model
from advisor.allocations.step.ddp import buckets_of, replicated
from advisor.allocations.step.step import Trainer
from advisor.allocations.vision.image_inputs import columns_of, inputs_of
from advisor.memory.activations.attention import masked
from advisor.memory.towers import used_towers
from advisor.memory.workspaces import workspace_bytes
from advisor.record import record, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.allocations.autograd.autograd import Tensor
    from advisor.allocations.layers.decoder import Model
    from advisor.run import Run

STEPS = 2
"""The states of the optimizer are made in the first."""
MICRO_STEPS = 2
"""Those after the second do what that does."""

COLUMNS = {"dpo": 3, "ipo": 3, "orpo": 6, "simpo": 6, "kto": 6}
"""Tensors of tokens, masks and labels in a batch of TRL's collators."""
SEPARATE = frozenset({"orpo", "simpo"})
"""Whose collator has chosen and rejected rows in tensors of their own."""


@record(eq=False)
class Recorded:
    """The events of a run, what made each allocation, where phases end, and where each weight begins to be loaded."""

    events: list[Event]
    parts: list[str]
    marks: tuple[tuple[str, int], ...]
    pieces: tuple[int, ...]

    def loaded_in_other_order(self, seed: int) -> list[Event]:
        """The events with the weights in a random order: threads load them, in no order that can be known.

        transformers/core_model_loading.py, GLOBAL_WORKERS@5.16.1.
        """
        bounds = [*self.pieces, self.marks[0][1]]
        groups = [self.events[start:end] for start, end in pairwise(bounds)]
        Random(seed).shuffle(groups)
        return [*self.events[: bounds[0]], *(one for group in groups for one in group), *self.events[bounds[-1] :]]


@lru_cache(maxsize=2)
def recorded(run: Run) -> Recorded:
    """The tape of a run that ``coverage.covered`` knows."""
    assert run.model is not None, "coverage.covered"
    tape = Tape()
    tape.computes_half = run.autocast
    loader = Loader(tape, run, run.model)
    model = base_model(loader)
    tape.mark("base")
    model = loader.prepare(model)
    if run.rl is not None:
        model = replace(model, compare=comparison(tape, run))
    reducer = None
    if run.world_size > 1:
        model, reducer = replicated(tape, loader, model, buckets_of(run))
    tape.mark("load")
    micro_steps = min(run.gradient_accumulation_steps, MICRO_STEPS)
    batch = batch_of(run)
    fetched = run.gradient_accumulation_steps if batch.others else micro_steps
    trainer = Trainer(tape, model, batch, micro_steps, run.optimizer, workspace_bytes(run), fetched, reducer)
    for number in range(STEPS):
        trainer.step()
        if number == 0 and run.evaluates:
            evaluated = replace(run, micro_batch_size=run.eval_batch_size, sequence_len=run.eval_sequence_len)
            trainer.evaluate(batch_of(evaluated))
    return Recorded(list(tape.events), tape.parts, tuple(tape.marks), tuple(loader.pieces))


def comparison(tape: Tape, run: Run) -> Callable[[Tape, Model, Batch], Tensor]:
    """The trainer's own loss, with a model of its own to compare with where it has one."""
    if run.rl in SEPARATE:
        return Orpo(alone=run.rl == "orpo", chosen=run.chosen_cross_entropy)
    reference = second(tape, run) if run.reference_model else None
    return Kto(reference) if run.rl == "kto" else Dpo(reference)


def second(tape: Tape, run: Run) -> Model:
    """A frozen copy of the model, loaded the same way: axolotl/train.py:127-165@0.19.0."""
    assert run.model is not None
    loader = Loader(tape, run, run.model)
    model = loader.prepare(base_model(loader))
    for weight in loader.weights:
        weight.trained = False
    return model


def batch_of(run: Run) -> Batch:
    """The rows of a micro-step; packed ones are one long row to FlashAttention."""
    kept = ("reentrant" if run.reentrant else "non-reentrant") if run.activation_checkpointing else ""
    assert run.model is not None
    blocks = run.model.blocks
    masks = any(block.attention and masked(run, run.model.variant, block.attention) for block in blocks)
    rows = run.micro_batch_size * (2 if run.paired else 1)
    if used_towers(run, run.model):
        return Batch(rows, run.sequence_len, kept, masks, columns_of(run.model), inputs_of(run, run.model))
    columns = COLUMNS.get(run.rl or "", 1 + masks)
    return Batch(rows, run.sequence_len, kept, masks, columns, separate_chosen_rejected=run.rl in SEPARATE)
