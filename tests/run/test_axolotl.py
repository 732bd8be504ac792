"""axolotl's defaults and rewrites, as a run has them."""

import pytest

from advisor.memory import estimate
from advisor.run import Fsdp, Zero
from advisor.run.axolotl import read
from advisor.run.build import edited

LLAMA = "base_model: meta-llama/Llama-3.1-8B\n"


def test_what_is_not_said_is_axolotls_default(make_run):
    run = make_run(LLAMA)
    assert (run.precision, run.sequence_len, run.micro_batch_size, run.optimizer) == (
        "bf16",
        512,
        1,
        "adamw_torch_fused",
    )
    assert (run.attention, run.activation_checkpointing, run.evaluates, run.adapter) == ("sdpa", False, False, None)
    assert run.origins["sequence_len"] == "axolotl's default: 512"


def test_every_fact_knows_its_key(make_run):
    assert make_run(LLAMA + "sequence_len: 1024\n").origins["sequence_len"] == "sequence_len"


@pytest.mark.parametrize(
    ("said", "gpus", "precision"),
    [
        ("", "1x a100-80gb", "bf16"),
        ("", "1x v100-32gb", "bf16"),
        ("bf16: auto", "1x t4", "bf16"),
        ("bf16: false", "1x a100-80gb", "fp32"),
        ("bf16: true\nfp16: true", "1x a100-80gb", "bf16"),
        ("fp16: true", "1x a100-80gb", "fp16"),
        ("bf16: false\nadapter: lora\nload_in_8bit: true", "1x a100-80gb", "fp16"),
        ("bf16:", "1x a100-80gb", "bf16"),
    ],
)
def test_precision_is_resolved_on_the_card_of_the_run(make_run, said, gpus, precision):
    assert make_run(LLAMA + said + "\n", gpus).precision == precision


@pytest.mark.parametrize(("torch", "precision"), [("2.3.1", "fp16"), ("2.4.0", "bf16")])
def test_a_card_without_bf16_has_it_since_torch_emulates_it(make_run, torch, precision):
    """torch/cuda/__init__.py:131@2.4.1 counts emulation, 121@2.3.1 does not."""
    assert make_run(LLAMA, "1x t4", stack={"torch": torch}).precision == precision


@pytest.mark.parametrize(
    ("said", "reentrant"),
    [
        ("", True),
        ("rl: dpo", False),
        ("unfrozen_parameters: [lm_head]", False),
        ("gradient_checkpointing_kwargs: {use_reentrant: false}", False),
        ("rl: dpo\ngradient_checkpointing_kwargs: {use_reentrant: true}", True),
    ],
)
def test_reentrancy_depends_on_the_kind_of_training(make_run, said, reentrant):
    assert make_run(LLAMA + "gradient_checkpointing: true\n" + said + "\n").reentrant is reentrant


def test_offloading_of_older_versions_moved_layer_inputs_alone(make_run):
    said = LLAMA + "gradient_checkpointing: offload\n"
    assert make_run(said).activation_offloading == "saved-tensors"
    assert make_run(said, stack={"axolotl": "0.8.1"}).activation_offloading == "hidden-states"


LORA_KEYS = "adapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_target_linear: true\n"
IN_4_BITS = LORA_KEYS.replace("lora\n", "qlora\n", 1) + "load_in_4bit: true\n"


@pytest.mark.parametrize(
    ("said", "reentrant"),
    [
        ("activation_offloading: true", False),
        (LORA_KEYS + "activation_offloading: true", True),
        (LORA_KEYS + "activation_offloading: true\ngradient_checkpointing_kwargs: {use_reentrant: false}", False),
        (LORA_KEYS + "activation_offloading: legacy\ngradient_checkpointing_kwargs: {use_reentrant: false}", True),
        (IN_4_BITS + "activation_offloading: true\ngradient_checkpointing_kwargs: {use_reentrant: false}", True),
        (IN_4_BITS + "activation_offloading: hidden_states", False),
    ],
)
def test_offloading_decides_how_layers_are_checkpointed(make_run, said, reentrant):
    assert make_run(LLAMA + "gradient_checkpointing: true\n" + said + "\n").reentrant is reentrant


@pytest.mark.parametrize(
    ("said", "loss"),
    [
        ("liger_fused_linear_cross_entropy: true", "plain"),
        ("plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_fused_linear_cross_entropy: true", "liger-fused"),
        ("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]", "cut"),
        ("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\ncut_cross_entropy: false", "plain"),
        ("chunked_cross_entropy: true", "chunked"),
    ],
)
def test_a_fused_loss_counts_only_with_its_plugin(make_run, said, loss):
    assert make_run(LLAMA + said + "\n").loss == loss


@pytest.mark.parametrize(
    ("said", "kept_in_fp32"),
    [
        ("", True),
        ("attn_implementation: sdpa", True),
        ("attn_implementation: flash_attention_2", False),
        ("flash_attention: true", False),
        ("adapter: lora\nlora_r: 8\nlora_target_linear: true", False),
        ("plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]", False),
        ("fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}", False),
        ("deepspeed: deepspeed_configs/zero1.json", False),
    ],
)
def test_plain_attention_keeps_embeddings_in_fp32_in_a_full_finetune(make_run, said, kept_in_fp32):
    assert make_run(LLAMA + said + "\n").embeddings_fp32 is kept_in_fp32


