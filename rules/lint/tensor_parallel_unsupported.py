"""What does not go together with tensor parallelism."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, only

LIGER = ("liger_rms_norm", "liger_fused_linear_cross_entropy")


def finds(run: Run) -> Iterator[Hit]:
    """Tied embeddings, two of Liger's kernels, and the optimizer that needs whole factors."""
    size = run.tensor_parallel_size
    if size <= 1:
        return
    said = f"`tensor_parallel_size: {size}`"
    if run.model is not None and run.model.tied:
        yield Hit(
            "tensor_parallel_size",
            f"{said} with a model whose head is its embedding: axolotl stops; shard it by FSDP2 instead",
        )
    if "LigerPlugin" in str(run.config.get("plugins")):
        for key in LIGER:
            if run.is_on(key):
                message = f"`{key}` is refused by axolotl with {said}; set it to `false`"
                yield Hit(key, message, (Set(key, False),))
    if run.optimizer == "polora":
        message = f"`optimizer: polora` is refused by axolotl with {said}: it needs whole factors; take another one"
        yield Hit("optimizer", message)


rule = Rule(
    id="tensor-parallel-unsupported",
    stage="lint",
    title="What does not go together with tensor parallelism",
    finds=finds,
    level="error",
    proof="read",
    why="""
        Tensor parallelism cuts the weights of each layer. A head that is the embedding as well would have to be cut in
        two ways; PoLoRA builds its curvature from whole factors; Liger's RMS norm and fused loss fail on what is cut.
        axolotl raises before the weights are loaded.
    """,
    cost="Without Liger's fused loss the logits are there again: vocabulary x tokens, in fp32.",
    safe=True,
    source=(
        "axolotl/loaders/utils.py:139-148, axolotl/utils/schemas/validation.py:955-961, "
        "axolotl/integrations/liger/args.py:113-120, 135-140@0.19.0"
    ),
    examples=lambda: (
        Example(
            gpus="8x h100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_rms_norm: true
                liger_fused_linear_cross_entropy: true
                tensor_parallel_size: 8
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_rms_norm: false
                liger_fused_linear_cross_entropy: false
                tensor_parallel_size: 8
            """,
        ),
        only(
            "base_model: Qwen/Qwen2.5-3B",
            "tensor_parallel_size: 2",
            "dp_shard_size: 4",
            "fsdp_version: 2",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="8x h100-80gb",
            fires=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_glu_activation: true",
            "tensor_parallel_size: 8",
            gpus="8x h100-80gb",
        ),
        only("base_model: Qwen/Qwen2.5-3B", "tensor_parallel_size: 1", gpus="8x h100-80gb"),
        only(
            "base_model: nobody/knows-this",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin",
            "liger_rms_norm: true",
            "tensor_parallel_size: 8",
            fires=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B", "liger_fused_linear_cross_entropy: true", "tensor_parallel_size: 8"
        ),
    ),
)
