# pyright: basic
"""What sort of run it becomes: packages, evaluation, lengths that are cut, mixed precision and fp32 masters."""

import pytest

from advisor.engine.options import Options, tiers_of
from advisor.engine.plan import plan_fit
from advisor.engine.plan_findings import step_findings
from advisor.engine.registry import built_in_rules
from advisor.engine.states import State
from advisor.engine.steps import alternatives
from advisor.run.axolotl.expert_targets import all_linear_by_name
from advisor.run.build import edited

PLAIN = """
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: d, type: alpaca}]
sequence_len: 2048
sample_packing: true
micro_batch_size: 4
gradient_accumulation_steps: 2
learning_rate: RATE
optimizer: adamw_torch_fused
attn_implementation: flash_attention_2
"""
LONG = """
base_model: meta-llama/Llama-3.1-8B
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_alpha: 32
lora_target_linear: true
datasets: [{path: d, type: alpaca}]
val_set_size: 0.02
evals_per_epoch: 2
sequence_len: 16384
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 2e-4
attn_implementation: flash_attention_2
gradient_checkpointing: true
"""
CARD = "1x rtx-4090 host=128GiB"


def planned(run, *, safe_only=False, **options):
    return plan_fit(State(run), tiers_of(Options(**options)), safe_only=safe_only)


def test_where_evaluation_is_the_peak_the_loss_that_makes_no_logits_there_is_taken_and_its_package_named(make_run):
    plan = planned(make_run(LONG, CARD))
    assert plan.names == ("fused-loss",) and plan.verdict == "fits" and plan.safe
    (finding,) = step_findings(plan.steps) or ()
    assert "cut cross-entropy" in finding.label and "in training" in finding.because
    assert finding.requires and "pip install" in finding.requires[0]


def test_no_package_is_needed_where_a_plan_without_one_fits(make_run):
    """With the package one edit would do."""
    text = LONG.replace("16384", "10240").replace("micro_batch_size: 1", "micro_batch_size: 2")
    without, with_it = (planned(make_run(text, CARD, stack=stack)) for stack in ({}, {"cut_cross_entropy": True}))
    assert without.verdict == "fits" and without.end.run.loss == "liger-fused"
    assert with_it.end.run.loss == "cut" and len(with_it.steps) < len(without.steps)
    assert not any(finding.requires for finding in step_findings(without.steps) or ())


AT_THE_LIMIT = """
base_model: Qwen/Qwen3-8B
adapter: lora
lora_r: 32
lora_alpha: 64
lora_target_linear: true
evals_per_epoch: 4
datasets: [{path: d, type: alpaca}]
val_set_size: 0.02
sequence_len: 4096
sample_packing: true
micro_batch_size: 4
gradient_accumulation_steps: 2
gradient_checkpointing: false
learning_rate: 2e-4
bf16: true
attn_implementation: flash_attention_2
"""


@pytest.mark.parametrize(("installed", "loss"), [(None, "cut"), (False, "liger-fused")])
def test_a_package_is_named_where_the_plan_without_it_ends_at_the_limit_of_the_card(make_run, installed, loss):
    plan = planned(make_run(AT_THE_LIMIT, "1x rtx-4090", stack={"cut_cross_entropy": installed}))
    assert plan.verdict == "fits" and plan.end.run.loss == loss
    assert plan.end.estimate.has_little_room is (loss == "liger-fused")


@pytest.mark.parametrize(("installed", "loss"), [(True, "cut"), (False, "liger-fused")])
def test_what_is_installed_decides_about_the_package(make_run, installed, loss):
    plan = planned(make_run(LONG, CARD, stack={"cut_cross_entropy": installed}), safe_only=True)
    assert plan.end.run.loss == loss
    assert not any(finding.requires for finding in step_findings(plan.steps) or ())


