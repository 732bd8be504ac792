"""fp8 on a card that axolotl does not take for it."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, only

# axolotl/cli/config.py:353-358@0.19.0. Ada has fp8 units, and is refused anyway.
FIRST_WITH_FP8 = (9, 0)
KEYS = ("fp8", "fp8_config", "fp8_enable_fsdp_float8_all_gather")


def finds(run: Run) -> Iterator[Hit]:
    """Where ``fp8`` meets a compute capability below 9.0."""
    if run.hardware is None:
        return
    gpu = run.hardware.gpu
    capability = gpu.compute_capability
    if capability is None or capability >= FIRST_WITH_FP8 or not run.is_on("fp8"):
        return
    has = ".".join(map(str, capability))
    message = f"`fp8: true` on {gpu.title}: axolotl stops below compute capability 9.0 (this is {has}); remove it"
    yield Hit("fp8", message, tuple(Remove(key) for key in KEYS if run.config.has(key)))


rule = Rule(
    id="fp8-unsupported",
    stage="lint",
    title="fp8 on a card that axolotl does not take for it",
    finds=finds,
    level="error",
    proof="read",
    why="""
        axolotl takes fp8 training for Hopper or later: it reads the card's compute capability while it reads the
        config, and refuses below 9.0, Ada's fp8 units (8.9) among them.
    """,
    cost="Matrix products in bf16 instead: slower on a card that has fp8.",
    safe=False,
    source="axolotl/utils/schemas/config.py:1845-1852@0.19.0; axolotl/cli/config.py:353-358@0.19.0",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                bf16: true
                fp8: true
                torch_compile: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                bf16: true
                torch_compile: true
            """,
        ),
        but(gpus="8x h100-80gb"),
        only("base_model: meta-llama/Llama-3.1-8B"),
        but(without=("bf16",), gpus="8x mi300x"),
        but(without=("bf16",), gpus=""),
    ),
)
