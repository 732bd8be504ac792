"""What FSDP holds on one GPU; tests/oracles/test_fsdp_states.py measures the same on a small model."""

import pytest

from advisor.memory import estimate
from advisor.memory.fsdp import (
    gathered_units,
    gradients_of_layers,
    held_inputs,
    layer_gradients,
    root_copied,
    root_gradients,
    waiting_head,
)
from advisor.opening import open_configs

from .small import LAYER as SMALL_LAYER
from .small import LORA as SMALL_LORA
from .small import MATRIX, ROOT, fsdp, named, small
from .small import TABLE as SMALL_TABLE
from .small import P as SMALL

P = 8_030_261_248
TABLE = 128_256 * 4096
LAYER = 4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336 + 2 * 4096
LLAMA = "base_model: meta-llama/Llama-3.1-8B\nattn_implementation: flash_attention_2\nbf16: true\nfsdp_version: 2\n"
EFFICIENT = "fsdp_config: {cpu_ram_efficient_loading: true}\n"
LORA = "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
EACH = "accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}\n"
CHECKPOINTS = "gradient_checkpointing: true\n"


@pytest.fixture
def phases(make_run):
    """The terms of each phase, on eight GPUs unless told otherwise."""

    def made(text, gpus="8x a100-80gb"):
        found = estimate(make_run(text, gpus))
        assert found is not None
        return {phase.name: {term.name: term.bytes for term in phase.terms} for phase in found.phases}

    return made


def test_gradients_accumulate_whole_on_every_gpu(phases):
    """The Trainer reduces in the last micro-step alone: transformers/trainer.py:1758-1767@5.16.1."""
    once, often = (phases(LLAMA + EFFICIENT + f"gradient_accumulation_steps: {steps}\n") for steps in (1, 4))
    assert "gradients" not in once["forward and loss"]
    assert often["forward and loss"]["gradients"] == 2 * P
    assert once["optimizer step"]["gradients"] == often["optimizer step"]["gradients"] == 2 * P // 8


def test_offloaded_parameters_do_not_take_whole_gradients_along(phases):
    text = (
        LLAMA + "gradient_accumulation_steps: 2\nfsdp_config: {offload_params: true, cpu_ram_efficient_loading: true}\n"
    )
    found = phases(text)
    assert found["backward"]["gradients"] == 2 * P
    assert "gradients" not in found["optimizer step"]


def test_gradients_stay_shards_where_every_micro_step_reduces_them(phases):
    found = phases(LLAMA + EFFICIENT + EACH + "gradient_accumulation_steps: 4\n")
    assert found["forward and loss"]["gradients"] == 2 * P // 8


def test_one_gpu_has_nothing_to_reduce(phases):
    found = phases(LLAMA + EFFICIENT + "gradient_accumulation_steps: 4\n", "1x h200")
    assert found["forward and loss"]["gradients"] == 2 * P


def test_adapters_accumulate_whole_in_the_width_that_is_computed_with(phases):
    found = phases(LLAMA + EFFICIENT + LORA + "gradient_accumulation_steps: 4\n")
    assert found["forward and loss"]["gradients"] == 2 * 41_943_040


def test_the_root_units_gradients_are_reduced_last(phases):
    """Of a tied table the head's, the embedding's and their sum."""
    text = LLAMA.replace("Llama-3.1-8B", "Llama-3.2-1B") + EFFICIENT + CHECKPOINTS + "sequence_len: 16\n"
    backward = phases(text)["backward"]
    table = 128_256 * 2048
    assert backward["root unit's whole gradients"] == 3 * 2 * table
    assert backward["gradients"] == (2 * 1_235_814_400 - 2 * table) // 8


def test_a_layers_gradients_are_whole_while_it_is_at_work(phases):
    backward = phases(LLAMA + EFFICIENT + CHECKPOINTS + "sequence_len: 32768\n")["backward"]
    assert backward["head gradient"] == 2 * TABLE
    assert backward["layer's whole gradients"] == 2 * (4096 * 14336 + LAYER)
    assert backward["gathered layers"] == 2 * 2 * LAYER


def test_frozen_layers_have_no_gradients(phases):
    backward = phases(LLAMA + EFFICIENT + CHECKPOINTS + LORA + "sequence_len: 32768\n")["backward"]
    assert not {"head gradient", "layer's whole gradients", "root unit's whole gradients"} & backward.keys()


def test_layers_are_units_without_a_policy(make_run):
    """transformers/training_args.py:2787@5.16.1."""
    run = make_run(LLAMA + EFFICIENT)
    assert run.fsdp is not None
    assert run.fsdp.wraps_layers


