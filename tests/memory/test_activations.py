"""Activations by formula: known models, and what must hold for every run."""

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.allocations.coverage import uncovered
from advisor.hardware import parse_hardware
from advisor.memory.activations import (
    backward_peak_bytes,
    checkpoint_bytes,
    head_saved_bytes,
    no_grad_peak_bytes,
    saved_bytes,
    saved_formula,
)
from advisor.memory.activations.attention import varlen
from advisor.models.architecture import Architecture
from advisor.models.blocks import Attention, Block, Kind, LinearShape, Mlp
from advisor.opening import open_configs
from advisor.run import Lora, Run
from advisor.run.stack import Stack


def block_of(hidden: int, heads: int, kv_heads: int, width: int, head_dim: int = 128, **more: Any) -> Block:
    """A gated decoder layer with grouped-query attention."""
    q, kv = heads * head_dim, kv_heads * head_dim
    attention = Attention("softmax", heads, kv_heads, head_dim, q, kv, kv, query_key_norm=more.pop("qk_norm", False))
    shapes: tuple[tuple[str, int, int, Kind], ...] = (
        ("q_proj", hidden, q, "attention"),
        ("k_proj", hidden, kv, "attention"),
        ("v_proj", hidden, kv, "attention"),
        ("o_proj", q, hidden, "attention"),
        ("gate_proj", hidden, width, "mlp"),
        ("up_proj", hidden, width, "mlp"),
        ("down_proj", width, hidden, "mlp"),
    )
    homes = {"attention": "self_attn", "mlp": "mlp"}
    linears = tuple(LinearShape(*shape, f"model.layers.*.{homes[shape[3]]}.{shape[0]}") for shape in shapes)
    elements = sum(x.n_in * x.n_out for x in linears)
    return Block(32, hidden, attention, Mlp(width), linears, elements, **more)


LLAMA_3_8B = block_of(4096, 32, 8, 14336)


def run_of(block: Block, model_type: str = "llama", **facts: Any) -> Run:
    """A run of 4096 packed tokens with a fused attention kernel."""
    model = Architecture("m", model_type, block.hidden, 128_256, False, (), (block,))
    defaults: dict[str, Any] = {"sequence_len": 4096, "attention": "flash", "stack": Stack()}
    settled = cast("Any", defaults | facts)
    return Run(config=cast("Any", None), deepspeed=None, model=model, hardware=None, **settled)


def lora(**facts: Any) -> dict[str, Any]:
    settled: dict[str, Any] = {"rank": 16, "alpha": 32, "dropout": 0.0, "target_linear": True} | facts
    return {"adapter": "lora", "lora": Lora(**settled)}


def per_token(block: Block, model_type: str = "llama", **facts: Any) -> float:
    run = run_of(block, model_type, **facts)
    return saved_bytes(run, block) / run.tokens


@pytest.mark.parametrize(
    ("block", "model_type", "traced"),
    [
        (LLAMA_3_8B, "llama", 200_840),
        (block_of(4096, 32, 32, 11008), "llama", 186_504),
        (block_of(3584, 28, 4, 18944), "qwen2", 225_400),
        (block_of(4096, 32, 8, 12288, qk_norm=True), "qwen3", 215_336),
        (block_of(4096, 32, 32, 11008, qk_norm=True), "olmo2", 268_432),
    ],
    ids=["Llama-3-8B", "Llama-2-7B", "Qwen2-7B", "Qwen3-8B", "OLMo2-7B"],
)
def test_full_fine_tuning_keeps_the_published_bytes_per_token(block: Block, model_type: str, traced: int):
    assert per_token(block, model_type) == traced


def test_the_formula_spells_the_sum():
    run = run_of(LLAMA_3_8B)
    assert saved_formula(run, LLAMA_3_8B) == "16 h + 8 f + 4 q + 4 kv + 4 heads + 8 = 200,840 B/token"


def test_autocast_alone_changes_nothing_for_rms_norms():
    assert per_token(LLAMA_3_8B, autocast=True) == per_token(LLAMA_3_8B, autocast=False)


