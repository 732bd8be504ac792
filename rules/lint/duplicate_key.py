"""A key that stands twice."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Every value that a later one of the same key overrides."""
    for path, span in run.config.overridden:
        at = ".".join(map(str, path))
        yield Hit(
            at if run.config.key_span(at) else "",
            f"`{path[-1]}` already stands on line {span.line}, and axolotl takes the last one silently; keep one",
            on_key=True,
        )


rule = Rule(
    id="duplicate-key",
    stage="lint",
    title="A key that the YAML holds twice",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        YAML forbids it, but PyYAML, with which axolotl reads, lets the last value win. The line that one reads first,
        and edits, is then not the one that counts.
    """,
    safe=False,
    source="axolotl/cli/config.py:252-254@0.19.0; yaml/constructor.py, SafeConstructor.construct_mapping@6.0.3",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "sequence_len: 4096",
            "micro_batch_size: 1\nmicro_batch_size: 8",
            "gradient_checkpointing: true",
            fires=True,
        ),
        but(
            """
                datasets:
                  - path: tatsu-lab/alpaca
                    type: alpaca
                  - path: tatsu-lab/alpaca_eval
                    type: alpaca
            """,
            without=("micro_batch_size", "gradient_checkpointing"),
        ),
    ),
)
