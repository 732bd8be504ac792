# pyright: basic
"""Reward models: their tensors are those of transformers' classifiers, and no logits of the vocabulary exist."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from accelerate.utils.operations import convert_to_fp32  # noqa: E402

from advisor.memory import activations, loss  # noqa: E402
from advisor.models import Architecture  # noqa: E402
from advisor.models.classifier import classifier  # noqa: E402
from advisor.tracing.allocations import layer_saved  # noqa: E402

from .families import FAMILIES, described, run_of  # noqa: E402
from .trace import Setting, build, trace  # noqa: E402

pytestmark = pytest.mark.oracle

LAYERS, LENGTH = 3, 256


def rewards(model, tokens):
    """TRL's loss of pairs: trl/trainer/reward_trainer.py, RewardTrainer.compute_loss@1.9.0."""
    chosen, rejected = torch.chunk(convert_to_fp32(model(input_ids=tokens)).logits.squeeze(-1), chunks=2)
    return -torch.nn.functional.logsigmoid(chosen - rejected).mean()


def steps(model, tokens):
    """The model's own loss of labelled tokens: trl/experimental/prm/prm_trainer.py@1.9.0 leaves it as it is."""
    return convert_to_fp32(model(input_ids=tokens, labels=tokens)).loss


CASES = {
    "sequence": (Setting(made=transformers.AutoModelForSequenceClassification, task="SEQ_CLS", loss=rewards), 1, False),
    "token": (Setting(made=transformers.AutoModelForTokenClassification, task="TOKEN_CLS", loss=steps), 2, True),
}


def make(count):
    config = FAMILIES["qwen2"](count)
    config.pad_token_id = 0
    return config


def scored(kind: str) -> tuple[Setting, Architecture]:
    """How it is trained, and what the advisor makes of the model."""
    setting, classes, bias = CASES[kind]
    return setting, classifier(described(make, LAYERS), classes, bias=bias)


def config_of(kind: str):
    config = make(LAYERS)
    config.num_labels = CASES[kind][1]
    return config


@pytest.mark.parametrize("kind", CASES)
def test_a_classifier_has_the_tensors_of_transformers(kind):
    setting, model = scored(kind)
    real = build(config_of(kind), setting)
    assert sum(weight.numel() for weight in real.parameters()) == model.parameters
    heads = {tensor.name: tensor.shape for tensor in model.tensors if tensor.kind == "head"}
    assert heads == {name: tuple(weight.shape) for name, weight in real.named_parameters() if "score" in name}


@pytest.mark.parametrize("adapter", [None, ("q_proj", "v_proj", "down_proj")])
@pytest.mark.parametrize("kind", CASES)
def test_a_classifier_keeps_no_logits(kind, adapter):
    setting, model = scored(kind)
    setting = replace(setting, adapter=adapter)
    paired = kind == "sequence"
    run = run_of(model, setting, rows=1 if paired else 2, length=LENGTH, classifier=kind)
    found = trace(config_of(kind), setting, rows=2, length=LENGTH)
    layers = sum(layer_saved(found, index) for index in range(LAYERS))
    outside = activations.head_saved_bytes(run, model) + loss.loss_saved_bytes(run, model)
    assert found.saved_bytes - layers == pytest.approx(outside, abs=32 * run.tokens)
    assert loss.loss_backward_peak_bytes(run, model) < 32 * run.tokens
