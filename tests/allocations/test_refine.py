# pyright: basic
"""What a replay changes in an estimate, and what it may not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from advisor.accuracy.judging import judged
from advisor.allocations.allocator.settings import Settings, settings_of
from advisor.allocations.autograd import autograd
from advisor.allocations.autograd.autograd import EMPTIED
from advisor.allocations.coverage import covered, uncovered
from advisor.allocations.refine import least, settled, with_reserved
from advisor.allocations.replay import replayed, reserved_peaks
from advisor.allocations.step.assembly import recorded
from advisor.allocations.timeline import timeline
from advisor.engine.check import check_run
from advisor.engine.options import Options
from advisor.memory import Estimate, estimate
from advisor.memory.ledger import Range
from advisor.models.blocks import LinearShape
from advisor.opening import LoadedRun
from advisor.run import Images, Run

CONFIG = """\
base_model: Qwen/Qwen3-0.6B
datasets: [{path: some/data, type: alpaca}]
learning_rate: 1e-4
micro_batch_size: 1
gradient_accumulation_steps: 1
sequence_len: 512
bf16: true
attn_implementation: flash_attention_2
adapter: lora
lora_r: 8
lora_alpha: 16
lora_target_linear: true
lora_mlp_kernel: false
lora_qkv_kernel: false
lora_o_kernel: false
gradient_checkpointing: true
"""


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    return make_run(CONFIG)


@pytest.fixture
def found(run: Run) -> Estimate:
    estimated = estimate(run)
    assert estimated is not None
    return estimated


def test_the_reserved_range_of_a_covered_run_is_a_few_percent_wide(run: Run, found: Estimate):
    refined = with_reserved(run, found)
    assert (found.ranges, refined.ranges) == ("published", "replay")
    assert refined.reserved_peak.low >= 0.98 * found.allocated_peak
    assert refined.reserved_peak.high <= 1.12 * refined.reserved_peak.low
    assert any("replay" in note for note in refined.notes)
    assert not any("published runs of this kind" in note for note in refined.notes)
    assert refined.needed == found.needed


def test_the_range_has_room_for_what_no_tape_sees_and_three_segments_more(run: Run, found: Estimate):
    """torch maps 20 MiB at a time, each pool and stream for itself."""
    least_reserved, most_reserved = reserved_peaks(run)
    refined = with_reserved(run, found).reserved_peak
    assert refined.low == pytest.approx(0.98 * least_reserved, abs=1)
    assert refined.high >= 1.05 * most_reserved + 3 * (20 << 20)


def test_no_more_is_reserved_than_a_card_has(run: Run, found: Estimate):
    """Near the limit torch gives cached blocks back, so that anything down to what is allocated may be reserved."""
    free = with_reserved(run, found).reserved_peak
    for usable, low in ((free.high - 1, free.low), (free.low - 1, found.allocated_peak)):
        near = replace(found, usable=usable, needed=Range(found.allocated_peak, usable))
        assert with_reserved(run, near).reserved_peak == Range(low, usable)
    failing = replace(found, usable=free.low - 1, needed=Range(free.low, free.high))
    assert failing.verdict == "does-not-fit" and with_reserved(run, failing).reserved_peak == free


def test_what_is_not_covered_keeps_the_published_range(make_run: Callable[..., Run]):
    other = make_run(CONFIG.replace("lora_alpha: 16", "lora_alpha: 16\npeft_use_dora: true"))
    estimated = estimate(other)
    assert estimated is not None
    assert not covered(other)
    assert with_reserved(other, estimated) is estimated


@pytest.mark.parametrize("raised", [KeyError(2481), AssertionError("counted"), RecursionError(), MemoryError()])
@pytest.mark.parametrize("function", ["reserved_peaks", "goes_through"])
def test_what_is_raised_inside_a_replay_leaves_the_published_range(
    run: Run, found: Estimate, function: str, raised: Exception, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> None:
        raise raised

    monkeypatch.setattr(f"advisor.allocations.replay.{function}", fails)
    published = tight(found, found.usable) if function == "goes_through" else found
    monkeypatch.setattr("advisor.engine.check.estimate", lambda _: published)
    report = check_run(LoadedRun(run), Options(plans=False, details=True))
    assert report.verdict == published.verdict
    assert report.estimate is not None and report.estimate.needed == published.needed


@pytest.mark.slow
@pytest.mark.parametrize("more", ["rl: dpo", "eval_batch_size: 32768\nval_set_size: 0.1"])
def test_a_step_of_very_many_allocations_keeps_the_published_range(make_run: Callable[..., Run], more: str):
    """Each row of a batch of preferences has tensors of its own, so that 32,768 of them would take minutes."""
    changed = make_run(CONFIG.replace("micro_batch_size: 1", f"micro_batch_size: 32768\n{more}"))
    report = check_run(LoadedRun(changed), Options(plans=False, details=True))
    assert report.verdict == "does-not-fit"
    assert report.estimate is not None and (more != "rl: dpo" or report.estimate.ranges == "published")


def test_a_replay_ends_where_its_tape_is_too_long(run: Run, found: Estimate, monkeypatch: pytest.MonkeyPatch):
    assert len(recorded(run).parts) > 1000
    monkeypatch.setattr(autograd, "MOST_ALLOCATIONS", 1000)
    recorded.cache_clear()
    with pytest.raises(autograd.LongTapeError):
        recorded(run)
    report = check_run(LoadedRun(run), Options(plans=False, details=True))
    assert report.estimate is not None and report.estimate.ranges == "published"


def test_an_allocation_larger_than_any_card_has_an_answer(make_run: Callable[..., Run]):
    rows = CONFIG.replace("micro_batch_size: 1", "micro_batch_size: 8192").replace("512", "131072")
    assert check_run(LoadedRun(make_run(rows)), Options(plans=False, details=True)).verdict == "does-not-fit"


def tight(found: Estimate, usable: int) -> Estimate:
    """The estimate on a card on which it is tight."""
    changed = replace(found, usable=usable, needed=Range(usable - 1, usable + 1))
    assert changed.verdict == "tight"
    return changed


def test_a_tight_run_that_goes_through_stays_tight(run: Run, found: Estimate):
    estimated = tight(found, round(1.1 * found.allocated_peak))
    assert settled(run, estimated) is estimated


def test_a_tight_run_that_no_order_brings_through_does_not_fit(run: Run, found: Estimate):
    estimated = tight(found, round(0.9 * found.allocated_peak))
    refined = settled(run, estimated)
    assert refined.verdict == "does-not-fit"
    assert found.allocated_peak <= refined.needed.low <= 1.1 * found.allocated_peak


def test_a_tape_is_not_believed_closer_to_the_limit_than_it_agrees_with_the_ledger(run: Run, found: Estimate):
    """Half a percent below it passes; two percent are more than tape and ledger ever differ."""
    needed = least(run, tight(found, round(0.9 * found.allocated_peak)))
    within, beyond = (tight(found, round(needed / factor)) for factor in (1.0, 1.03))
    assert settled(run, within) is within
    assert settled(run, beyond).verdict == "does-not-fit"


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_far_from_the_limit_nothing_is_replayed(
    run: Run, found: Estimate, factor: float, monkeypatch: pytest.MonkeyPatch
):
    def asked(_run: Run) -> bool:
        raise AssertionError("a tape was asked for")

    monkeypatch.setattr("advisor.allocations.refine.covered", asked)
    estimated = replace(found, usable=round(factor * found.allocated_peak))
    assert settled(run, estimated) is estimated


def test_no_published_run_changes_its_verdict_for_the_better_or_falsely():
    """None that went through is called ``does-not-fit``, and none that failed ``fits``, through a replay."""
    for case in judged():
        estimated = replace(case.estimate, usable=round(case.usable))
        refined = settled(case.run, estimated)
        assert refined.verdict == estimated.verdict or (refined.verdict == "does-not-fit" and case.case.out_of_memory)


def test_a_tape_allocates_what_published_runs_measured():
    """One GPU, Mistral-7B and Llama-shaped: full fine-tuning, LoRA, QLoRA, by torch's own count."""
    cases = [case for case in judged() if covered(case.run) and case.case.counts and not case.case.out_of_memory]
    assert len(cases) >= 6
    for case in cases:
        found = replayed(recorded(case.run).events, settings_of(case.run))
        assert found.peak_allocated == pytest.approx(case.allocated, rel=0.0005), case.case.id


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("lora_alpha: 16", "lora_alpha: 16\npeft_use_dora: true"), "DoRA"),
        (("Qwen/Qwen3-0.6B", "openai/gpt-oss-20b"), "the family"),
        (("Qwen/Qwen3-0.6B", "tiiuae/falcon-7b"), "the family"),
        (("Qwen/Qwen3-0.6B", "google/gemma-3-4b-it"), "a tower that computes, or is trained"),
        (("sequence_len: 512", "sequence_len: 512\noptimizer: lion_8bit"), "the optimizer lion_8bit"),
        (("sequence_len: 512", "sequence_len: 512\nrl: ebft"), "training on preferences"),
        (("sequence_len: 512", "sequence_len: 512\nreward_model: true"), "a classifier's head"),
        (("sequence_len: 512", "sequence_len: 512\nqat: {weight_dtype: int4, group_size: 32}"), "weights rounded"),
        (("bf16: true", "bf16: false"), "training in fp32"),
        (("bf16: true", "bf16: false\nload_in_8bit: true"), "training in fp16"),
    ],
)
def test_what_no_tape_has_is_named(make_run: Callable[..., Run], change: tuple[str, str], word: str):
    named = list(uncovered(make_run(CONFIG.replace(*change))))
    assert any(one.startswith(word) for one in named), named