def test_fp32_adapters_under_autocast_keep_an_input_copy_each():
    h, q, f, kv = 4096, 4096, 14336, 1024
    copies = 2 * (5 * h + q + f)
    assert per_token(LLAMA_3_8B, **lora()) == 8 * h + copies + 4 * q + 4 * kv + 6 * f + 7 * 2 * 16 + 4 * 32 + 8


def test_dropout_adds_a_byte_for_each_input_of_an_fp32_adapter():
    h, q, f = 4096, 4096, 14336
    assert per_token(LLAMA_3_8B, **lora(dropout=0.1)) - per_token(LLAMA_3_8B, **lora()) == 5 * h + q + f


def test_an_engine_that_casts_adapters_lets_them_share_inputs():
    from advisor.run import Zero

    shared = per_token(LLAMA_3_8B, autocast=False, sharding=Zero(2), **lora())
    assert shared < per_token(LLAMA_3_8B, **lora())
    assert shared == per_token(LLAMA_3_8B, autocast=False, **lora(fp32=False))


def test_adapters_on_named_modules_or_a_pattern_of_them_cost_the_same():
    named = lora(target_linear=False, targets=("q_proj", "v_proj"))
    pattern = lora(target_linear=False, targets=(r"model\.layers\..*\.(q_proj|v_proj)",), targets_pattern=True)
    assert per_token(LLAMA_3_8B, **named) == per_token(LLAMA_3_8B, **pattern)
    assert per_token(LLAMA_3_8B, **named) < per_token(LLAMA_3_8B, **lora())


def test_a_rank_of_its_own_counts_for_its_module():
    own = lora(rank_pattern={"q_proj": 64})
    assert per_token(LLAMA_3_8B, **own) - per_token(LLAMA_3_8B, **lora()) == 2 * (64 - 16)


def test_eager_softmax_holds_four_fp32_matrices_of_scores_in_its_backward():
    # Probabilities, their gradient, its product with them inside CUDA's kernel, and the gradient of the scores.
    run = run_of(LLAMA_3_8B, attention="eager", sequence_len=16_384)
    matrix = 4 * 32 * 16_384**2
    held = saved_bytes(run, LLAMA_3_8B) + backward_peak_bytes(run, LLAMA_3_8B)
    assert held == pytest.approx(4 * matrix, rel=0.04)


def test_eager_attention_keeps_six_bytes_for_each_score():
    more = per_token(LLAMA_3_8B, attention="eager") - per_token(LLAMA_3_8B)
    repeated = 4 * (4096 - 1024)
    copy, statistics = 2 * 4096, 4 * 32
    assert more == 6 * 32 * 4096 + repeated + copy - 2 * 4096 - statistics


def test_a_padding_mask_repeats_keys_and_is_kept_by_each_layer():
    masked = per_token(LLAMA_3_8B, attention="sdpa", micro_batch_size=2)
    assert masked - per_token(LLAMA_3_8B, attention="sdpa") == 4 * (4096 - 1024) + 2 * 4096


def test_a_window_shorter_than_the_row_needs_a_mask_with_sdpa_only():
    assert LLAMA_3_8B.attention is not None
    windowed = replace(LLAMA_3_8B, attention=replace(LLAMA_3_8B.attention, window=1024))
    assert per_token(windowed, attention="flash") == per_token(LLAMA_3_8B)
    assert per_token(windowed, attention="sdpa") > per_token(LLAMA_3_8B, attention="sdpa")


def test_liger_norms_and_glu_save_what_they_recompute():
    assert per_token(LLAMA_3_8B, liger=frozenset({"rms_norm"})) == 200_840 - 8 * 4096
    assert per_token(LLAMA_3_8B, liger=frozenset({"glu"})) == 200_840 - 2 * 14336


def test_adapters_on_a_quantized_base_share_the_inputs_that_adapters_on_another_copy():
    quantized = lora() | {"adapter": "qlora"}
    copies = (2 + 1 + 1) * 2 * 4096  # of three that read one tensor, of two, and of attention's output, which stays
    shared = per_token(LLAMA_3_8B, quantization="nf4", **quantized)
    assert per_token(LLAMA_3_8B, **lora()) - shared == copies


