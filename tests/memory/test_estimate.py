"""Estimates against arithmetic done by hand, and against published runs to the place they were printed with."""

import pytest

from advisor.memory import estimate
from advisor.memory.host_processes import without_processes
from advisor.memory.weights import weights_of

GIB = 1 << 30
LLAMA = "base_model: meta-llama/Meta-Llama-3-8B\nattn_implementation: flash_attention_2\n"
P = 8_030_261_248
TABLE = 128_256 * 4096


def terms(run, phase):
    found = estimate(run)
    assert found is not None
    (chosen,) = [p for p in found.phases if p.name == phase]
    return {term.name: term.bytes for term in chosen.terms}


def test_parts_sum_to_the_peak_and_the_peak_is_the_largest_phase(make_run):
    found = estimate(make_run(LLAMA + "sequence_len: 2048\n", "8x a100-80gb"))
    assert found is not None
    assert sum(found.parts.values()) == found.allocated_peak == max(phase.bytes for phase in found.phases)


def test_adamw_in_pure_bf16_peaks_at_ten_bytes_a_parameter_with_foreach(make_run):
    """Measured: Mistral-7B, adamw_torch, one A100: 67.46 GiB (fms-acceleration, scripts/benchmarks/refs, FMS-021)."""
    run = make_run(
        "base_model: mistralai/Mistral-7B-v0.1\nattn_implementation: flash_attention_2\noptimizer: adamw_torch\n"
        "sequence_len: 4096\nmicro_batch_size: 4\ngradient_checkpointing: true\nbf16: true\n",
        stack={"torch": "2.4.1", "transformers": "4.48.1", "trainer": "trl-sft", "amp": False, "padding": "packed"},
    )
    found = estimate(run)
    assert found is not None
    assert found.peak_phase == "optimizer step"
    assert found.allocated_peak / GIB == pytest.approx(67.461, abs=0.01)


QLORA = (
    "attn_implementation: flash_attention_2\noptimizer: adamw_torch\ngradient_checkpointing: true\nbf16: true\n"
    "adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_dropout: 0.1\npad_to_sequence_len: true\n"
)
SANTACODER = QLORA + (
    "base_model: bigcode/gpt_bigcode-santacoder\nsequence_len: 2048\nmicro_batch_size: 4\n"
    "lora_target_modules: [c_attn]\n"
)
OF_THAT_TIME = {"torch": "2.4.1", "transformers": "4.48.1", "peft": "0.13.2", "bitsandbytes": "0.43.3"} | {
    "trainer": "trl-sft", "amp": True, "base_dtype": "bfloat16", "prepare_kbit": False, "padding": "packed"
}  # fmt: skip


def test_layers_that_keep_a_cache_under_checkpoints_hold_all_keys_and_values_until_the_loss(make_run):
    """Measured: SantaCoder, QLoRA, one A100: 8.519 GiB (fms-acceleration, scripts/benchmarks/refs, FMS-106)."""
    found = estimate(make_run(SANTACODER, stack=OF_THAT_TIME))
    assert found is not None
    assert found.peak_phase == "forward and loss"
    assert found.allocated_peak / GIB == pytest.approx(8.519, rel=0.005)


MIXTRAL = QLORA + (
    "base_model: mistralai/Mixtral-8x7B-Instruct-v0.1\nsequence_len: 4096\nmicro_batch_size: 8\n"
    "lora_target_modules: [q_proj, k_proj, v_proj, o_proj]\n"
)


def test_fp32_experts_in_a_loop_take_what_was_measured(make_run):
    """Measured: Mixtral 8x7B, QLoRA, PEFT's upcast: 56.388 GiB (fms-acceleration, scripts/benchmarks/refs, FMS-097)."""
    found = estimate(make_run(MIXTRAL, stack=OF_THAT_TIME | {"prepare_kbit": True}))
    assert found is not None
    assert found.peak_phase == "backward"
    assert found.allocated_peak / GIB == pytest.approx(56.388, rel=0.003)


@pytest.mark.parametrize("other", [{"trainer": "axolotl"}, {"transformers": "4.53.0"}])
def test_no_cache_is_kept_where_trainer_or_layers_turn_it_off(make_run, other):
    assert "cached keys and values" in terms(make_run(SANTACODER, stack=OF_THAT_TIME), "forward and loss")
    assert "cached keys and values" not in terms(make_run(SANTACODER, stack=OF_THAT_TIME | other), "forward and loss")


