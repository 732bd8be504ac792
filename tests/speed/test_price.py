"""The time of a step: hand-computed terms, and how it moves with what one may change."""

import json
import math
from collections import Counter
from typing import Any

import pytest

import advisor
from advisor.errors import InputError
from advisor.hardware import parse_hardware
from advisor.hardware.catalogue import catalogue
from advisor.memory.weights import weights_of
from advisor.opening import open_configs
from advisor.speed import StepTime, Unpriced, host, link, step_time, traffic
from advisor.speed import constants as k
from advisor.speed.card import card_of, is_geforce
from advisor.speed.price import doubts_of_time
from advisor.speed.step_time import TimeTerm

LLAMA = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "sequence_len": 4096,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "attn_implementation": "flash_attention_2",
    "gradient_checkpointing": True,
    "optimizer": "adamw_torch_fused",
}
LORA = {"adapter": "lora", "lora_r": 16, "lora_alpha": 32, "lora_target_linear": True}
A100 = "1x a100-80gb-sxm"


def timed(gpus: str = A100, deepspeed: dict[str, Any] | None = None, **changes: Any) -> StepTime:
    found = step_time(open_configs(LLAMA | changes, deepspeed, gpus).run)
    assert isinstance(found, StepTime), found
    return found


def unpriced(gpus: str, **changes: Any) -> Unpriced:
    found = step_time(open_configs(LLAMA | changes, None, gpus).run)
    assert isinstance(found, Unpriced), found
    return found


def terms(found: StepTime) -> dict[str, float]:
    return {term.name: term.seconds for term in found.terms}


def test_linear_layers_by_hand():
    # Llama-3.1-8B: q, o 4096 x 4096, k, v 4096 x 1024, gate, up, down 4096 x 14336; forward, recomputation, backward x 2.
    weights = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    widths = 2 * 2 * 4096 + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    rate = 312e12 * 0.75 * 4096 / (4096 + 1.6 * 312e12 / 2039e9)
    moved = 2 * weights + 2 * 4096 * widths
    expected = 32 * 4 * (2 * 4096 * weights / rate + moved / (0.8 * 2039e9))
    assert math.isclose(terms(timed())["linear layers"], expected, rel_tol=1e-9)


def test_kto_scores_answers_to_other_prompts_and_both_by_the_reference():
    # Three forwards more than a recomputation's two and a backward of two.
    changes = LORA | {"micro_batch_size": 2}
    more = terms(timed(rl="kto", **changes))["attention"] / terms(timed(**changes))["attention"]
    assert math.isclose(more, (5 + 2.5) / (2 + 2.5), rel_tol=1e-9)


def test_attention_by_hand():
    # Half of 4,096 keys, 4 operations, two forwards and 2.5 backwards.
    expected = 32 * 4.5 * 4 * 4096 * 2048 * 4096 / (312e12 * 0.55)
    assert math.isclose(terms(timed())["attention"], expected, rel_tol=1e-9)


def test_the_optimizer_by_hand():
    # Pure bf16: weights, gradients and two states of 2 bytes, each read and written.
    expected = 2 * 8 * 8_030_261_248 / (0.8 * 2039e9)
    assert math.isclose(terms(timed())["optimizer"], expected, rel_tol=1e-6)


def test_cpu_adam_by_hand():
    zero = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}}}
    found = terms(timed("8x a100-80gb-sxm", zero | {"bf16": {"enabled": True}}))
    share = 8_030_261_248 / 8
    # Adam reads and writes 28 bytes, the scale 8, the cast 6; the weights travel back in half precision.
    expected = max(42 * share / 58.5e9, 42 * 8 * share / 117e9) + 2 * share / 12e9
    assert math.isclose(found["optimizer on the CPU"], expected, rel_tol=1e-6)
    assert "optimizer" not in found