@pytest.mark.parametrize(
    ("said", "asked", "written"),
    [
        ("", "fp16", {"fp16": True, "bf16": False}),
        ("", "bf16", {"bf16": True}),
        ("fp16: false", "bf16", {"fp16": False, "bf16": True}),
        ("fp16: true\nbf16: false", "bf16", {"fp16": False, "bf16": True}),
        ("float16: true\nbf16: false", "fp16", {"fp16": True, "bf16": False}),
    ],
)
def test_one_dtype_is_written_and_what_would_win_over_it_goes(make_run, said, asked, written):
    config = edited(make_run(LLAMA + said + "\n"), {"precision": asked}, "step").config
    keys = ("bf16", "fp16", "float16", "bfloat16", "float32")
    assert {key: config.get(key) for key in keys if key in config} == written


@pytest.mark.parametrize(
    ("said", "quantization", "upcast"),
    [
        ("adapter: qlora\nload_in_4bit: true", "nf4", True),
        ("adapter: lora\nload_in_8bit: true", "int8", True),
        ("adapter: lora\nload_in_4bit: true", None, True),
        ("adapter: qlora\nload_in_4bit: true\nfsdp_version: 2\nfsdp_config: {offload_params: false}", "nf4", False),
        ("load_in_4bit: true", None, False),
    ],
)
def test_only_qlora_means_four_bits(make_run, said, quantization, upcast):
    run = make_run(LLAMA + said + "\n")
    assert (run.quantization, run.upcasts_unquantized) == (quantization, upcast)


def test_fsdp_keys_count_with_and_without_their_prefix(make_run):
    plain = make_run(
        LLAMA + "fsdp_version: 2\nfsdp_config: {offload_params: true, auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"
    )
    prefixed = make_run(
        LLAMA
        + "fsdp_config: {fsdp_version: 2, fsdp_offload_params: true, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"
    )
    for run in (plain, prefixed):
        assert run.fsdp is not None
        assert (run.fsdp.version, run.fsdp.offload_params, run.fsdp.wraps_layers) == (2, True, True)


def test_an_fsdp_without_version_is_version_one(make_run):
    run = make_run(LLAMA + "fsdp: [full_shard, auto_wrap]\nfsdp_config: {offload_params: false}\n")
    assert run.fsdp is not None and run.fsdp.version == 1


def test_batch_size_gives_the_accumulation_steps(make_run):
    assert make_run(LLAMA + "micro_batch_size: 2\nbatch_size: 16\n").gradient_accumulation_steps == 8


def test_the_global_batch_counts_ranks_that_see_different_data(make_run):
    run = make_run(
        LLAMA + "micro_batch_size: 2\ngradient_accumulation_steps: 4\ncontext_parallel_size: 2\n", "8x a100-80gb"
    )
    assert run.global_batch_size == 2 * 4 * 4


def test_preference_training_doubles_the_rows_and_needs_a_reference(make_run):
    full = make_run(LLAMA + "rl: dpo\nsequence_len: 1000\n")
    adapter = make_run(LLAMA + "rl: dpo\nadapter: lora\nlora_r: 8\nlora_target_linear: true\n")
    orpo = make_run(LLAMA + "rl: orpo\n")
    assert full.tokens == 2000
    assert (full.reference_model, adapter.reference_model, orpo.reference_model) == (True, False, False)


@pytest.mark.parametrize(("training", "scores"), [("dpo", False), ("ipo", False), ("kto", True)])
def test_a_reference_stays_loaded_once_its_probabilities_are_worked_out(make_run, training, scores):
    run = make_run(LLAMA + f"rl: {training}\nmicro_batch_size: 2\nprecompute_ref_log_probs: true\n")
    assert (run.reference_model, run.scores_reference) == (True, scores)


def test_kto_has_no_pairs(make_run):
    run = make_run(LLAMA + "rl: kto\nsequence_len: 1000\nmicro_batch_size: 2\n")
    assert (run.paired, run.tokens, run.scores_reference) == (False, 2000, True)


@pytest.mark.parametrize(
    ("keys", "dropout"),
    [
        ("", 0.05),
        ("rl: grpo\ntrl: {use_vllm: false}\n", 0.05),
        *((f"rl: {rl}\n", 0.0) for rl in ("dpo", "ipo", "kto", "orpo", "simpo")),
        ("reward_model: true\n", 0.0),
        ("process_reward_model: true\n", 0.0),
    ],
)
def test_trls_trainers_of_preferences_and_rewards_turn_dropout_off(make_run, keys, dropout):
    run = make_run(LLAMA + "adapter: lora\nlora_r: 8\nlora_target_linear: true\nlora_dropout: 0.05\n" + keys)
    assert run.lora.dropout == dropout


