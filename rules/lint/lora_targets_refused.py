"""Targets of LoRA that PEFT finds nowhere, or cannot adapt."""

from __future__ import annotations

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.memory.lora_targets import adapts_experts, wraps
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Lora
from advisor.run.axolotl.expert_targets import all_linear_by_name, left_by_name, missing, names_in_layers

TARGETS = "lora_target_modules"
NO_DROPOUT = (Set("lora_dropout", 0),)
MOST_NAMED = 7
"""As many as layers like Llama's have."""
FORMER, TODAY = "language_model.model.", "model.language_model."
"""The start of a decoder's names in models of several parts, before and after transformers made them one model."""


def finds(run: Run) -> Iterator[Hit]:
    """Where a model that is known meets targets that stop PEFT."""
    model, lora = run.model, run.lora
    if model is None or lora is None or run.config.get("lora_model_dir"):
        return
    if absent := missing(lora, model, run.stack):
        names = " and ".join(f"`{name}`" for name in absent)
        message = f"one fused stack of the experts is targeted without {names}: PEFT stops once the model is loaded"
        yield Hit(TARGETS, f"{message}; name both, or neither")
    elif lora.target_parameters:
        yield from refused_by_parameters(run, lora)
    elif finds_nothing(run, model, lora):
        yield not_found(model, lora)
    elif model.family.router_returns_choice:
        yield from on_router(run, model, lora)


def on_router(run: Run, model: Architecture, lora: Lora) -> Iterator[Hit]:
    """A router that PEFT wraps as a linear layer, and that returns two tensors."""
    if not any(wraps(lora, tensor.module) for tensor in model.tensors if tensor.kind == "router"):
        return
    at = "lora_target_linear" if lora.target_linear else TARGETS
    edits = (Remove(at), Set(TARGETS, all_linear_by_name(run, model), after="lora_alpha")) if lora.target_linear else ()
    message = f"an adapter on the router of `{model.model_type}`, which returns more than one tensor"
    yield Hit(at, f"{message}: PEFT stops at the first forward; name the layers without it", edits)


def refused_by_parameters(run: Run, lora: Lora) -> Iterator[Hit]:
    """What PEFT cannot do on experts' stacks; of dropout next to targets that are named so, axolotl speaks itself."""
    named = bool(run.config.get("lora_target_parameters"))
    where = "`lora_target_parameters`" if named else "targets that PEFT moves to the experts' stacked parameters"
    edits = () if named else name_the_rest(run)
    if lora.dropout and not named and not drops_elsewhere(run):
        message = f"`lora_dropout: {run.config.get('lora_dropout')}` with {where}: PEFT has no dropout for parameters"
        remedy = "name the attention's layers alone" if edits else "set it to 0"
        yield Hit("lora_dropout", f"{message}, and stops once the model is loaded; {remedy}", edits or NO_DROPOUT)
    if lora.dora:
        message = f"`peft_use_dora: true` with {where}: PEFT has no DoRA for parameters"
        remedy = "name the attention's layers alone" if edits else "set it to false"
        yield Hit("peft_use_dora", f"{message}, and stops once the model is loaded; {remedy}", edits)


def drops_elsewhere(run: Run) -> bool:
    """Whether axolotl builds the experts' adapters without dropout and says so: loaders/adapter.py:244-290@0.19.0."""
    return run.stack.trainer == "axolotl" and run.stack.at_least("axolotl", "0.17.0")


def name_the_rest(run: Run) -> tuple[Change, ...]:
    """The targets without those that PEFT moves, as names; nothing where none is left."""
    left = left_by_name(run)
    if not left:
        return ()
    by_flag = (Remove("lora_target_linear"),) if run.config.get("lora_target_linear") else ()
    return (*by_flag, Set(TARGETS, left, after="lora_alpha"))


def finds_nothing(run: Run, model: Architecture, lora: Lora) -> bool:
    """Whether no module has a name that is targeted; code of the model's own may have other names."""
    if not lora.targets or run.is_on("trust_remote_code") or adapts_experts(run):
        return False
    return not any(wraps(lora, path) for path in modules(model))


def modules(model: Architecture) -> set[str]:
    """Every module's path, and those of what it is in."""
    found: set[str] = set()
    for tensor in model.tensors:
        parts = tensor.module.split(".")
        found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return found


def not_found(model: Architecture, lora: Lora) -> Hit:
    """The targets, with the names that the model has; a pattern of former names is written as they are now."""
    written = lora.targets[0].replace(FORMER, TODAY, 1) if lora.targets_pattern else ""
    today = replace(lora, targets=(written,))
    verb = "matches" if lora.targets_pattern else "names"
    message = f"`{TARGETS}` {verb} no module of `{model.model_type}`: PEFT stops once the model is loaded"
    if written and any(wraps(today, path) for path in modules(model)):
        return Hit(TARGETS, f"{message}; its decoder is `{TODAY.rstrip('.')}`", (Set(TARGETS, written),))
    layers = sorted(names_in_layers(model))
    names = ", ".join(f"`{name}`" for name in layers[:MOST_NAMED])
    return Hit(TARGETS, f"{message}; its layers have {names}{', ...' if len(layers) > MOST_NAMED else ''}")


