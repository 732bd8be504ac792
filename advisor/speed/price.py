"""Run -> StepTime: kernels, launches, links, host and optimizer of one step."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from advisor.hardware import Hardware
from advisor.memory.optimizer_states import optimizer_terms
from advisor.memory.weight_groups import Weights
from advisor.memory.weights import weights_of
from advisor.models import Architecture
from advisor.run import Fsdp, Run, Zero
from advisor.speed import host, link, rollouts
from advisor.speed.card import Card, card_of
from advisor.speed.compute import Work
from advisor.speed.constants import SHIPPED, USUAL_RANGE, WIDE_RANGE, Constants
from advisor.speed.kinds import EVIDENCED, kinds_of
from advisor.speed.step_time import Conditions, StepTime, TimeTerm, Unpriced
from advisor.util import is_mapping

USUAL = Conditions()
HIDDEN = "what the card's own work does not hide"
TOUCHED = "each byte of weights, gradients and states is read and written"
MOST_GPUS, FEW_TOKENS = 64, 1024
NOTICED = 0.1
"""A link that is assumed makes a time doubtful from this share of it on."""
REGROUPED = ("mics_shard_size", "zero_quantized_weights", "zero_quantized_gradients")
"""DeepSpeed's keys that send other bytes, or to other GPUs."""


@lru_cache(maxsize=8)
def step_time(run: Run, conditions: Conditions = USUAL, constants: Constants = SHIPPED) -> StepTime | Unpriced:
    """The time of a run's step, or why it has none."""
    if run.model is None or run.hardware is None or run.unreadable:
        return Unpriced("the model, the GPUs or a value is unknown")
    card = card_of(run.hardware.gpu, run.precision, constants)
    if card is None:
        return Unpriced(f"no tensor rate is known of {run.hardware.gpu.title}")
    if run.hardware.nodes > 1 and run.hardware.network_bytes_per_s is None:
        return Unpriced("the network between the nodes is not stated", "add `net=100Gb/s` to the GPUs")
    if run.tensor_ranks > 1:
        return Unpriced(f"what `{run.tensor_ranks_key}` divides and sends is not modelled")
    if run.ebft is not None:
        return Unpriced("`rl: ebft` compares completions by a second network, whose time is not modelled")
    return priced(Work(run, run.model, card, conditions))


def traffic(run: Run) -> float:
    """Bytes that one GPU sends in an optimizer step; 0 where the model is not known."""
    return 0.0 if run.model is None else link.traffic(run, weights_of(run, run.model))


def priced(work: Work) -> StepTime:
    """The terms of a step; of what runs at once, only what sticks out."""
    run, card, steps = work.run, work.card, work.run.gradient_accumulation_steps
    constants = card.constants
    assert run.hardware is not None
    weights, links = weights_of(run, work.model), link.links_of(run.hardware, constants)
    machine = host.host_of(run.hardware, constants)
    amounts = work.amounts()
    busy = sum(amount.seconds for amount in amounts)
    started = host.python(run, work.launches(), machine, constants)
    sent = link.micro_step(run, weights, links) + link.copied(run, weights) / card.bandwidth
    copied = host.parameter_copies(run, weights, machine) + host.activation_copies(run, machine)
    on_card = joined(busy, started, constants.launch_overlap.value)
    whole = joined(on_card, sent + copied, constants.overlap.value)
    waiting = (whole - on_card) / (sent + copied) if sent + copied else 0.0
    terms = [
        *(TimeTerm(a.name, a.kind, steps * a.seconds, f"{steps} x ({a.formula})", a.source) for a in amounts),
        TimeTerm("launches and hooks", "host", steps * (on_card - busy), hidden(steps, started), host.LAUNCHES),
        TimeTerm("collectives", "link", steps * sent * waiting, hidden(steps, sent), links.source),
        TimeTerm("copies over PCIe", "host", steps * copied * waiting, hidden(steps, copied), host.COPIES),
        TimeTerm(
            "collectives, once a step", "link", link.step(run, weights, links), "gradients or weights", links.source
        ),
        TimeTerm(
            "optimizer on the CPU",
            "host",
            host.cpu_step(run, weights, machine, constants),
            "CPU Adam and its copies",
            host.CPU_ADAM,
        ),
        _optimizer_term(run, weights, card, work.conditions),
        *rollouts.terms(run, work.model, weights, card, links),
    ]
    kept = tuple(term for term in terms if term.seconds > 0)
    doubts = [*_doubts_of(run, work.model), *doubts_of_time(run.hardware, kept, started > busy)]
    share = WIDE_RANGE if doubts else USUAL_RANGE
    return StepTime(kept, steps * run.tokens, share, tuple(doubts))


