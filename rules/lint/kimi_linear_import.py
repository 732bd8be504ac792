"""Kimi Linear under an axolotl whose own code of it does not load."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only, without


def finds(run: Run) -> Iterator[Hit]:
    """Its remote code, in place of which axolotl 0.19.0 loads its own, on the transformers that it pins."""
    own_code = run.stack.at_least("axolotl", "0.19.0") and not run.stack.at_least("axolotl", "0.19.1")
    if not own_code or not run.stack.at_least("transformers", "5.16.1") or not run.config.get("trust_remote_code"):
        return
    if run.model is not None and run.model.family.own_code_stops:
        yield Hit(
            "base_model",
            "axolotl 0.19.0's own code for Kimi Linear stops at an import that transformers 5.16.1 does not have;"
            " use an axolotl that fixes it",
        )


rule = Rule(
    id="kimi-linear-import",
    stage="lint",
    title="Train Kimi Linear with an axolotl whose code for it loads",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        axolotl answers transformers' request for the model's remote code with a module of its own. That module takes
        `OutputRecorder` from `transformers.utils.generic`, which transformers 5 has moved to another module.
    """,
    safe=True,
    source="axolotl/model_support/kimi_linear/modeling_kimi.py:36, model_support/remote_code.py:33-39@0.19.0",
    examples=lambda: (
        only(
            "base_model: moonshotai/Kimi-Linear-48B-A3B-Instruct",
            "trust_remote_code: true",
            "sequence_len: 4096",
            fires=True,
        ),
        without("trust_remote_code"),
        but(stack={"axolotl": "0.20.0"}),
        but(stack={"axolotl": "0.18.0"}),
        but(stack={"transformers": "4.57.1"}),
        but("base_model: nobody/knows-this"),
        but("base_model: Qwen/Qwen2.5-3B"),
    ),
)