def test_quantized_weights_behind_layer_norms_have_a_tape(make_run: Callable[..., Run]):
    """They give back fp32, as they get it from the norm: tape and ledger count it."""
    config = CONFIG.replace("Qwen/Qwen3-0.6B", "microsoft/phi-2")
    for keys in ("adapter: qlora\nload_in_4bit: true", "adapter: lora\nload_in_8bit: true"):
        assert covered(make_run(config.replace("adapter: lora", keys)))


def test_only_embedding_and_head_have_a_tape_as_trained_modules(make_run: Callable[..., Run]):
    def saving(names: str) -> Run:
        return make_run(CONFIG.replace("lora_alpha: 16", f"lora_alpha: 16\nlora_modules_to_save: [{names}]"))

    assert covered(saving("embed_tokens, lm_head"))
    assert list(uncovered(saving("embed_tokens, norm"))) == ["DoRA or trained modules"]


def test_workspaces_of_cublas_are_as_large_as_the_card_has_them(make_run: Callable[..., Run]):
    found = {
        gpus: sum(size for (number, size), part in sized(make_run(CONFIG, gpus=gpus)) if part == "workspace")
        for gpus in ("1x a100-80gb", "1x h100-80gb", "1x b200")
    }
    assert found == {"1x a100-80gb": 2 * 8_519_680, "1x h100-80gb": 64 << 20, "1x b200": 64 << 20}


