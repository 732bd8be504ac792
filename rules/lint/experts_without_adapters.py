"""All linear layers get adapters, and experts are none."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.memory.lora_targets import stacked

KEY = "lora_target_linear"


def finds(run: Run) -> Iterator[Hit]:
    """Where every linear layer is asked for, and the experts are stacked parameters that no target reaches."""
    tensors = () if run.model is None else run.model.tensors
    experts = [one for one in tensors if one.kind == "experts"]
    if run.lora is None or not run.config.get(KEY) or run.lora.target_parameters or not stacked(run) or not experts:
        return
    share = sum(one.elements for one in experts) / sum(one.elements for one in tensors)
    names = ", ".join(dict.fromkeys(".".join(one.name.rsplit(".", 3)[1:]).removesuffix("_bias") for one in experts))
    yield Hit(
        KEY,
        f"`{KEY}: true` adapts no experts, {share:.0%} of the weights: they are stacked parameters, no linear layers;"
        f" `lora_target_parameters: [{names}]` with `lora_dropout: 0` adapts them too",
        on_key=True,
    )


rule = Rule(
    id="experts-without-adapters",
    stage="lint",
    title="All linear layers get adapters, and experts are none",
    finds=finds,
    level="note",
    proof="read",
    why="""
        transformers 5 keeps the experts of a layer as one parameter each way, and PEFT wraps modules: of a mixture of
        experts the attention alone is adapted. That is often enough; who trained such a model with an older version
        adapted every expert.
    """,
    safe=False,
    source="axolotl/loaders/adapter.py:54-71@0.19.0; peft/tuners/tuners_utils.py, target_parameters@0.20.0",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen3-30B-A3B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            fires=True,
        ),
        but("lora_target_parameters: [mlp.experts.gate_up_proj]"),
        but("lora_target_modules: [q_proj]", without=("lora_target_linear",)),
        but("base_model: Qwen/Qwen3-8B"),
        but(stack={"transformers": "4.57.6"}),
        but("base_model: zai-org/GLM-4.5-Air"),
        but("base_model: nobody/knows-this"),
        but(without=("adapter",)),
    ),
)
