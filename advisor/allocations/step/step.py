"""The trainer's loop: micro-steps, the norm of the gradients, the optimizer's step.

transformers/trainer.py, _run_epoch and training_step@5.16.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import EMPTIED, Tape, Tensor, backward
from advisor.allocations.autograd.operations import FULL, LONG
from advisor.allocations.autograd.optimizers import clipped, stepped
from advisor.allocations.losses.dpo import Dpo

if TYPE_CHECKING:
    from advisor.allocations.layers.decoder import Model
    from advisor.allocations.shared import Batch
    from advisor.allocations.step.ddp import Reducer


class Trainer:
    """What outlives a step: the states of the optimizer, and until there are new ones, the last batches and loss."""

    def __init__(
        self,
        tape: Tape,
        model: Model,
        batch: Batch,
        micro_steps: int,
        optimizer: str,
        workspace: int,
        fetched: int | None = None,
        reducer: Reducer | None = None,
    ) -> None:
        self.tape, self.model, self.batch, self.micro_steps, self.optimizer = tape, model, batch, micro_steps, optimizer
        self.workspace = workspace
        self.fetched = fetched or micro_steps
        """Batches of a step, which lie on the GPU at once: transformers/trainer.py, get_batch_samples@5.16.1."""
        self.reducer = reducer
        self.states: list[Tensor] = []
        self.tokens: list[Tensor] = []
        self.items: Tensor | None = None
        self.last: Tensor | None = None
        self.workspaces: list[Tensor] = []
        """cuBLAS's, of the main thread and of autograd's: each keeps its own."""

    def step(self) -> None:
        """One step of the optimizer."""
        tape = self.tape
        tape.part = "forward"
        self.tokens, self.items = (
            [one for _ in range(self.fetched) for one in columns(tape, self.batch)],
            tape.new(1, LONG),
        )
        for number in range(self.micro_steps):
            self.micro_step(is_last=number == self.micro_steps - 1)
        tape.part = "optimizer"
        trained = self.model.trained
        clipped(tape, trained)
        stepped(tape, trained, self.states, self.optimizer)
        for weight in trained:
            weight.gradient = None
        tape.mark("optimizer step")

    def micro_step(self, *, is_last: bool) -> None:
        """Forward and backward of one batch; DDP reduces the gradients of the last."""
        tape = self.tape
        if self.reducer is not None:
            self.reducer.enter_forward()
        self.make_workspace(1)
        tape.part = "forward"
        loss = self.model.loss(tape, self.batch)
        self.last = None
        tape.mark("forward")
        self.make_workspace(2)
        tape.part = "loss"
        root = tape.new(1, FULL)
        if self.reducer is not None:
            self.reducer.enter_backward(reduces=is_last)
        backward(tape, loss, root)
        self.last = loss.detached()
        if isinstance(self.model.compare, Dpo):
            tape.events.append(EMPTIED)  # axolotl/core/trainers/dpo/trainer.py, training_step@0.19.0
        tape.mark("backward")

    def evaluate(self, batch: Batch) -> None:
        """One batch without gradients."""
        tape = self.tape
        tape.part, tape.grad = "evaluation", False
        tokens = columns(tape, batch)
        loss = self.model.loss(tape, batch)
        tape.grad = True
        del tokens, loss
        tape.mark("evaluation")

    def make_workspace(self, number: int) -> None:
        """What the first matrix product of a thread asks for: aten/src/ATen/cuda/CublasHandlePool.cpp@2.13.0."""
        if self.workspace and len(self.workspaces) < number:
            self.tape.part = "workspace"
            self.workspaces.append(self.tape.new(self.workspace, 1))


def columns(tape: Tape, batch: Batch) -> list[Tensor]:
    """What the trainer puts on the GPU of one batch."""
    words = [tape.new(batch.column, LONG) for _ in range(batch.columns)]
    return words + [tape.new(size, 1) for size in batch.others]
