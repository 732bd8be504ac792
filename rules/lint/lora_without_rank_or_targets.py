"""LoRA without a rank, an alpha or anything to adapt."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, only

RANK = 16
LINEAR = "lora_target_linear"
TARGETS = (LINEAR, "lora_target_modules", "lora_target_parameters")


def finds(run: Run) -> Iterator[Hit]:
    """What PEFT is given nothing for; an adapter that is loaded brings its own."""
    if run.lora is None or run.config.get("lora_model_dir"):
        return
    edits = tuple(needed(run))
    if not edits:
        return
    names = ", ".join("`lora_target_*`" if edit.path == LINEAR else f"`{edit.path}`" for edit in edits)
    message = f"`adapter: {run.adapter}` without {names}: PEFT stops once the model is loaded; write for example"
    # With quantized experts axolotl refuses all linear layers at once, so the modules must be chosen.
    if run.is_on("quantize_moe_experts") and edits[-1].path == LINEAR:
        yield Hit("adapter", f"{message} the attention's modules")
        return
    wanted = ", ".join(f"`{edit.path}: {str(edit.value).lower()}`" for edit in edits)
    yield Hit("adapter", f"{message} {wanted}", edits)


def needed(run: Run) -> Iterator[Set]:
    """What the flowchart writes for each thing that is missing: rank 16, alpha twice the rank, every linear layer."""
    given = run.config.get
    if given("lora_r") is None and not given("lora_rank_pattern"):
        yield Set("lora_r", RANK, after="adapter")
    if given("lora_alpha") is None and not given("lora_alpha_pattern"):
        yield Set("lora_alpha", 2 * (run.lora.rank if run.lora and given("lora_r") else RANK), after="lora_r")
    if not any(given(key) for key in TARGETS):
        yield Set(LINEAR, True)


rule = Rule(
    id="lora-without-rank-or-targets",
    stage="lint",
    title="LoRA without a rank, an alpha or anything to adapt",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        axolotl has no defaults for these: it passes PEFT what the config has, `None` included, which overrides PEFT's
        own defaults. A rank or an alpha of `None` is a TypeError when the first layer is wrapped, and an empty list of
        targets a ValueError, both after the model has been downloaded and loaded.
    """,
    cost="Rank, alpha and targets are choices; the ones written are common.",
    safe=False,
    source=(
        "axolotl/loaders/adapter.py:165-200@0.19.0; peft/tuners/lora/layer.py:235-236,277@0.20.0; "
        "peft/tuners/tuners_utils.py:997-1001@0.20.0"
    ),
    examples=lambda: (
        Example(
            gpus="1x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_target_linear: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: lora
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
            """,
        ),
        Example(
            gpus="1x rtx-4090",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 32
                lora_alpha: 16
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 32
                lora_alpha: 16
                lora_target_linear: true
            """,
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "adapter: lora", "lora_model_dir: adapters/first-round"),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, v_proj]",
        ),
        only("base_model: meta-llama/Llama-3.1-8B"),
        only(
            "base_model: openai/gpt-oss-20b",
            "adapter: lora",
            "lora_target_linear: true",
            "lora_alpha_pattern: true",
            "lora_r: 1",
        ),
        Example(
            before="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                load_in_8bit: true
                quantize_moe_experts: true
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
            """,
            after="""
                base_model: Qwen/Qwen3-30B-A3B
                adapter: lora
                lora_r: 16
                load_in_8bit: true
                quantize_moe_experts: true
                lora_alpha: 32
                lora_target_modules: [q_proj, v_proj]
            """,
        ),
    ),
)
