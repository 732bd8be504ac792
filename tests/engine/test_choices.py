# pyright: basic
"""What is taken, kept or passed over where two would do: findings, fixes, hosts, cards, tiers."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from advisor.documents import Set
from advisor.engine.cards import clusters_of, nodes_of
from advisor.engine.check import check_run
from advisor.engine.choice import is_less
from advisor.engine.fix import fixed, merged
from advisor.engine.flowchart_status import KINDS, rung_of
from advisor.engine.hardware_that_fits import hardware_that_would_do
from advisor.engine.options import Options, tiers_of
from advisor.engine.placeholders import UNREADABLE, without_echoes
from advisor.engine.plan import plan_fit
from advisor.engine.rule import Hit, Rule
from advisor.engine.skipped import Skipped
from advisor.engine.states import Plan, State, Step, loads_alike
from advisor.engine.steps import best_step, host_suffices
from advisor.hardware import find_gpu, larger_gpus, parse_hardware
from advisor.opening import LoadedRun
from advisor.run.build import edited

SMALL = "base_model: Qwen/Qwen2.5-0.5B\nlearning_rate: 1e-4\nsequence_len: 2048\ndatasets: [{path: d, type: alpaca}]\n"
LARGE = SMALL.replace("0.5B", "32B")
NEAR = """
base_model: Qwen/Qwen3-14B
datasets: [{path: d, type: alpaca}]
learning_rate: 1e-4
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 8192
micro_batch_size: 1
attn_implementation: flash_attention_2
"""
ZERO_2 = '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'


def rule_named(name, **more):
    return Rule(id=name, title=name, why="w", source="s", examples=(), **{"stage": "lint", "safe": True, **more})


def shortening(name, length, **more):
    """A rule that makes rows of 2,048 tokens shorter."""

    def finds(run):
        if run.sequence_len == 2048:
            yield Hit("sequence_len", "long", (Set("sequence_len", length),))

    return rule_named(name, finds=finds, **more)


def fixed_by(run, *rules):
    own = {rule.id: rule for rule in rules}
    return fixed(LoadedRun(run), Options(select=tuple(own), extra_rules=own), unsafe=False)


@pytest.mark.parametrize(("offer", "length"), [(False, 1024), (True, 2048)])
def test_a_mistake_is_fixed_and_an_offer_is_not(make_run, offer, length):
    assert fixed_by(make_run(SMALL), shortening("half", 1024, offer=offer)).run.sequence_len == length


def test_a_rule_that_its_own_fix_never_satisfies_is_asked_ten_times(make_run):
    def finds(run):
        yield Hit("sequence_len", "long", (Set("sequence_len", run.sequence_len - 1),))

    found = fixed_by(make_run(SMALL), rule_named("shorter-still", finds=finds))
    assert found.run.sequence_len == 2048 - 10


def test_of_two_fixes_of_one_key_the_first_is_written(make_run):
    found = fixed_by(make_run(SMALL), shortening("half", 1024), shortening("quarter", 512))
    assert found.run.sequence_len == 1024
    assert [finding.rule for finding in found.done] == ["half"]


def test_a_file_that_two_runs_change_differently_is_left_to_the_first():
    one, other = ({"shared.json": b"1"}, {"shared.json": b"2", "own.yaml": b"3"})
    results = [SimpleNamespace(files=lambda files=files: files) for files in (one, other)]
    assert merged(results) == {"shared.json": b"1", "own.yaml": b"3"}


@pytest.mark.parametrize(
    ("level", "hit_level", "at", "is_said"),
    [
        ("error", None, "key", False),
        ("warning", "error", "key", False),
        ("warning", None, "key", True),
        ("error", "warning", "key", True),
        ("error", None, "other", True),
    ],
)
def test_an_unreadable_value_is_not_said_where_another_error_speaks_of_its_key(level, hit_level, at, is_said):
    unreadable = (rule_named(UNREADABLE, level="error"), Hit("key", "unreadable"))
    other = (rule_named("other", level=level), Hit(at, "other", level=hit_level))
    assert (unreadable in without_echoes(iter([unreadable, other]))) == is_said


@pytest.mark.parametrize(
    ("before", "after", "suffices"), [(50, 100, True), (50, 101, False), (150, 150, True), (150, 151, False)]
)
def test_a_host_has_what_is_common_or_what_the_run_was_written_for(before, after, suffices):
    hardware = SimpleNamespace(host_bytes=None, common_host_bytes=100)
    start, end = (SimpleNamespace(host_peak=peak, run=SimpleNamespace(hardware=hardware)) for peak in (before, after))
    assert host_suffices(start, end) == suffices


@pytest.mark.parametrize(
    ("edits", "is_a_step"), [({"gradient_accumulation_steps": 4}, False), ({"zero_stage": 3}, True)]
)
def test_a_step_lowers_the_peak(make_run, edits, is_a_step):
    """Which more micro-steps of the same size do not."""
    run = make_run(LARGE + "micro_batch_size: 1\ngradient_accumulation_steps: 2\n", "2x a100-80gb", deepspeed=ZERO_2)
    start = State(run)
    assert start.verdict == "does-not-fit"
    rule = rule_named("a-step", stage="fit", edits=lambda _: edits)
    found = best_step(rule, start)
    assert isinstance(found, Step) == is_a_step
    assert is_a_step or (isinstance(found, Skipped) and found.reason.startswith("would not lower the peak"))


def test_a_checkpoint_is_loaded_by_the_same_engine_and_optimizer(make_run):
    run = make_run(SMALL, "2x a100-80gb", deepspeed=ZERO_2)
    assert loads_alike(run, edited(run, {"zero_stage": 1}, "step"))
    assert not loads_alike(run, edited(run, {"zero_stage": 3}, "step"))
    assert not loads_alike(run, replace(run, optimizer="adamw_8bit"))


def test_a_card_is_shown_on_nodes_as_they_are_sold(make_run):
    run = make_run(SMALL)
    sizes = {name: [one.gpus_per_node for one in nodes_of(run, find_gpu(name))] for name in ("h100", "rtx-4090")}
    assert sizes["h100"] == [1, 2, 4, 8]
    assert set(sizes["rtx-4090"]) <= {1, 2, 4, 8}


def test_cards_without_links_are_no_clusters(make_run):
    run = make_run(SMALL)
    assert [one.nodes for one in clusters_of(run, find_gpu("h100"))] == [2, 4]
    assert not [*clusters_of(run, find_gpu("rtx-4090"))]


@pytest.mark.parametrize(
    "more",
    [
        {"gpus_per_node": 4},
        {"nodes": 2},
        {"host_bytes": 1 << 40},
        {"gpu": {"total_bytes": 90 << 30}},
        *({"gpu": {skill: True}} for skill in ("bf16", "fp8", "flash_attention")),
    ],
    ids=str,
)
def test_hardware_with_more_of_one_thing_is_not_less(more):
    """So a plan that came to nothing on the smaller one is made on it."""
    card = replace(find_gpu("a100-80gb"), bf16=False, fp8=False, flash_attention=False)
    small = replace(parse_hardware("2x a100-80gb host=512GiB"), gpu=card)
    large = replace(small, **({**more, "gpu": replace(card, **more["gpu"])} if "gpu" in more else more))
    assert is_less(small, small) and is_less(small, large) and not is_less(large, small)


def test_a_rung_that_the_plan_gives_up_is_taken_back(make_run):
    (kind,) = [kind for kind in KINDS if kind.name == "ZeRO-2"]
    sharded, whole = make_run(SMALL, "2x a100-80gb", deepspeed=ZERO_2), make_run(SMALL, "2x a100-80gb")
    assert rung_of(kind, State(sharded), Plan((), State(whole)), {}).word == "taken back"
    assert rung_of(kind, State(sharded), Plan((), State(sharded)), {}).word == "done"


@pytest.mark.parametrize(("verdict", "does"), [("fits", True), ("tight", False), ("does-not-fit", False)])
def test_the_next_larger_card_on_which_a_plan_fits_is_named_and_is_empty(make_run, verdict, does):
    run = make_run(LARGE, "1x rtx-4090")
    used = replace(run, hardware=replace(run.hardware, free_bytes=1 << 30))
    enough = next(gpu for gpu in larger_gpus(run.hardware.gpu) if gpu.nominal_gb >= 80)
    seen = []

    def planned(other):
        seen.append(other.hardware)
        word = verdict if other.hardware.gpu.total_bytes >= enough.total_bytes else "does-not-fit"
        return ending(word)

    found = hardware_that_would_do(used, planned)
    assert found == ([parse_hardware(f"1x {enough.id}").title] if does else [])
    assert all(one.free_bytes is None for one in seen if one.gpu.id != run.hardware.gpu.id)


def ending(verdict: str, *, little_room: bool = False) -> Plan:
    """As much of a plan as the choice of hardware asks for."""
    found = SimpleNamespace(verdict=verdict, estimate=SimpleNamespace(condition="", has_little_room=little_room))
    return Plan((), cast("State", found))


@pytest.mark.parametrize(("room_from", "named"), [(4, "4x"), (99, "2x")])
def test_the_fewest_cards_that_leave_room_are_named_or_the_fewest(make_run, room_from: int, named: str):
    run = make_run(LARGE, "1x rtx-4090")

    def planned(other):
        same_card = other.hardware.gpu.id == run.hardware.gpu.id
        return ending("fits" if same_card else "does-not-fit", little_room=other.hardware.world_size < room_from)

    assert [title[:2] for title in hardware_that_would_do(run, planned)] == [named]


def test_next_to_the_same_training_near_the_limit_other_training_is_looked_for(make_run):
    """Rows of so many tokens that the same training ends near the limit of the card."""
    run = make_run(NEAR, "2x rtx-4090 host=24GiB link=pcie")
    same, other = (plan_fit(State(run), tiers_of(Options()), safe_only=safe) for safe in (True, False))
    assert same.verdict == "tight" and other.verdict == "fits" and not other.safe
    assert "shorter-sequences" not in other.names


def test_rows_are_not_cut_next_to_the_same_training_near_the_limit(make_run):
    tiers = tiers_of(Options(ignore=("qlora", "half-precision-offload", "eight-bit-optimizer")))
    plan = plan_fit(State(make_run(NEAR, "2x rtx-4090 host=24GiB link=pcie")), tiers)
    assert plan.verdict == "tight" and plan.safe


@pytest.mark.parametrize(("verdict", "is_offered"), [("fits", True), ("tight", False)])
def test_a_tight_run_gets_no_steps_that_end_tight_again(make_run, verdict, is_offered, monkeypatch):
    run = make_run(SMALL)
    shorter = edited(run, {"sequence_len": 1024}, "step")
    end = State(shorter)
    vars(end)["estimate"] = with_verdict(end.estimate, verdict)
    step = Step(rule_named("shorter", stage="fit"), {"sequence_len": 1024}, State(run), end)
    monkeypatch.setattr("advisor.engine.check.estimate", lambda _: with_verdict(State(run).estimate, "tight"))
    monkeypatch.setattr("advisor.engine.plan.plan_fit", lambda *_, **__: Plan((step,), end))
    report = check_run(LoadedRun(run), Options(replays=False))
    assert report.verdict == "tight" and (report.plan is not None) == is_offered


def with_verdict(found, verdict):
    """The estimate on a card on which that is its verdict."""
    usable = {"fits": found.needed.high, "tight": found.needed.low}[verdict]
    changed = replace(found, usable=usable)
    assert changed.verdict == verdict
    return changed
