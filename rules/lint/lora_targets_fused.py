"""Targets of LoRA that the model holds as one fused layer of another name."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, is_list, only
from advisor.run.axolotl.expert_targets import names_in_layers

TARGETS = "lora_target_modules"
QKV, GATE_UP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
PARTS = {"qkv_proj": QKV, "query_key_value": QKV, "gate_up_proj": GATE_UP}
"""Fused layers, and what their parts are called elsewhere."""


def finds(run: Run) -> Iterator[Hit]:
    """Lists of names of which PEFT finds some: of the others it says nothing."""
    model, lora, written = run.model, run.lora, run.config.get(TARGETS)
    if model is None or lora is None or not is_list(written):
        return
    layers = names_in_layers(model)
    named = [str(name) for name in written]
    fused = {part: whole for whole, parts in PARTS.items() if whole in layers for part in parts if part not in layers}
    lost = [name for name in named if name in fused]
    if not lost or not layers.intersection(named):
        return
    wholes = dict.fromkeys(fused[name] for name in lost)
    names = list(dict.fromkeys(fused.get(name, name) for name in named))
    ones, has = ", ".join(f"`{name}`" for name in lost), " and ".join(f"`{whole}`" for whole in wholes)
    message = f"{ones} is silently left out: `{model.model_type}` has {has} instead"
    yield Hit(TARGETS, f"{message}; name {has}", (Set(TARGETS, names),))


rule = Rule(
    id="lora-targets-fused",
    stage="lint",
    title="Targets of LoRA that this model has under another name",
    finds=finds,
    level="warning",
    proof="read",
    safe=False,
    why="""
        PEFT stops where it finds none of the names, and is silent where it finds some. Phi-3 and Phi-4, GLM-4 and
        others hold queries, keys and values, or gate and up projection, as one layer: the usual seven names then give
        adapters to the output and down projections alone.
    """,
    cost="More adapters: a little memory and time.",
    source="peft/tuners/tuners_utils.py:989-1019@0.20.0; transformers/models/phi3/modeling_phi3.py:54,216@5.16.1",
    examples=lambda: (
        Example(
            before="""
                base_model: microsoft/phi-4
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]
            """,
            after="""
                base_model: microsoft/phi-4
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_modules: [qkv_proj, o_proj, gate_up_proj, down_proj]
            """,
        ),
        but("lora_target_modules: [q_proj, v_proj]"),
        but("lora_target_modules: [qkv_proj, o_proj]"),
        but("lora_target_modules: '.*(q_proj|o_proj)'"),
        but("lora_target_modules: [o_proj, down_proj, lm_head]"),
        but("lora_target_linear: true", without=("lora_target_modules",)),
        but("base_model: meta-llama/Llama-3.1-8B"),
        but("base_model: nobody/knows-this"),
        only("base_model: microsoft/phi-4", "lora_target_modules: [q_proj, o_proj]"),
    ),
)
