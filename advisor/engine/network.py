"""Where links take most of a step: which, how much of it, and what helps this run, each way timed and fitted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from advisor.documents import Set
from advisor.engine.bar import REGROUPING, clears_the_bar
from advisor.engine.regression import new_errors
from advisor.engine.room import with_micro_batch
from advisor.engine.rule import Rule
from advisor.engine.states import State, loads_alike, resumes, trains_the_same
from advisor.engine.steps import alternatives, host_suffices, run_after
from advisor.hardware import Hardware, Link
from advisor.memory.lora_targets import stacked
from advisor.models import Architecture
from advisor.record import record, replace
from advisor.run import Run
from advisor.run.build import with_config
from advisor.speed import StepTime, step_time, traffic
from advisor.util import seconds

MOST = 0.5
"""Of a step: links that take no more need no word."""
WORTH = 0.9
"""Of a step's time: what leaves more of it is no help."""
CLOSE = 1.05
"""Times as long as the faster way that is shown anyway: what takes longer is not named next to it."""
SHOWN = 3
EXAMPLE = 100e9 / 8
"""Bytes a second of a network between nodes, where none is stated: a common one of clouds."""
DEEP_EP = frozenset({(8, 0), (9, 0)})
"""Cards that DeepEP has kernels for, by the README of axolotl's integration."""
LINKS: Mapping[Link, str] = {"nvlink": "NVLink", "pcie": "PCIe", "pcie-slow": "slow PCIe"}
LESS_SENT: Mapping[str, Callable[[Run], str]] = {
    "lower-zero-stage": lambda run: f"ZeRO-{run.zero_stage}",
    "plain-ddp": lambda _: "DDP without DeepSpeed",
    "hsdp": lambda run: f"`dp_shard_size: {run.dp_shard_size}`, `dp_replicate_size: {run.dp_replicate_size}`",
    "hpz": lambda run: f"`zero_hpz_partition_size: {run.zero.secondary_partition_size if run.zero else 1}`",
    "fsdp-no-reshard": lambda _: "`reshard_after_forward: false`",
    "larger-micro-batch": lambda run: (
        f"micro batch {run.micro_batch_size}, accumulation {run.gradient_accumulation_steps}"
    ),
}
"""The rules that may send less for the same training, and the config after each in a few words."""
ALONE = ("lower-zero-stage", "plain-ddp")
"""Of those, what leaves adapters' gradients alone to be sent."""


@record(eq=False)
class Links:
    """A run whose links may be what it waits for, the rules that are asked for, and what is shown of it anyway."""

    run: Run
    rules: Mapping[str, Rule]
    taken: Sequence[str] = ()
    """The rules of the faster way."""
    faster: float | None = None
    """Seconds of a step with it."""
    larger: int | None = None
    """The micro batch that there is room for."""
    is_example: bool = False
    """Whether nobody stated the network that the run has here."""


@record(eq=False)
class _Way:
    """The run with less to send. ``seconds``: of as many tokens as a step of the run as written has."""

    words: str
    run: Run
    seconds: float


def network_words(links: Links) -> str:
    """``The network takes 93% of the step of 77.9 s (25 Gb/s between nodes): 20.9 s with ZeRO-1.``; or nothing."""
    run, found = links.run, step_time(links.run)
    if run.hardware is None or not isinstance(found, StepTime):
        return ""
    share = found.by_kind()["link"] / found.expected
    link = _link_of(run, run.hardware, found) if share > MOST else ""
    if not link:
        return ""
    what = "network" if run.hardware.nodes > 1 else "link"
    ways = list(_ways(links, found.expected))[:SHOWN]
    said = f": {', '.join(way.words for way in ways)}" if ways else ""
    part = f"takes {share:.0%} of the step of {seconds(found.expected)} s"
    whole = f"With {link} it {part}{said}." if links.is_example else f"The {what} {part} ({link}){said}."
    return " ".join(filter(None, (whole, _spread_words(run, run.hardware))))


def as_example(links: Links) -> Links:
    """The same with the network that an example speaks of, for nodes whose network nobody stated."""
    hardware = links.run.hardware
    if hardware is None:
        return links
    run = replace(links.run, hardware=replace(hardware, network_bytes_per_s=EXAMPLE))
    return replace(links, run=run, is_example=True)


def _spread_words(run: Run, hardware: Hardware) -> str:
    """What expert parallelism would send; in words alone, since nobody has published how fast it is.

    Its package is built by hand, and axolotl goes on without. A full fine-tune would lose experts
    (expert-parallel-loses-experts), and its mesh puts the GPUs of other nodes first, which DeepEP's buffer does not
    reach: axolotl/monkeypatch/accelerate/parallelism_config.py:90, integrations/expert_parallel/args.py:30@0.19.0.
    """
    size = run.world_size
    alone = run.shard_size == size and run.context_parallel_size == run.expert_parallel_size == 1
    possible = run.model is not None and stacked(run) and divides_experts(run.model, size)
    joined = hardware.nodes == 1 and hardware.link in {None, "nvlink"} and hardware.gpu.compute_capability in DEEP_EP
    sharded = run.fsdp is not None and run.fsdp.version == 2 and alone
    if run.adapter is None or not (possible and joined and sharded):
        return ""
    share = traffic(replace(run, expert_parallel_size=size, dp_shard_size=1)) / traffic(run)
    if share > MOST:
        return ""
    return (
        f"Expert parallelism (`expert_parallel_size: {size}`, with `deep_ep` built from git) would send {share:.0%} of"
        " the bytes; no step writes it, as no time of it is known."
    )


