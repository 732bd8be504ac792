"""axolotl's LoRA kernels with a model that they cannot work on."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.run.axolotl.lora_kernels import why_stops
from advisor.run.axolotl.read import LORA_KERNELS

ATTENTION = {kernel: LORA_KERNELS[kernel] for kernel in ("qkv", "o")}


def finds(run: Run) -> Iterator[Hit]:
    """At the key that asks for the kernels, or at the adapter that brings them."""
    if run.adapter is None:
        yield from without_adapter(run)
        return
    keys = LORA_KERNELS if run.classifier is not None else ATTENTION
    wanted = [key for kernel, key in keys.items() if run.lora is not None and kernel in run.lora.kernels]
    why = why_stops(run)
    if not wanted or not why or refused_before(run):
        return
    named = [key for key in wanted if run.config.get(key)]
    key, off = (named or ["adapter"])[0], named or wanted
    value = "true" if named else str(run.config.get("adapter"))
    brings = "" if named else " brings axolotl's fused LoRA kernels with it, which"
    yield Hit(
        key,
        f"`{key}: {value}`{brings} {why}; set {' and '.join(f'`{key}: false`' for key in off)}",
        tuple(Set(key, False, after=before) for before, key in zip(("adapter", *off), off, strict=False)),
    )


def without_adapter(run: Run) -> Iterator[Hit]:
    """The kernels look for PEFT's layers, and there are none."""
    named = [key for key in LORA_KERNELS.values() if run.config.get(key)]
    if named and not run.config.get("adapter"):
        yield Hit(
            named[0],
            f"`{named[0]}: true` without an `adapter` stops axolotl once the model is loaded: the kernels are for"
            " LoRA's layers; remove it",
            tuple(Remove(key) for key in named),
        )


def refused_before(run: Run) -> bool:
    """What `lora-kernels-refused` says already."""
    eight_bits = run.config.get("adapter") == "lora" and bool(run.config.get("load_in_8bit"))
    unsharded = run.fsdp is not None and run.world_size > 1 and str(run.config.get("fsdp_version")) != "2"
    return eight_bits or unsharded or bool(run.config.get("trust_remote_code"))


rule = Rule(
    id="lora-kernels-unpatchable",
    stage="lint",
    title="Fused LoRA kernels with a model that they cannot work on",
    finds=finds,
    level="error",
    proof="read",
    why="""
        axolotl turns its fused LoRA kernels on by itself for supervised runs with an adapter, and rewrites the source
        of the model's attention to call them. Where the class has another name or its code other lines than the
        rewriting expects (fused projections, norms of the whole query, multi-head latent attention, most vision
        models), it stops: "Original QKV code not found", or "could not import attention class". A few models it
        patches, and they stop at their first forward. A reward model's adapter is of another class than they ask for.
        Naming any of the kernels, even with `false`, keeps it from
        turning on the others.
    """,
    cost="The speed and the memory of the kernels, which this model cannot have.",
    safe=True,
    source=(
        "axolotl/monkeypatch/lora_kernels.py:303-306, 484-485, loaders/adapter.py:129-137, "
        "utils/schemas/config.py:1985-2075@0.19.0"
    ),
    examples=lambda: (
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
        but("base_model: bigcode/starcoder2-3b", without=("lora_qkv_kernel",), fires=True),
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                reward_model: true
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                reward_model: true
                adapter: lora
                lora_mlp_kernel: false
                lora_qkv_kernel: false
                lora_o_kernel: false
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        but("lora_mlp_kernel: true", fires=True),
        but("lora_mlp_kernel: false"),
        but("lora_mlp_kernel: true", without=("reward_model",)),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                lora_mlp_kernel: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
            """,
        ),
        but(
            "base_model: microsoft/Phi-3-mini-4k-instruct",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
        ),
        only(
            "base_model: allenai/OLMo-2-1124-7B",
            "rl: dpo",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
        ),
        only(
            "base_model: allenai/OLMo-2-1124-7B",
            "load_in_4bit: true",
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            gpus="8x a100-80gb",
            fires=True,
        ),
        but("load_in_8bit: true", gpus="1x a100-80gb", fires=True),
        only("base_model: microsoft/Phi-3-mini-4k-instruct", "adapter: read", "lora_qkv_kernel: true"),
        but(
            "base_model: microsoft/Phi-3-mini-4k-instruct",
            "adapter: lora",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("load_in_4bit",),
            gpus="2x a100-80gb",
            fires=True,
        ),
        only("base_model: allenai/OLMo-2-1124-7B"),
        but(
            "base_model: microsoft/Phi-3-mini-4k-instruct",
            "adapter: lora",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("load_in_4bit",),
            gpus="1x a100-80gb",
            fires=True,
        ),
        but(
            "base_model: microsoft/Phi-3-mini-4k-instruct",
            "adapter: lora",
            "lora_qkv_kernel: true",
            "load_in_8bit: true",
            without=("load_in_4bit",),
            gpus="1x a100-80gb",
        ),
        but(
            "base_model: microsoft/Phi-3-mini-4k-instruct",
            "adapter: lora",
            "lora_qkv_kernel: true",
            "trust_remote_code: 2",
            without=("load_in_4bit",),
            gpus="1x a100-80gb",
        ),
        but(
            "base_model: microsoft/Phi-3-mini-4k-instruct",
            "adapter: lora",
            "lora_qkv_kernel: true",
            "fsdp_version: 1",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("load_in_4bit",),
            gpus="2x a100-80gb",
        ),
    ),
)
