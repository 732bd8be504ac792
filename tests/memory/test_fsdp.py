"""What FSDP holds on one GPU; tests/oracles/test_fsdp_states.py measures the same on a small model."""

import pytest

from advisor.memory import estimate

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