def hidden(steps: int, seconds: float) -> str:
    """The arithmetic of what overlaps."""
    return f"{steps} x {seconds * 1e3:.4g} ms, {HIDDEN}"


def joined(one: float, other: float, norm: float) -> float:
    """Seconds of two things that run at once in part: their p-norm."""
    return (one**norm + other**norm) ** (1 / norm)


def _optimizer_term(run: Run, weights: Weights, card: Card, conditions: Conditions) -> TimeTerm:
    """An optimizer on the card."""
    bytes_ = touched(run, weights, conditions)
    passes = card.constants.optimizer_traffic.value
    seconds = passes * bytes_ / card.bandwidth
    text = f"{passes:g} x {bytes_ / 1e9:.4g} GB / {card.bandwidth / 1e9:.4g} GB/s"
    return TimeTerm("optimizer", "optimizer", seconds, text, TOUCHED)


def touched(run: Run, weights: Weights, conditions: Conditions) -> float:
    """Bytes of weights, gradients and states of one GPU; none where the CPU steps."""
    match run.sharding:
        case Zero(offload_optimizer="cpu" | "nvme") | Fsdp(offload_params=True):
            return 0.0
        case Zero(stage=0) | None:
            share = float(weights.trained_elements)
        case _:
            share = weights.trained_elements / run.shard_size
    states = sum(term.bytes for term in optimizer_terms(run, weights))
    return (4 * share if conditions.narrow_states else states) + 2 * run.compute_bytes * share


def _doubts_of(run: Run, model: Architecture) -> list[str]:
    """Why the published figures say little about such a run."""
    found: list[str] = []
    assert run.hardware is not None
    found += [f"few published figures: {kind}" for kind in kinds_of(run) if kind not in EVIDENCED]
    if model.has_experts:
        found.append("experts")
    if run.world_size > MOST_GPUS:
        found.append(f"more than {MOST_GPUS} GPUs")
    if run.quantization is not None and run.tokens < FEW_TOKENS:
        found.append(f"a quantized base with micro batches below {FEW_TOKENS:,} tokens")
    if run.rollouts is not None:
        elsewhere = run.rollouts.engine == "server"
        found.append(
            "answers of a server, which are not counted" if elsewhere else "answers, each as long as it may be"
        )
    if run.context_parallel_size > 1:
        found.append("context parallelism, whose published figures are of other frameworks")
    if run.expert_parallel_size > 1:
        found.append("expert parallelism, of which no figure is published")
    zero = run.deepspeed.get("zero_optimization") if run.deepspeed is not None else None
    found += [
        f"`{key}`, whose traffic is not counted" for key in REGROUPED if is_mapping(zero) and is_set(zero.get(key))
    ]
    return found


def is_set(value: object) -> bool:
    """Whether one of ``REGROUPED`` says something: a group of one GPU, or none, is as without it."""
    return value not in (None, False, 1, -1)


def doubts_of_time(hardware: Hardware, terms: Iterable[TimeTerm], host_bound: bool) -> Iterator[str]:
    """Why a time is doubtful for what it is made of."""
    if host_bound:
        yield "short micro-steps, which wait for the host to start each kernel"
    seconds = [(term.kind == "link", term.seconds) for term in terms]
    sent = sum(one for linked, one in seconds if linked)
    if hardware.link_assumed and sent > NOTICED * sum(one for _, one in seconds):
        yield "the link between the GPUs, which is assumed"
