"""Host memory of a node with two GPUs, for every way to offload."""

from collections.abc import Mapping
from typing import Any

import pytest

from advisor.memory import estimate
from advisor.memory.host import host_terms
from advisor.memory.host_processes import LEAST_OF_A_RANK, NAME, without_processes
from advisor.memory.nvme import disk_note
from advisor.opening import open_configs
from advisor.util import gib

from .small import ADAPTER, CPU, LORA, P, fsdp, named, small

SHARD = -(-P // 2)
MASTER, STATES = "master weights and gradients", "optimizer states"
BOTH = 2 * SHARD
ONE = {"one gradient": 2 * 2 * 100_000}
TWICE = {"gradient_accumulation_steps": 2}
PAGED = {"optimizer": "paged_adamw_32bit"}
PINNED = {"device": "cpu", "pin_memory": True}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, {}),
        ({"zero": {"stage": 2}}, {}),
        # Master weights 4 B, fp32 gradients 4, staging 2; AdamW's states 8. Below stage 3 a gradient as large as any.
        ({"zero": {"stage": 2, "offload_optimizer": CPU}}, {MASTER: 10 * BOTH, STATES: 8 * BOTH} | ONE),
        ({"zero": {"stage": 2, "offload_optimizer": CPU}, **TWICE}, {MASTER: 12 * BOTH, STATES: 8 * BOTH} | ONE),
        ({"zero": {"stage": 3, "offload_optimizer": CPU}, **TWICE}, {MASTER: 10 * BOTH, STATES: 8 * BOTH}),
        # 4 B and 2 B x 300,450 take the powers of two above 1,201,800 and 600,900.
        (
            {"zero": {"stage": 2, "offload_optimizer": PINNED}},
            {MASTER: 2 * (2 * 2**21 + 2**20), STATES: 8 * BOTH, "one gradient": 2 * 2**18},
        ),
        ({"zero": {"stage": 3, "offload_param": CPU}}, {"trained shards": 2 * 2**20}),
        (
            {"zero": {"stage": 3, "offload_param": CPU}, **LORA},
            {"trained shards": 2 * 2**14, "frozen shards": 2 * P},
        ),
        # Four buffers of the largest sub-group, here the shard of all matrices, and all gradients in half precision.
        (
            {"zero": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/d"}}},
            {"optimizer swap buffers": 2 * 4 * 2**21, "gradients": 2 * BOTH},
        ),
        (
            {"zero": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/d", "max_in_cpu": 1000}}},
            {"parameter swap buffers": 2 * 2**30, "trained shards": 2 * 2**11},
        ),
        # The other of two processes fills zeros while the first one loads.
        (fsdp(2), {"zeros of the other processes": 2 * P}),
        (fsdp(2, cpu_ram_efficient_loading=False), {}),
        # Weights, gradients and two states of 2 B each.
        (fsdp(2, offload_params=True), {"shards, gradients, states": (2 + 2 + 4) * P}),
        ({**fsdp(2, cpu_ram_efficient_loading=False), **PAGED}, {"paged optimizer states": 8 * P}),
        ({"zero": {"stage": 2}, **PAGED}, {"paged optimizer states": 8 * P}),
        # Each of two ranks has all states.
        (PAGED, {"paged optimizer states": 2 * 8 * P}),
        # The inputs of four layers on two ranks, 2,000 B each in a pinned block of 2,048.
        (
            {"gradient_checkpointing": True, "activation_offloading": "hidden_states", **LORA},
            {"offloaded activations": 2 * 4 * 2**11},
        ),
    ],
)
def test_what_lies_on_the_host(tmp_path, keys, expected):
    found = small(tmp_path, **keys)
    assert named(host_terms(found.run, found.model, found.weights)) == expected