@pytest.mark.parametrize(("stage", "steps", "each"), [(2, 1, 4), (2, 4, 2 + 4 / 4), (3, 1, 4 + 4), (3, 4, 4 + 4 / 4)])
def test_gradients_travel_to_the_host_as_masters_once_a_step(make_run, stage: int, steps: int, each: float):
    zero = {"zero_optimization": {"stage": stage, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": True}}
    run = make_run(
        f"base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 1\ngradient_accumulation_steps: {steps}\n",
        "8x a100-80gb-sxm",
        deepspeed=json.dumps(zero),
    )
    assert host.gradient_bytes(run, run.zero) == each


def test_terms_sum_to_the_step_and_the_range_encloses_it():
    found = timed()
    assert math.isclose(sum(found.by_kind().values()), found.expected)
    assert found.low < found.expected < found.high and found.confidence == "usual"
    assert math.isclose(found.tokens_per_second_per_gpu * found.expected, 4096)


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ({}, {"gradient_checkpointing": False}),
        ({}, LORA),
        (LORA | {"adapter": "qlora", "load_in_4bit": True}, LORA),
        ({"sequence_len": 8192}, {}),
        ({"micro_batch_size": 2}, {}),
        ({"gradient_accumulation_steps": 2}, {}),
        ({"attn_implementation": "eager"}, {}),
    ],
)
def test_what_does_more_takes_longer(slower: dict[str, Any], faster: dict[str, Any]):
    assert timed(**slower).expected > timed(**faster).expected


def test_larger_micro_batches_bring_more_tokens_a_second():
    rates = [timed(micro_batch_size=size, **LORA).tokens_per_second_per_gpu for size in (1, 2, 4, 8)]
    assert rates == sorted(rates)


def test_sharding_over_a_slow_link_costs_and_ddp_of_adapters_does_not():
    fsdp = {"fsdp_version": 2, "fsdp_config": {"reshard_after_forward": True}}
    slow, fast = (timed(f"2x rtx-3090 link={link}", **LORA, **fsdp) for link in ("pcie-slow", "nvlink"))
    assert terms(slow)["collectives"] > 10 * terms(fast)["collectives"]
    assert timed("2x rtx-3090 link=pcie-slow", **LORA).expected < slow.expected


@pytest.mark.parametrize(("stage", "once", "each"), [(0, 2, 0), (1, 3, 0), (2, 1, 2)])
def test_a_zero_stage_sends_so_many_bytes_per_byte_of_gradients(stage: int, once: int, each: int):
    """Once a step and in each micro-step, with 2 bytes a gradient; the real DeepSpeed's are counted by an oracle."""
    zero = {"zero_optimization": {"stage": stage}, "bf16": {"enabled": True}}
    for steps in (1, 4):
        config = LLAMA | {"gradient_accumulation_steps": steps}
        run = open_configs(config, zero | {"gradient_accumulation_steps": steps}, "8x a100-80gb-sxm").run
        assert run.model is not None
        assert link.traffic(run, weights_of(run, run.model)) == pytest.approx(
            (once + each * steps) * 2 * run.model.parameters, rel=1e-6
        )


def test_without_a_stated_link_the_cards_own_pcie_is_assumed():
    fsdp = {"fsdp_version": 2, "fsdp_config": {"reshard_after_forward": True}}
    assumed, stated = (timed(gpus, **fsdp) for gpus in ("2x rtx-3090", "2x rtx-3090 link=pcie"))
    assert assumed.expected == stated.expected
    assert assumed.confidence == "low" and "assumed" in " ".join(assumed.doubts)
    assert stated.confidence == "usual"


def test_an_assumed_link_that_carries_little_is_no_doubt():
    assert timed("2x rtx-3090", **LORA).confidence == "usual"


