"""axolotl's fused LoRA kernels in whole runs: terms that must not go wrong where only some adapters are in them."""

import pytest

from advisor.memory import estimate
from advisor.memory.fsdp import gradients_of_layers
from advisor.memory.weights import weights_of

BASE = """\
base_model: {model}
adapter: lora
lora_r: 16
lora_alpha: 32
sequence_len: 512
micro_batch_size: 1
"""
LLAMA, JAMBA = "meta-llama/Llama-3.1-8B", "ai21labs/Jamba-v0.1"
FSDP = "fsdp_version: {version}\nfsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  reshard_after_forward: {cuts}\n"
LATE = r"lora_target_modules: 'model\.layers\.(2[0-9]|3[01])\.(self_attn\.(q|k|v|o)_proj|mlp\.(gate|up|down)_proj)'"
FACTORED = r"lora_target_modules: '.*\.(mlp|self_attn)\.(q|k|v|o|gate|up|down)_proj'"
EVERY = "lora_target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]"
RANKS = "lora_target_linear: true\nlora_rank_pattern: {down_proj: 1, mlp.up_proj: 1, self_attn.q_proj: 1}"


def terms(make_run, text, gpus="1x a100-80gb", model=LLAMA):
    found = estimate(make_run(BASE.format(model=model) + text + "\n", gpus))
    assert found is not None
    return {(phase.name, term.name): term.bytes for phase in found.phases for term in phase.terms}


def peak(make_run, text, gpus="1x a100-80gb", model=LLAMA):
    found = estimate(make_run(BASE.format(model=model) + text + "\n", gpus))
    assert found is not None
    return max(phase.bytes for phase in found.phases)


@pytest.mark.parametrize("targets", [LATE, FACTORED, EVERY, RANKS, "lora_target_modules: [layers.28.self_attn.q_proj]"])
@pytest.mark.parametrize("gpus", ["1x a100-80gb", "2x a100-80gb"])
def test_no_term_is_negative(make_run, targets, gpus):
    assert min(terms(make_run, targets, gpus).values()) >= 0


def test_a_pattern_of_modules_is_as_good_as_their_names(make_run):
    assert terms(make_run, FACTORED) == terms(make_run, EVERY)


TWO = r"lora_target_modules: 'model\.layers\.(30|31)\.(self_attn|mlp)\.(q|k|v|o|gate|up|down)_proj'"


@pytest.mark.parametrize("more", ["", "\npeft_layers_pattern: [layers]"])
@pytest.mark.parametrize("targets", [EVERY, "lora_target_linear: true"])
def test_layers_to_transform_are_as_good_as_their_numbers_in_a_pattern(make_run, targets, more):
    assert terms(make_run, f"{targets}\npeft_layers_to_transform: [30, 31]{more}") == terms(make_run, TWO)


def test_layers_to_transform_get_the_only_adapters(make_run):
    every, two = (terms(make_run, text) for text in (EVERY, f"{EVERY}\npeft_layers_to_transform: [30, 31]"))
    assert two["optimizer step", "adapter"] * 16 == every["optimizer step", "adapter"]


@pytest.mark.parametrize("lists", ["[blocks]", "['(']"])
def test_layers_below_another_list_get_no_adapters(make_run, lists):
    text = f"{EVERY}\npeft_layers_to_transform: [30, 31]\npeft_layers_pattern: {lists}"
    assert ("optimizer step", "adapter") not in terms(make_run, text)


def test_adapters_outside_the_kernels_keep_their_gradient_shards_under_fsdp_2(make_run):
    fsdp = FSDP.format(version=2, cuts="true")
    run = make_run(f"{BASE.format(model=LLAMA)}{EVERY}\nlora_qkv_kernel: true\n{fsdp}", "2x a100-80gb")
    reduced, whole = gradients_of_layers(run, run.model, weights_of(run, run.model))
    others = 16 * 32 * (2 * 4096 + 3 * (4096 + 14336))
    in_kernels = 16 * 32 * (3 * 4096 + 4096 + 2 * 1024)
    assert (reduced.bytes, whole.bytes) == (4 * others // 2, 2 * in_kernels)


def test_layers_that_are_never_cut_are_not_gathered_twice(make_run):
    once = FSDP.format(version=1, cuts="false")
    found = terms(make_run, f"{EVERY}\n{once}", "2x a100-80gb")
    assert found["backward", "gathered layers"] <= 2 * 32 * 218_112_000


@pytest.mark.parametrize("key", ["lora_mlp_kernel: false", "lora_mlp_kernel: true"])
def test_an_mlp_that_is_no_layer_mlp_is_not_fused(make_run, key):
    off = "lora_target_linear: true\nlora_qkv_kernel: false\n"
    assert peak(make_run, off + key, model=JAMBA) == peak(make_run, off, model=JAMBA)


def test_the_mlp_kernel_works_where_those_of_attention_stop(make_run):
    off = "lora_target_linear: true\nlora_qkv_kernel: false\n"
    plain = peak(make_run, off, model="allenai/OLMo-2-1124-7B")
    assert peak(make_run, f"{off}lora_mlp_kernel: true", model="allenai/OLMo-2-1124-7B") < plain
