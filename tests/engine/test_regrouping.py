"""HSDP and hpZ: where they are steps of a plan, what they write, and how much faster they must be."""

import pytest
import yaml

from advisor.engine.axes import families
from advisor.engine.bar import BAR, REGROUPING, clears_the_bar
from advisor.engine.network import Links, network_words
from advisor.engine.options import Options, room_rules
from advisor.engine.points import Walk
from advisor.engine.registry import built_in_rules
from advisor.engine.regression import new_errors
from advisor.engine.speedups import back, sequence
from advisor.engine.states import State, loads_alike
from advisor.engine.steps import alternatives, run_after
from advisor.run import Run
from advisor.speed import StepTime, step_time
from advisor.speed.constants import SHIPPED
from advisor.speed.stretched import FACTORS, STRETCHED, sets_of_constants

SPEED = built_in_rules("speed")
ALL = {**built_in_rules("fit"), **SPEED}
BASE = """
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
sequence_len: 4096
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 32
learning_rate: 2e-5
attn_implementation: flash_attention_2
gradient_checkpointing: true
"""
FSDP = (
    BASE + "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
)
LARGE = BASE.replace("8B", "70B").replace("len: 4096", "len: 16384").replace("steps: 32", "steps: 8")
ZERO_3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'
SLOW, WIDE = "4n8x h100-80gb net=25Gb/s", "4n8x h200 net=100Gb/s"


def after(rule: str, run: Run) -> Run:
    """The run after the rule's only edits."""
    (edits,) = alternatives(SPEED[rule], run)
    found = run_after(run, edits, SPEED[rule])
    assert found is not None
    return found


def faster(run: Run):
    """The steps of the faster way."""
    return sequence(State(run), room_rules(Options()))


@pytest.mark.parametrize(
    ("text", "gpus", "deepspeed", "rule"),
    [(FSDP, SLOW, None, "hsdp"), (LARGE.replace("steps: 8", "steps: 1"), WIDE, ZERO_3, "hpz")],
)
def test_between_nodes_it_is_a_step_of_the_faster_way(make_run, text, gpus, deepspeed, rule):
    run = make_run(text, gpus, deepspeed=deepspeed)
    steps = faster(run)
    assert rule in [step.rule.id for step in steps] and all(step.safe for step in steps)
    end = steps[-1].after
    assert end.verdict == "fits" and end.seconds is not None
    assert end.seconds < BAR * (State(run).seconds or 0.0)


def test_layer_inputs_wait_on_the_host_where_that_makes_room_for_what_spares_the_network(make_run):
    between, within = (make_run(LARGE, gpus, deepspeed=ZERO_3) for gpus in (WIDE, "8x h200"))
    assert "activation-offloading" in [step.rule.id for step in faster(between)]
    assert "activation-offloading" not in [step.rule.id for step in faster(within)]


def test_both_sizes_are_written_by_one_step(make_run):
    run = make_run(FSDP, SLOW)
    made = after("hsdp", run)
    assert (made.dp_shard_size, made.dp_replicate_size, made.shard_size) == (8, 4, 8)
    written = yaml.safe_load(made.config.patched())
    assert (written["dp_shard_size"], written["dp_replicate_size"]) == (8, 4)
    assert written["fsdp_config"] == yaml.safe_load(FSDP)["fsdp_config"]


def test_states_are_divided_by_the_gpus_of_a_node(make_run):
    """AdamW's two in bf16, gradients and weights, 2 B each of 8.03 billion: over 8 GPUs, no longer over 32."""
    run = make_run(FSDP, SLOW)
    more = after("hsdp", run)
    states = [
        sum(term.bytes for term in State(one).estimate.peak.terms if term.part == "optimizer") for one in (run, more)
    ]
    assert states == pytest.approx([4 * 8_030_261_248 / 32, 4 * 8_030_261_248 / 8], rel=1e-3)


def test_hpz_lands_in_the_json_and_holds_the_weights_once_more(make_run):
    run = make_run(LARGE, WIDE, deepspeed=ZERO_3)
    made = after("hpz", run)
    assert made.deepspeed is not None and made.zero is not None and made.zero.secondary_partition_size == 8
    assert made.deepspeed["zero_optimization"]["zero_hpz_partition_size"] == 8
    more = State(made).needed - State(run).needed
    assert more == pytest.approx(2 * 70_553_706_496 / 8, rel=0.1)