def divides_experts(model: Architecture, size: int) -> bool:
    """Whether there are experts, as many for each of so many GPUs."""
    counts = [block.mlp.experts for block in model.blocks if block.mlp is not None]
    return any(counts) and not any(count % size for count in counts)


def _link_of(run: Run, hardware: Hardware, found: StepTime) -> str:
    """The link that is waited for; of several nodes only their network, if most of the wait would go without it."""
    if hardware.nodes > 1:
        ideal = step_time(replace(run, hardware=replace(hardware, network_bytes_per_s=float("inf"))))
        saved = found.expected - ideal.expected if isinstance(ideal, StepTime) else 0.0
        rate = (hardware.network_bytes_per_s or 0.0) * 8 / 1e9
        return f"{rate:g} Gb/s between nodes" if saved > found.by_kind()["link"] / 2 else ""
    name = hardware.link or ("nvlink" if hardware.gpu.link_bytes_per_s else "pcie")
    return f"{LINKS[name]} between the GPUs" + (", as assumed" if hardware.link_assumed else "")


def _ways(links: Links, now: float) -> Iterator[_Way]:
    """What helps: the same training, a larger batch, adapters."""
    kept = [each for each in LESS_SENT if each not in links.taken]
    same = [_best(links, now, _by_rule(links, links.run, name)) for name in kept]
    yield from sorted(filter(None, same), key=lambda way: way.seconds)
    yield from filter(None, (_best(links, now, _larger_batches(links)), _best(links, now, _adapters(links))))


def _best(links: Links, now: float, found: Iterable[tuple[str, Run]]) -> _Way | None:
    """The fastest of some ways that is worth a word, fits, and stops nowhere; of equals the first."""
    limit = min(WORTH * now, CLOSE * (links.faster or now))
    timed = [way for words, run in found if (way := _timed(links.run, words, run)) and way.seconds <= limit]
    ordered = sorted(timed, key=lambda way: round(way.seconds / now, 2))
    return next((way for way in ordered if _will_do(links.run, way.run)), None)


def _timed(before: Run, words: str, run: Run) -> _Way | None:
    """A way with its time, if that is known: of a step, or with another batch of as many tokens."""
    old, new = step_time(before), step_time(run)
    if not (isinstance(old, StepTime) and isinstance(new, StepTime)):
        return None
    if run.global_batch_size == before.global_batch_size:
        return _Way(f"{seconds(new.expected)} s with {words}", run, new.expected)
    alike = new.expected * old.tokens / new.tokens
    return _Way(f"{1 - alike / old.expected:.0%} less a token with {words}", run, alike)


def _will_do(before: Run, after: Run) -> bool:
    """Whether a changed run fits, finds its checkpoint, and is stopped by nothing."""
    old, new = State(before), State(after)
    if new.verdict != "fits" or not host_suffices(old, new) or (resumes(before) and not loads_alike(before, after)):
        return False
    return not new_errors(before, after, memory=False)


def _by_rule(links: Links, run: Run, name: str) -> Iterator[tuple[str, Run]]:
    """What a rule makes of a run, as long as it trains the same."""
    rule = links.rules.get(name)
    made = _all_after(rule, run) if rule is not None else ()
    if name in REGROUPING:
        made = [after for after in made if clears_the_bar(run, after)]
    yield from ((LESS_SENT[name](after), after) for after in made if rule and trains_the_same(rule, run, after))


def _larger_batches(links: Links) -> Iterator[tuple[str, Run]]:
    """More tokens in each step: twice the accumulation, or the micro batch that there is room for."""
    run, steps = links.run, 2 * links.run.gradient_accumulation_steps
    more = with_config(run, [Set("gradient_accumulation_steps", steps)])
    if more.global_batch_size == 2 * run.global_batch_size:
        yield "twice the accumulation", more
    if links.larger is not None:
        yield f"micro_batch_size {links.larger}", with_micro_batch(run, links.larger)


def _adapters(links: Links) -> Iterator[tuple[str, Run]]:
    """Adapters; where weights are gathered, also with whole weights, which leaves their gradients alone to be sent."""
    for words, after in _with_adapters(links):
        yield f"{words} (other training)", after
        for name in ALONE:
            for more, whole in _by_rule(links, after, name):
                yield f"{words} and {more} (other training)", whole


def _with_adapters(links: Links) -> Iterator[tuple[str, Run]]:
    """LoRA, then QLoRA, whose weights may be whole where those of LoRA are too many."""
    runs = [links.run]
    for name, words in (("lora", "LoRA"), ("qlora", "QLoRA")):
        rule = links.rules.get(name)
        runs = [after for run in runs if rule is not None for after in _all_after(rule, run)]
        yield from ((words, after) for after in runs)


def _all_after(rule: Rule, run: Run) -> list[Run]:
    """What a rule makes of a run, by each of its alternatives."""
    made = (run_after(run, edits, rule) for edits in alternatives(rule, run)) if rule.when(run) else ()
    return [after for after in made if after is not None]