@pytest.mark.parametrize(("sent", "doubtful"), [(9.0, False), (11.0, True)])
def test_an_assumed_link_makes_a_time_doubtful_from_a_tenth_of_it_on(sent: float, doubtful: bool):
    terms = [TimeTerm("all else", "compute", 100 - sent, "", ""), TimeTerm("collectives", "link", sent, "", "")]
    assumed, stated = parse_hardware("2x rtx-4090"), parse_hardware("2x rtx-4090 link=pcie")
    assert bool([*doubts_of_time(assumed, terms, host_bound=False)]) == doubtful
    assert not [*doubts_of_time(stated, terms, host_bound=False)]


def test_several_nodes_need_their_network():
    assert "net=100Gb/s" in unpriced("2n8x h100-80gb-sxm").remedy
    assert timed("2n8x h100-80gb-sxm net=100Gb/s").expected > timed("2n8x h100-80gb-sxm net=3200Gb/s").expected


def test_generated_completions_have_no_time():
    assert "completions" in unpriced(A100, rl="ebft", **LORA).reason


@pytest.mark.parametrize(
    ("gpus", "changes", "doubt"),
    [
        ("1x t4", {}, "T4"),
        (A100, {"micro_batch_size": 1, "sequence_len": 64}, "short micro-steps"),
        (A100, {"base_model": "mistralai/Mixtral-8x7B-v0.1"}, "experts"),
        ("16n8x h100-80gb-sxm net=3200Gb/s", {}, "more than 64 GPUs"),
        (A100, LORA | {"adapter": "qlora", "load_in_4bit": True, "sequence_len": 512}, "1,024 tokens"),
    ],
)
def test_what_the_figures_say_little_about_is_a_rough_figure(gpus: str, changes: dict[str, Any], doubt: str):
    found = timed(gpus, **changes)
    assert found.confidence == "low" and doubt in " ".join(found.doubts)
    assert (found.low / found.expected, found.high / found.expected) == pytest.approx(k.WIDE_RANGE)


@pytest.mark.parametrize(
    ("gpus", "changes", "doubtful"),
    [
        ("8n8x h100-80gb-sxm net=3200Gb/s", {}, False),
        ("9n8x h100-80gb-sxm net=3200Gb/s", {}, True),
        (A100, LORA | {"adapter": "qlora", "load_in_4bit": True, "sequence_len": 1023}, True),
        (A100, LORA | {"adapter": "qlora", "load_in_4bit": True, "sequence_len": 1024}, False),
    ],
)
def test_figures_reach_to_64_gpus_and_down_to_1024_tokens_of_a_quantized_base(
    gpus: str, changes: dict[str, Any], doubtful: bool
):
    doubts = timed(gpus, **changes).doubts
    assert any("64 GPUs" in doubt or "1,024 tokens" in doubt for doubt in doubts) == doubtful


def test_from_python():
    found = advisor.step_time(LLAMA, gpus="2x rtx-3090 link=pcie")
    assert found.low < found.expected < found.high and found.terms
    assert (
        advisor.step_time(LLAMA, gpus=A100, kernels="optimized").expected < advisor.step_time(LLAMA, gpus=A100).expected
    )
    with pytest.raises(InputError, match="network"):
        advisor.step_time(LLAMA, gpus="2n8x a100-80gb")