def test_a_length_that_must_be_cut_leaves_the_rest_of_the_training_as_it_was(make_run):
    text = LONG.replace(
        "adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n", ""
    )
    zero_3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'
    text = text.replace("16384", "1048576").replace("2e-4", "2e-5")
    alone = make_run(text, "8x h100-80gb", deepspeed=zero_3, stack={"ring_flash_attn": False})
    plan = planned(alone)
    assert plan.verdict == "fits" and "shorter-sequences" in plan.names
    assert plan.end.run.adapter is None and not {"offload-params", "offload-optimizer"} & set(plan.names)
    shared = planned(make_run(text, "8x h100-80gb", deepspeed=zero_3))
    assert shared.verdict == "fits" and "context-parallel" in shared.names and "shorter-sequences" not in shared.names


def test_rows_are_not_shared_by_slow_links_where_the_host_keeps_the_training_faster(make_run):
    text = """
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: d, type: alpaca}]
sequence_len: 16384
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 16
learning_rate: 2e-5
bf16: true
attn_implementation: flash_attention_2
gradient_checkpointing: true
val_set_size: 0.02
evals_per_epoch: 2
"""
    run = make_run(text, "4x rtx-4090 link=pcie-slow host=256GiB")
    plan = planned(run)
    assert plan.verdict == "fits" and "offload-params" in plan.names and "context-parallel" not in plan.names
    assert plan.end.seconds < 1.2 * State(run).seconds


FP32 = """
base_model: meta-llama/Llama-3.2-3B
datasets: [{path: d, type: alpaca}]
sequence_len: 4096
micro_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 2e-5
bf16: false
"""


@pytest.mark.parametrize(("gpus", "masters"), [("4x rtx-a6000", True), ("1x a100-80gb", True), ("1x rtx-a6000", False)])
def test_mixed_precision_comes_first_with_fp32_masters_and_without_them_where_it_must(make_run, gpus, masters):
    run = make_run(FP32, gpus)
    plan = planned(run)
    assert plan.names[0] == "mixed-precision" and plan.verdict == "fits"
    assert plan.end.run.has_masters == masters and plan.end.run.adapter is None
    assert "mixed-precision" not in planned(run, safe_only=True).names


def test_a_full_fine_tune_at_a_low_rate_keeps_or_gains_masters(make_run):
    """FSDP2 is faster here, and at this rate its bf16 weights would lose most updates."""
    runs = (make_run(PLAIN.replace("RATE", rate), "2x a100-80gb") for rate in ("1e-5", "2e-4"))
    low, high = (planned(run, safe_only=True) for run in runs)
    assert low.end.run.has_masters and "fsdp-2" in high.names
    assert low.verdict == high.verdict == "fits"


EXPERTS = """
base_model: mistralai/Mixtral-8x7B-v0.1
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_alpha: 32
lora_target_linear: true
datasets: [{path: d, type: alpaca}]
sequence_len: 4096
micro_batch_size: 1
learning_rate: 2e-4
attn_implementation: flash_attention_2
gradient_checkpointing: true
"""


def test_bits_that_are_asked_for_reach_the_experts_before_anything_is_sharded_or_offloaded(make_run):
    run = make_run(EXPERTS, "2x a100-80gb")
    for safe_only in (True, False):
        plan = planned(run, safe_only=safe_only)
        assert plan.names == ("quantize-moe-experts",) and plan.verdict == "fits" and plan.safe
    assert plan.end.run.config["lora_target_modules"] and "lora_target_linear" not in plan.end.run.config


def test_experts_that_nobody_asked_to_quantize_are_no_safe_step(make_run):
    text = EXPERTS.replace("adapter: qlora\nload_in_4bit: true\n", "adapter: lora\n")
    assert "quantize-moe-experts" not in planned(make_run(text, "2x a100-80gb"), safe_only=True).names


def test_experts_follow_where_4_bits_are_asked_for_and_the_adapter_is_not_theirs(make_run):
    plan = planned(make_run(EXPERTS.replace("qlora", "lora"), "1x a100-80gb"))
    assert plan.names == ("quantize-as-asked", "quantize-moe-experts") and plan.verdict == "fits"
    assert [step.safe for step in plan.steps] == [False, True]