def sized(run: Run) -> list[tuple[tuple[int, int], str]]:
    """The allocations of a run, with what made them."""
    tape = recorded(run)
    return [((number, size), tape.parts[number]) for number, size in tape.events if size]


def test_an_emptied_cache_gives_its_segments_back():
    filled, large = [(1, 32 << 20), (1, 0)], (2, 48 << 20)
    assert replayed([*filled, large], Settings()).peak_reserved == 80 << 20
    assert replayed([*filled, EMPTIED, large], Settings()).peak_reserved == 48 << 20


@pytest.mark.parametrize(("rl", "times"), [("dpo", 4), ("orpo", 0), ("kto", 0)])
def test_the_trainer_of_dpo_alone_empties_the_cache_after_each_micro_step(
    make_run: Callable[..., Run], rl: str, times: int
):
    keys = f"gradient_accumulation_steps: 2\nmicro_batch_size: 2\nrl: {rl}"
    lines = [line for line in CONFIG.splitlines() if not line.startswith("micro_batch_size")]
    run = make_run("\n".join(lines).replace("gradient_accumulation_steps: 1", keys))
    assert covered(run)
    assert recorded(run).events.count(EMPTIED) == times


TEXT = CONFIG.replace("Qwen/Qwen3-0.6B", "google/gemma-3-4b-it") + "unfrozen_parameters: [^lm_head.*]\n"


