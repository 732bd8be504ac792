"""Options of torch.compile that axolotl does not take."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, is_mapping, only

# axolotl/utils/schemas/enums.py:179-192@0.19.0.
ALLOWED = frozenset(
    [
        "assume_aligned_inputs",
        "comprehensive_padding",
        "coordinate_descent_check_all_directions",
        "coordinate_descent_tuning",
        "decompose_mem_bound_mm",
        "epilogue_fusion",
        "fx_graph_cache",
        "max_autotune_gemm",
        "shape_padding",
        "triton.cudagraphs",
    ]
)
KEY = "torch_compile_options"


def finds(run: Run) -> Iterator[Hit]:
    """Options that are not on axolotl's list, and options without ``torch_compile``."""
    options = run.config.get(KEY)
    if not is_mapping(options):
        return
    for option in (str(name) for name in options if name not in ALLOWED):
        message = f"`{option}` is not an option that axolotl 0.19 hands to torch.compile, so it stops; remove it"
        edits = () if "." in option else (Remove(f"{KEY}.{option}"),)
        yield Hit(f"{KEY}.{option}" if edits else KEY, message, edits, on_key=True)
    if not run.config.get("torch_compile"):
        message = f"`{KEY}` without `torch_compile`: axolotl stops; set `torch_compile: true`, or remove the options"
        yield Hit(KEY, message, on_key=True)


rule = Rule(
    id="torch-compile-options",
    stage="lint",
    title="Options of torch.compile that axolotl does not take",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        axolotl lets ten of inductor's options through, because many of the others change results or fail late, and it
        takes options without `torch_compile` for a mistake.
    """,
    safe=False,
    source="axolotl/utils/schemas/config.py:1636-1658@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                torch_compile: true
                torch_compile_options:
                  coordinate_descent_tuning: true
                  max_autotune: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                torch_compile: true
                torch_compile_options:
                  coordinate_descent_tuning: true
            """,
        ),
        but("torch_compile_options:\n  shape_padding: true", without=("torch_compile",), fires=True),
        but("torch_compile: auto", "torch_compile_options:\n  shape_padding: true\n  triton.cudagraphs: false"),
        only("base_model: meta-llama/Llama-3.1-8B"),
    ),
)
