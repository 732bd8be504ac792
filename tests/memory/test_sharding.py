"""What ZeRO-3 gathers beside its shards."""

import pytest

from advisor.memory import estimate

ZERO_3 = '{"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 50000000}, "bf16": {"enabled": true}}'


@pytest.fixture
def gathered(make_run):
    """Bytes that are gathered when the loss is computed."""

    def made(model, checkpoints):
        text = f"base_model: {model}\nsequence_len: 4096\nattn_implementation: flash_attention_2\n"
        run = make_run(text + f"gradient_checkpointing: {str(checkpoints).lower()}\n", "8x a100-80gb", ZERO_3)
        found = estimate(run)
        assert found is not None and run.model is not None
        (loss,) = [phase for phase in found.phases if phase.name == "forward and loss"]
        names = {"gathered module", "live parameters"}
        return sum(term.bytes for term in loss.terms if term.name in names), run.model

    return made


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_small_model_is_whole_once(gathered, checkpoints):
    """Two processes of DeepSpeed 0.18.9: each parameter is gathered once, and one bucket is on its way."""
    bytes_, model = gathered("Qwen/Qwen2.5-0.5B", checkpoints)
    assert bytes_ == 2 * (model.parameters + 50_000_000)


@pytest.mark.parametrize("checkpoints", [True, False])
def test_of_a_large_model_as_much_as_may_live(gathered, checkpoints):
    bytes_, model = gathered("meta-llama/Llama-3.1-8B", checkpoints)
    assert bytes_ == 2 * (model.vocab_size * model.hidden_size + 2 * 10**9)
