"""What routed experts add to a layer: unpacked, merged, in fp32, all of them at once, or through ScatterMoE."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.memory.activations import saved_bytes, working_bytes
from advisor.memory.activations.experts import never_freed
from advisor.memory.estimate import estimate
from advisor.models.architecture import Attention, Block, Mlp
from advisor.opening import open_configs
from advisor.run import Fsdp, Run
from advisor.run.stack import Stack

from .test_activations import lora, run_of

EXPERTS, CHOSEN, WIDTH, HIDDEN = 8, 2, 112, 192
ALL = 3 * EXPERTS * WIDTH * HIDDEN
"""Elements of one layer's experts."""
ATTENTION = ("q_proj", "v_proj")
BLOCK = Block(
    4,
    HIDDEN,
    Attention("softmax", 6, 2, 48, 288, 96, 96),
    Mlp(WIDTH, True, EXPERTS, CHOSEN),
    (),
    0,
)
QLORA = {"quantization": "nf4", "quantize_moe_experts": True, **lora(targets=ATTENTION, target_linear=False)}
INT8 = QLORA | {"quantization": "int8"}


def of(**facts: Any) -> Run:
    return run_of(BLOCK, "qwen3_moe", **facts)


def kept(**facts: Any) -> int:
    return saved_bytes(of(**facts), BLOCK)


def test_unpacked_experts_stay_until_backward_in_the_width_in_which_they_are_unpacked():
    frozen = kept(**lora(targets=ATTENTION, target_linear=False))
    assert kept(**QLORA) - frozen == 2 * ALL
    wider = 2 * (CHOSEN * (3 * WIDTH + HIDDEN)) * 4096
    assert kept(**INT8) - frozen == 4 * ALL + wider


def test_fp32_experts_compute_in_fp32():
    upcast = lora(targets=ATTENTION, target_linear=False)
    wider = 2 * CHOSEN * (3 * WIDTH + HIDDEN)
    assert kept(**upcast, upcasts_unquantized=True) - kept(**upcast) == wider * 4096
    run = of(**upcast)
    held = working_bytes(replace(run, upcasts_unquantized=True), BLOCK) - working_bytes(run, BLOCK)
    assert held == 2 * 3 * CHOSEN * HIDDEN * 4096


def test_linear_experts_follow_autocast():
    upcast = lora(targets=ATTENTION, target_linear=False)
    old = Stack(transformers="4.57.1")
    assert kept(**upcast, upcasts_unquantized=True, stack=old) == kept(**upcast, stack=old)
    assert kept(**upcast, upcasts_unquantized=True, linear_experts=True) == kept(**upcast)


def test_scattermoe_keeps_no_copy_of_adapted_experts_and_gathers_no_tokens():
    targets = ("experts.gate_up_proj", "experts.down_proj")
    adapted = QLORA | lora(targets=ATTENTION, target_linear=False, target_parameters=targets)
    merged, scattered = kept(**adapted), kept(**adapted, experts="scattermoe")
    fewer = 2 * (CHOSEN - 1) * HIDDEN + CHOSEN * 9
    assert merged - scattered == 2 * ALL + fewer * 4096
    run, scatter = of(**adapted), of(**adapted, experts="scattermoe")
    largest = 2 * 2 * EXPERTS * WIDTH * HIDDEN
    assert working_bytes(run, BLOCK) >= largest
    assert working_bytes(scatter, BLOCK) >= largest


def test_llama_4_sends_every_token_through_every_expert():
    run = run_of(BLOCK, "llama4_text", **lora(targets=ATTENTION, target_linear=False))
    routed = saved_bytes(of(**lora(targets=ATTENTION, target_linear=False)), BLOCK)
    assert saved_bytes(run, BLOCK) - routed > 2 * (EXPERTS - CHOSEN) * 3 * WIDTH * 4096


NON_REENTRANT = {"activation_checkpointing": True, "reentrant": False}
OLD = Stack(bitsandbytes="0.49.1")


@pytest.mark.parametrize(
    ("facts", "stays"),
    [
        (QLORA | NON_REENTRANT | {"stack": OLD}, True),
        (QLORA | NON_REENTRANT, False),
        (QLORA | NON_REENTRANT | {"stack": OLD, "reentrant": True}, False),
        (QLORA | {"stack": OLD}, False),
        (QLORA | NON_REENTRANT | {"stack": OLD, "experts": "scattermoe"}, False),
        (INT8 | NON_REENTRANT, True),
        (INT8 | NON_REENTRANT | {"reentrant": True}, False),
        (INT8 | NON_REENTRANT | {"stack": Stack(axolotl="0.20.0")}, False),
        (INT8 | {"sharding": Fsdp(2, activation_checkpointing=True)}, True),
        (NON_REENTRANT | {"stack": OLD}, False),
    ],
)
def test_unpacked_experts_stay_where_a_checkpoint_ends_before_the_hook(facts: dict[str, Any], *, stays: bool):
    assert never_freed(of(**facts)) is stays


OLMOE = {
    "base_model": "allenai/OLMoE-1B-7B-0924",
    "adapter": "qlora",
    "load_in_4bit": True,
    "quantize_moe_experts": True,
    "lora_r": 8,
    "lora_alpha": 16,
    "lora_target_modules": ["q_proj", "v_proj"],
    "sequence_len": 2048,
    "micro_batch_size": 2,
    "bf16": True,
    "gradient_checkpointing": True,
    "gradient_checkpointing_kwargs": {"use_reentrant": False},
}


def peak(stack: dict[str, str], **keys: Any) -> int:
    found = estimate(open_configs(OLMOE | keys, None, "1x h100-80gb", stack).run)
    assert found is not None
    return max(phase.bytes for phase in found.phases if phase.name != "load")


def test_what_is_never_freed_is_all_experts_less_the_layer_at_work():
    experts = 6_442_450_944
    more = peak({"bitsandbytes": "0.49.1"}) - peak({})
    assert 2 * experts * 15 / 16 <= more <= 2 * experts


def test_without_checkpointing_all_layers_keep_their_experts_unpacked():
    experts = 6_442_450_944
    off: dict[str, Any] = {"gradient_checkpointing": False, "gradient_checkpointing_kwargs": None}
    assert peak({}, **off) - peak({}) > 2 * experts * 15 / 16
