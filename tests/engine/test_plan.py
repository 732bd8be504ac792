"""The flowchart: minimal, honest about what cannot help, and the same thing trained where it says so."""

from dataclasses import replace
from itertools import pairwise

from advisor.engine.bases import search_from
from advisor.engine.check import planned as checked_plan
from advisor.engine.flowchart_status import rungs_of
from advisor.engine.options import Options, fit_rules, tiers_of
from advisor.engine.plan import plan_fit
from advisor.engine.registry import built_in_rules, flowcharts, tiers
from advisor.engine.skipped_steps import skipped_steps
from advisor.engine.states import State
from advisor.memory import estimate
from advisor.memory.ledger import Uncounted
from advisor.run.build import edited

FULL = """
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
sequence_len: 4096
micro_batch_size: 4
gradient_accumulation_steps: 2
sample_packing: true
"""
QLORA = (
    FULL.replace("micro_batch_size: 4", "micro_batch_size: 1")
    + "adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_target_linear: true\n"
)
EVALUATED = (
    QLORA.replace("micro_batch_size: 1", "micro_batch_size: 2").replace("4096", "8192")
    + "val_set_size: 0.05\nevals_per_epoch: 4\neval_sample_packing: false\neval_batch_size: 2\n"
    + "gradient_checkpointing: true\n"
)


def planned(run, **options):
    safe_only = options.pop("safe_only", False)
    return plan_fit(State(run), tiers_of(Options(**options)), safe_only=safe_only)


def skipped(run, plan, *, safe_only=False):
    """Why the plan does without the steps that it does not take."""
    return {one.rule: one.reason for one in skipped_steps(State(run), plan, tiers_of(Options()), safe_only=safe_only)}


def test_every_flowchart_holds_rules_that_exist_each_once():
    rules = {**built_in_rules("fit"), **built_in_rules("speed")}
    for chart in flowcharts().values():
        ids = [rule for _, steps in chart for rule in steps]
        assert set(ids) <= set(rules)
        assert len(set(ids)) == len(ids)
    told = {rule for chart in flowcharts().values() for _, steps in chart for rule in steps}
    assert set(built_in_rules("fit")) <= told
    assert set(flowcharts()) == {"default", "safe-first", "huggingface", "pytorch"}


def test_a_plain_list_is_cut_into_tiers_before_what_changes_the_sort_of_run():
    names = ["zero-2", "lora", "qlora", "offload-optimizer", "offload-params", "shorter-sequences"]
    assert [steps for _, steps in tiers(names)] == [
        ("zero-2",),
        ("lora",),
        ("qlora",),
        ("offload-optimizer", "offload-params"),
        ("shorter-sequences",),
    ]


def without(plan, step):
    """The run with the plan's steps made but one, or None where they no longer apply."""
    run = plan.steps[0].before.run
    for other in plan.steps:
        if other is not step:
            if not other.rule.when(run):
                return None
            run = edited(run, other.edits, other.rule.id)
    return run


def test_no_step_can_be_left_out_without_losing_the_fit_or_time(make_run):
    for gpus in ("4x rtx-4090", "1x rtx-4090", "8x a100-80gb"):
        plan = planned(make_run(FULL, gpus))
        assert plan.verdict == "fits" and plan.steps
        for step in plan.steps:
            rest = without(plan, step)
            if rest is None:
                continue
            state = State(rest)
            near = state.estimate.needed.high > 0.95 * state.estimate.usable
            assert near or state.seconds > 1.04 * plan.end.seconds, (gpus, step.rule.id)


def test_each_step_starts_where_the_one_before_ended(make_run):
    plan = planned(make_run(FULL, "4x rtx-4090"))
    assert len(plan.steps) > 1
    for before, after in pairwise(plan.steps):
        assert before.after.needed == after.before.needed


def test_safe_steps_leave_batch_data_parameters_and_optimizer_alone(make_run):
    run = make_run(FULL, "8x a100-80gb")
    plan = planned(run, safe_only=True)
    end = plan.end.run
    assert plan.verdict == "fits" and all(step.safe for step in plan.steps)
    assert (end.global_batch_size, end.sequence_len, end.adapter, end.optimizer, end.precision) == (
        run.global_batch_size,
        run.sequence_len,
        run.adapter,
        run.optimizer,
        run.precision,
    )


def test_the_micro_batch_is_the_largest_divisor_with_which_the_end_fits(make_run):
    plan = planned(make_run(FULL, "8x a100-80gb"), safe_only=True)
    chosen = plan.end.run.micro_batch_size
    assert 4 % chosen == 0

    larger = replace(plan.end.run, micro_batch_size=min(4, chosen * 2))
    assert chosen == 4 or estimate(larger).verdict != "fits"


def test_what_uses_the_room_that_others_make_is_told_after_them(make_run):
    order = search_from(State(make_run(FULL, "8x a100-80gb")), tiers_of(Options()), {}, safe_only=False).order
    assert set(sorted(order, key=order.__getitem__)[-2:]) == {"no-checkpointing", "larger-micro-batch"}


def test_a_step_that_helps_nothing_by_itself_is_taken_where_another_phase_is_the_peak(make_run):
    """At first training is the peak, and smaller evaluation batches lower nothing."""
    plan = planned(make_run(EVALUATED, "1x rtx-4090"))
    assert "smaller-eval-batch" in plan.names and "offload-optimizer" not in plan.names
    assert plan.verdict == "fits"