def test_stacked_experts_are_not_loaded_in_pieces_which_would_pass_them_by(make_run):
    text = EXPERTS.replace("mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen3-235B-A22B")
    for safe_only in (True, False):
        plan = planned(make_run(text, "8x a100-80gb host=1TiB"), safe_only=safe_only)
        assert "fsdp-qlora" not in plan.names


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("zai-org/GLM-4.5-Air", {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}),
        ("deepseek-ai/DeepSeek-V2-Lite", {"q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"}),
    ],
)
def test_quantized_experts_leave_the_adapters_where_they_were(make_run, model, named):
    run = make_run(EXPERTS.replace("mistralai/Mixtral-8x7B-v0.1", model), "1x b200")
    (after,) = (edited(run, rule.edits(run), rule.id) for rule in (built_in_rules("fit")["quantize-moe-experts"],))
    assert named <= set(after.config["lora_target_modules"])
    assert (after.lora.targets, after.lora.target_parameters) == (run.lora.targets, run.lora.target_parameters)


def test_a_router_that_returns_its_choice_gets_no_adapter(make_run):
    """PEFT's layer around it expects one tensor."""
    run = make_run(EXPERTS.replace("mistralai/Mixtral-8x7B-v0.1", "meta-llama/Llama-4-Scout-17B-16E"), "1x b200")
    assert run.model is not None
    names = all_linear_by_name(run, run.model)
    assert "router" not in names and {"q_proj", "gate_proj"} <= set(names)
    jamba = make_run(EXPERTS.replace("mistralai/Mixtral-8x7B-v0.1", "ai21labs/Jamba-v0.1"), "1x b200")
    assert "router" in all_linear_by_name(jamba, jamba.model)


def test_the_plan_writes_the_kernel_that_the_lint_names(make_run):
    text = PLAIN.replace("meta-llama/Llama-3.1-8B", "openai/gpt-oss-20b").replace("RATE", "2e-4")
    run = make_run(text.replace("flash_attention_2", "eager").replace("2048", "8192"), "1x h100-80gb")
    lint, fit = (
        built_in_rules(stage)[name] for stage, name in (("lint", "quadratic-attention"), ("fit", "flash-attention"))
    )
    (hit,) = lint.finds(run)
    after = edited(run, fit.edits(run), fit.id)
    assert [change.value for change in hit.edits] == [after.config["attn_implementation"]] == ["flex_attention"]
    assert fit.named(run, after) == "flex attention"


def test_states_of_large_embeddings_are_narrow_by_torchao_where_bitsandbytes_does_not_suffice(make_run):
    rule = built_in_rules("fit")["eight-bit-optimizer"]
    full = "base_model: {}\nsequence_len: 2048\nsample_packing: true\ngradient_checkpointing: true\nbf16: true\n"
    full += "attn_implementation: flash_attention_2\nliger_fused_linear_cross_entropy: true\nliger_rms_norm: true\n"
    full += "plugins: [axolotl.integrations.liger.LigerPlugin]\ngradient_accumulation_steps: 16\n"
    run = make_run(full.format("google/gemma-3-4b-it"), "1x rtx-5090")
    made = [edited(run, edits, rule.id) for edits in alternatives(rule, run)]
    assert [each.optimizer for each in made] == ["adamw_bnb_8bit", "adamw_torch_8bit"]
    assert [State(each).verdict for each in made] == ["does-not-fit", "fits"]
    small = make_run(full.format("meta-llama/Llama-3.1-8B"), "1x rtx-5090")
    sharded = make_run(full.format("google/gemma-3-4b-it"), "8x rtx-5090", '{"zero_optimization": {"stage": 1}}')
    for other in (small, sharded):
        assert [edits["optimizer"] for edits in alternatives(rule, other)] == ["adamw_bnb_8bit"]


def test_masters_are_kept_by_an_offload_that_is_as_fast_as_the_way_without(make_run):
    run = make_run(PLAIN.replace("RATE", "2e-5") + "sample_packing: true\n", "4x rtx-4090")
    plan = planned(run)
    without = planned(run, ignore=("offload-optimizer", "offload-params"))
    assert plan.end.run.has_masters and "offload-optimizer" in plan.names and "fsdp-2" not in plan.names
    assert not without.end.run.has_masters and "fsdp-2" in without.names
    assert plan.end.seconds < 1.05 * without.end.seconds