@pytest.mark.parametrize(
    ("said", "whole"),
    [(EFFICIENT, False), ("fsdp_config: {reshard_after_forward: true}\n", True)],
)
def test_the_whole_model_is_on_each_gpu_unless_loaded_efficiently(phases, said, whole):
    load = phases(LLAMA + said)["load"]
    assert load.get("whole weights", 0) == (2 * P if whole else 0)
    assert sum(load.values()) == (2 * P + 2 * P // 8 if whole else pytest.approx(2 * P / 8 + 2 * TABLE, abs=10))


def test_fsdp2_quantizes_on_the_host_if_it_loads_efficiently(phases):
    text = LLAMA + LORA.replace("lora\n", "qlora\n", 1) + "load_in_4bit: true\n"
    efficient, whole = (phases(text + said)["load"] for said in (EFFICIENT, "fsdp_config: {offload_params: false}\n"))
    assert sum(efficient.values()) < sum(whole.values()) / 2
    assert "quantized model" in whole


RESHARDS, STAYS = fsdp(2, reshard_after_forward=True), fsdp(2, reshard_after_forward=False)
AROUND = {
    "gradient_checkpointing": True,
    "gradient_checkpointing_kwargs": {"use_reentrant": True},
    "stack": {"transformers": "4.52.4"},
}
"""Checkpoints lie around units, and not inside of them."""
TWICE = {"gradient_accumulation_steps": 2}
PLAIN, KERNELS = (dict.fromkeys(("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"), on) for on in (False, True))
WHOLE = 4
"""All layers."""


@pytest.mark.parametrize(
    ("keys", "layers"),
    [
        # End of forward, start of backward, a layer at work and done, the first at work and done, end, evaluation.
        (RESHARDS, (1, 1, 2, 2, 2, 2, 0, 2)),
        ({**RESHARDS, **SMALL_LORA, **PLAIN}, (0, 1, 2, 2, 2, 2, 0, 1)),
        ({**RESHARDS, **SMALL_LORA, **KERNELS}, (1, 1, 2, 2, 2, 2, 0, 2)),
        (STAYS, (1 + WHOLE, WHOLE, WHOLE, WHOLE, 1, 1, 0, 2 + WHOLE)),
        (fsdp(1), (0, 0, 1, 1, 1, 1, 0, 1)),
        ({**fsdp(1), **SMALL_LORA}, (0, 0, 1, 2, 1, 2, 0, 1)),
        ({**fsdp(1), **SMALL_LORA, **AROUND}, (0, 0, 1, 1, 1, 1, 0, 1)),
    ],
)
def test_layers_that_are_gathered(tmp_path, keys, layers):
    found = small(tmp_path, **keys)
    moments = (
        "end of forward",
        "start of backward",
        "layer",
        "layer done",
        "first layer",
        "first layer done",
        "end of backward",
        "evaluation",
    )
    gathered = [named(gathered_units(found.run, found.model, moment)) for moment in moments]
    assert [terms["gathered root unit"] for terms in gathered] == [2 * ROOT] * len(moments)
    assert [terms.get("gathered layers", 0) for terms in gathered] == [2 * units * SMALL_LAYER for units in layers]


def test_without_layers_as_units_the_whole_model_is_gathered(tmp_path):
    found = small(tmp_path, **fsdp(2, auto_wrap_policy="NO_WRAP"))
    assert named(gathered_units(found.run, found.model, "layer")) == {"gathered model": 2 * SMALL}


@pytest.mark.parametrize(
    ("keys", "tables", "layers"),
    [
        # FSDP1 makes one flat gradient of both tables' own.
        (fsdp(1), 2 * 2, 0),
        ({**fsdp(1), **TWICE}, 2 * 2, 0),
        ({**fsdp(1), "tied": True}, 3, 0),
        (fsdp(2), 2, 1),
        ({**fsdp(2), **TWICE}, 1, 1),
        ({**fsdp(2), "tied": True}, 3, 1),
        ({**fsdp(1), "gpus": 1}, 0, 0),
        ({**fsdp(2), "gpus": 1}, 2, 1),
        ({**fsdp(1), **SMALL_LORA}, 0, 0),
        ({}, 0, 0),
    ],
)
def test_gradients_of_the_root_unit(tmp_path, keys, tables, layers):
    found = small(tmp_path, **keys)
    terms = {
        "root unit's whole gradients": 2 * tables * SMALL_TABLE,
        "layer's flat gradients": 2 * layers * SMALL_LAYER,
    }
    counted = named(root_gradients(found.run, found.model, found.weights))
    assert counted == {name: bytes_ for name, bytes_ in terms.items() if bytes_}


@pytest.mark.parametrize(
    ("keys", "at_work", "done"),
    [
        (fsdp(1), MATRIX, 2 * SMALL_LAYER),
        (fsdp(2), MATRIX + SMALL_LAYER, 2 * SMALL_LAYER),
        ({**fsdp(2), **TWICE}, MATRIX, MATRIX),
        ({**fsdp(1), **TWICE}, MATRIX, 2 * SMALL_LAYER),
        ({**fsdp(2), **SMALL_LORA}, 0, 0),
        ({**fsdp(1), "gpus": 1}, 0, 0),
        ({**fsdp(2), "gpus": 1}, MATRIX + SMALL_LAYER, 2 * SMALL_LAYER),
        ({}, 0, 0),
    ],
)
def test_whole_gradients_of_a_layer(tmp_path, keys, at_work, done):
    found = small(tmp_path, **keys)
    counted = [
        sum(term.bytes for term in layer_gradients(found.run, found.model, found.weights, done=ended))
        for ended in (False, True)
    ]
    assert counted == [2 * at_work, 2 * done]


@pytest.mark.parametrize(
    ("keys", "tables"),
    [
        (fsdp(1), 1),
        (fsdp(2), 1),
        ({**fsdp(1), **TWICE}, 1),
        ({**fsdp(2), **TWICE}, 0),
        ({**fsdp(2), **TWICE, "tied": True}, 1),
        ({**fsdp(1), "gpus": 1}, 0),
        ({**fsdp(2), "gpus": 1}, 1),
        ({}, 0),
    ],
)
def test_the_heads_gradient_waits(tmp_path, keys, tables):
    found = small(tmp_path, **keys)
    counted = waiting_head(found.run, found.model, found.weights)
    assert sum(term.bytes for term in counted) == 2 * tables * SMALL_TABLE


@pytest.mark.parametrize(
    ("keys", "bytes_"),
    [
        # Shards of all but the tables, which are reduced last; FSDP1's are fp32.
        (fsdp(2), 2 * (SMALL - 2 * SMALL_TABLE) // 2),
        (fsdp(1), 4 * (SMALL - 2 * SMALL_TABLE) // 2),
        ({**fsdp(2), **TWICE}, 2 * SMALL),
        ({**fsdp(1), "gpus": 1}, 4 * SMALL),
        ({**fsdp(2), "gpus": 1}, 2 * (SMALL - 2 * SMALL_TABLE)),
        (fsdp(2, offload_params=True), 0),
    ],
)
def test_gradients_when_all_layers_are_reduced(tmp_path, keys, bytes_):
    found = small(tmp_path, **keys)
    assert sum(term.bytes for term in gradients_of_layers(found.run, found.model, found.weights)) == bytes_


@pytest.mark.parametrize(
    ("keys", "as_forward_starts", "as_backward_starts"),
    [
        (RESHARDS, ROOT + SMALL_LAYER, ROOT),
        (STAYS, ROOT + SMALL_LAYER, 0),
        (fsdp(2, reshard_after_forward=True, auto_wrap_policy="NO_WRAP"), SMALL, SMALL),
        (fsdp(1), 0, 0),
        ({**RESHARDS, "gpus": 1}, 0, 0),
        ({}, 0, 0),
    ],
)
def test_fsdp_2_copies_the_root_unit_out_of_what_it_gathered(tmp_path, keys, as_forward_starts, as_backward_starts):
    found = small(tmp_path, **keys)
    counted = [
        sum(term.bytes for term in root_copied(found.run, found.model, forward=forward)) for forward in (True, False)
    ]
    assert counted == [2 * 2 * as_forward_starts, 2 * 2 * as_backward_starts]


@pytest.mark.parametrize(
    ("keys", "inputs"),
    [
        # An input of 10 tokens x 100 and its gradient, for each layer.
        ({**fsdp(1), **SMALL_LORA, **AROUND}, 2 * WHOLE),
        ({**fsdp(1), **SMALL_LORA, **AROUND, "stack": {}}, 0),
        ({**fsdp(1), **AROUND}, 0),
        ({**fsdp(2), **SMALL_LORA, **AROUND}, 0),
        ({**fsdp(1), **SMALL_LORA, **AROUND, "gpus": 1}, 0),
    ],
)
def test_fsdp_1_holds_inputs_of_frozen_layers(tmp_path, keys, inputs):
    found = small(tmp_path, **keys)
    assert sum(term.bytes for term in held_inputs(found.run, found.model)) == inputs * 2 * 10 * 100


def test_units_of_layers_that_are_cut_over_ranks_are_pieces():
    """Llama 3.1 8B over two tensor-parallel ranks: the embedding whole, half of head and layers, whole norms."""
    keys = {
        "base_model": "meta-llama/Llama-3.1-8B",
        "tensor_parallel_size": 2,
        "dp_shard_size": 2,
        "fsdp_version": 2,
        "fsdp_config": {
            "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "transformer_layer_cls_to_wrap": "LlamaDecoderLayer",
        },
        "sequence_len": 512,
        "bf16": True,
    }
    found = estimate(open_configs(keys, None, "4x a100-80gb", None).run)
    assert found is not None
    terms = [term for phase in found.phases for term in phase.terms]
    assert min(term.bytes for term in terms) >= 0
    norms = 2 * 4096
    (root,) = {term.bytes for term in terms if term.name == "gathered root unit"}
    assert root == pytest.approx(2 * (TABLE + TABLE / 2), rel=1e-4)
    layers = max(term.bytes for term in terms if term.name == "gathered layers")
    assert layers == pytest.approx(2 * 2 * ((LAYER - norms) / 2 + norms), rel=1e-3)