def test_adapters_of_bf16_cast_inputs_of_a_quantized_base_where_autocast_is_off():
    plain = lora() | {"autocast": False}
    assert per_token(LLAMA_3_8B, quantization="nf4", **plain) == per_token(LLAMA_3_8B, **plain)


def test_adapters_of_4_bit_layers_share_what_they_read_under_autocast():
    """With dropout each keeps its own result; without autocast PEFT casts by itself."""

    def kept(quantization: str | None, dropout: float, *, autocast: bool) -> float:
        return per_token(LLAMA_3_8B, quantization=quantization, autocast=autocast, **lora(dropout=dropout))

    own, shared = (kept(base, 0.0, autocast=True) for base in (None, "nf4"))
    assert (
        own - shared == 2 * (2 + 1 + 1) * 4096
    )  # of queries, keys and values, of gate and up, and the kernel's output
    assert kept("nf4", 0.1, autocast=True) == kept(None, 0.1, autocast=True)
    assert kept("nf4", 0.0, autocast=False) == kept(None, 0.0, autocast=False)


def test_experts_keep_their_width_once_for_each_choice():
    sparse = replace(LLAMA_3_8B, mlp=Mlp(1024, experts=64, experts_per_token=8), linears=LLAMA_3_8B.linears[:4])
    twice = replace(sparse, mlp=Mlp(1024, experts=64, experts_per_token=16))
    one_choice = 8 * 1024 + 4 * 4096 + 8 + 3 * 8 + 1 + 2
    assert per_token(twice) - per_token(sparse) == 8 * one_choice


def test_adapters_on_stacked_experts_keep_a_merged_copy_of_them():
    sparse = replace(LLAMA_3_8B, mlp=Mlp(1024, experts=64, experts_per_token=8), linears=LLAMA_3_8B.linears[:4])
    on_attention, on_experts = (
        lora(),
        lora(target_parameters=("mlp.experts.gate_up_proj", "mlp.experts.down_proj")),
    )
    more = saved_bytes(run_of(sparse, **on_experts), sparse) - saved_bytes(run_of(sparse, **on_attention), sparse)
    assert more == 2 * 64 * 3 * 1024 * 4096 + 4096 * 8 * 2 * (4096 + 1024)


def test_mixers_without_a_trace_are_estimated_from_their_widths():
    mixer = Attention("ssm", 64, 1, 64, 4096, 128, 128)
    linears = (LinearShape("in_proj", 2048, 8512, "mixer"), LinearShape("out_proj", 4096, 2048, "mixer"))
    block = Block(24, 2048, mixer, None, linears, 1, norms=1)
    assert 2 * 2 * 8512 < per_token(block, "mamba2") < 4 * 2 * 8512
    run = run_of(block, "mamba2")
    assert backward_peak_bytes(run, block) > 2 * 8512 * run.tokens
    assert no_grad_peak_bytes(run, block) > 2 * 8512 * run.tokens


def test_checkpointing_keeps_two_bytes_an_element_or_four_in_an_fp32_stream():
    assert checkpoint_bytes(run_of(LLAMA_3_8B), LLAMA_3_8B) == 2 * 4096 * 4096
    wide = run_of(LLAMA_3_8B, fp32_residual_stream=True)
    assert checkpoint_bytes(wide, LLAMA_3_8B) == 4 * 4096 * 4096


def test_backward_of_a_llama_layer_holds_four_widths_and_the_incoming_gradient():
    run = run_of(LLAMA_3_8B)
    assert backward_peak_bytes(run, LLAMA_3_8B) == run.tokens * (4 * 14336 + 2 * 4096)


def test_reentrant_checkpointing_holds_the_recomputed_output_too():
    one = run_of(LLAMA_3_8B, activation_checkpointing=True, reentrant=True)
    other = replace(one, reentrant=False)
    assert backward_peak_bytes(one, LLAMA_3_8B) - backward_peak_bytes(other, LLAMA_3_8B) == 2 * 4096 * one.tokens


def test_pairs_double_the_rows():
    assert saved_bytes(run_of(LLAMA_3_8B, rl="dpo"), LLAMA_3_8B) == 2 * saved_bytes(run_of(LLAMA_3_8B), LLAMA_3_8B)