def test_a_second_partition_on_the_host_has_each_weight_in_its_own_dtype(tmp_path):
    """Over 4 of 8 GPUs, whose node then has it twice: of QLoRA's 4-bit weights what they take, of others 2 B each."""
    zero = {"stage": 3, "offload_param": CPU, "zero_hpz_partition_size": 4}
    full = small(tmp_path, gpus=8, zero=zero)
    assert named(host_terms(full.run, full.model, full.weights))["second partition"] == 8 * (2 * P // 4)
    packed = small(tmp_path, gpus=8, zero=zero, **LORA | {"adapter": "qlora", "load_in_4bit": True})
    frozen = packed.weights.frozen_bytes
    assert frozen < 2 * P
    found = named(host_terms(packed.run, packed.model, packed.weights))["second partition"]
    assert found == 8 * ((2 * ADAPTER + frozen) // 4)


def test_states_on_nvme_lie_on_the_disk(tmp_path):
    zero = {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/d"}}
    found = small(tmp_path, zero=zero)
    assert disk_note(found.run, found.weights) == f"{gib(12 * P)} lie on the disk of each node, at `nvme_path`"
    assert disk_note(small(tmp_path, zero={"stage": 3}).run, found.weights) == ""


MOE = {
    "base_model": "Qwen/Qwen3-30B-A3B",
    "sequence_len": 1024,
    "gradient_checkpointing": True,
    "attn_implementation": "flash_attention_2",
    "bf16": True,
}
STACKS = 2 * 48 * 128 * 3 * 2048 * 768
MERGED = {"experts, stacked by each rank"}
EIGHT = "8x h100-80gb"


def on_host(zero: Mapping[str, object] | None, gpus: str = EIGHT, **keys: object) -> dict[str, int]:
    config = {**MOE, **keys, **({"deepspeed": {"zero_optimization": zero, "bf16": {"enabled": True}}} if zero else {})}
    found = estimate(open_configs(config, gpus=gpus).run)
    assert found is not None
    return named(without_processes(found.host))


@pytest.mark.parametrize(
    ("keys", "least"),
    [
        ({"deepspeed": {"zero_optimization": {"stage": 2, "offload_optimizer": CPU}}}, [8 * LEAST_OF_A_RANK]),
        (PAGED, []),
        ({}, []),
    ],
)
def test_processes_are_counted_where_something_is_offloaded(keys: dict[str, object], least: list[int]):
    found = estimate(open_configs({**MOE, **keys}, gpus=EIGHT).run)
    assert found is not None
    assert [term.least for term in found.host if term.name == NAME] == least


def test_each_rank_stacks_the_experts_of_a_split_checkpoint_while_it_loads():
    assert on_host({"stage": 3}) == dict.fromkeys(MERGED, 8 * STACKS)
    assert on_host({"stage": 3}, "2n8x h100-80gb") == dict.fromkeys(MERGED, 8 * STACKS)


@pytest.mark.parametrize(
    ("zero", "keys"),
    [
        ({"stage": 2}, {}),
        (None, {}),
        ({"stage": 3}, {"base_model": "Qwen/Qwen3-32B"}),
        ({"stage": 3}, {"base_model": "unsloth/gpt-oss-20b-BF16"}),
        ({"stage": 3}, {"adapter": "qlora", "load_in_4bit": True, "lora_r": 8, "lora_target_modules": ["q_proj"]}),
    ],
    ids=["ZeRO-2", "no DeepSpeed", "dense", "stored stacked", "quantized"],
)
def test_nothing_is_stacked_elsewhere(zero: Mapping[str, object] | None, keys: Mapping[str, object]):
    assert on_host(zero, **keys) == {}


def test_the_host_needs_the_larger_of_load_and_training():
    both = {"stage": 3, "offload_optimizer": CPU, "offload_param": CPU}
    lora: dict[str, Any] = {"adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_target_modules": ["q_proj"]}
    assert set(on_host(both)) == {MASTER, STATES, "trained shards"}
    loading = on_host(both, **lora)
    assert set(loading) == MERGED | {"trained shards", "frozen shards"}
    assert loading["frozen shards"] < STACKS * 1.1


EFFICIENT: dict[str, object] = {"cpu_ram_efficient_loading": True, "auto_wrap_policy": "X"}
FSDP2: dict[str, Any] = {"fsdp_version": 2, "fsdp_config": EFFICIENT}
ADAPTED: dict[str, Any] = {"adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_target_modules": ["q_proj"]}
QWEN_30B, LLAMA_8B = 2 * 30_532_122_624, 2 * 8_030_261_248


def test_fsdp_loads_once_and_fills_zeros_in_the_other_processes_of_a_full_fine_tune():
    one = "experts, stacked by one process"
    zeros = "zeros of the other processes"
    assert on_host(None, **FSDP2) == {one: STACKS, zeros: 7 * QWEN_30B}
    assert on_host(None, "2n8x h100-80gb", **FSDP2) == {one: STACKS, zeros: 7 * QWEN_30B}
    assert on_host(None, **FSDP2, **ADAPTED) == {one: STACKS}
    assert on_host(None, **FSDP2, base_model="meta-llama/Llama-3.1-8B") == {zeros: 7 * LLAMA_8B}
    assert on_host(None, **FSDP2, base_model="meta-llama/Llama-3.1-8B", **ADAPTED) == {}


def test_a_reference_model_is_loaded_besides():
    keys: dict[str, Any] = {**FSDP2, "base_model": "meta-llama/Llama-3.1-8B", "rl": "dpo"}
    assert on_host(None, **keys) == {"zeros of the other processes": 14 * LLAMA_8B}


def test_older_transformers_reserve_what_they_do_not_fill():
    config = {**MOE, **FSDP2, "base_model": "meta-llama/Llama-3.1-8B"}
    found = estimate(open_configs(config, gpus=EIGHT, stack={"transformers": "5.5.4"}).run)
    assert found is not None and named(found.host) == {}


def test_each_process_of_fsdp_stacks_where_loading_is_not_efficient():
    every: dict[str, Any] = {"fsdp_version": 2, "fsdp_config": {"auto_wrap_policy": "X"}}
    assert on_host(None, **every, **ADAPTED) == {"experts, stacked by each rank": 8 * STACKS}


def test_one_process_holds_its_experts_while_shards_are_offloaded():
    keys: dict[str, Any] = {**FSDP2, "fsdp_config": {**EFFICIENT, "offload_params": True}}
    loading = on_host(None, **keys, **ADAPTED)
    assert set(loading) == {"experts, stacked by one process", "shards"}
    assert loading["shards"] > QWEN_30B
