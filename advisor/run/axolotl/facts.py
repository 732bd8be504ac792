"""The facts that an axolotl YAML holds, named and typed as ``Run``'s fields; pyright finds a name that is not one."""

from typing import TypedDict

from advisor.run import (
    Adapter,
    AttentionKernel,
    Classifier,
    Ebft,
    ExpertsKernel,
    FakeQuantization,
    Float8,
    Fsdp,
    Lora,
    Loss,
    Offloading,
    Precision,
    Quantization,
    Rollouts,
    Zero,
)


class PrecisionFacts(TypedDict):  # noqa: D101
    precision: Precision
    autocast: bool


class EvaluationFacts(TypedDict):  # noqa: D101
    evaluates: bool
    packs_evaluation: bool
    cuts_evaluation: bool
    eval_batch_size: int
    eval_sequence_len: int


class BatchFacts(EvaluationFacts):  # noqa: D101
    micro_batch_size: int
    gradient_accumulation_steps: int
    sync_each_batch: bool
    sequence_len: int
    sample_packing: bool
    pads_to_sequence_len: bool


class SizeFacts(TypedDict):  # noqa: D101
    tensor_parallel_size: int
    context_parallel_size: int
    expert_parallel_size: int
    dp_shard_size: int | None
    dp_replicate_size: int


class AdapterFacts(TypedDict):  # noqa: D101
    adapter: Adapter | None
    lora: Lora | None


class PreferenceFacts(TypedDict):  # noqa: D101
    rl: str | None
    reference_model: bool
    scores_reference: bool
    chosen_cross_entropy: bool
    rollouts: Rollouts | None
    classifier: Classifier | None
    ebft: Ebft | None


class QuantizationFacts(TypedDict):  # noqa: D101
    quantization: Quantization | None
    double_quantization: bool
    linear_experts: bool
    quantize_moe_experts: bool
    experts: ExpertsKernel


class CheckpointingFacts(TypedDict):  # noqa: D101
    activation_checkpointing: bool
    reentrant: bool
    activation_offloading: Offloading | None
    tiled_mlp_shards: int | None


class AttentionFacts(TypedDict):  # noqa: D101
    attention: AttentionKernel
    attention_given: bool
    sdpa_varlen: bool


class LossFacts(TypedDict):  # noqa: D101
    loss: Loss
    liger: frozenset[str]


class GenerationFacts(TypedDict):  # noqa: D101
    generated_rows: int
    generated_tokens: int
    gathers_to_generate: bool


class SingleFacts(TypedDict):  # noqa: D101
    base_model: str
    optimizer: str
    optim_target_modules: tuple[str, ...]
    unfrozen_parameters: tuple[str, ...]
    freeze_multimodal: bool
    torch_compile: bool
    float8: Float8 | None
    fake_quantization: FakeQuantization | None


class _ShardingFacts(TypedDict):
    sharding: Zero | Fsdp | None


class AxolotlFacts(
    SingleFacts,
    _ShardingFacts,
    PrecisionFacts,
    BatchFacts,
    GenerationFacts,
    SizeFacts,
    AdapterFacts,
    PreferenceFacts,
    QuantizationFacts,
    CheckpointingFacts,
    AttentionFacts,
    LossFacts,
):
    """All that the YAML alone decides."""


class JoinedFacts(TypedDict):
    """What depends on the YAML, the sharding and the trainer together."""

    embeddings_fp32: bool
    upcasts_unquantized: bool
    autocast: bool
    fsdp_upcasts: bool
    fp32_residual_stream: bool
    reentrant: bool


class RunFacts(AxolotlFacts, JoinedFacts):
    """All facts that come from the documents."""
