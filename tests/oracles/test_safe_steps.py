"""Safe means safe: a tiny model really trained for 20 steps before and after each safe step ends in the same weights.

Two processes, DeepSpeed's engine, FSDP2 and DDP on the CPU. The figures are relative: how far two ends lie apart, over how
far training moved the weights. At a learning rate of 1e-5 bf16 weights without fp32 masters hardly move at all.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

import pytest

pytest.importorskip("deepspeed")
pytest.importorskip("peft")

from advisor.engine.registry import built_in_rules
from advisor.engine.states import trains_the_same
from advisor.opening import open_configs
from advisor.run import Fsdp, Run, Zero
from advisor.run.build import edited

from .ranks import trained_by

pytestmark = pytest.mark.oracle

MODEL = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "dtype": "bfloat16",
}
SAME, OTHER = 0.25, 0.6
"""Of the way that training went: rounding alone stays below the first, other training lies above the second."""
FULL = {
    "sequence_len": 16,
    "micro_batch_size": 4,
    "gradient_accumulation_steps": 1,
    "optimizer": "adamw_torch",
    "bf16": True,
    "learning_rate": 1e-5,
}
LORA = {**FULL, "adapter": "lora", "lora_r": 4, "lora_alpha": 8, "lora_target_linear": True}
CHECKPOINTED = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}}


@dataclass(frozen=True)
class Training:
    """What the worker needs to know of a run."""

    name: str
    engine: str
    micro_batch_size: int
    accumulation: int
    checkpoints: bool
    rank: int


@dataclass(frozen=True)
class Move:
    """A step: the config before it, its DeepSpeed stage, and its rule."""

    rule: str
    config: str
    stage: int = 0
    safe: bool = True
    alternative: int = 0


CONFIGS = {
    "full": FULL,
    "LoRA": LORA,
    "checkpointed": {**FULL, **CHECKPOINTED},
    "accumulating": {**FULL, "micro_batch_size": 1, "gradient_accumulation_steps": 4},
}
MOVES = (
    Move("gradient-checkpointing", "full"),
    Move("gradient-checkpointing", "full", stage=2),
    Move("no-checkpointing", "checkpointed", stage=2),
    Move("smaller-micro-batch", "full", stage=2, alternative=1),
    Move("larger-micro-batch", "accumulating", stage=2, alternative=1),
    Move("zero-2", "full", stage=1),
    Move("zero-3", "full", stage=2),
    Move("lower-zero-stage", "full", stage=3),
    Move("lower-zero-stage", "full", stage=3, alternative=1),
    Move("fsdp-2", "full"),
    Move("plain-ddp", "LoRA", stage=2),
    Move("zero-2", "LoRA"),
    Move("smaller-micro-batch", "LoRA", alternative=1),
    Move("gradient-checkpointing", "LoRA"),
    Move("smaller-micro-batch", "LoRA", stage=2, alternative=1),
    Move("fsdp-2", "full", stage=2, safe=False),
)


def run_of(config: str, stage: int) -> Run:
    deepspeed = {"zero_optimization": {"stage": stage}, "bf16": {"enabled": True}} if stage else None
    return open_configs(
        {"base_model": "meta-llama/Llama-3.2-1B", **CONFIGS[config]}, deepspeed, gpus="2x a100-80gb"
    ).run


def training_of(run: Run) -> Training:
    match run.sharding:
        case Zero(stage=stage):
            engine = f"zero{stage}"
        case Fsdp():
            engine = "fsdp2"
        case None:
            engine = "none"
    size, steps = run.micro_batch_size, run.gradient_accumulation_steps
    rank = run.lora.rank if run.lora else 0
    name = f"{engine} {size}x{steps} {run.activation_checkpointing} {rank}"
    return Training(name, engine, size, steps, run.activation_checkpointing, rank)


def ends(move: Move) -> tuple[Run, Run]:
    """The run before and after a step."""
    rule = {**built_in_rules("fit"), **built_in_rules("speed")}[move.rule]
    before = run_of(move.config, move.stage)
    edits: Any = rule.edits(before)
    chosen = edits[move.alternative] if isinstance(edits, list) else edits
    return before, edited(before, chosen, move.rule)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Trained weights, and those before, of every training that a step starts from or leads to."""
    folder = tmp_path_factory.mktemp("training")
    (folder / "config.json").write_text(json.dumps(MODEL))
    cases = {training.name: asdict(training) for move in MOVES for training in map(training_of, ends(move))}
    cases |= {each.name: asdict(each) for each in map(training_of, (run_of("full", 0), run_of("full", 2)))}
    (first, _) = trained_by("training_worker", 2, folder, cases.values())
    return first


def apart(weights: dict[str, Any], one: Run, other: Run) -> float:
    """How far the ends of two trainings lie apart, over the way of the one that went further."""
    names = training_of(one).name, training_of(other).name
    a, b = (weights["trained"][name] for name in names)
    start, start_b = (weights["start"][name] for name in names)
    way = max(distance(a, start), distance(b, start_b))
    return distance(a, b) / way


def distance(one: list[float], other: list[float]) -> float:
    return sum((x - y) ** 2 for x, y in zip(one, other, strict=True)) ** 0.5


@pytest.mark.parametrize(
    "move", MOVES, ids=lambda move: f"{move.rule}, {move.config}, stage {move.stage}, {move.alternative}"
)
def test_a_step_that_is_called_safe_ends_in_the_same_weights(weights: dict[str, Any], move: Move):
    before, after = ends(move)
    rule = {**built_in_rules("fit"), **built_in_rules("speed")}[move.rule]
    assert trains_the_same(rule, before, after) is move.safe
    found = apart(weights, before, after)
    assert found <= SAME if move.safe else found >= OTHER, found


def test_leaving_zero_2_is_other_training(weights: dict[str, Any]):
    """The same edit, for a full fine-tune: no rule calls it safe, and the weights agree."""
    zero, plain = run_of("full", 2), run_of("full", 0)
    assert apart(weights, zero, plain) >= OTHER


def test_most_bf16_weights_do_not_move_at_a_low_rate_without_masters(weights: dict[str, Any]):
    name = training_of(run_of("full", 0)).name
    still = sum(a == b for a, b in zip(weights["trained"][name], weights["start"][name], strict=True))
    assert still / len(weights["start"][name]) > 0.6
