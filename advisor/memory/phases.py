"""The phases of one training step, each at its worst moment, and worked out once it is asked for."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from advisor.memory.activations import traced_source
from advisor.memory.backward import backward_phases
from advisor.memory.deepspeed import bucket_terms, retained_terms, secondary_terms
from advisor.memory.ebft import ebft_phases, network_terms
from advisor.memory.forward import CHECKPOINTS, SAVED, WORKING, evaluation_phases, loss_phases
from advisor.memory.generation import resident_vllm, rollout_phase
from advisor.memory.gradients import between_micro_steps, bucket_copies, step_gradients
from advisor.memory.ledger import Phase, PhaseName, Term
from advisor.memory.loss import loss_backward_peak_bytes, loss_forward_peak_bytes
from advisor.memory.model import (
    autocast_terms,
    dequantized_terms,
    load_terms,
    reference_terms,
    weight_divisor,
    weight_terms,
    workspace_terms,
)
from advisor.memory.optimizer_states import optimizer_terms, step_terms
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.models import Architecture
from advisor.record import record, replace
from advisor.run import Run

BY_FORMULA = {SAVED, WORKING, CHECKPOINTS}


@record(eq=False)
class Phases:
    """The phases of a run as it is counted. ``whole``: the model that is loaded, where it is cut only later."""

    run: Run
    model: Architecture
    weights: Weights
    whole: Architecture | None = None

    @property
    def in_order(self) -> tuple[Phase, ...]:
        """All phases, as they come in a step."""
        last = (self.evaluation, self.generation)
        there = (phase for phase in last if phase is not None)
        return (self.load, self.loss, self.backward, self.optimizer_step, *there)

    def cheapest_first(self) -> Iterator[Phase]:
        """All phases, those first that are soon worked out and often the largest."""
        yield self.loss
        yield self.load
        yield self.optimizer_step
        yield from (phase for phase in (self.evaluation, self.generation) if phase is not None)
        yield self.backward

    @cached_property
    def least(self) -> int:
        """Bytes below which the peak is not, however layers are checkpointed: no activations of theirs are in it."""
        run, model = self.run, self.model
        logits = max(loss_forward_peak_bytes(run, model), loss_backward_peak_bytes(run, model))
        at_loss = sum(term.bytes for term in self._states) + logits
        return max(self.optimizer_step.bytes, self.load.bytes, at_loss)

    @cached_property
    def load(self) -> Phase:
        """While the model is loaded."""
        return self._worst([Phase("load", self._loading)])

    @cached_property
    def loss(self) -> Phase:
        """The forward pass, up to the loss."""
        run, model, weights = self.run, self.model, self.weights
        late = autocast_terms(run, model, weights, "loss")
        moments = loss_phases(run, model, weights, (*self._losing, *self._copies), (*self._losing, *late))
        return self._worst([*moments, *_of_name("forward and loss", self._compared)])

    @cached_property
    def backward(self) -> Phase:
        """The backward pass."""
        run, model, weights = self.run, self.model, self.weights
        training = (*self._states, *retained_terms(run, model))
        return self._worst(backward_phases(run, model, weights, training, self._computing))

    @cached_property
    def optimizer_step(self) -> Phase:
        """The optimizer's step."""
        run, weights = self.run, self.weights
        buckets = bucket_terms(run) if run.zero_stage == 3 else ()
        beyond = (*step_gradients(run, weights), *step_terms(run, weights), *buckets)
        return self._worst([Phase("optimizer step", (*self._states, *beyond))])

    @cached_property
    def evaluation(self) -> Phase | None:
        """Evaluation, where there is any."""
        run, model, weights = self.run, self.model, self.weights
        if not run.evaluates:
            return None
        scoring = autocast_terms(run, model, weights, "evaluation")
        fixed = (*self._states, *self._computing, *scoring)
        return self._worst(evaluation_phases(run, model, weights, fixed))

    @cached_property
    def generation(self) -> Phase | None:
        """The answers that are trained on, where there are any."""
        rollouts = rollout_phase(self.run, self.model, self.weights, self._resident, self._loading)
        answered = [*rollouts, *_of_name("generation", self._compared)]
        return self._worst(answered) if answered else None

    @cached_property
    def _resident(self) -> tuple[Term, ...]:
        """What stays from step to step, without vLLM."""
        run, model, weights = self.run, self.model, self.weights
        return (
            *weight_terms(run, model, weights),
            *reference_terms(run, model),
            *network_terms(run, model, weights, weight_divisor(run)),
            *workspace_terms(run, model),
            *secondary_terms(run, weights),
            *optimizer_terms(run, weights),
            *bucket_copies(run, weights),
        )

    @cached_property
    def _states(self) -> tuple[Term, ...]:
        """What stays from step to step."""
        return (*self._resident, *resident_vllm(self.run))

    @cached_property
    def _losing(self) -> tuple[Term, ...]:
        """What the forward pass holds next to activations."""
        return (*self._states, *retained_terms(self.run, self.model), *between_micro_steps(self.run, self.weights))

    @cached_property
    def _copies(self) -> tuple[Term, ...]:
        """Autocast's copies of weights."""
        return autocast_terms(self.run, self.model, self.weights)

    @cached_property
    def _computing(self) -> tuple[Term, ...]:
        """What a layer's quantized weights are unpacked into."""
        return dequantized_terms(self.run, self.model)

    @cached_property
    def _loading(self) -> tuple[Term, ...]:
        """What is on the GPU while the model is loaded."""
        whole = self.whole
        loaded = (self.model, self.weights) if whole is None else (whole, weights_of(self.run, whole))
        return load_terms(self.run, *loaded)

    @cached_property
    def _source(self) -> str:
        """Where activations come from that were traced."""
        return traced_source(self.run)

    @cached_property
    def _compared(self) -> tuple[Phase, ...]:
        """The moments of EBFT's own forward passes."""
        return ebft_phases(self.run, self.model, (*self._losing, *self._copies))

    def _worst(self, moments: Sequence[Phase]) -> Phase:
        """The moment that needs most; where the model was traced, its activations name the trace as their source."""
        most = max(moments, key=lambda phase: phase.bytes)
        return Phase(most.name, tuple(_sourced(term, self._source) for term in most.terms if term.bytes))


def _sourced(term: Term, source: str) -> Term:
    """A term with the trace as its source, where that is what its formula rests on."""
    traced = source and term.part == "activations" and term.source in BY_FORMULA
    return replace(term, source=source) if traced else term


def _of_name(name: PhaseName, phases: Iterable[Phase]) -> list[Phase]:
    """The moments of one phase."""
    return [phase for phase in phases if phase.name == name]
