"""An attention kernel that the card or the model does not have."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.memory.activations.attention import stops_as_sdpa, stops_in_varlen
from advisor.run.axolotl.attention import WIDEST_FLASH_HEAD, Kernel, kernel, plain, widest_head

LIMITED = frozenset({"flash_attention_2", "flash_attention_3"})
HYBRID = "gemma4_hybrid_attn_impl"
XFORMERS = {
    "has no class": "stops while the model is built: transformers has no class of that name for `{}`",
    "asks for key heads": "stops at the first forward: it reads `num_key_value_heads`, which the config of `{}` lacks",
}


def finds(run: Run) -> Iterator[Hit]:
    """The card first, since no model helps there; then the model's class; then the width of its heads, and fp32."""
    asked, model = kernel(run), run.model
    if run.hardware is not None and run.attention == "flash" and not run.hardware.gpu.flash_attention:
        card = run.hardware.gpu.title
        yield hit(run, asked, f"on a {card}: FlashAttention needs Ampere or newer and stops at the first forward")
    elif stops_in_varlen(run):
        yield in_varlen(run, asked)
    elif model is None or run.config.get("trust_remote_code"):
        return
    elif (asked.is_flash and not model.supports_flash_attention) or (asked.base == "sdpa" and plain(run) != "sdpa"):
        yield hit(run, asked, f"is refused by transformers while it loads: `{model.model_type}` has no such attention")
    elif asked.base == "xformers" and model.family.xformers != "runs":
        yield hit(run, asked, XFORMERS[model.family.xformers].format(model.model_type))
    elif asked.base in LIMITED and widest_head(run) > WIDEST_FLASH_HEAD and not run.config.get(HYBRID):
        yield too_wide(run, asked)
    elif asked.is_flash and run.precision == "fp32" and run.quantization is None:
        yield in_fp32(run, asked)


def hit(run: Run, asked: Kernel, consequence: str) -> Hit:
    """A finding that another kernel fixes, unless something else in the YAML insists on this one."""
    instead = plain(run)
    edits: tuple[Change, ...] = (Set("attn_implementation", instead, after=asked.key),)
    if asked.key != "attn_implementation":
        edits += (Remove(asked.key),)
    whole = ""
    if stops_as_sdpa(run):
        edits, whole = (*edits, Set("sdpa_varlen", False, after="attn_implementation")), " and `sdpa_varlen: false`"
    insisted = run.config.get(HYBRID) or run.context_parallel_size > 1
    message = f"`{asked.key}: {asked.said}` {consequence}; use `attn_implementation: {instead}`{whole}"
    return Hit(asked.key, message, () if insisted else edits)


def in_varlen(run: Run, asked: Kernel) -> Hit:
    """Packed rows of sdpa, which axolotl sends through FlashAttention."""
    card = run.hardware.gpu.title if run.hardware is not None else ""
    message = (
        f"`{asked.key}: {asked.said}` with `sample_packing` on a {card}: axolotl sends packed rows through torch's"
        " FlashAttention, which needs Ampere or newer and stops at the first forward; set `sdpa_varlen: false`"
    )
    return Hit(asked.key, message, (Set("sdpa_varlen", False, after=asked.key),))


def too_wide(run: Run, asked: Kernel) -> Hit:
    """Gemma 4's layers of full attention, for which axolotl has a way around."""
    message = (
        f"`{asked.key}: {asked.said}` stops at the first forward: FlashAttention takes heads of up to"
        f" {WIDEST_FLASH_HEAD}, and this model has some of {widest_head(run)}; use `sdpa`"
    )
    if run.model is None or not run.model.family.hybrid_attention:
        return Hit(asked.key, message)
    return Hit(asked.key, f"{message}, or set `{HYBRID}: true`", (Set(HYBRID, True, after=asked.key),))


def in_fp32(run: Run, asked: Kernel) -> Hit:
    """Queries in fp32, which transformers casts under autocast alone. Packed rows need the kernel all the same."""
    said = hit(run, asked, "in fp32 stops at the first forward: FlashAttention computes in bf16 and fp16 alone")
    instead = f"train in bf16 (`bf16: true`), or use `attn_implementation: {plain(run)}`"
    packed = run.sample_packing
    return Hit(asked.key, f"{said.message.rpartition('; ')[0]}; {instead}", () if packed else said.edits)