@pytest.mark.parametrize(
    ("stage", "ranks", "bytes_per_parameter"),
    [(1, 8, 2 + 12 / 8), (2, 8, 2 + 12 / 8), (3, 8, 14 / 8), (2, 2, 2 + 12 / 2), (3, 4, 14 / 4)],
)
def test_deepspeed_keeps_master_weights_and_states_by_stage(make_run, stage, ranks, bytes_per_parameter):
    config = f'{{"zero_optimization": {{"stage": {stage}}}, "bf16": {{"enabled": true}}}}'
    step = terms(make_run(LLAMA, f"{ranks}x a100-80gb", config), "optimizer step")
    kept = sum(step[name] for name in ("embeddings", "head", "layers", "fp32 master weights", "optimizer states"))
    assert kept == pytest.approx(bytes_per_parameter * P, rel=1e-6)


def test_the_default_bucket_takes_two_bytes_an_element_and_twice_that_with_overlap(make_run):
    config = '{"zero_optimization": {"stage": 2, "overlap_comm": %s}, "bf16": {"enabled": true}}'
    single = terms(make_run(LLAMA, "8x a100-80gb", config % "false"), "backward")["reduce buckets"]
    double = terms(make_run(LLAMA, "8x a100-80gb", config % "true"), "backward")["reduce buckets"]
    assert (single, double) == (10**9, 2 * 10**9)


def test_offloading_moves_eighteen_bytes_a_parameter_and_a_gradient_a_rank_to_the_host(make_run):
    config = '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true}}'
    run = make_run(LLAMA, "8x a100-80gb", config)
    found = estimate(run)
    assert found is not None
    offloaded = sum(term.bytes for term in without_processes(found.host))
    assert offloaded == pytest.approx(18 * P + 8 * 2 * TABLE, rel=1e-6)
    assert found.host_pinned == 0
    assert "optimizer states" not in terms(run, "optimizer step")


def test_pinned_buffers_take_the_next_power_of_two(make_run):
    config = '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true}}}'
    found = estimate(make_run(LLAMA, "1x a100-80gb", config))
    assert found is not None
    assert TABLE < 2**29
    assert found.host_pinned == 2 * 2**35 + 2**34 + 2**30


@pytest.mark.parametrize(
    ("targets", "rank", "parameters"),
    [("lora_target_linear: true", 16, 41_943_040), ("lora_target_modules: [q_proj, v_proj]", 8, 3_407_872)],
)
def test_adapters_have_as_many_parameters_as_peft_counts(make_run, targets, rank, parameters):
    run = make_run(LLAMA + f"adapter: lora\nlora_r: {rank}\n{targets}\n")
    assert run.model is not None
    assert weights_of(run, run.model).trained_elements == parameters


def test_adapters_are_fp32_under_peft_and_half_under_deepspeed(make_run):
    text = LLAMA + "adapter: lora\nlora_r: 16\nlora_target_linear: true\n"
    plain = make_run(text)
    sharded = make_run(text, "8x a100-80gb", '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}')
    widths = [{group.width for group in weights_of(run, run.model).trained} for run in (plain, sharded)]
    assert widths == [{4.0}, {2.0}]


def test_four_bits_with_double_quantization_take_0516_bytes(make_run):
    run = make_run(
        "base_model: meta-llama/Llama-2-70b-hf\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_target_linear: true\n"
    )
    (quantized,) = [group for group in weights_of(run, run.model).groups if group.quantized]
    assert quantized.bytes / quantized.elements == pytest.approx(0.5159, abs=1e-4)
    assert quantized.bytes / GIB == pytest.approx(32.9, abs=0.1)


def test_stacked_experts_stay_in_half_precision_and_pefts_preparation_makes_them_fp32(make_run):
    text = (
        "base_model: Qwen/Qwen3-30B-A3B\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\nlora_target_modules: [q_proj]\n"
    )
    runs = [make_run(text), make_run(text + "quantize_moe_experts: true\n")]
    plain, asked = ({group.name: group.width for group in weights_of(run, run.model).groups} for run in runs)
    assert plain["experts"] == 4.0
    assert asked["quantized experts"] == pytest.approx(0.5159, abs=1e-4)