def test_a_frozen_head_needs_no_input():
    full, frozen = run_of(LLAMA_3_8B), run_of(LLAMA_3_8B, **lora())
    assert full.model is not None
    assert head_saved_bytes(full, full.model) - head_saved_bytes(frozen, full.model) == 4 * 4096 * full.tokens


runs = st.fixed_dictionaries(
    {
        "sequence_len": st.integers(1, 32768),
        "micro_batch_size": st.integers(1, 8),
        "attention": st.sampled_from(["flash", "sdpa", "eager", "flex"]),
        "precision": st.sampled_from(["bf16", "fp16"]),
        "autocast": st.booleans(),
        "activation_checkpointing": st.booleans(),
        "fp32_residual_stream": st.booleans(),
        "liger": st.frozensets(st.sampled_from(["rms_norm", "glu", "rope", "layer_norm"])),
    }
)
adapters = st.none() | st.builds(lora, dropout=st.sampled_from([0.0, 0.1]), fp32=st.booleans())


@given(
    facts=runs,
    adapter=adapters,
    model_type=st.sampled_from(["llama", "gemma2", "olmo2", "phi3", "cohere", "glm4", "nemotron"]),
)
def test_checkpointing_always_saves_and_nothing_is_negative(
    facts: dict[str, Any], adapter: dict[str, Any] | None, model_type: str
):
    run = run_of(LLAMA_3_8B, model_type, **facts, **(adapter or {}))
    kept = saved_bytes(run, LLAMA_3_8B)
    assert 0 < checkpoint_bytes(run, LLAMA_3_8B) < kept
    assert backward_peak_bytes(run, LLAMA_3_8B) > 0
    assert no_grad_peak_bytes(run, LLAMA_3_8B) > 0


@given(facts=runs, adapter=adapters)
def test_the_text_ends_in_the_bytes_that_are_counted(facts: dict[str, Any], adapter: dict[str, Any] | None):
    run = run_of(LLAMA_3_8B, **facts, **(adapter or {}))
    last = saved_formula(run, LLAMA_3_8B).split(" = ")[1].removesuffix(" B/token").replace(",", "")
    assert int(last) * run.tokens == saved_bytes(run, LLAMA_3_8B)


@given(facts=runs, adapter=adapters)
def test_fused_kernels_never_keep_more(facts: dict[str, Any], adapter: dict[str, Any] | None):
    settled: dict[str, Any] = facts | {"liger": frozenset[str]()}
    plain = run_of(LLAMA_3_8B, **settled, **(adapter or {}))
    fused = replace(plain, liger=frozenset({"rms_norm", "glu"}))
    assert saved_bytes(fused, LLAMA_3_8B) < saved_bytes(plain, LLAMA_3_8B)


KERNELS = frozenset({"mlp", "qkv", "o"})


@given(facts=runs, dropout=st.sampled_from([0.0, 0.1]), fp32=st.booleans())
def test_lora_kernels_never_keep_more(facts: dict[str, Any], dropout: float, fp32: bool):
    plain = run_of(LLAMA_3_8B, **facts, **lora(dropout=dropout, fp32=fp32))
    fused = run_of(LLAMA_3_8B, **facts, **lora(dropout=dropout, fp32=fp32, kernels=KERNELS))
    assert saved_bytes(fused, LLAMA_3_8B) < saved_bytes(plain, LLAMA_3_8B)
    assert no_grad_peak_bytes(fused, LLAMA_3_8B) <= no_grad_peak_bytes(plain, LLAMA_3_8B)


@pytest.mark.parametrize(
    ("model_type", "more"),
    [("olmo2", {}), ("llama", {"targets": ("q_proj", "up_proj"), "target_linear": False})],
    ids=["attention that is not known", "too few adapters"],
)
def test_lora_kernels_that_do_not_apply_change_nothing(model_type: str, more: dict[str, Any]):
    plain, fused = (run_of(LLAMA_3_8B, model_type, **lora(kernels=k, **more)) for k in (frozenset[str](), KERNELS))
    assert saved_bytes(fused, LLAMA_3_8B) == saved_bytes(plain, LLAMA_3_8B)
    assert backward_peak_bytes(fused, LLAMA_3_8B) == backward_peak_bytes(plain, LLAMA_3_8B)


