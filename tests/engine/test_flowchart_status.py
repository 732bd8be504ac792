"""The user's flowchart next to a plan, a word for each rung."""

from advisor.engine.flowchart_status import rungs_of
from advisor.engine.options import Options, fit_rules, tiers_of
from advisor.engine.plan import plan_fit
from advisor.engine.states import State

FULL = """
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
learning_rate: 2e-5
sequence_len: 4096
micro_batch_size: 4
gradient_accumulation_steps: 2
sample_packing: true
"""
ZERO_3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'
NAMES = ["mixed precision", "ZeRO-2", "ZeRO-3", "gradient checkpointing", "LoRA", "quantization", "offload"]


def words(run, **options):
    start = State(run)
    plan = plan_fit(start, tiers_of(Options(**options)))
    return {rung.name: rung for rung in rungs_of(start, plan, fit_rules(Options(**options)))}, plan


def test_every_rung_has_a_word_in_the_users_order(make_run):
    found, _ = words(make_run(FULL, "8x a100-80gb"))
    assert list(found) == NAMES


def test_what_the_run_has_is_done_and_what_the_plan_takes_is_taken(make_run):
    found, plan = words(make_run(FULL, "4x l40s"))
    assert found["mixed precision"].word == "done"
    taken = {name for name, rung in found.items() if rung.word == "taken"}
    assert taken and plan.verdict == "fits"
    for name, rules in (("gradient checkpointing", {"gradient-checkpointing"}), ("LoRA", {"lora"})):
        assert (name in taken) == bool(rules & set(plan.names))


def test_one_gpu_cannot_shard(make_run):
    found, _ = words(make_run(FULL, "1x a100-80gb"))
    for name in ("ZeRO-2", "ZeRO-3"):
        assert (found[name].word, found[name].detail) == ("impossible", "one GPU")


def test_adapters_and_4_bits_would_change_the_training_and_say_what_they_would_need(make_run):
    found, _ = words(make_run(FULL, "8x a100-80gb"))
    for name in ("LoRA", "quantization"):
        assert found[name].word == "would change training" and "->" in found[name].detail


def test_an_offload_is_slower_by_so_many_seconds_or_has_no_host(make_run):
    large, _ = words(make_run(FULL, "8x a100-80gb host=2TiB"))
    assert large["offload"].word == "slower here" and large["offload"].detail.endswith("s a step")
    small, _ = words(make_run(FULL, "8x a100-80gb host=16GiB"))
    assert small["offload"].word == "impossible" and "host memory" in small["offload"].detail


def test_a_rung_that_is_ignored_says_so(make_run):
    found, _ = words(make_run(FULL, "8x a100-80gb"), ignore=("lora",))
    assert found["LoRA"].word == "ignored"


def test_fsdp_stands_for_the_stages(make_run):
    found, _ = words(make_run(FULL + "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\n", "4x l40s"))
    assert found["ZeRO-3"].detail == "as FSDP2"


def test_an_offload_of_activations_alone_says_so(make_run):
    text = FULL.replace("4096", "16384").replace("micro_batch_size: 4", "micro_batch_size: 1")
    text += "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\ngradient_checkpointing: true\n"
    text += "plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_fused_linear_cross_entropy: true\n"
    found, plan = words(make_run(text, "1x rtx-4090"))
    assert "activation-offloading" in plan.names and not plan.end.run.zero
    assert (found["offload"].word, found["offload"].detail) == ("taken", "activations alone")


def test_a_rung_is_impossible_only_where_none_of_its_steps_applies(make_run):
    """Optimizer states cannot be offloaded by themselves with FSDP; with the weights they can."""
    found, _ = words(
        make_run(FULL + "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\n", "4x l40s host=1TiB")
    )
    assert found["offload"].word in {"slower here", "taken"}
