"""axolotl is newer than the tables."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.run.stack import release
from advisor.schemas import axolotl_keys


def finds(run: Run) -> Iterator[Hit]:
    """Once a run, where its axolotl is newer."""
    known, theirs = axolotl_keys().version, release(run.stack.axolotl)
    if run.stack.trainer == "axolotl" and theirs > release(known):
        yield Hit(
            "base_model",
            f"axolotl {'.'.join(map(str, theirs))} is newer than what is known here ({known}): its new keys are called"
            " unknown, and what it refuses is a warning; update axolotl-advisor, or ask axolotl by `--validate`",
        )


rule = Rule(
    id="axolotl-newer-than-known",
    stage="lint",
    title="axolotl is newer than the tables of its keys",
    finds=finds,
    level="note",
    proof="read",
    why="""
        Keys, their values, and what axolotl refuses are read from tables of one version. A newer axolotl may have other
        keys and take what this one refused, so nothing that rests on the tables alone is called an error then.
    """,
    safe=False,
    source="axolotl/utils/schemas/config.py:214@0.19.0, by way of advisor/schemas/axolotl.json",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.1-8B", stack={"axolotl": "0.20.0"}, fires=True),
        but(stack={"axolotl": "0.20.0", "trainer": "trl-sft"}),
        but(stack={"axolotl": "0.19.0"}),
    ),
)
