"""axolotl's LoRA kernels with a model whose attention they cannot be patched into."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run
from advisor.documents import Set
from advisor.lora_kernels import UNPATCHABLE

ATTENTION = {"qkv": "lora_qkv_kernel", "o": "lora_o_kernel"}


def finds(run: Run) -> Iterator[Hit]:
    """At the key that asks for the kernels, or at the adapter that brings them."""
    lora, model = run.lora, run.model
    wanted = [key for kernel, key in ATTENTION.items() if lora is not None and kernel in lora.kernels]
    if not wanted or model is None or model.model_type not in UNPATCHABLE or refused_before(run):
        return
    named = [key for key in wanted if run.config.get(key)]
    key = named[0] if named else "adapter"
    value = "true" if named else str(run.config.get("adapter"))
    brings = "" if named else " brings axolotl's fused LoRA kernels with it, which"
    off = named or wanted
    yield Hit(
        key,
        f"`{key}: {value}`{brings} cannot be patched into the attention of `{model.model_type}`: axolotl stops before"
        f" the model is loaded; set {' and '.join(f'`{key}: false`' for key in off)}",
        tuple(Set(key, False, after=before) for before, key in zip(("adapter", *off), off, strict=False)),
    )


def refused_before(run: Run) -> bool:
    """What `lora-kernels-refused` says already."""
    eight_bits = run.config.get("adapter") == "lora" and bool(run.config.get("load_in_8bit"))
    return eight_bits or bool(run.config.get("trust_remote_code"))


rule = Rule(
    id="lora-kernels-unpatchable",
    stage="lint",
    title="Fused LoRA kernels in a model that they do not know",
    finds=finds,
    level="error",
    proof="read",
    why="""
        axolotl turns its fused LoRA kernels on by itself for supervised runs with an adapter, and rewrites the source
        of the model's attention to call them. Where the class has another name or its code other lines than the
        rewriting expects (fused projections, norms of the whole query, multi-head latent attention, most vision
        models), it stops: "Original QKV code not found", or "could not import attention class". Naming any of the
        kernels, even with `false`, keeps it from turning on the others.
    """,
    cost="The speed and the memory of the kernels, which this model cannot have.",
    safe=True,
    source="axolotl/monkeypatch/lora_kernels.py:303-306@0.19.0; axolotl/utils/schemas/config.py:1985-2075@0.19.0",
    examples=(
        Example(
            before="""
                base_model: allenai/OLMo-2-1124-7B
                load_in_4bit: true
                adapter: qlora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            after="""
                base_model: allenai/OLMo-2-1124-7B
                load_in_4bit: true
                adapter: qlora
                lora_qkv_kernel: false
                lora_o_kernel: false
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        Example(
            before="""
                base_model: microsoft/Phi-3-mini-4k-instruct
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_qkv_kernel: true
            """,
            after="""
                base_model: microsoft/Phi-3-mini-4k-instruct
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_qkv_kernel: false
            """,
        ),
        Example(
            before="""
                base_model: microsoft/Phi-3-mini-4k-instruct
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                lora_mlp_kernel: true
            """,
        ),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        Example(
            before="""
                base_model: allenai/OLMo-2-1124-7B
                rl: dpo
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
    ),
)