def test_text_through_a_model_with_a_frozen_tower_has_a_tape_where_no_mask_picks_logits(make_run: Callable[..., Run]):
    assert covered(make_run(TEXT + "sample_packing: true\n"))
    assert not covered(make_run(TEXT))
    assert not covered(make_run(TEXT + "sample_packing: true\nprocessor_type: AutoProcessor\n"))


SEES = TEXT + "processor_type: AutoProcessor\nval_set_size: 0.1\nevals_per_epoch: 1\n"


def test_images_under_replicas_that_look_for_unused_weights_have_no_tape(make_run: Callable[..., Run]):
    assert covered(make_run(SEES, gpus="2x a100-80gb"))
    assert not covered(make_run(SEES + "ddp_find_unused_parameters: true\n", gpus="2x a100-80gb"))


def test_images_have_a_tape_where_there_are_some_and_as_many_in_evaluation(make_run: Callable[..., Run]):
    run = make_run(SEES)
    assert covered(run)
    assert covered(make_run(SEES + "eval_batch_size: 1\n"))
    assert not covered(make_run(SEES + "eval_batch_size: 2\n"))
    assert not covered(replace(run, images=Images(0, 0, 0, "--images")))
    assert not covered(replace(run, adapter=None, lora=None))


def test_layers_in_front_of_the_first_adapter_have_no_tape_where_nobody_asks_for_gradients(
    make_run: Callable[..., Run],
):
    some = CONFIG.replace("Qwen/Qwen3-0.6B", "LiquidAI/LFM2-350M").replace(
        "lora_target_linear: true", "lora_target_modules: [q_proj]"
    )
    assert covered(make_run(some))
    without = make_run(some.replace("gradient_checkpointing: true", "gradient_checkpointing: false"))
    assert covered(without)
    elsewhere = replace(without, stack=replace(without.stack, trainer="trl-sft"))
    assert list(uncovered(elsewhere)) == ["layers that keep nothing until the first adapter"]


def test_experts_with_adapters_or_other_kernels_have_no_tape(make_run: Callable[..., Run]):
    experts = CONFIG.replace("Qwen/Qwen3-0.6B", "zai-org/GLM-4.5-Air").replace(
        "lora_target_linear: true", "lora_target_modules: [q_proj]"
    )
    assert covered(make_run(experts))
    assert not covered(make_run(experts + "lora_target_parameters: [mlp.experts.gate_up_proj]\n"))
    assert not covered(make_run(experts.replace("[q_proj]", "[q_proj, up_proj]")))


def test_replicas_have_a_tape_where_axolotl_sets_them_up_and_shards_have_none(make_run: Callable[..., Run]):
    def on_two(keys: str = "") -> Run:
        return make_run(CONFIG + keys, gpus="2x a100-80gb")

    assert covered(on_two()) and covered(on_two("ddp: true\nddp_broadcast_buffers: false\n"))
    assert covered(on_two("ddp_find_unused_parameters: true\nddp_bucket_cap_mb: 50\n"))
    assert list(uncovered(on_two("ddp: false\n"))) == ["DDP as the trainer sets it"]
    assert list(uncovered(on_two("reward_model: true\n")))[-1] == "a classifier's head and loss"
    sharded = on_two("fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\n")
    assert list(uncovered(sharded)) == ["weights or states that are sharded"]


def test_buckets_of_replicas_hold_each_gradient_once_and_are_gradients_to_the_timeline(make_run: Callable[..., Run]):
    one, two = (make_run(CONFIG, gpus=f"{count}x a100-80gb") for count in (1, 2))
    trained = 4 * sum(weight.n_in + weight.n_out for weight in linears(two)) * 8
    first, *others = [size for (_, size), part in sized(two) if part == "buckets"]
    assert first == sum(others) == trained and others[0] >= 1 << 20
    after = [timeline(run).spans[1].moments[-1].of("gradients") for run in (one, two)]
    assert after[0] == 0 and after[1] == pytest.approx(trained, rel=0.05)


def linears(run: Run) -> list[LinearShape]:
    """The linear layers of all blocks."""
    assert run.model is not None
    return [linear for block in run.model.blocks for linear in block.linears for _ in range(block.count)]