ZERO_3 = {"zero_optimization": {"stage": 3}, "bf16": {"enabled": True}}
OFFLOAD = {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": True}}


@pytest.mark.parametrize(
    ("gpus", "node", "process", "copies"),
    [
        ("2x rtx-3090", 45e9, 45e9, 12e9),
        ("3x rtx-3090", 117e9, 58.5e9, 12e9),
        ("8x rtx-4090", 117e9, 58.5e9, 12e9),
        ("8x a100-80gb", 117e9, 58.5e9, 12e9),
        ("4x t4", 117e9, 58.5e9, 6e9),
        ("8x h100-80gb", 276e9, 138e9, 24e9),
        ("8x b200", 322e9, 161e9, 24e9),
    ],
)
def test_a_host_goes_by_the_generation_of_its_cards(gpus: str, node: float, process: float, copies: float):
    found = host.host_of(parse_hardware(gpus), k.SHIPPED)
    assert (found.memory, found.process, found.copies) == pytest.approx((node, process, copies))


@pytest.mark.parametrize(
    ("name", "is_for_desktops"),
    [
        ("rtx-2080-ti", True),
        ("rtx-5090", True),
        ("rtx-a6000", False),
        ("rtx-6000-ada", False),
        ("rtx-pro-6000-blackwell", False),
        ("l40s", False),
    ],
)
def test_cards_of_workstations_are_none_for_desktops(name: str, is_for_desktops: bool):
    assert is_geforce(parse_hardware(f"1x {name}").gpu) == is_for_desktops


def test_an_optimizer_on_a_new_host_is_twice_as_fast_as_on_an_old_one():
    zero = {"zero_optimization": OFFLOAD, "bf16": {"enabled": True}}
    old, new = (terms(timed(gpus, zero))["optimizer on the CPU"] for gpus in ("8x a100-80gb", "8x h100-80gb"))
    assert 2 < old / new < 2.5


def test_hooks_on_a_desktop_take_half_a_servers_time():
    short = {"sequence_len": 32, "gradient_checkpointing": False}
    desktop, server = (terms(timed(gpus, ZERO_3, **short))["launches and hooks"] for gpus in ("1x rtx-3090", "1x a10"))
    assert desktop < 0.6 * server


def test_context_parallelism_is_not_free():
    """Its keys and values travel, and the last GPU of a row sees the most keys."""
    whole = {"sequence_len": 32768, "fsdp_version": 2, "fsdp_config": {"reshard_after_forward": True}}
    alone = timed("8x h100-80gb", **whole | {"sequence_len": 32768 // 8})
    shared = timed("8x h100-80gb", **whole, context_parallel_size=8)
    assert shared.tokens == alone.tokens and shared.confidence == "low"
    # 32 layers, K and V of 1,024 in bf16, all 32,768 tokens; forward, recomputation, and 3 backward.
    moved = 5 * 32 * 32768 * 2 * 1024 * 2
    more = link_bytes("8x h100-80gb", whole | {"context_parallel_size": 8}) - link_bytes("8x h100-80gb", whole)
    assert more == moved
    keys = 8 * (2 - 1 / 8)
    assert math.isclose(terms(shared)["attention"], keys * terms(alone)["attention"], rel_tol=1e-9)


def test_experts_that_are_spread_get_their_tokens_over_the_links():
    """Each token to the GPUs that have its experts and back, forward, backward and recomputed."""
    moe = {
        "base_model": "mistralai/Mixtral-8x7B-v0.1",
        "fsdp_version": 2,
        "fsdp_config": {"reshard_after_forward": True},
    }
    spread = {"plugins": ["axolotl.integrations.expert_parallel.ExpertParallelPlugin"], "expert_parallel_size": 8}
    found = timed("8x h100-80gb", **moe, **spread)
    assert found.confidence == "low" and any("expert parallel" in doubt for doubt in found.doubts)
    met = 8 * (1 - (7 / 8) ** 2)
    experts = 32 * 8 * 3 * 4096 * 14336
    more = link_bytes("8x h100-80gb", moe | spread) - link_bytes("8x h100-80gb", moe)
    assert link_bytes("8x h100-80gb", moe | {"expert_parallel_size": 8}) == link_bytes("8x h100-80gb", moe)
    # Pure bf16: weights are gathered twice, and gradients scattered, of experts that now stay where they are.
    assert math.isclose(more, 6 * 4096 * met * 32 * 4096 * 2 - 3 * 2 * experts * 7 / 8, rel_tol=1e-9)


def test_grouped_products_compute_every_choice_of_a_token_wherever_it_goes():
    """Two choices on 8 GPUs meet 1.875 of them, where both are computed; ScatterMoE leaves those of others out."""
    names = ["expert_parallel.ExpertParallelPlugin", "kernels.KernelsPlugin"]
    plugins = [f"axolotl.integrations.{name}" for name in names]
    moe = {
        "base_model": "mistralai/Mixtral-8x7B-v0.1",
        "fsdp_version": 2,
        "fsdp_config": {"reshard_after_forward": True},
    }

    def operations(**keys: Any) -> float:
        found = timed("8x h100-80gb", **moe, **keys)
        (text,) = [term.formula for term in found.terms if term.name == "linear layers"]
        return float(text.partition("(")[2].partition(" T operations")[0])

    spread = {"plugins": plugins[:1], "expert_parallel_size": 8}
    scattered = {"plugins": plugins, "expert_parallel_size": 8, "use_scattermoe": True}
    # 2 x 1.875 choices a token, which is 2 more, rounded up: forward, recomputed, and twice in backward.
    more = 4 * 2 * 4096 * 32 * 2 * 3 * 4096 * 14336 / 1e12
    assert math.isclose(operations(**spread) - operations(), more, rel_tol=1e-3)
    assert operations(**scattered) == operations()


def test_tensor_parallelism_has_no_time():
    assert "tensor_parallel_size" in unpriced("8x h100-80gb", tensor_parallel_size=8).reason
    zero = {"zero_optimization": {"stage": 1}, "bf16": {"enabled": True}, "tensor_parallel": {"autotp_size": 2}}
    found = step_time(open_configs(LLAMA, zero, "8x h100-80gb").run)
    assert isinstance(found, Unpriced)
    assert "autotp_size" in found.reason


def test_a_doubt_names_deepspeeds_keys_that_send_other_bytes():
    """Of a group of one, or of hpZ, nothing is said."""
    for key, size, said in (
        ("mics_shard_size", 8, True),
        ("mics_shard_size", 1, False),
        ("zero_hpz_partition_size", 8, False),
    ):
        zero = {"zero_optimization": {"stage": 3, key: size}, "bf16": {"enabled": True}}
        assert any(key in doubt for doubt in timed("8x a100-80gb", zero).doubts) == said


class _ByRanks:
    """A carrier that counts the bytes that go around among so many."""

    def __init__(self) -> None:
        self.bytes: Counter[int] = Counter()

    def gathered(self, bytes_: float, ranks: int) -> float:
        self.bytes[ranks] += round(bytes_)
        return 0.0

    def across(self, bytes_: float, ranks: int, replicas: int) -> float:
        raise AssertionError(f"{bytes_} over {replicas} groups of {ranks}")

    def delay(self, collectives: int, ranks: int) -> float:
        return 0.0


LLAMA_ELEMENTS, ADAPTER_ELEMENTS = 8_030_261_248, 41_943_040
"""Of Llama 3.1 8B; and of LoRA of rank 16 on its seven linear layers, 16 x (n_in + n_out) x 32."""


@pytest.mark.parametrize(
    ("changes", "steps", "frozen", "trained"),
    [({}, 1, 0, LLAMA_ELEMENTS), ({}, 4, 0, LLAMA_ELEMENTS), (LORA, 4, LLAMA_ELEMENTS, ADAPTER_ELEMENTS)],
)
def test_hpz_gathers_over_all_once_a_step_what_the_step_has_changed(
    changes: dict[str, Any], steps: int, frozen: int, trained: int
):
    """2 gathers in each micro-step: of trained weights one in a step over all 32 GPUs; every gradient over all."""
    zero = {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}, "bf16": {"enabled": True}}
    more = changes | {"gradient_accumulation_steps": steps}
    run = open_configs(LLAMA | more, zero, "4n8x h100-80gb net=100Gb/s").run
    carrier = _ByRanks()
    assert run.model is not None
    link.micro_step(run, weights_of(run, run.model), carrier)
    assert carrier.bytes == {
        8: 2 * 2 * (frozen + trained) - 2 * trained // steps,
        32: 2 * trained // steps + 2 * trained,
    }


@pytest.mark.parametrize("size", [0, 1, 32, 64])
def test_hpz_over_one_gpu_or_all_changes_no_gathers(size: int):
    zero = {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": size}, "bf16": {"enabled": True}}
    gpus = "4n8x h100-80gb net=100Gb/s"
    assert terms(timed(gpus, zero))["collectives"] == pytest.approx(terms(timed(gpus, ZERO_3))["collectives"])


@pytest.mark.parametrize("net", ["25Gb/s", "100Gb/s", "400Gb/s"])
def test_groups_of_dp_shard_size_gather_among_themselves(net: str):
    """Gradients alone leave the node, once a step: 2 x 3/4 of 16.06 GB at 60 % of the network."""
    groups = {"dp_shard_size": 8, "dp_replicate_size": 4}
    whole, hybrid = (timed(f"4n8x h100-80gb net={net}", **FSDP_2, **more) for more in ({}, groups))
    once = terms(hybrid)["collectives, once a step"]
    scattered = 7 / 8 * 16.06e9 / (450e9 * 0.65)
    assert once == pytest.approx(scattered + 24.09e9 / (float(net[:-4]) / 8 * 1e9 * 0.6), rel=0.001)
    assert hybrid.expected < whole.expected
    assert terms(hybrid)["collectives"] < 0.1 * terms(whole)["collectives"]


def test_groups_as_large_as_the_world_are_no_groups():
    every = {"dp_shard_size": 32, "dp_replicate_size": 1}
    gpus = "4n8x h100-80gb net=100Gb/s"
    assert timed(gpus, **FSDP_2, **every).expected == timed(gpus, **FSDP_2).expected


FSDP_2 = {"fsdp_version": 2, "fsdp_config": {"reshard_after_forward": True}, "gradient_accumulation_steps": 4}


def link_bytes(gpus: str, changes: dict[str, Any]) -> float:
    return traffic(open_configs(LLAMA | changes, None, gpus).run)


@pytest.mark.parametrize("gpus", ["1x v100-32gb-sxm2", "1x t4", "1x rtx-2080-ti", "1x p100-16gb"])
def test_emulated_bf16_is_no_faster_than_fp32_and_no_tensor_core(gpus: str):
    small = {"base_model": "Qwen/Qwen2.5-0.5B", "sequence_len": 512, "attn_implementation": "sdpa"}
    emulated = timed(gpus, **small, bf16=True)
    half, plain = timed(gpus, **small, fp16=True, bf16=False), timed(gpus, **small, bf16=False)
    assert terms(emulated)["linear layers"] == pytest.approx(terms(plain)["linear layers"])
    assert terms(emulated)["linear layers"] > 1.5 * terms(half)["linear layers"]


def test_fp32_of_a_card_without_bf16_is_that_of_its_datasheet():
    rates = {name: card_of(catalogue().gpus[name], "fp32") for name in ("t4", "v100-32gb-sxm2", "rtx-2080-ti")}
    printed = {"t4": 8.1e12, "v100-32gb-sxm2": 15.7e12, "rtx-2080-ti": 13.45e12}
    assert {name: rate.tensor_flops for name, rate in rates.items() if rate} == pytest.approx(printed, rel=0.01)


def test_a_tiled_mlp_runs_its_forward_once_more():
    long = {"sequence_len": 32768, "gradient_checkpointing": True}
    whole = terms(timed("1x h100-80gb", **long))
    tiles = terms(timed("1x h100-80gb", **long, tiled_mlp=True, tiled_mlp_num_shards=8))
    # Llama 8B: forward, recomputation and two of backward, over 218.1M elements a layer, 176.2M of them the MLP's.
    assert math.isclose(tiles["linear layers"], whole["linear layers"] * (1 + 176.2 / (4 * 218.1)), rel_tol=0.005)
    assert tiles["attention"] == whole["attention"]
