"""A model's own file that is older than the transformers that loads it."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, only

KEY = "trust_remote_code"
OLD = tuple(f"deepseek-ai/DeepSeek-{name}" for name in ("V2", "V3", "R1", "Coder-V2"))
"""Repositories with a file for transformers 4 of a model that transformers has itself."""
DISTILLED = "Distill"


def finds(run: Run) -> Iterator[Hit]:
    """Where transformers 5 prefers that file to its own class."""
    model = run.model
    if model is None or not run.is_on(KEY) or not run.stack.at_least("transformers", "5.0.0"):
        return
    if run.base_model.startswith(OLD) and DISTILLED not in run.base_model:
        message = (
            f"`{KEY}: true` risks an ImportError: the file in `{run.base_model}` takes `is_torch_fx_available` from"
            f" transformers, which 5 no longer has; remove it, since transformers has `{model.model_type}` itself"
        )
        yield Hit(KEY, message, (Remove(KEY),))


rule = Rule(
    id="remote-code-too-old",
    stage="lint",
    title="A model's own file is older than transformers",
    finds=finds,
    level="warning",
    proof="read",
    safe=True,
    why="""
        With the key, transformers loads the modeling file of the repository, also where it has a class for the model.
        DeepSeek's was written for transformers 4 and imports a name that 5 has removed.
    """,
    cost="None: the same weights in transformers' own class.",
    source=(
        "https://github.com/huggingface/transformers/issues/44561; "
        "https://github.com/NVIDIA/Model-Optimizer/pull/1829; transformers/models/auto/auto_factory.py:353-386@5.16.1"
    ),
    examples=lambda: (
        Example(
            before="""
                base_model: deepseek-ai/DeepSeek-V2-Lite
                trust_remote_code: true
                sequence_len: 4096
            """,
            after="""
                base_model: deepseek-ai/DeepSeek-V2-Lite
                sequence_len: 4096
            """,
        ),
        but("base_model: deepseek-ai/DeepSeek-V3", fires=True),
        but("trust_remote_code: false"),
        but(stack={"transformers": "4.57.1"}),
        but("base_model: unsloth/DeepSeek-V3-bf16"),
        but("base_model: deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),
        but("base_model: deepseek-ai/DeepSeek-V2-Nobody"),
        only("base_model: deepseek-ai/deepseek-math-7b-instruct", "trust_remote_code: true"),
    ),
)
