"""One training run in the field's own terms: what axolotl, DeepSpeed and transformers will really do."""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from advisor.documents import Document
from advisor.hardware import Hardware
from advisor.models import Architecture
from advisor.record import record
from advisor.run.answers import Ebft, Rollouts
from advisor.run.history import MeasuredRun
from advisor.run.stack import Stack
from advisor.run.unreadable import Unreadable

if TYPE_CHECKING:
    from advisor.run.deepspeed.section import Section  # whose package reads Zero from here

Precision = Literal["bf16", "fp16", "fp32"]
Adapter = Literal["lora", "qlora"]
Quantization = Literal["nf4", "int8", "mxfp4", "nvfp4", "fp8", "gptq"]
AttentionKernel = Literal["eager", "sdpa", "flash", "flex", "xformers", "sage"]
ExpertsKernel = Literal["grouped_mm", "eager", "scattermoe", "sonicmoe"]
Float8 = Literal["tensorwise", "rowwise", "rowwise_with_gw_hp"]
Loss = Literal["plain", "liger-fused", "liger", "cut", "chunked", "diffusion"]
Classifier = Literal["sequence", "token"]
Offloading = Literal["saved-tensors", "legacy", "hidden-states"]
Device = Literal["gpu", "cpu", "nvme"]
ZeroStage = Literal[0, 1, 2, 3]
# axolotl refuses these optimizers with DeepSpeed: utils/schemas/validation.py:931-1074@0.19.0.
WITHOUT_DEEPSPEED = frozenset(
    [
        "muon",
        "polora",
        "q_galore_adamw8bit",
        "flash_adamw",
        "flash_adam",
        "flash_sgd",
        "flash_sgdw",
        "flash_lion",
    ]
)


@record(eq=False)
class Lora:
    """A low-rank adapter. ``targets`` are module names, or one regular expression with ``targets_pattern``."""

    rank: int
    alpha: float
    dropout: float
    targets: tuple[str, ...] = ()
    targets_pattern: bool = False
    target_linear: bool = False
    target_parameters: tuple[str, ...] = ()
    modules_to_save: tuple[str, ...] = ()
    ensure_tying: bool = False
    """Of a tied model, embedding and head are one trained copy: PEFT's ``ensure_weight_tying``."""
    rank_pattern: Mapping[str, int] = field(default_factory=dict[str, int])
    layers: tuple[int, ...] = ()
    """The layers that get adapters, where not all do, counted below a list of one of the names of ``layer_lists``."""
    layer_lists: tuple[str, ...] = ()
    dora: bool = False
    fp32: bool = True
    """Adapter weights in fp32 under bf16 compute: PEFT's ``autocast_adapter_dtype``."""
    kernels: frozenset[str] = frozenset()
    """axolotl's fused LoRA kernels: ``mlp``, ``qkv`` and ``o`` (``lora_mlp_kernel`` and its siblings)."""


@record(eq=False)
class FakeQuantization:
    """Types of weights, in groups of ``group`` elements, and of inputs, empty where these stay as they are."""

    weight: str
    inputs: str
    group: int
    embedding: bool = False


@record(eq=False)
class Zero:
    """DeepSpeed's ZeRO as this run will have it, every "auto" and default resolved. Sizes in elements."""

    stage: ZeroStage
    offload_optimizer: Device = "gpu"
    offload_params: Device = "gpu"
    pin_optimizer: bool = False
    pin_params: bool = False
    reduce_bucket_size: int = 500_000_000
    prefetch_bucket_size: int = 50_000_000
    param_persistence_threshold: int = 100_000
    max_live_parameters: int = 1_000_000_000
    max_reuse_distance: int = 1_000_000_000
    sub_group_size: int = 1_000_000_000
    overlap_comm: bool = False
    contiguous_gradients: bool = True
    fp32_gradient_accumulation: bool = False
    secondary_partition_size: int = 1
    offload_ratio: float = 1.0
    """The share of sub-groups whose states are offloaded, in stage 3."""
    swap_buffers: int = 4
    """Of the size of the largest sub-group, for states on NVMe."""
    param_swap_elements: int = 500_000_000
    """In all buffers for parameters on NVMe."""
    max_in_cpu: int = 1_000_000_000
    """Elements of parameters on NVMe that stay on the host all the same."""
    force_cpu_adam: bool = True
    """``zero_force_ds_cpu_optimizer``: accelerate replaces the optimizer by DeepSpeedCPUAdam when it is offloaded."""
    loads_fp32: bool = False
    """ZeRO-3 without an explicit ``bf16.enabled: true`` builds its shards in fp32 while loading."""
    master_bytes: int = 4
    """Of one element of the master weights: 2 with ``bf16_master_weights_and_grads``, or fp16's."""
    autotp_size: int = 1
    """``tensor_parallel.autotp_size``: ranks that DeepSpeed's engine cuts the decoder's linear layers over."""
    own_optimizer: str | None = None
    """The type in the JSON's own ``optimizer`` block, which wins over the YAML's."""