rule = Rule(
    id="lora-targets-refused",
    stage="lint",
    title="Targets of LoRA that PEFT does not find, or cannot adapt",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        PEFT looks for the targets among the names of the loaded model's modules and stops if it finds none. The names
        are transformers', and change: the decoders of multimodal models moved into one `model`, and experts became
        stacked parameters. Targets that experts' linear layers were called by are moved to those stacks, both halves
        of a fused one together; an adapter on a parameter changes the weight itself, so that it has no input to drop
        from and no norms for DoRA. From 0.17.0 on, axolotl leaves the dropout of those away. The routers of Llama 4 and
        PhiMoE are linear layers that return their choice as well.
    """,
    cost="The experts get no adapters; or, where it is set to 0, no dropout.",
    safe=False,
    source=(
        "peft/tuners/tuners_utils.py:989-1019@0.20.0; peft/utils/transformers_weight_conversion.py:457-466@0.20.0; "
        "peft/tuners/lora/layer.py:2264-2273@0.20.0; transformers/models/llama4/modeling_llama4.py:141-158@5.16.1; "
        "transformers/models/phimoe/modeling_phimoe.py:472-500@5.16.1"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: mistralai/Voxtral-Mini-3B-2507
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: 'language_model.model.layers.[\\d]+.self_attn.(q|v)_proj'
            """,
            after="""
                base_model: mistralai/Voxtral-Mini-3B-2507
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: 'model.language_model.layers.[\\d]+.self_attn.(q|v)_proj'
            """,
        ),
        but(stack={"transformers": "5.9.0"}),
        but("base_model: openai-community/gpt2", "lora_target_modules: [q_proj, v_proj]", fires=True),
        but("base_model: openai-community/gpt2", "lora_target_modules: [c_attn, q_proj]"),
        but(
            "base_model: openai-community/gpt2",
            "lora_model_dir: adapters/first-round",
            "lora_target_modules: [q_proj, v_proj]",
        ),
        but("base_model: zai-org/GLM-4.5-Air", "lora_target_modules: [q_proj, up_proj, down_proj]", fires=True),
        Example(
            stack={"axolotl": "0.16.1"},
            before="""
                base_model: arcee-ai/Trinity-Nano-Preview
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_dropout: 0.05
                lora_target_linear: true
            """,
            after="""
                base_model: arcee-ai/Trinity-Nano-Preview
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules:
                  - q_proj
                  - k_proj
                  - v_proj
                  - o_proj
                lora_dropout: 0.05
            """,
        ),
        but(stack={"axolotl": "0.19.0"}),
        but(stack={"trainer": "hf-trainer"}, fires=True),
        but(
            "base_model: zai-org/GLM-4.5-Air",
            "peft_use_dora: true",
            "lora_target_modules: [gate_proj, up_proj, down_proj]",
            without=("lora_dropout", "lora_target_linear"),
            fires=True,
        ),
        but(
            "base_model: zai-org/GLM-4.5-Air", "lora_target_modules: [q_proj, v_proj]", without=("lora_target_linear",)
        ),
        but(
            "base_model: openai-community/gpt2",
            "trust_remote_code: true",
            "lora_target_modules: [q_proj, v_proj]",
            without=("lora_dropout", "lora_target_linear"),
        ),
        but("base_model: openai-community/gpt2", "lora_target_modules: [q_proj, v_proj]", without=("lora_dropout",)),
        but("base_model: openai-community/gpt2", without=("lora_dropout", "lora_target_linear")),
        only("base_model: openai-community/gpt2", "lora_target_modules: [q_proj, v_proj]"),
        but(
            "base_model: mistralai/Mixtral-8x7B-v0.1",
            "lora_target_modules: [w1, w2, w3]",
            without=("lora_dropout", "lora_target_linear"),
            stack={"transformers": "4.57.1"},
        ),
        but(
            "base_model: zai-org/GLM-4.5-Air",
            "lora_target_modules: [gate_proj, up_proj, down_proj]",
            without=("lora_dropout", "lora_target_linear"),
        ),
        but(
            "base_model: zai-org/GLM-4.5-Air",
            "lora_target_parameters: [mlp.experts.gate_up_proj]",
            without=("lora_target_linear",),
        ),
        but(
            "base_model: nobody/knows-this",
            "lora_target_modules: [nothing]",
            without=("lora_dropout", "lora_target_linear"),
        ),
        Example(
            before="""
                base_model: meta-llama/Llama-4-Scout-17B-16E
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            fires=True,
        ),
        but("lora_target_modules: [q_proj, v_proj]", without=("lora_target_linear",)),
        but("lora_target_modules: [q_proj, router]", without=("lora_target_linear",), fires=True),
        but("base_model: ai21labs/Jamba-v0.1"),
        Example(
            stack={"axolotl": "0.16.1"},
            before="""
                base_model: zai-org/GLM-4.5-Air
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_dropout: 0.05
                lora_target_modules: [gate_proj, up_proj, down_proj]
            """,
            after="""
                base_model: zai-org/GLM-4.5-Air
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_dropout: 0
                lora_target_modules: [gate_proj, up_proj, down_proj]
            """,
        ),
        Example(
            before="""
                base_model: zai-org/GLM-4.5-Air
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                peft_use_dora: true
                lora_target_modules: [q_proj, gate_proj, up_proj, down_proj]
            """,
            after="""
                base_model: zai-org/GLM-4.5-Air
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                peft_use_dora: true
                lora_target_modules: [q_proj]
            """,
        ),
    ),
)
