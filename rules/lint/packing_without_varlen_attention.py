"""Packed samples attend to each other."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Rule, Run, Set, but, only
from advisor.memory.activations.attention import stops_as_sdpa
from advisor.run.axolotl.attention import can_flash, kernel, plain

ISOLATING = frozenset(
    [
        "eager",
        "flash_attention_2",
        "flash_attention_3",
        "flash_attention_4",
        "flash_attention_torch",
        "flex_attention",
        "kernels-community/flash-attn2",
        "kernels-community/flash-attn3",
        "kernels-community/sage-attention",
        "sage",
        "sdpa",
        "xformers",
    ]
)


def finds(run: Run) -> Iterator[Hit]:
    """Where axolotl hands the padding mask on, which hides the borders of the samples."""
    asked = kernel(run)
    streams = run.config.get("streaming") or run.config.get("pretraining_dataset")
    if not run.sample_packing or streams or asked.base in ISOLATING:
        return
    if run.model is not None and run.model.family.mask_taken_out:
        return
    if asked.name and "/" not in asked.name and asked.name != "fp8":
        return  # attention-refused: not a name at all
    if run.attention == "flash" and not can_flash(run):
        return  # flash-attention-unsupported has another kernel put in its place
    instead = "flash_attention_2" if can_flash(run) else plain(run)
    if asked.name:
        same = ", which loads this same kernel" if stands_for(run, instead) == asked.base else ""
        yield Hit(
            asked.key,
            f"`{asked.key}: {asked.name}` is not on axolotl's list for `sample_packing`: samples of padded rows"
            f" attend to each other; use `{instead}`{same}",
        )
        return
    yield Hit(
        "sample_packing",
        "`sample_packing` without `attn_implementation`: the samples of a row attend to each other; set"
        f" `attn_implementation: {instead}`",
        (Set("attn_implementation", instead, after="sample_packing"), *without_varlen(run, instead)),
    )


def without_varlen(run: Run, instead: str) -> tuple[Change, ...]:
    """sdpa without the kernel to which axolotl sends packed rows, on a card that does not have it."""
    if instead != "sdpa" or not stops_as_sdpa(run):
        return ()
    return (Set("sdpa_varlen", False, after="attn_implementation"),)


def stands_for(run: Run, name: str) -> str:
    """The kernel that transformers loads for this model where this one is asked for."""
    if run.model is None or name != "flash_attention_2" or not run.stack.at_least("transformers", "5.0.0"):
        return name
    return run.model.family.flash_stand_in or name


rule = Rule(
    id="packing-without-varlen-attention",
    stage="lint",
    title="Packed samples attend to each other",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        axolotl marks the borders of packed samples by restarting positions, which transformers looks at only if
        there is no padding mask. axolotl drops that mask for the kernels on its list, not for one that is not on it,
        and not where none is named, though transformers then takes the very sdpa that would have kept the samples
        apart. The loss looks better than it is. axolotl says so in a line of its log.
    """,
    cost="`flash_attention_2` needs the flash-attn package, or its binary from the hub.",
    safe=False,
    source=(
        "axolotl/utils/schemas/config.py:1499-1510, validation.py:188-205, core/builders/causal.py:275-277, "
        "core/trainers/base.py:326-333@0.19.0; transformers/masking_utils.py:851-859@5.16.1; tried with Llama"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                sample_packing: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                sequence_len: 4096
                sample_packing: true
                attn_implementation: flash_attention_2
            """,
        ),
        Example(
            gpus="1x t4",
            before="""
                base_model: Qwen/Qwen2.5-0.5B
                sequence_len: 2048
                sample_packing: true
            """,
            after="""
                base_model: Qwen/Qwen2.5-0.5B
                sequence_len: 2048
                sample_packing: true
                attn_implementation: sdpa
                sdpa_varlen: false
            """,
        ),
        but(
            "base_model: openai/gpt-oss-20b",
            "sequence_len: 4096",
            "attn_implementation: kernels-community/vllm-flash-attn3",
            gpus="8x h100-80gb",
            fires=True,
        ),
        but(
            "base_model: openai/gpt-oss-20b",
            "sequence_len: 4096",
            "attn_implementation: kernels-community/vllm-flash-attn3",
        ),
        but("base_model: meta-llama/Llama-3.1-8B", "sequence_len: 4096", "sdp_attention: true", gpus="1x a100-80gb"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        only(
            "base_model: nobody/knows-this",
            "sample_packing: true",
            "attn_implementation: kernels-community/vllm-flash-attn3",
            fires=True,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "sample_packing: true", "pretraining_dataset: allenai/c4"),
        only("base_model: meta-llama/Llama-3.1-8B", "sample_packing: true", "streaming: true"),
        but("base_model: meta-llama/Llama-3.1-8B", "attn_implementation: kernels-community/flash-attn3"),
        but("base_model: meta-llama/Llama-3.1-8B", "attn_implementation: fp8", gpus="1x h100-80gb", fires=True),
    ),
)