@record(eq=False)
class Fsdp:
    """PyTorch's fully sharded data parallelism, version 1 or 2."""

    version: Literal[1, 2]
    reshard_after_forward: bool = True
    offload_params: bool = False
    pin_memory: bool = True
    cpu_ram_efficient_loading: bool = False
    loads_quantized_in_pieces: bool = False
    """One process quantizes layer by layer on its host, and each GPU gets its share."""
    activation_checkpointing: bool = False
    wraps_layers: bool = True


@record
class Images:
    """How many images a row has, and their size in pixels; ``origin`` says who says so."""

    count: int
    width: int
    height: int
    origin: str

    def __str__(self) -> str:
        """``one image of 1024x1024 a row (assumed)``."""
        how_many = "one image" if self.count == 1 else f"{self.count} images"
        return f"{how_many} of {self.width}x{self.height} a row ({self.origin})"


@record
class Prepared:
    """The dataset that axolotl has already tokenized for this config, where rows are neither packed nor padded.

    ``tokens`` of its longest row, and ``padded`` to the multiple that batches are padded to; ``sequence_len`` that it
    was cut at; ``folder`` as the config names it.
    """

    padded: int
    tokens: int
    sequence_len: int
    folder: str


@record(eq=False)
class Run:
    """One training run. Immutable; every fact says where it came from through ``origins``.

    Lengths and batch sizes are per GPU and micro-step. ``config`` and ``deepspeed`` are the documents the facts were
    read from: read-only mappings that know their spans; all that a lint rule sees of files.
    """

    config: Document
    deepspeed: "Section | None"
    model: Architecture | None
    hardware: Hardware | None
    stack: Stack
    origins: Mapping[str, str] = field(repr=False, default_factory=dict[str, str])
    """Dotted path of the key that a fact was read from, or axolotl's default and where that is defined."""
    working_directory: str = "."
    deepspeed_named: str | None = None
    """What ``deepspeed:`` says, where it is a path; ``deepspeed`` is None if it could not be found."""
    deepspeed_editable: bool = False
    """Whether the DeepSpeed JSON is this run's own, so that an edit may land in it; else a copy is made."""

    measured: tuple[MeasuredRun, ...] = ()
    """What earlier runs on this machine reserved; those of the same kind count."""

    unreadable: tuple[Unreadable, ...] = ()
    """Values that the estimate depends on and that cannot be read: here they stand at their defaults."""

    model_reason: str = ""
    """Why the model is not known, as a clause."""
    model_hints: tuple[str, ...] = ()
    """What a user can do about that, the likeliest first."""
    model_config: Literal["missing", "available", "trace-failed"] = "missing"
    """Whether the config of an unknown model was found, and whether transformers was asked for it (``--trace``)."""
    base_model: str = ""
    precision: Precision = "bf16"
    autocast: bool = True
    """Autocast around the forward; DeepSpeed's engine casts the model instead."""
    adapter: Adapter | None = None
    lora: Lora | None = None
    quantization: Quantization | None = None
    double_quantization: bool = True
    quantize_moe_experts: bool = False
    linear_experts: bool = False
    """A linear layer for each expert, which bitsandbytes quantizes: axolotl's own Llama 4 and Kimi Linear."""
    experts: ExpertsKernel = "grouped_mm"
    """What computes stacked experts."""
    unfrozen_parameters: tuple[str, ...] = ()
    freeze_multimodal: bool = False
    images: Images | None = None
    """The images of a row, where the call states them."""

    micro_batch_size: int = 1
    gradient_accumulation_steps: int = 1
    sync_each_batch: bool = False
    """Gradients are reduced in each micro-step: ``accelerator_config.gradient_accumulation_kwargs.sync_each_batch``."""
    sequence_len: int = 512
    sample_packing: bool = False
    pads_to_sequence_len: bool = False
    prepared: Prepared | None = None
    optimizer: str = "adamw_torch_fused"
    optim_target_modules: tuple[str, ...] = ()

    activation_checkpointing: bool = False
    reentrant: bool = True
    activation_offloading: Offloading | None = None
    attention: AttentionKernel = "sdpa"
    attention_given: bool = False
    sdpa_varlen: bool = False
    """Whether axolotl may send packed rows of sdpa through ``varlen_attn``: where sdpa is asked for by name."""
    loss: Loss = "plain"
    liger: frozenset[str] = frozenset()
    """Fused Liger layers in use: ``rms_norm``, ``glu``, ``rope``, ``layer_norm``."""
    tiled_mlp_shards: int | None = None
    """Pieces of a row that ``tiled_mlp`` passes through an MLP one by one; None is off, 0 as axolotl cuts by length."""
    torch_compile: bool = False
    float8: Float8 | None = None
    """How torchao's linear layers scale to fp8, in which they multiply: ``fp8``."""
    fake_quantization: FakeQuantization | None = None
    """What quantization-aware training rounds in each forward."""

    rl: str | None = None
    reference_model: bool = False
    """A second, frozen copy of the model scores the answers."""
    scores_reference: bool = False
    chosen_cross_entropy: bool = False
    """The loss of preferences adds a cross-entropy over the chosen answers."""
    rollouts: Rollouts | None = None
    """How answers are made, where the trainer makes them: GRPO and GDPO, and EBFT unless it strides."""
    ebft: Ebft | None = None
    """What EBFT compares answers by."""
    classifier: Classifier | None = None
    """What the model scores in place of predicting tokens: whole rows, in pairs, or steps at single tokens."""
    evaluates: bool = False
    packs_evaluation: bool = False
    """Evaluation fills bins of ``micro_batch_size`` rows, as training does; ``eval_batch_size`` is then the same."""
    cuts_evaluation: bool = False
    """Whether ``eval_sequence_len`` has an effect: rows of ``test_datasets`` that are neither packed nor padded."""
    eval_batch_size: int = 1
    eval_sequence_len: int = 512
    """Tokens of the longest row that is evaluated: what the key says only where axolotl reads it."""
    generated_rows: int = 0
    """Rows that are answered at once when evaluation also generates."""
    generated_tokens: int = 0
    """Tokens that each of them may get."""
    gathers_to_generate: bool = False
    """Whether ZeRO-3's shards are put together first."""

    sharding: Zero | Fsdp | None = None
    """DeepSpeed or FSDP, which exclude each other; None is one GPU, or DDP on several."""
    tensor_parallel_size: int = 1
    context_parallel_size: int = 1
    expert_parallel_size: int = 1
    dp_shard_size: int | None = None
    dp_replicate_size: int = 1
    fsdp_upcasts: bool = False
    """accelerate turns trained shards to fp32 under mixed precision; axolotl's own FSDP2 preparation does not."""
    embeddings_fp32: bool = False
    """axolotl keeps embeddings, head and norms in fp32 (plain attention, no adapter, no DeepSpeed or FSDP)."""
    upcasts_unquantized: bool = False
    """PEFT's ``prepare_model_for_kbit_training`` turns every weight that is not quantized to fp32."""
    fp32_residual_stream: bool = False

    @property
    def has_foreign_json(self) -> bool:
        """Whether the DeepSpeed config lies outside the YAML's repository: of what is in it, only keys may be named."""
        return self.deepspeed is not None and self.deepspeed.outside

    def is_on(self, key: str) -> bool:
        """Whether the YAML says true at a key, in any of the ways that axolotl's schema takes for it."""
        from advisor.run.axolotl.reader import TRUE

        return str(self.config.get(key)).lower() in TRUE

    @property
    def is_json_alone(self) -> bool:
        """Whether no YAML stands behind this: a DeepSpeed JSON that none of the call names."""
        return self.deepspeed is not None and not self.config

    @cached_property
    def world_size(self) -> int:
        """Processes, one a GPU."""
        return self.hardware.world_size if self.hardware else 1

    @property
    def ranks_of_a_node(self) -> int:
        """Processes of one node."""
        return self.hardware.gpus_per_node if self.hardware else 1

    @cached_property
    def uses_images(self) -> bool:
        """Whether it is given a processor, without which axolotl trains on text alone."""
        return bool(self.config.get("processor_type"))

    @property
    def may_shard(self) -> bool:
        """Whether there are several GPUs to shard over, or nobody knows how many."""
        return self.hardware is None or self.world_size > 1

    @cached_property
    def tensor_ranks(self) -> int:
        """Ranks that a layer is cut over: axolotl's ``tensor_parallel_size``, or DeepSpeed's AutoTP, which it fills in.

        They read the same rows: accelerate/data_loader.py:1122-1130@1.13.0.
        """
        return max(self.tensor_parallel_size, self.autotp_size)

    @property
    def tensor_ranks_key(self) -> str:
        """The key that cuts layers over ranks."""
        return "tensor_parallel_size" if self.tensor_parallel_size > 1 else "autotp_size"

    @property
    def autotp_size(self) -> int:
        """Ranks that DeepSpeed's AutoTP cuts layers over, once the whole model is loaded; 1 without it."""
        return self.sharding.autotp_size if isinstance(self.sharding, Zero) else 1

    @cached_property
    def data_parallel_size(self) -> int:
        """Ranks that see different data."""
        return max(1, self.world_size // (self.tensor_ranks * self.context_parallel_size))

    @cached_property
    def shard_size(self) -> int:
        """Ranks that states are divided over: ZeRO's or FSDP's group."""
        if not isinstance(self.sharding, Fsdp):
            return max(1, self.world_size // self.tensor_ranks)
        if self.dp_shard_size:
            return self.dp_shard_size * self.context_parallel_size
        return max(1, self.world_size // (self.tensor_parallel_size * self.dp_replicate_size))

    @property
    def global_batch_size(self) -> int:
        """Rows per optimizer step over all ranks."""
        return self.micro_batch_size * self.gradient_accumulation_steps * self.data_parallel_size

    @cached_property
    def tokens(self) -> int:
        """Tokens of one micro-step on one GPU at the worst case: full rows; preference training has pairs.

        Rows that GPUs share are padded to a multiple of their number
        (axolotl/utils/ctx_managers/sequence_parallel.py:99-128@0.19.0).
        """
        rows = self.micro_batch_size * (2 if self.paired else 1)
        if self.ebft is not None:
            return rows * self.ebft.samples * (self.sequence_len + self.ebft.answers(self.sequence_len))
        return rows * -(-self.sequence_len // self.context_parallel_size)

    @cached_property
    def asks_for_gradients(self) -> bool:
        """Whether the output of a frozen embedding is made to need a gradient, and every layer's input with it.

        axolotl asks for every adapter (axolotl/loaders/adapter.py:427-428@0.19.0), others with checkpointing alone.
        """
        return self.adapter is not None and (self.stack.trainer == "axolotl" or self.activation_checkpointing)

    @cached_property
    def paired(self) -> bool:
        """Whether chosen and rejected answers go through the model together.

        KTO's rows are unpaired; its KL rows go alone, without gradients (trl/trainer/kto_trainer.py:1280-1330@1.9.0).
        """
        return self.rl in {"dpo", "ipo", "orpo", "simpo"} or self.classifier == "sequence"

    @property
    def zero(self) -> Zero | None:
        """DeepSpeed's ZeRO, of any stage; None without DeepSpeed."""
        return self.sharding if isinstance(self.sharding, Zero) else None

    @cached_property
    def zero_stage(self) -> ZeroStage:
        """DeepSpeed's stage; 0 without DeepSpeed."""
        return self.sharding.stage if isinstance(self.sharding, Zero) else 0

    @property
    def fsdp(self) -> Fsdp | None:
        """FSDP's settings; None without FSDP."""
        return self.sharding if isinstance(self.sharding, Fsdp) else None

    @property
    def offloads_fsdp1(self) -> bool:
        """Whether FSDP1 keeps weights on the host, where a reduced gradient takes the place of the last one.

        torch/distributed/fsdp/fully_sharded_data_parallel.py:193-197@2.13.0.
        """
        return self.fsdp is not None and self.fsdp.version == 1 and self.fsdp.offload_params

    @cached_property
    def compute_bytes(self) -> int:
        """Bytes of one element of the dtype that is computed with."""
        return 4 if self.precision == "fp32" else 2

    @property
    def has_masters(self) -> bool:
        """Whether what is trained is kept in fp32.

        DeepSpeed keeps masters in fp32 unless its JSON says otherwise, plain axolotl and its FSDP2 have none. Adapters
        are in fp32 themselves, and so are the shards of FSDP1 (accelerate/accelerator.py:1980-2020@1.13.0).
        """
        shards = self.fsdp is not None and self.fsdp_upcasts
        own = self.precision == "fp32" or shards or (self.lora is not None and self.lora.fp32)
        return own or (self.zero is not None and self.zero.master_bytes == 4)

    @property
    def takes_deepspeed(self) -> bool:
        """Whether DeepSpeed is in use or could be: FSDP and some optimizers exclude it."""
        return not isinstance(self.sharding, Fsdp) and self.optimizer not in WITHOUT_DEEPSPEED

    @property
    def excludes_adapters(self) -> bool:
        """Whether the config asks for what axolotl refuses with an adapter.

        Quantization-aware training, fused modules, the ternary weights of Falcon-E.
        """
        keys = ("qat", "flash_attn_fuse_mlp", "flash_attn_fuse_qkv", "use_onebitllms")
        return any(self.config.get(key) for key in keys)

    @property
    def full_finetune(self) -> bool:
        """Whether every weight is trained."""
        return self.adapter is None