@pytest.mark.parametrize("gpus", ["8x h100-80gb", "4n1x h100-80gb net=25Gb/s"])
def test_without_nodes_of_several_gpus_no_point_of_the_search_has_one(make_run, gpus):
    for run in (make_run(FSDP, gpus), make_run(BASE, gpus, deepspeed=ZERO_3), make_run(BASE, gpus)):
        walk = Walk(State(run), ALL, ALL)
        assert not [moves for moves in families(walk, ()) if REGROUPING & {rule for rule, _ in moves}]


def test_a_run_that_is_not_sharded_reaches_both(make_run):
    walk = Walk(State(make_run(BASE, SLOW)), ALL, ALL)
    reached = {tuple(rule for rule, _ in moves) for moves in families(walk, ())}
    assert {("fsdp-2", "hsdp"), ("zero-3", "hpz")} <= reached


def test_both_load_the_checkpoints_of_the_run_before(make_run):
    fsdp, zero = make_run(FSDP, SLOW), make_run(LARGE, WIDE, deepspeed=ZERO_3)
    assert loads_alike(fsdp, after("hsdp", fsdp)) and loads_alike(zero, after("hpz", zero))


def test_no_plan_has_hpz_next_to_a_reference_model(make_run):
    """DeepSpeed makes its groups as ``zero.Init`` builds a model, and stops where they are there."""
    run = make_run(
        LARGE.replace("sample_packing: true\n", "rl: dpo\n").replace("len: 16384", "len: 8192"), WIDE, deepspeed=ZERO_3
    )
    made = after("hpz", run)
    assert new_errors(run, made) == ["hpz-with-second-model"] and clears_the_bar(run, made)
    assert State(made).verdict == "fits" and back(SPEED["hpz"], State(run)) is None


def test_the_constants_are_the_shipped_ones_and_each_group_both_ways():
    found = sets_of_constants()
    assert found["shipped"] is SHIPPED and len(found) == 1 + len(FACTORS) * len(STRETCHED)
    assert found["links x 1.4"].network_share.value == pytest.approx(1.4 * SHIPPED.network_share.value)
    assert found["compute x 0.7"].gemm_share["hopper"].value == pytest.approx(0.7 * SHIPPED.gemm_share["hopper"].value)


@pytest.mark.parametrize(("text", "deepspeed", "rule"), [(FSDP, None, "hsdp"), (BASE, ZERO_3, "hpz")])
def test_the_bar_is_ten_percent_by_every_set_of_constants(make_run, text, deepspeed, rule):
    """As the network gets faster, first some set of constants sees less than a tenth, then the shipped ones do too."""
    seen = set[tuple[bool, bool]]()
    for rate in (25, 100, 200, 400, 1000, 1200, 1600, 3200):
        run = make_run(text, f"4n8x h100-80gb net={rate}Gb/s", deepspeed=deepspeed)
        more = after(rule, run)
        shares = [
            step_time.__wrapped__(more, constants=constants).expected
            / step_time.__wrapped__(run, constants=constants).expected
            for constants in sets_of_constants().values()
        ]
        assert clears_the_bar(run, more) == (max(shares) <= 0.9), rate
        seen.add((shares[0] <= 0.9, clears_the_bar(run, more)))
    assert seen == {(True, True), (True, False), (False, False)}


def test_what_does_not_clear_the_bar_is_no_step(make_run):
    """The gain is a tenth by the shipped constants and less by others, with all else of the faster way."""
    for rate in (25, 100, 200, 400, 800, 1600, 3200):
        steps = faster(make_run(FSDP, f"4n8x h100-80gb net={rate}Gb/s"))
        taken = [step for step in steps if step.rule.id in REGROUPING]
        assert bool(taken) == (rate < 800), rate


def test_the_network_line_names_it_by_its_rule(make_run):
    run = make_run(FSDP.replace("steps: 32", "steps: 4"), SLOW)
    said = network_words(Links(run, SPEED))
    assert "s with `dp_shard_size: 8`, `dp_replicate_size: 4`" in said
    assert "dp_shard_size" not in network_words(Links(run, {**SPEED, "hsdp": SPEED["hpz"]}))
    zero = make_run(LARGE, SLOW.replace("h100-80gb", "h200"), deepspeed=ZERO_3)
    found = step_time(after("hpz", zero))
    assert isinstance(found, StepTime)
    assert f"{found.expected:.0f} s with `zero_hpz_partition_size: 8`" in network_words(Links(zero, SPEED))


def test_the_file_that_is_written_needs_and_takes_what_was_promised(make_run):
    run = make_run(FSDP, SLOW)
    end = faster(run)[-1].after
    again = make_run(end.run.config.patched().decode(), SLOW)
    assert State(again).needed == end.needed and State(again).seconds == pytest.approx(end.seconds)
    assert not faster(again)