@pytest.mark.parametrize(
    ("rl", "loss"), [("dpo", "liger-fused"), ("ipo", "plain"), ("kto", "plain"), ("orpo", "plain"), ("simpo", "plain")]
)
def test_liger_fuses_dpos_loss_alone(make_run, rl, loss):
    assert make_run(LLAMA + f"rl: {rl}\ndpo_use_liger_kernel: true\n").loss == loss


@pytest.mark.parametrize(
    ("lines", "found"), [("orpo", True), ("simpo", True), ("simpo\ncpo_alpha: 0", False), ("dpo", False)]
)
def test_orpo_and_cpo_add_a_cross_entropy_over_chosen_answers(make_run, lines, found):
    assert make_run(LLAMA + f"rl: {lines}\n").chosen_cross_entropy is found


@pytest.mark.parametrize("value", ["two", "[1]", "0", "-1", "1.5"])
def test_a_wrong_type_stands_at_its_default_and_takes_the_estimate_with_it(make_run, value):
    run = make_run(LLAMA + f"micro_batch_size: {value}\n")
    assert [found.key for found in run.unreadable] == ["micro_batch_size"]
    assert run.micro_batch_size == 1 and estimate(run) is None


def test_what_pydantic_would_take_is_taken(make_run):
    run = make_run(LLAMA + "micro_batch_size: '2'\nsample_packing: 'yes'\nsequence_len: 2048.0\n")
    assert (run.micro_batch_size, run.sample_packing, run.sequence_len) == (2, True, 2048)


KERNELS = frozenset({"mlp", "qkv", "o"})


@pytest.mark.parametrize(
    ("said", "gpus", "kernels"),
    [
        ("adapter: lora", "1x a100-80gb", KERNELS),
        ("adapter: qlora\nload_in_4bit: true\nlora_dropout: 0.1", "4x a100-80gb", KERNELS),
        ("adapter: lora\nload_in_8bit: true", "1x a100-80gb", frozenset()),
        ("adapter: lora\nrl: dpo", "1x a100-80gb", frozenset()),
        ("adapter: lora\ntrust_remote_code: true", "1x a100-80gb", frozenset()),
        ("adapter: lora\nlora_mlp_kernel: false", "1x a100-80gb", frozenset()),
        ("adapter: lora\nlora_qkv_kernel: true\nlora_o_kernel: false", "1x a100-80gb", frozenset({"qkv"})),
        ("adapter: lora\nfsdp_version: 2\nfsdp_config: {}", "2x a100-80gb", KERNELS),
        ("adapter: lora\nfsdp_version: 1\nfsdp_config: {}", "2x a100-80gb", frozenset()),
    ],
)
def test_lora_kernels_are_on_where_axolotl_turns_them_on(make_run, said, gpus, kernels):
    assert make_run(f"{LLAMA}{said}\n", gpus).lora.kernels == kernels


def test_a_misspelt_fact_is_no_run(make_run, monkeypatch):
    """A fact that ``Run`` does not know would silently be the default."""

    def misspelt(reader):
        facts = dict(batch(reader))
        facts["sync_each_bach"] = facts.pop("sync_each_batch")
        return facts

    batch = read.batch
    monkeypatch.setattr(read, "batch", misspelt)
    with pytest.raises(TypeError, match="sync_each_bach"):
        make_run(LLAMA)


@pytest.mark.parametrize(
    ("said", "deepspeed", "kind"),
    [
        ("", None, type(None)),
        ("fsdp_config: {offload_params: false}\n", None, Fsdp),
        ("", '{"zero_optimization": {"stage": 2}}', Zero),
        ("", "{}", Zero),
        ("fsdp_config: {offload_params: false}\n", '{"zero_optimization": {"stage": 2}}', Fsdp),
    ],
)
def test_a_run_is_sharded_by_one_engine_or_none(make_run, said, deepspeed, kind):
    run = make_run(LLAMA + said, deepspeed=deepspeed)
    assert type(run.sharding) is kind
    assert (run.zero, run.fsdp) == (run.sharding if kind is Zero else None, run.sharding if kind is Fsdp else None)


@pytest.mark.parametrize(("said", "width"), [("bf16: true", 2), ("fp16: true", 2), ("bf16: false", 4)])
def test_an_element_that_is_computed_with_has_the_width_of_its_dtype(make_run, said, width):
    assert make_run(f"{LLAMA}{said}\n").compute_bytes == width


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("sequence_parallel_degree: 0", 1),
        ("context_parallel_size: 0", 1),
        ("sequence_parallel_degree: 2", 2),
        ("context_parallel_size: 0\nsequence_parallel_degree: 2", 2),
        ("context_parallel_size: 4\nsequence_parallel_degree: 2", 4),
    ],
)
def test_a_parallel_size_of_nothing_is_one(make_run, written: str, size: int):
    run = make_run(LLAMA + written + "\ntensor_parallel_size: 0\n", "8x a100-80gb")
    assert (run.context_parallel_size, run.tensor_parallel_size, run.unreadable) == (size, 1, ())