rule = Rule(
    id="flash-attention-unsupported",
    stage="lint",
    title="An attention kernel that the card or the model does not have",
    finds=finds,
    level="error",
    proof="read",
    why="""
        FlashAttention's kernels check the card and the width of the heads when they are first called: compute
        capability 8.0, and 256; and they take no fp32, to which nothing but autocast or a quantized base has
        transformers cast. Which kernels a model can use stands in its class, and transformers raises while it
        loads the model. Only where no kernel is named does it fall back to a slower one.
    """,
    safe=True,
    source=(
        "transformers/models/falcon/modeling_falcon.py:555@5.16.1; "
        "transformers/integrations/flash_attention.py:10-21@5.16.1; "
        "axolotl/monkeypatch/attention/xformers.py:55-57@0.19.0; "
        "transformers/modeling_utils.py:1679-1684, 1751-1756@5.16.1; Dao-AILab/flash-attention, "
        "csrc/flash_attn/flash_api.cpp, mha_fwd and mha_varlen_fwd; axolotl/loaders/patch_manager.py:284-293, 826-926, "
        "axolotl/monkeypatch/attention/sdpa_varlen.py:116-188@0.19.0; torch/nn/attention/varlen.py:108-110@2.13.0"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: tiiuae/falcon-7b
                attn_implementation: xformers
            """,
            after="""
                base_model: tiiuae/falcon-7b
                attn_implementation: sdpa
            """,
        ),
        Example(
            before="""
                base_model: EleutherAI/pythia-1.4b
                xformers_attention: true
            """,
            after="""
                base_model: EleutherAI/pythia-1.4b
                attn_implementation: sdpa
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "attn_implementation: xformers"),
        but("attn_implementation: eager", fixed=True),
        Example(
            gpus="1x v100-32gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                fp16: true
                flash_attention: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                fp16: true
                attn_implementation: sdpa
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-4-Scout-17B-16E
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: meta-llama/Llama-4-Scout-17B-16E
                attn_implementation: sdpa
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: openai/gpt-oss-20b
                attn_implementation: sdpa
            """,
            after="""
                base_model: openai/gpt-oss-20b
                attn_implementation: eager
            """,
        ),
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: google/gemma-4-31B
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: google/gemma-4-31B
                attn_implementation: flash_attention_2
                gemma4_hybrid_attn_impl: true
            """,
        ),
        but("base_model: Qwen/Qwen2.5-1.5B", gpus="1x rtx-3090"),
        but("base_model: meta-llama/Llama-4-Scout-17B-16E", "attn_implementation: flex_attention"),
        only("base_model: meta-llama/Llama-4-Scout-17B-16E", gpus="1x v100-32gb"),
        only("base_model: Qwen/Qwen2.5-1.5B", "flash_attention: true", gpus=""),
        only("base_model: google/gemma-4-31B"),
        but("base_model: nobody/knows-this", gpus="1x a100-80gb"),
        but("base_model: meta-llama/Llama-4-Scout-17B-16E", "trust_remote_code: true", gpus="1x a100-80gb"),
        but(without=("attn_implementation",), gpus="1x a100-80gb", fixed=True),
        Example(
            gpus="1x h100-80gb",
            before="""
                base_model: Qwen/Qwen2.5-1.5B
                bf16: false
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-1.5B
                bf16: false
                attn_implementation: sdpa
            """,
        ),
        but("bf16: true"),
        but("attn_implementation: flex_attention"),
        but("sample_packing: true", fires=True),
        but("adapter: qlora", "load_in_4bit: true", "lora_r: 8", "lora_alpha: 16", "lora_target_linear: true"),
        Example(
            gpus="1x t4",
            before="""
                base_model: Qwen/Qwen2.5-0.5B
                fp16: true
                sample_packing: true
                attn_implementation: sdpa
            """,
            after="""
                base_model: Qwen/Qwen2.5-0.5B
                fp16: true
                sample_packing: true
                attn_implementation: sdpa
                sdpa_varlen: false
            """,
        ),
        but("sample_packing: false"),
        but(gpus="1x rtx-3090"),
        Example(
            gpus="1x t4",
            before="""
                base_model: Qwen/Qwen2.5-0.5B
                fp16: true
                sample_packing: true
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: Qwen/Qwen2.5-0.5B
                fp16: true
                sample_packing: true
                attn_implementation: sdpa
                sdpa_varlen: false
            """,
        ),
    ),
)
