"""A key that needs another one, which is not there."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, only
from advisor.schemas.refusals import hits


def finds(run: Run) -> Iterator[Hit]:
    """Each key of the table that stands without its companion."""
    return hits(run, "companion-key-missing")


rule = Rule(
    id="companion-key-missing",
    stage="lint",
    title="A key that needs another one, which is not there",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Some settings mean nothing on their own: a template without its text, a part of DeepSpeed without DeepSpeed.
        axolotl checks them before it loads anything, and stops.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:101-1951@0.19.0, line by line in advisor/schemas/refusals.jsonl",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "chat_template: jinja", fires=True),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                push_dataset_to_hub: someone/prepared
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
                push_dataset_to_hub: someone/prepared
                hf_use_auth_token: true
            """,
        ),
        only("base_model: Qwen/Qwen2.5-7B", "save_strategy: best", fires=True),
        but(
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: SIZE_BASED_WRAP",
            without=("save_strategy",),
            gpus="8x a100-80gb",
            fires=True,
        ),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "relora: true",
            without=("save_strategy",),
            fires=True,
        ),
        but(
            "chat_template: jinja",
            'chat_template_jinja: "{{ messages }}"',
            "push_dataset_to_hub: someone/prepared",
            "hf_use_auth_token: true",
            "metric_for_best_model: eval_loss",
        ),
    ),
)
