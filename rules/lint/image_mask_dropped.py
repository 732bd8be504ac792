"""FlashAttention with images whose tokens see each other both ways."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but, only
from advisor.run.axolotl.attention import kernel, masks_images, plain


def finds(run: Run) -> Iterator[Hit]:
    """Where FlashAttention is asked for, which takes no mask."""
    asked = kernel(run)
    if asked.is_flash and masks_images(run):
        instead = plain(run)
        message = f"`{asked.key}: {asked.said}` silently makes the tokens of an image causal, which see all of it else"
        edits = (Set("attn_implementation", instead),) if asked.key == "attn_implementation" else ()
        yield Hit(asked.key, f"{message}; use `attn_implementation: {instead}`", edits)


rule = Rule(
    id="image-mask-dropped",
    stage="lint",
    title="FlashAttention with images whose tokens see each other both ways",
    finds=finds,
    level="warning",
    proof="read",
    why="""
        Gemma 3 and PaliGemma let all tokens of an image see each other, by a mask. transformers gives FlashAttention
        no mask of that kind, so that an image is read as text is, from its first token to its last: not as the model
        was trained.
    """,
    cost="Some speed; the images are seen as in pretraining.",
    safe=False,
    source=(
        "transformers/masking_utils.py:607-647@5.16.1; transformers/models/gemma3/modeling_gemma3.py:698-757@5.16.1; "
        "transformers/models/paligemma/modeling_paligemma.py:257-259@5.16.1"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: google/gemma-3-4b-it
                processor_type: AutoProcessor
                skip_prepare_dataset: true
                remove_unused_columns: false
                attn_implementation: flash_attention_2
            """,
            after="""
                base_model: google/gemma-3-4b-it
                processor_type: AutoProcessor
                skip_prepare_dataset: true
                remove_unused_columns: false
                attn_implementation: sdpa
            """,
        ),
        but("flash_attention: true", without=("attn_implementation",), fires=True),
        but("attn_implementation: sdpa"),
        but(without=("processor_type",)),
        only(
            "base_model: Qwen/Qwen2.5-VL-7B-Instruct",
            "processor_type: AutoProcessor",
            "attn_implementation: flash_attention_2",
        ),
        only(
            "base_model: nobody/knows-this",
            "processor_type: AutoProcessor",
            "attn_implementation: flash_attention_2",
        ),
    ),
)
