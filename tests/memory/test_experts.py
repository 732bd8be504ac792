"""What routed experts add to a layer: unpacked, merged, in fp32, all of them at once, or through ScatterMoE."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.memory.activations import backward_peak_bytes, saved_bytes
from advisor.memory.activations.experts import never_freed
from advisor.memory.estimate import estimate
from advisor.memory.weights import weights_of
from advisor.models.blocks import Attention, Block, Mlp
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
    held = backward_peak_bytes(replace(run, upcasts_unquantized=True), BLOCK) - backward_peak_bytes(run, BLOCK)
    assert held == 2 * 3 * CHOSEN * HIDDEN * 4096


def test_linear_experts_follow_autocast():
    upcast = lora(targets=ATTENTION, target_linear=False)
    old = Stack(transformers="4.57.1")
    assert kept(**upcast, upcasts_unquantized=True, stack=old) == kept(**upcast, stack=old)
    assert kept(**upcast, upcasts_unquantized=True, linear_experts=True) == kept(**upcast)


def test_a_loop_over_experts_keeps_weighted_outputs_and_holds_one_expert_at_a_time():
    frozen = lora(targets=ATTENTION, target_linear=False) | {"activation_checkpointing": True}
    old = Stack(transformers="4.57.1")
    more = kept(**frozen, stack=old) - kept(**frozen)
    assert CHOSEN * (2 * HIDDEN - 16) * 4096 <= more <= CHOSEN * 2 * HIDDEN * 4096
    held, today = backward_peak_bytes(of(**frozen, stack=old), BLOCK), backward_peak_bytes(of(**frozen), BLOCK)
    assert held < today - 2 * (CHOSEN - 1) * WIDTH * 4096


def test_quantized_experts_in_a_loop_are_as_wide_as_the_stream():
    quantized = lora(targets=ATTENTION, target_linear=False) | {"quantization": "nf4"}

    def wider(stack: Stack) -> int:
        return kept(**quantized, stack=stack, fp32_residual_stream=True) - kept(**quantized, stack=stack)

    assert wider(Stack(transformers="4.48.1")) - wider(Stack()) >= 2 * CHOSEN * (3 * WIDTH + 2 * HIDDEN) * 4096


def test_scattermoe_keeps_no_copy_of_adapted_experts_and_gathers_no_tokens():
    targets = ("experts.gate_up_proj", "experts.down_proj")
    adapted = QLORA | lora(targets=ATTENTION, target_linear=False, target_parameters=targets)
    merged, scattered = kept(**adapted), kept(**adapted, experts="scattermoe")
    fewer = 2 * (CHOSEN - 1) * HIDDEN + CHOSEN * 9
    assert merged - scattered == 2 * ALL + fewer * 4096
    run, scatter = of(**adapted), of(**adapted, experts="scattermoe")
    largest = 2 * 2 * EXPERTS * WIDTH * HIDDEN
    assert backward_peak_bytes(run, BLOCK) >= largest
    assert backward_peak_bytes(scatter, BLOCK) >= largest


def test_grouped_products_keep_every_choice_of_a_token_on_each_gpu_that_it_goes_to():
    """Two choices over 4 GPUs meet 1.75, whose two each make 3.5: with what a choice keeps, as if 4 were chosen."""
    four = replace(BLOCK, mlp=replace(BLOCK.mlp, experts_per_token=4))
    spread = {"expert_parallel_size": 4, **lora(targets=ATTENTION, target_linear=False)}
    router = saved_bytes(of(**spread | {"expert_parallel_size": 1}), four) - saved_bytes(of(**spread), BLOCK)
    # The router's part of two more choices: 8 B of each.
    assert 0 <= router <= (CHOSEN * 16) * 4096
    assert kept(**spread, experts="scattermoe") - kept(
        **spread | {"expert_parallel_size": 1}, experts="scattermoe"
    ) == (2 * HIDDEN * 4096)


def test_of_spread_experts_a_buffer_is_counted_and_tokens_beyond_an_even_share_are_not():
    def found(**keys: Any) -> tuple[set[int], str]:
        plugin = "axolotl.integrations.expert_parallel.ExpertParallelPlugin"
        config = {"base_model": "Qwen/Qwen3-30B-A3B", "adapter": "lora", "lora_r": 8, "plugins": [plugin], **keys}
        made = estimate(open_configs(config, gpus="8x h200").run)
        assert made is not None
        terms = (term for phase in made.phases for term in phase.terms)
        return {term.bytes for term in terms if term.name == "DeepEP's buffer"}, made.verdict

    assert found(expert_parallel_size=8) == ({256 * 2**20}, "unknown")
    assert found(expert_parallel_size=8, expert_parallel_num_nvl_bytes=2**30) == ({2**30}, "unknown")
    buffers, verdict = found()
    assert buffers == set() and verdict != "unknown"


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


SPARSE = {
    "base_model": "Qwen/Qwen3-30B-A3B",
    "adapter": "lora",
    "lora_r": 4,
    "lora_alpha": 8,
    "lora_target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
    "lora_target_modules": ["q_proj"],
    "sequence_len": 512,
    "micro_batch_size": 1,
    "bf16": True,
    "attn_implementation": "flash_attention_2",
}
ONE_LAYER = 4 * 128 * ((2048 + 2 * 768) + (2048 + 768))
"""Elements of the adapters of one layer's 128 experts, at rank 4."""
QUERIES = 4 * (2048 + 4096)
"""Those of its attention."""


def copies(checkpointing: bool) -> int:
    run = open_configs(SPARSE | {"gradient_checkpointing": checkpointing}, None, "1x h200", None).run
    found = estimate(run)
    assert found is not None
    terms = next(phase.terms for phase in found.phases if phase.name == "backward")
    return sum(term.bytes for term in terms if term.name in {"autocast copies", "adapters' copies"})


def test_copies_of_adapters_of_stacked_experts_are_there_for_the_layer_at_work_alone():
    assert copies(checkpointing=False) - copies(checkpointing=True) == 2 * 47 * (ONE_LAYER + QUERIES)


@pytest.mark.parametrize("targets", [["gate_proj", "up_proj", "down_proj"], r".*experts\.\d+\.(gate|up|down)_proj"])
def test_before_transformers_5_each_expert_has_linears_that_lora_wraps(targets):
    config = {key: value for key, value in SPARSE.items() if key != "lora_target_parameters"}
    config |= {"lora_target_modules": targets}

    def adapter(version: str) -> int:
        run = open_configs(config, None, "1x h200", {"transformers": version}).run
        assert run.model is not None
        return sum(group.elements for group in weights_of(run, run.model).groups if group.name == "adapter")

    assert adapter("4.57.1") == 48 * 128 * 3 * 4 * (2048 + 768)
    stacks = 48 * 128 * (8 * (2048 + 2 * 768) + 4 * (768 + 2048))
    assert adapter("5.16.1") == (stacks if isinstance(targets, list) else 0)


def test_ligers_experts_fill_gradients_of_frozen_stacks():
    facts = lora(targets=ATTENTION, target_linear=False)
    run, fused = of(**facts), of(**facts, liger=frozenset({"glu"}))
    more = backward_peak_bytes(fused, BLOCK) - backward_peak_bytes(run, BLOCK)
    assert more == 2 * ALL
    full, fused = of(), of(liger=frozenset({"glu"}))
    assert backward_peak_bytes(full, BLOCK) == backward_peak_bytes(fused, BLOCK)