def test_what_4_bits_ask_for_comes_before_all_that_would_make_up_for_them(make_run):
    text = QLORA.replace("adapter: qlora", "adapter: lora")
    for gpus in ("1x rtx-4090", "2x rtx-4090"):
        plan = planned(make_run(text, gpus))
        assert plan.steps[0].rule.id == "quantize-as-asked" and plan.verdict == "fits"


def test_nothing_is_sharded_over_one_gpu(make_run):
    for text in (FULL, QLORA, QLORA.replace("adapter: qlora", "adapter: lora")):
        run = make_run(text, "1x rtx-4090")
        plan = planned(run)
        tried = {*plan.names, *skipped(run, plan)}
        assert not {"zero-2", "zero-3"} & tried


def test_an_ignored_step_is_left_out_of_the_plan(make_run):
    plan = planned(make_run(FULL, "8x a100-80gb"), ignore=("zero-2",))
    assert "zero-2" not in {step.rule.id for step in plan.steps}


def test_offloading_beyond_the_stated_host_memory_is_passed_over(make_run):
    run = make_run(FULL, "1x a100-40gb host=32GiB")
    small = planned(run, safe_only=True)
    large = planned(make_run(FULL, "1x a100-40gb host=512GiB"), safe_only=True)
    assert "offload-optimizer" not in {step.rule.id for step in small.steps}
    assert any("host memory" in reason for reason in skipped(run, small, safe_only=True).values())
    assert "offload-optimizer" in {step.rule.id for step in large.steps}


def test_flowcharts_differ_in_what_they_reach_for(make_run):
    run = make_run(FULL, "4x rtx-4090")
    safe_first = planned(run, flowchart="safe-first")
    pytorch = planned(run, flowchart="pytorch")
    assert all(step.safe for step in safe_first.steps)
    assert pytorch.end.run.zero is None


def test_one_with_fsdp_stays_with_fsdp(make_run):
    text = FULL + "fsdp_version: 2\nfsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    plan = planned(make_run(text, "4x rtx-4090"))
    assert plan.end.run.fsdp is not None and plan.end.run.zero is None


def test_planning_touches_no_document(make_run):
    run = make_run(FULL, "4x rtx-4090")
    before = run.config.raw
    planned(run)
    assert run.config.raw == before and not run.config.pending
    assert State(run).needed == State(run).needed


LARGE = """
base_model: mistralai/Mistral-Small-24B-Base-2501
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 2
gradient_checkpointing: true
"""


def test_no_plan_offloads_more_than_is_common_with_the_cards(make_run):
    """A full fine-tune of 24B keeps more than half a TiB on the host."""
    run = make_run(LARGE, "1x rtx-4090")
    plan = planned(run, safe_only=True)
    assert plan.verdict == "does-not-fit"
    assert "offload-optimizer" not in {step.rule.id for step in plan.steps}
    reason = skipped(run, plan, safe_only=True)["offload-optimizer"]
    assert "of host memory a node, 64.0 GiB is common with 1x RTX 4090; if yours has more, state it" in reason
    stated = planned(make_run(LARGE, "1x rtx-4090 host=1TiB"), safe_only=True)
    assert "offload-optimizer" in {step.rule.id for step in stated.steps}


def test_every_state_of_a_plan_is_held_by_the_hosts(make_run):
    for text in (FULL, LARGE, QLORA):
        for gpus in ("1x rtx-4090", "2x rtx-3090", "1x a100-40gb", "4x rtx-4090"):
            plan = planned(make_run(text, gpus))
            common = plan.end.run.hardware.common_host_bytes
            assert all(step.after.estimate.host_peak <= common for step in plan.steps), (text, gpus)


def test_a_run_that_was_written_for_a_large_host_can_be_planned_without_stating_it(make_run):
    offloading = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}'
    long = LARGE.replace("sequence_len: 2048", "sequence_len: 32768").replace(
        "checkpointing: true", "checkpointing: false"
    )
    start = State(make_run(long, "1x a100-80gb", deepspeed=offloading))
    assert start.estimate.verdict == "does-not-fit"
    assert start.estimate.host_peak > start.run.hardware.common_host_bytes
    plan = plan_fit(start, tiers_of(Options()))
    assert plan.steps
    assert plan.end.estimate.host_peak <= start.estimate.host_peak


def test_no_step_leads_to_memory_that_nobody_counts(make_run):
    run = make_run(FULL + "fp8: true\ntorch_compile: true\n", "1x t4")
    plan = planned(run)
    assert plan.steps and plan.verdict == "does-not-fit"
    assert not any(step.after.estimate.uncounted for step in plan.steps)
    reason = skipped(run, plan)["lora"]
    assert reason == "memory would not be known: nothing counts `fp8` (fp8 copies next to adapters)"
    rungs = {rung.name: (rung.word, rung.detail) for rung in rungs_of(State(run), plan, fit_rules(Options()))}
    assert rungs["LoRA"] == ("impossible", reason)


def test_no_plan_is_made_where_memory_is_not_counted_though_the_run_does_not_fit(make_run):
    run = make_run(QLORA, "1x rtx-4090")
    counted = replace(estimate(run), usable=1 << 30)
    more = replace(counted, uncounted=(Uncounted("some_key", "something", "more", "test"),))
    assert counted.verdict == more.verdict == "does-not-fit"
    assert checked_plan(run, counted, Options()) is not None
    assert checked_plan(run, more, Options()) is None
