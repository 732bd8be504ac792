"""Preference training and reward models: which trainer, what it scores, and how it gets answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, cast

from advisor.models import Architecture
from advisor.models.classifier import classifier as as_classifier
from advisor.run import Adapter, Classifier, Ebft, Rollouts
from advisor.run.axolotl.reader import Reader

if TYPE_CHECKING:
    from advisor.run.axolotl.facts import PreferenceFacts

# Preference losses whose trainer loads a second copy of the model when every weight is trained
# (axolotl/train.py:127-165@0.19.0).
BY_DPO = frozenset({"dpo", "ipo"})
"""What TRL's DPO trainer does."""
REFERENCE_LOSSES = BY_DPO | {"kto"}
WITHOUT_DROPOUT = frozenset({"dpo", "ipo", "kto", "orpo", "simpo"})
"""Whose trainers set every dropout to 0, by ``disable_dropout``, which axolotl leaves as it is.

trl/trainer/utils.py:182-185, dpo_config.py:178, kto_config.py:153, experimental/orpo/orpo_config.py:98,
cpo/cpo_config.py:129@1.9.0."""
MOST_ROWS = 2**40
"""Above any batch; its divisors are still found at once."""


def preference(reader: Reader, adapter: Adapter | None, ranks: int) -> PreferenceFacts:
    """Preference training: the reference model, where its log-probabilities come from, and reward models."""
    rl = reader.text("rl") or None
    features = ebft(reader) if rl == "ebft" else None
    answers = rl in {"grpo", "gdpo"} or (features is not None and not features.stride)
    made = rollouts(reader, ranks) if answers else None
    if made is not None:
        scores = (reader.number("trl.beta", 0.0) or reader.number("rl_beta", 0.0)) > 0
    else:
        worked_out = rl in BY_DPO and reader.flag("precompute_ref_log_probs")
        scores = rl in REFERENCE_LOSSES and not worked_out
    return {
        "rl": rl,
        # DPO's stays on the GPU once its probabilities are worked out, too: axolotl/train.py:127-165@0.19.0,
        # trl/trainer/dpo_trainer.py:909-936@1.9.0. KTO is not told of that key.
        "reference_model": adapter is None and (scores or rl in REFERENCE_LOSSES),
        "scores_reference": scores,
        "chosen_cross_entropy": _scores_chosen(reader, rl),
        "rollouts": made,
        "classifier": classifier(reader),
        "ebft": features,
    }


def drops(reader: Reader) -> bool:
    """Whether dropout stays; reward models have none, either: trl/trainer/reward_config.py:126@1.9.0."""
    return reader.text("rl") not in WITHOUT_DROPOUT and classifier(reader) is None


def _scores_chosen(reader: Reader, rl: str | None) -> bool:
    """Whether chosen answers have a cross-entropy of their own; CPO's is left out where its factor is 0.

    trl/experimental/orpo/orpo_trainer.py:803, cpo/cpo_trainer.py:841-844@1.9.0.
    """
    return rl == "orpo" or (rl == "simpo" and reader.number("cpo_alpha", 1.0) != 0)


def classifier(reader: Reader) -> Classifier | None:
    """The reward model that is trained: axolotl/core/builders/causal.py:160-163@0.19.0."""
    if reader.flag("reward_model"):
        return "sequence"
    return "token" if reader.flag("process_reward_model") else None


def with_score(reader: Reader, model: Architecture, kind: Classifier) -> Architecture:
    """The model that transformers builds for it; of whole rows it gives one number.

    axolotl/utils/schemas/validation.py:260-272, core/builders/causal.py:439-443@0.19.0.
    """
    if kind == "sequence":
        return as_classifier(model, 1, bias=False)
    return as_classifier(model, reader.integer("num_labels", 2, "axolotl's default: 2", least=1), bias=True)


def rollouts(reader: Reader, ranks: int) -> Rollouts:
    """How GRPO makes its answers: axolotl/core/trainers/grpo/__init__.py:66-129@0.19.0.

    Without ``vllm_mode`` axolotl's schema writes ``server`` (utils/schemas/validation.py:2060-2067@0.19.0), where TRL's
    own default is on the same GPU. TRL's completions have 256 tokens by default.
    """
    batch = reader.integer("micro_batch_size", 1, least=1, most=MOST_ROWS)
    rows = batch * reader.integer("gradient_accumulation_steps", 1, least=1, most=MOST_ROWS)
    if reader.text("rl") != "ebft":  # which hands no batch over: core/trainers/ebft/__init__.py:134-216@0.19.0
        rows = max(1, reader.integer("trl.generation_batch_size", rows * ranks) // ranks)
    completion = reader.integer("trl.max_completion_length", 256, "TRL's default: 256")
    again = reader.integer("trl.num_iterations", 1, "TRL's default: 1", least=1)
    if not reader.flag("trl.use_vllm"):
        return Rollouts("model", rows, completion, iterations=again)
    if reader.text("trl.vllm_mode", "server", "axolotl's default: server") != "colocate":
        parallel = (reader.integer(f"vllm.{kind}_parallel_size", 1, "1") or 1 for kind in ("tensor", "data"))
        host = reader.text("trl.vllm_server_host") or reader.text("vllm.host")
        gpus = prod(parallel)
        return Rollouts("server", rows, completion, iterations=again, server_gpus=gpus, server_host=host)
    share = reader.number("vllm.gpu_memory_utilization", 0.9, "axolotl's default: 0.9")
    return Rollouts("vllm", rows, completion, share, reader.flag("trl.vllm_enable_sleep_mode"), again)


def ebft(reader: Reader) -> Ebft:
    """EBFT's settings: axolotl/utils/schemas/config.py:78-190, core/trainers/ebft/__init__.py:84-133@0.19.0."""
    layers = reader.source.at("ebft.feature_layers")
    listed = isinstance(layers, Sequence) and not isinstance(layers, str)
    features = len(cast("Sequence[object]", layers)) if listed else 3
    if reader.text("ebft.mode", "structured") != "strided":
        return Ebft(features)
    return Ebft(
        features,
        samples=reader.integer("ebft.n_samples_per_prompt", 4, least=1, most=MOST_ROWS),
        stride=reader.integer("ebft.stride", 8, least=1),
        context=reader.integer("ebft.context_length", 8),
        answer=reader.integer("ebft.generate_max_len", 8, least=1),
        trains_documents=reader.number("ebft.ce_coef", 0.0) > 0,
    )