def test_ddp_keeps_a_second_copy_of_the_gradients(make_run):
    assert "DDP buckets" not in terms(make_run(LLAMA), "optimizer step")
    assert terms(make_run(LLAMA, "2x a100-80gb"), "optimizer step")["DDP buckets"] == 2 * P


def test_fsdp2_under_axolotl_adds_no_master_weights_and_fsdp1_does(make_run):
    text = LLAMA + "optimizer: adamw_torch_fused\nfsdp_config: {auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"
    two = terms(make_run(text + "fsdp_version: 2\n", "8x a100-80gb"), "optimizer step")
    one = terms(make_run(text, "8x a100-80gb"), "optimizer step")
    workspace = 2 * 8_519_680
    assert sum(two.values()) - workspace == pytest.approx(8 * P / 8, rel=1e-6)
    assert sum(one.values()) - workspace == pytest.approx(16 * P / 8, rel=1e-6)


def test_more_memory_is_never_needed_for_less(make_run):
    peaks = [
        estimate(make_run(LLAMA + f"sequence_len: {length}\nmicro_batch_size: {rows}\n")).allocated_peak
        for length, rows in ((512, 1), (1024, 1), (1024, 2), (4096, 2))
    ]
    assert peaks == sorted(peaks)


def test_without_hardware_or_model_there_is_no_estimate(make_run):
    assert estimate(make_run(LLAMA, None)) is None
    assert estimate(make_run("base_model: nobody/knows-this\n")) is None


def test_every_term_says_where_its_formula_comes_from(make_run):
    config = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true}}'
    for run in (make_run(LLAMA + "val_set_size: 0.1\nevals_per_epoch: 1\n"), make_run(LLAMA, "8x a100-80gb", config)):
        found = estimate(run)
        assert found is not None
        assert all(term.source and term.formula for phase in found.phases for term in phase.terms)
        assert all(term.source and term.formula for term in found.host)


def test_only_the_layers_that_a_pattern_names_are_trained(make_run):
    run = make_run(LLAMA + "unfrozen_parameters:\n  - model.layers.(28|29|3[01]).mlp\n  - ^lm_head.weight$\n")
    weights = weights_of(run, run.model)
    assert weights.trained_elements == 4 * 3 * 4096 * 14336 + 128256 * 4096
    assert weights.elements == P


def test_a_pattern_that_names_nothing_trains_nothing(make_run):
    run = make_run(LLAMA + "unfrozen_parameters:\n  - model.layers.32.mlp\n")
    assert weights_of(run, run.model).trained_elements == 0
    assert estimate(run) is not None


@pytest.mark.parametrize(("model", "copies"), [("meta-llama/Llama-3.2-1B", 1), ("meta-llama/Llama-3.1-8B", 0)])
def test_gradients_of_a_tied_table_wait_for_their_sum(make_run, model, copies):
    """torch/csrc/autograd/input_buffer.cpp; tests/gpu measures it."""
    run = make_run(f"base_model: {model}\nsequence_len: 16\ngradient_checkpointing: true\nbf16: true\n", "1x h200")
    backward = terms(run, "backward")
    table = 2 * run.model.vocab_size * run.model.hidden_size * (2 if run.embeddings_fp32 else 1)
    assert backward.get("embedding's gradient", 0) == copies * table


def test_frozen_adapters_are_no_negative_copies(make_run):
    """axolotl's `unfrozen_parameters` names weights of the base alone: autocast then keeps no copy of an adapter."""
    run = make_run(
        LLAMA + "adapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_target_linear: true\nbf16: true\nsequence_len: 2048\n"
        "gradient_checkpointing: true\nunfrozen_parameters: [model.norm.weight]\n",
        "4x l40s",
    )
    found = estimate(run)
    assert found is not None
    assert all(term.bytes >= 0 for phase in found.phases for term in phase.terms)
    assert min(found.parts.values()) >= 0


def test_a_row_that_more_gpus_share_than_it_has_tokens_is_padded(make_run):
    run = make_run(
        "base_model: Qwen/Qwen3-30B-A3B\nsequence_len: 8\nmicro_batch_size: 1\ncontext_parallel_size: 64\nbf16: true\n",
        "8n8x h100-80gb",
    )
    assert run.tokens == 1 and estimate(run) is not None
