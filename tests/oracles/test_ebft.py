# pyright: basic
"""EBFT's own code on fake tensors: strided answers and their comparison, and whole answers' hidden states."""

import importlib.util
import sys
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import distribution
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("axolotl")

from accelerate.utils.operations import convert_to_fp32  # noqa: E402

from advisor.memory import ebft, forward, loss  # noqa: E402
from advisor.run import Ebft, Rollouts  # noqa: E402

from .families import described, family, run_of  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

PACKAGE = "axolotl.core.trainers"
STUBS = {
    PACKAGE: (),
    f"{PACKAGE}.ebft": (),
    f"{PACKAGE}.ebft.kernels": ("cosine_similarity", "diversity_penalty", "log_softmax_gather", "reinforce_loss"),
    f"{PACKAGE}.mixins": ("DistributedParallelMixin", "RngLoaderMixin", "SchedulerMixin"),
    f"{PACKAGE}.mixins.optimizer": ("OptimizerInitMixin", "OptimizerMixin"),
}
LENGTH, VOCABULARY, LAYERS = 256, 8192, 4
LONG = Ebft(3, samples=2, stride=8, context=8, answer=8)
SHORT = Ebft(3, samples=3, stride=2, context=8, answer=1)
LORA = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@pytest.fixture
def axolotls(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of axolotl by their files; what their packages import otherwise is not installed."""
    for name, classes in STUBS.items():
        stub = ModuleType(name)
        stub.__path__ = []
        for one in classes:
            setattr(stub, one, type(one, (), {}))
            setattr(stub, f"fused_{one}", None)
        monkeypatch.setitem(sys.modules, name, stub)

    def module(name: str) -> Any:
        path = distribution("axolotl").locate_file(f"axolotl/core/trainers/ebft/{name}.py")
        spec = importlib.util.spec_from_file_location(f"{PACKAGE}.ebft.{name}", str(path))
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, made)
        spec.loader.exec_module(made)
        return made

    module("rewards")
    return module


def make(count: int) -> Any:
    widths = {"hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 320}
    config = family("LlamaConfig", **widths)(count)
    config.vocab_size = VOCABULARY
    return config


def trainer(module: Any, model: Any, settings: Ebft) -> Any:
    """axolotl's trainer with the settings that its loss reads, and nothing of transformers' trainer."""
    made = object.__new__(module.AxolotlStridedEBFTTrainer)
    vars(made).update(
        ebft_stride=settings.stride,
        ebft_context_length=settings.context,
        ebft_generate_max_len=settings.answer,
        ebft_n_samples=settings.samples,
        ebft_temperature=0.6,
        ebft_top_p=1.0,
        ebft_alignment_coef=1.0,
        ebft_diversity_coef=1.0,
        ebft_rl_coef=1.0,
        ebft_ce_coef=0.0,
        ebft_use_whitening=False,
        ebft_advantage_estimator="rloo",
        ebft_embed_method="last_token",
        ebft_min_completion_prefix=0,
        use_flex_attention=False,
        feature_layer_indices=[1, 2, 3],
        accelerator=SimpleNamespace(unwrap_model=lambda model: model),
        state=SimpleNamespace(global_step=1),
        args=SimpleNamespace(logging_steps=2),
        feature_network=None,
        model=model,
        _share_feature_weights=True,
        _feature_device="cpu",
    )
    # Flex attention's block mask is no tensor of the size of the scores.
    masked = made._build_strided_mask
    made._build_strided_mask = lambda *args, **kwargs: (None, masked(*args, **kwargs)[1])
    return made


def strided(module: Any, settings: Ebft) -> Any:
    """The step as accelerate wraps the model, on a CPU that plays the GPU."""
    autocast = torch.autocast

    def on_cpu(device_type: str, **options: Any) -> Any:
        return autocast("cpu" if device_type == "cuda" else device_type, **options)

    def compute(model: Any, tokens: Any) -> Any:
        plain = model.forward
        model.forward = lambda *args, **kwargs: convert_to_fp32(plain(*args, **kwargs))
        with (
            mock.patch.object(torch, "autocast", on_cpu),
            mock.patch.object(torch.Tensor, "item", lambda _tensor: 0.0),
        ):
            return trainer(module, model, settings).compute_loss(model, {"input_ids": tokens})

    return compute


def of_activations(terms: Any) -> int:
    return sum(term.bytes for term in terms)


@pytest.mark.parametrize("settings", [LONG, SHORT], ids=["long answers", "short answers"])
def test_strided_answers_take_what_their_trainer_does(axolotls, settings):
    setting = Setting(adapter=LORA, checkpointing="reentrant", loss=strided(axolotls("strided"), settings))
    found = trace(make(LAYERS), setting, rows=1, length=LENGTH)
    model = described(make, LAYERS)
    run = run_of(model, replace(setting, attention="flash"), rows=1, length=LENGTH, rl="ebft", ebft=settings)
    phases = {phase.name: of_activations(phase.terms) for phase in ebft.ebft_phases(run, model, ())}
    # Long answers are widest while they are made, short ones while they are compared.
    assert (phases["generation"] > phases["forward and loss"]) == (settings is LONG)
    assert max(phases.values()) == pytest.approx(found.peak(0, found.marks["forward done"]), rel=0.02)
    kept = of_activations(forward.kept_terms(run, model)) + ebft.head_saved_bytes(run, model)
    backward = found.peak(found.marks["backward"], found.marks["done"])
    assert kept + loss.loss_backward_peak_bytes(run, model) == pytest.approx(backward, rel=0.02)


@pytest.mark.parametrize("adapter", [None, LORA])
def test_whole_answers_are_compared_by_the_states_of_all_layers(axolotls, adapter):
    rewards, rows = axolotls("rewards"), 6

    def compute(model: Any, tokens: Any) -> Any:
        with model.disable_adapter() if adapter else nullcontext(), torch.no_grad():
            rewards.extract_hidden_states(model.eval(), tokens, torch.ones_like(tokens), [1, 2, 3])
        return model.train()(input_ids=tokens[:1, :8]).logits.sum()

    found = trace(make(LAYERS), Setting(adapter=adapter, autocast=False, loss=compute), rows=rows, length=LENGTH)
    model = described(make, LAYERS)
    made = Rollouts("server", rows, LENGTH // 2)
    run = run_of(model, Setting(adapter=adapter), length=LENGTH, rl="ebft", ebft=Ebft(3), rollouts=made)
    (phase,) = ebft.ebft_phases(run, model, ())
    assert of_activations(phase.terms) == pytest.approx(found.peak(0, found.marks["forward done"]), rel=0.05)
