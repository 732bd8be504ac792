"""The plans held against brute force: ``python -m tests.benchmarks.plans [RUNS] [SEED]``.

Random runs that do not fit; a grid of configs written here, by text, on a way of its own from document to estimate and
step time; and the question whether the plan finds a fit where one exists, whether the grid has one as fast with fewer
edits, how much slower the fastest plan is than the grid's best point of the same kind by several judges of time, and
what it costs to find the plan. The greedy walk of version 0.1 is held against the same points.
"""

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from advisor.documents import parse
from advisor.engine.options import Options, room_rules, tiers_of
from advisor.engine.plan import plan_fit
from advisor.engine.search import EQUAL, needs_masters
from advisor.engine.speedups import sequence
from advisor.engine.states import State, Step
from advisor.engine.steps import alternatives, host_suffices, run_after
from advisor.memory import estimate
from advisor.opening import Context, open_run
from advisor.run import Run
from advisor.run.deepspeed import live_for
from advisor.util import Buffers
from tests.benchmarks.greedy import greedy
from tests.benchmarks.judges import Judge, judges, own

COLLECTED = 100_000
"""Objects between collections of garbage, as the command has it."""
MODELS = (
    "meta-llama/Llama-3.2-1B",
    "meta-llama/Llama-3.2-3B",
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen3-14B",
    "Qwen/Qwen3-32B",
    "meta-llama/Llama-3.1-70B",
    "Qwen/Qwen3-30B-A3B",
)
GPUS = (
    "1x rtx-4090",
    "1x rtx-4090 host=128GiB",
    "2x rtx-3090 link=pcie",
    "4x rtx-4090 link=pcie",
    "4x rtx-4090 link=pcie-slow host=256GiB",
    "1x a100-80gb",
    "2x a100-80gb",
    "4x l40s link=pcie",
    "8x a100-40gb",
    "8x a100-80gb host=512GiB",
    "8x h100-80gb",
    "4x h200",
)
ADAPTER = {"lora_r": 16, "lora_alpha": 32, "lora_target_linear": True}
METHODS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"adapter": "lora", **ADAPTER},
    {"adapter": "qlora", "load_in_4bit": True, **ADAPTER},
    {"rl": "dpo", "adapter": "lora", **ADAPTER},
)
FSDP = {"auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "state_dict_type": "FULL_STATE_DICT", "offload_params": False}

JUDGES = judges()


@dataclass(frozen=True)
class Spot:
    """One config of the grid: what is written, where it lies."""

    sharding: str
    offload: str
    checkpoints: str
    loss: str
    micro_batch_size: int


@dataclass(frozen=True)
class Outcome:
    """A plan's end next to the grid's best."""

    label: str
    ratios: Mapping[str, float]
    """By judge: time of the fastest plan's end over the grid's best; empty where the plan does not fit."""
    repair: float | None
    """Time of the plan's end over the grid's best or the run as written, whichever takes longer."""
    spare: int
    """Edits of the plan that the grid does without: as fast, with as much room."""
    greedy: float | None
    missed: bool
    spot: Spot | None
    names: tuple[str, ...]
    milliseconds: float
    changes_for_nothing: bool
    needless: tuple[str, ...] = ()
    """Steps without which the plan fits as well and is as fast."""


def random_run(dice: random.Random) -> tuple[dict[str, Any], str]:
    """A config and its GPUs."""
    rows = dice.choice((4, 8, 16, 32))
    micro = dice.choice([n for n in (1, 2, 4, 8) if rows % n == 0])
    config: dict[str, Any] = {
        "base_model": dice.choice(MODELS),
        "sequence_len": dice.choice((2048, 4096, 8192, 16384)),
        "micro_batch_size": micro,
        "gradient_accumulation_steps": rows // micro,
        "optimizer": "adamw_torch_fused",
        "learning_rate": dice.choice((2e-5, 2e-4)),
        "bf16": True,
        "attn_implementation": "flash_attention_2",
        "sample_packing": True,
        "datasets": [{"path": "tatsu-lab/alpaca", "type": "alpaca"}],
        **dice.choice(METHODS),
    }
    if config.get("rl"):
        config |= {"sample_packing": False, "datasets": [{"path": "a/b", "type": "chatml.intel", "split": "train"}]}
    if dice.random() < 0.5:
        config["gradient_checkpointing"] = True
    if dice.random() < 0.5:
        config |= {"val_set_size": 0.02, "evals_per_epoch": 2}
    return config, dice.choice(GPUS)


def opened(config: dict[str, Any], deepspeed: dict[str, Any] | None, gpus: str) -> Run:
    """The run of these documents, read from their text."""
    text = yaml.safe_dump(config if deepspeed is None else {**config, "deepspeed": "/nowhere/ds.json"})
    buffers = Buffers({} if deepspeed is None else {"/nowhere/ds.json": json.dumps(deepspeed)})
    context = Context(gpus=gpus, buffers=buffers, working_directory="/nowhere")
    return open_run(parse(text.encode(), "/nowhere/run.yaml", "yaml"), context).run


def spots(config: dict[str, Any], run: Run) -> Iterator[Spot]:
    """The grid."""
    several, adapter = run.world_size > 1, config.get("adapter")
    shardings = ["none", *(("z1", "z2", "z3", "fsdp2", "fsdp2-sync") if several else ())]
    if adapter == "qlora":
        shardings = [name for name in shardings if name in {"none", "z1", "z2"}]
    rows = config["micro_batch_size"] * config["gradient_accumulation_steps"]
    for sharding in shardings:
        offloads = {"none": ("", "z2-optimizer", "z3-both"), "z2": ("", "optimizer"), "z3": ("", "optimizer", "both")}
        for offload in offloads.get(sharding, ("",)):
            if adapter == "qlora" and "both" in offload:
                continue
            if several and sharding == "none" and offload:
                continue
            for checkpoints in ("off", "on", "offloaded"):
                if checkpoints == "offloaded" and adapter and (sharding == "z3" or "z3" in offload):
                    continue  # torch's hooks would keep what ZeRO-3 has gathered
                for loss in ("plain", "liger") if config.get("rl") else ("plain", "liger", "cut"):
                    for size in (n for n in (1, 2, 4, 8, 16, 32) if rows % n == 0):
                        yield Spot(sharding, offload, checkpoints, loss, size)


def written(config: dict[str, Any], spot: Spot, run: Run) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The documents of a point."""
    rows = config["micro_batch_size"] * config["gradient_accumulation_steps"]
    made: dict[str, Any] = {**config, "micro_batch_size": spot.micro_batch_size}
    made["gradient_accumulation_steps"] = rows // spot.micro_batch_size
    made.pop("gradient_checkpointing", None)
    if spot.checkpoints != "off":
        made["gradient_checkpointing"] = True
    if spot.checkpoints == "offloaded":
        made["activation_offloading"] = True if config.get("adapter") else "hidden_states"
        if not config.get("adapter"):
            made["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if spot.loss == "cut":
        made["plugins"] = ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"]
    elif spot.loss == "liger" and config.get("rl"):
        made["dpo_use_liger_kernel"] = True
    elif spot.loss == "liger":
        made |= {"plugins": ["axolotl.integrations.liger.LigerPlugin"], "liger_fused_linear_cross_entropy": True}
    if spot.sharding.startswith("fsdp2"):
        made |= {"fsdp_version": 2, "fsdp_config": {**FSDP, "reshard_after_forward": True}}
        if not config.get("load_in_4bit"):
            made["fsdp_config"]["cpu_ram_efficient_loading"] = True
        if spot.checkpoints != "off":
            made["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
        if spot.sharding == "fsdp2-sync":
            made["accelerator_config"] = {"gradient_accumulation_kwargs": {"sync_each_batch": True}}
        return made, None
    stage = {"none": 0, "z1": 1, "z2": 2, "z3": 3}[spot.sharding] or {"z2-optimizer": 2, "z3-both": 3}.get(spot.offload)
    return made, zero(stage, spot.offload, live_for(run.model)) if stage else None


def zero(stage: int, offload: str, live: int) -> dict[str, Any]:
    """A DeepSpeed config with small buckets."""
    section: dict[str, Any] = {"stage": stage, "contiguous_gradients": True, "overlap_comm": True}
    section |= {"reduce_bucket_size": 50_000_000}
    if stage == 3:
        section |= {"stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}
        section |= dict.fromkeys(("stage3_max_live_parameters", "stage3_max_reuse_distance"), live)
        section["sub_group_size"] = 100_000_000
    host = {"device": "cpu", "pin_memory": True}
    if offload:
        section["offload_optimizer"] = host
    if offload.endswith("both"):
        section["offload_param"] = host
    batch = dict.fromkeys(("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"), "auto")
    return {"zero_optimization": section, "bf16": {"enabled": True}, **batch, "gradient_clipping": "auto"}


def best_of(config: dict[str, Any], gpus: str, start: State) -> dict[str, tuple[float, Spot]]:
    """By judge the fastest point that fits: without offload if there is one, without a package, with masters.

    What takes more memory than is written leaves room.
    """
    found: dict[tuple[bool, ...], dict[str, tuple[float, Spot]]] = {}
    for spot in spots(config, start.run):
        run = opened(*written(config, spot, start.run), gpus)
        needs = estimate(run)
        if needs is None or needs.verdict != "fits" or not host_suffices(start, State(run)):
            continue
        if needs.has_little_room and spends(config, spot):
            continue
        loses = spot.sharding.startswith("fsdp2") and needs_masters(run)
        best = found.setdefault((bool(spot.offload), spot.loss == "cut", loses), {})
        for name, judge in JUDGES.items():
            took = judge(run)
            if took is not None and (name not in best or took < best[name][0]):
                best[name] = (took, spot)
    return found[min(found)] if found else {}


def fewest_of(config: dict[str, Any], gpus: str, start: State, end: State) -> int | None:
    """The fewest edits of the grid to a fit that is as fast as an end, with its room, engine and packages."""
    found: list[int] = []
    for spot in spots(config, start.run):
        edits = edits_of(config, spot)
        if spot.loss == "cut" or spot.sharding.startswith("fsdp2") or (found and edits >= min(found)):
            continue
        state = State(opened(*written(config, spot, start.run), gpus))
        if state.verdict != "fits" or not host_suffices(start, state):
            continue
        little = state.estimate.has_little_room and (spends(config, spot) or not end.estimate.has_little_room)
        if not little and (state.seconds or 0.0) <= (end.seconds or 0.0):
            found.append(edits)
    return min(found, default=None)


def edits_of(config: dict[str, Any], spot: Spot) -> int:
    """In how many settings a point differs from what is written."""
    kept = ("off", "on", "offloaded")
    checkpoints = kept.index(spot.checkpoints) - kept.index("on" if config.get("gradient_checkpointing") else "off")
    batch = spot.micro_batch_size != config["micro_batch_size"]
    return sum((spot.sharding != "none", bool(spot.offload), spot.loss != "plain", batch, abs(checkpoints)))


def spends(config: dict[str, Any], spot: Spot) -> bool:
    """Whether a point keeps more on the card than is written, for its speed."""
    kept = bool(config.get("gradient_checkpointing")) and spot.checkpoints == "off"
    return kept or spot.micro_batch_size > config["micro_batch_size"]


def outcome(config: dict[str, Any], gpus: str) -> Outcome | None:
    """One run; None where it fits as written or cannot be estimated."""
    start = State(opened(config, None, gpus))
    if estimate(start.run) is None or start.verdict == "fits":
        return None
    flowchart = tiers_of(Options())
    began = time.process_time()
    plan = plan_fit(start, flowchart, safe_only=True)
    took = (time.process_time() - began) * 1e3
    best = best_of(config, gpus, start)
    label = " ".join(str(config.get(key, "")) for key in ("base_model", "sequence_len", "adapter", "rl")) + f" {gpus}"
    label += f" {config['micro_batch_size']} x {config['gradient_accumulation_steps']}"
    needless = tuple(needless_of(start, plan.steps))
    if not best:
        return Outcome(label, {}, None, 0, None, False, None, plan.names, took, False, needless)
    fits = plan.verdict == "fits"
    fast = fastest_end(start) if fits else start
    ratios = {name: (judge(fast.run) or 0.0) / best[name][0] for name, judge in JUDGES.items()} if fits else {}
    walked = greedy(start, flowchart)
    seconds, spot = best["own"]
    fewest = fewest_of(config, gpus, start, plan.end) if fits else None
    return Outcome(
        label,
        ratios,
        (plan.end.seconds or 0.0) / max(seconds, start.seconds or 0.0) if fits else None,
        max(0, len(plan.steps) - fewest) if fewest is not None else 0,
        (walked.seconds or 0.0) / seconds if walked.verdict == "fits" else None,
        not fits,
        spot,
        plan.names,
        took,
        not spot.offload and not plan_fit(start, flowchart).safe,
        needless,
    )


def fastest_end(start: State) -> State:
    """Where the steps lead that ``--fix --faster`` writes."""
    plan = plan_fit(start, tiers_of(Options()), safe_only=True, fastest=True)
    more = sequence(plan.end, room_rules(Options()))
    return more[-1].after if more else plan.end


def needless_of(start: State, steps: Sequence[Step], judge: Judge = own, gain: float = EQUAL) -> Iterator[str]:
    """The steps without which the rest fits with as much room, and is about as fast by a judge of time."""
    if not steps or steps[-1].after.verdict != "fits":
        return
    end = steps[-1].after
    for index, step in enumerate(steps):
        rest = remade(start, [*steps[:index], *steps[index + 1 :]])
        if rest is None or rest.verdict != "fits" or not host_suffices(start, rest):
            continue
        if rest.estimate.has_little_room and not end.estimate.has_little_room:
            continue
        if (judge(rest.run) or 0.0) <= gain * (judge(end.run) or 0.0):
            yield step.rule.id


def remade(start: State, steps: Sequence[Step]) -> State | None:
    """Where the same edits lead from another start; None where one of the rules does not offer them there."""
    state = start
    for step in steps:
        if not step.rule.when(state.run) or step.edits not in alternatives(step.rule, state.run):
            return None
        run = run_after(state.run, step.edits, step.rule)
        if run is None:
            return None
        state = State(run)
    return state


def main() -> None:
    """Draws runs until enough of them do not fit, and prints what became of their plans."""
    gc.set_threshold(COLLECTED)
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    found: list[Outcome] = []
    while len(found) < wanted:
        one = outcome(*random_run(dice))
        if one is not None:
            found.append(one)
            print(f"{len(found)} of {wanted}", end="\r", file=sys.stderr)
    tell(found)


def tell(found: list[Outcome]) -> None:
    """The figures, and the runs that are worst."""
    fitting = [one for one in found if one.spot is not None]
    fits = [one for one in fitting if one.ratios]
    print(f"{len(found)} runs that do not fit; the grid has a safe fit for {len(fitting)}")
    print(
        f"plan: missed {sum(one.missed for one in fitting)}; needless steps in {sum(bool(o.needless) for o in found)}"
    )
    repairs = [one.repair for one in fits if one.repair is not None]
    print(f"time of the plan over the best point or the run as written: {spread(repairs)}")
    edits = statistics.mean(len(one.names) for one in fits)
    print(f"edits of the plan: mean {edits:.2f}; more than the grid needs in {sum(bool(one.spare) for one in fits)}")
    print("time of the fastest plan over the best point:")
    for name in JUDGES:
        print(f"  judged by {name:24} {spread([one.ratios[name] for one in fits])}")
    walked = [one.greedy for one in fitting if one.greedy is not None]
    print(f"greedy walk: missed {sum(one.greedy is None for one in fitting)}; {spread(walked)}")
    print(f"changes what is trained where no offload is needed: {sum(one.changes_for_nothing for one in fitting)}")
    times = sorted(one.milliseconds for one in found)
    middle, high = statistics.median(times), times[int(0.95 * len(times))]
    print(f"CPU of one plan: median {middle:.0f} ms, 95 % {high:.0f} ms, at most {times[-1]:.0f} ms")
    for one in found:
        if one.missed or one.needless or one.changes_for_nothing or one.spare:
            said = "missed" if one.missed else f"needless {' '.join(one.needless)}" if one.needless else "changes"
            said = f"{one.spare} edits to spare" if one.spare else said
            print(f"  {said}  {told(one)}")
    for name in ("own", "rough"):
        print(f"worst by {name}:")
        for one in sorted(fits, key=lambda one: -one.ratios[name])[:12]:
            print(f"  {one.ratios[name]:.2f}  {told(one)}")


def told(one: Outcome) -> str:
    """The run, its plan and the grid's best."""
    return f"{one.label}: {' '.join(one.names)}; best {one.spot}"


def spread(ratios: Sequence[float]) -> str:
    """Mean, 95th percentile and worst of times over the best."""
    known = sorted(ratios)
    mean, high = statistics.mean(known), known[int(0.95 * len(known))]
    return f"mean {mean:.3f}, 95 % {high:.2f}, worst {known[-1]:.2f}"


if __name__ == "__main__":
    main()