@pytest.mark.parametrize(
    ("facts", "keeps_masks"),
    [
        ({}, False),
        ({"sdpa_varlen": False}, True),
        ({"precision": "fp32"}, True),
        ({"stack": Stack(torch="2.9.1")}, True),
        ({"stack": Stack(trainer="trl-sft")}, True),
    ],
)
def test_packed_rows_of_sdpa_need_no_mask_in_axolotl(facts: dict[str, Any], keeps_masks: bool):
    packed: dict[str, Any] = {"attention": "sdpa", "sample_packing": True, "sdpa_varlen": True} | facts
    run = run_of(LLAMA_3_8B, **packed)
    unmasked = replace(run, attention="flash")
    repeated = 2 * 2 * (4096 - 1024)
    mask = 4 if run.precision == "fp32" else 2
    excess = (saved_bytes(run, LLAMA_3_8B) - saved_bytes(unmasked, LLAMA_3_8B)) / run.tokens
    assert excess == repeated * mask / 2 + (mask * 4096 if keeps_masks else 0)


@pytest.mark.parametrize(("width", "is_able"), [(256, True), (264, False)])
def test_packed_rows_need_no_mask_where_heads_are_as_wide_as_the_kernel_takes(width: int, is_able: bool):
    """axolotl/loaders/patch_manager.py:826-926@0.19.0."""
    block = block_of(8 * width, 8, 8, 14336, head_dim=width)
    assert varlen(run_of(block, attention="sdpa", sample_packing=True, sdpa_varlen=True)) is is_able


@pytest.mark.parametrize("model_type", ["seed_oss", "starcoder2"])
def test_dropouts_on_the_way_back_keep_a_mask_each(model_type: str):
    """Behind attention and behind the MLP, one byte an element: models/seed_oss, SeedOssAttention and SeedOssMLP."""
    masks = per_token(LLAMA_3_8B, model_type) - per_token(LLAMA_3_8B)
    assert masks == 2 * LLAMA_3_8B.hidden


def test_the_fused_xielu_keeps_its_input_alone():
    block = replace(LLAMA_3_8B, mlp=Mlp(14336, gated=False))
    fused = per_token(block, "apertus", stack=Stack(xielu=True))
    assert per_token(block, "apertus") - fused == (9 + 4) * 14336


def test_the_fused_xielu_leaves_the_stream_of_quantized_layers_as_it_is():
    """torch's own runs expm1 in fp32 under autocast, and 4-bit linears hand that on."""
    quantized = open_configs(
        {"base_model": "swiss-ai/Apertus-8B-Instruct-2509", "adapter": "qlora", "load_in_4bit": True}, None, "1x h100"
    ).run
    assert quantized.model is not None
    fused = replace(quantized, stack=replace(quantized.stack, xielu=True))
    block = quantized.model.blocks[0]
    assert checkpoint_bytes(quantized, block) == 2 * checkpoint_bytes(fused, block)
    assert "the fused xIELU" in set(uncovered(fused))


@pytest.mark.parametrize(
    ("gpus", "precision", "scores"),
    [("1x v100-32gb", "bf16", 4), ("1x v100-32gb", "fp16", 0), ("1x a100-80gb", "bf16", 0), ("1x mi210", "bf16", 0)],
)
def test_bf16_has_no_kernel_of_sdpa_before_ampere(gpus: str, precision: str, scores: int):
    run = run_of(LLAMA_3_8B, attention="sdpa", precision=precision)
    on_card = replace(run, hardware=parse_hardware(gpus))

    kept = saved_bytes(on_card, LLAMA_3_8B) - saved_bytes(run, LLAMA_3_8B)

    assert kept // (run.tokens * 32 * run.sequence_len) == scores
    assert no_grad_peak_bytes(on_card, LLAMA_3_8B) >= (9 if scores else 0) * 32 * run.tokens * run.sequence_len
