"""The constants of the step time: round values, few, each with its meaning and where it comes from.

None is fitted: constants that are set free follow the rig that measured most, and err on the next one. Some were chosen
where figures left no other source; those name the repositories, and are also scored without them.
"""

from collections.abc import Mapping
from dataclasses import field, fields

from advisor.record import record, replace


@record
class Constant:
    """A value, what it means, and its source; ``chosen_from`` are repositories whose figures moved it."""

    value: float
    meaning: str
    source: str
    chosen_from: tuple[str, ...] = ()


FMS, FOUNDRY, GPJT = "foundation-model-stack/fms-acceleration", "mosaicml/llm-foundry", "gpjt/fine-tune-2024-04"
QWEN, ANSWER = "QwenLM/Qwen", "AnswerDotAI/fsdp_qlora"

Table = Mapping[str, Constant]


@record(eq=False)
class Constants:
    """All of them, as shipped unless stated otherwise."""

    gemm_share: Table = field(
        default_factory=lambda: {
            "geforce": Constant(
                0.95, "share of the printed tensor rate: these cards clock above it", "boost clocks", (ANSWER,)
            ),
            "hopper": Constant(
                0.65, "share of the printed tensor rate under a power limit", "cuBLAS on H100", (FOUNDRY,)
            ),
            "other": Constant(
                0.75, "share of the printed tensor rate of large matrix products", "cuBLAS on A100", (FOUNDRY,)
            ),
        }
    )
    half_rate_width: Constant = Constant(
        1.6, "hidden size that reaches half of that share, in operations a byte of the card", "roofline", (FOUNDRY,)
    )
    attention_share: Table = field(
        default_factory=lambda: {
            "hopper": Constant(
                0.40, "share of the tensor rate that FlashAttention 2 reaches", "arXiv:2407.08608, 1: 35 % on H100"
            ),
            "other": Constant(
                0.55, "share of the tensor rate that FlashAttention 2 reaches", "arXiv:2307.08691, 4.1: 50 to 73 %"
            ),
        }
    )
    flash_1_share: Constant = Constant(
        0.6, "of that, what the first FlashAttention reaches", "arXiv:2307.08691, 4.1", (FOUNDRY,)
    )
    masked_attention_share: Constant = Constant(
        0.25, "share of the tensor rate of sdpa with a mask", "both triangles are computed"
    )
    chunk: Constant = Constant(
        64, "keys of a token in linear attention, computed in chunks", "flash-linear-attention, chunk size"
    )
    bandwidth_share: Constant = Constant(
        0.80, "share of the printed memory bandwidth that long kernels reach", "copies on A100"
    )
    large_cache: Constant = Constant(
        1.5, "factor of Ada's large L2 cache on element-wise bandwidth", "48 to 96 MB of L2", (ANSWER,)
    )
    fused_share: Constant = Constant(
        0.42, "element-wise traffic of fused kernels", "Liger's RMSNorm: 10 of 36 bytes an element"
    )

    launch_seconds: Constant = Constant(
        19e-6, "host time of one operation in eager PyTorch", "Python and autograd", (QWEN,)
    )
    forward_launches: Constant = Constant(
        55, "operations of a layer's forward, views and casts included", "counted", (QWEN,)
    )
    backward_launches: Constant = Constant(
        0.8, "launches of a backward, in forwards: more of them, without Python", "counted", (QWEN,)
    )
    adapter_launches: Constant = Constant(
        10, "operations that LoRA adds to a linear layer", "peft/tuners/lora/layer.py, counted"
    )
    dequantize_launches: Constant = Constant(
        8, "operations that a quantized linear layer adds", "bitsandbytes, counted", (QWEN,)
    )
    fused_launches: Constant = Constant(0.5, "launches of fused kernels, of single operations", "counted")
    zero3_layer_seconds: Constant = Constant(
        8e-3, "host time of DeepSpeed's ZeRO-3 hooks, a layer and micro-step", "", (GPJT, QWEN)
    )
    fsdp_layer_seconds: Constant = Constant(0.5e-3, "host time of FSDP's hooks, a layer and micro-step", "", (FMS,))

    trainer_seconds: Constant = Constant(
        5e-3,
        "host time of the trainer around a micro-step: batch, contexts, scaling, what it logs",
        "transformers/trainer.py, training_step: some hundred calls of 10 to 50 us",
    )

    dequantize_cost: Table = field(
        default_factory=lambda: {
            "nf4": Constant(2.0, "time of dequantization, of its memory traffic", "table look-ups"),
            "gptq": Constant(5.0, "time of dequantization, of its memory traffic", "shifts and masks", (QWEN,)),
        }
    )
    int8_gemm_rate: Constant = Constant(
        1.6,
        "rate of int8 products, of half precision's",
        "printed rates of int8 are twice those of half precision from Turing on; four fifths of that",
    )
    int8_input_bytes: Constant = Constant(
        12,
        "bytes that an int8 layer moves for each input and forward: outliers are looked for, the rest is quantized",
        "bitsandbytes/backends/cuda/ops.py:214-254@0.50.2: 4 absolute values, 3 compared, 2 searched, 3 quantized",
    )
    int8_output_bytes: Constant = Constant(
        14,
        "bytes that an int8 layer moves for each output and forward: int32 to fp16, then the outliers' product",
        "bitsandbytes/backends/cuda/ops.py:79-210@0.50.2: 4 written, 6 scaled, 4 added to",
    )
    int8_cast_bytes: Constant = Constant(
        4,
        "bytes of a cast between bf16 and fp16, of inputs and outputs",
        "bitsandbytes/autograd/_functions.py:140@0.50.2",
    )
    int8_weight_bytes: Constant = Constant(
        7,
        "bytes that the backward moves for each int8 weight",
        "bitsandbytes/autograd/_functions.py:237@0.50.2: cast, scaled",
    )
    int8_launches: Constant = Constant(
        24, "operations that an int8 linear layer adds, one of which waits for the GPU", "bitsandbytes 0.50.2, counted"
    )
    adapter_bytes: Constant = Constant(
        6,
        "bytes that an adapter moves for each input and output element and pass",
        "peft/tuners/lora/layer.py, counted without dropout",
        (FMS,),
    )
    logit_bytes: Table = field(
        default_factory=lambda: {
            "plain": Constant(
                36, "bytes that the loss moves for each logit", "fp32 copy 6, softmax 8, its gradients 16, cast back 6"
            ),
            "fused": Constant(10, "bytes that the loss moves for each logit", "in place, chunk by chunk"),
            "cut": Constant(2, "bytes that the loss moves for each logit", "arXiv:2411.09009: logits stay in SRAM"),
        }
    )

    nvlink_share: Constant = Constant(
        0.65, "share of the printed NVLink rate that NCCL's rings reach", "nccl-tests, bus bandwidth"
    )
    pcie_share: Constant = Constant(
        0.35, "share of the printed PCIe rate without peer access", "through host memory", (ANSWER,)
    )
    slow_pcie_bytes_per_second: Constant = Constant(
        2.6e9, "a consumer board with few lanes for the second card", "", (ANSWER,)
    )
    network_share: Constant = Constant(0.60, "share of the printed network rate", "nccl-tests between nodes")
    hop_seconds: Constant = Constant(10e-6, "latency of one hop of a ring", "nccl-tests, small messages")
    overlap: Constant = Constant(
        1.7, "norm that joins what runs at once: 1 is one after the other", "between 1 and the maximum"
    )
    launch_overlap: Constant = Constant(3.0, "norm that joins kernels and their launches", "between 1 and the maximum")

    vllm_step_seconds: Constant = Constant(
        1e-3, "what vLLM adds to each token: scheduling, sampling", "CUDA graphs: no launches"
    )

    host_copy_share: Constant = Constant(
        0.375,
        "share of the printed PCIe rate of pinned copies, both ways at once",
        "NVIDIA/nvbandwidth#15: 11 to 16 of 32 GB/s each way on RTX 4090",
        (GPJT,),
    )
    host_bytes_per_second: Table = field(
        default_factory=lambda: {
            "desktop": Constant(
                45e9, "host memory that steps on the CPU read and write, a node", "two channels of DDR4-3200: 51 GB/s"
            ),
            "ddr4": Constant(
                117e9,
                "host memory that steps on the CPU read and write, a node",
                "arXiv:2101.06840, table 4: Adam of a billion in 0.24 s, 28 bytes each; 46 % of its sockets' rate",
            ),
            "ddr5": Constant(
                276e9,
                "host memory that steps on the CPU read and write, a node",
                "two sockets of eight channels of DDR5-4800: 45 % of 614 GB/s, DDR4's share of its sockets' rate",
            ),
            "ddr5-5600": Constant(
                322e9,
                "host memory that steps on the CPU read and write, a node",
                "two sockets of eight channels of DDR5-5600: 45 % of 717 GB/s",
            ),
        }
    )
    desktop_share: Constant = Constant(
        0.5,
        "host time of Python on a desktop, of a server's",
        "single-thread rates: cores of 5 GHz against those of 2.5 to 3.5 GHz",
        (GPJT,),
    )
    plain_cpu_adam_elements_per_second: Constant = Constant(
        0.4e9, "torch's AdamW on a CPU with DDR4, one process", "unfused, host bandwidth"
    )
    optimizer_traffic: Constant = Constant(2.0, "reads and writes of all that a step on the card touches", "each once")

    def named(self) -> dict[str, Constant]:
        """Each by its name; one of a table by the table's name and its key: ``gemm_share hopper``."""
        found: dict[str, Constant] = {}
        for one in fields(self):
            match getattr(self, one.name):
                case Constant() as constant:
                    found[one.name] = constant
                case table:
                    found.update({f"{one.name} {key}": constant for key, constant in table.items()})
        return found

    def having(self, values: Mapping[str, float]) -> "Constants":
        """The same with other values, by the names of ``named``."""
        changed = {name: replace(self.named()[name], value=value) for name, value in values.items()}
        whole: dict[str, Constant | Table] = {name: one for name, one in changed.items() if " " not in name}
        for table in {name.partition(" ")[0] for name in changed if " " in name}:
            entries: Table = getattr(self, table)
            whole[table] = {key: changed.get(f"{table} {key}", one) for key, one in entries.items()}
        return replace(self, **whole)


SHIPPED = Constants()

USUAL_RANGE = (0.85, 1.25)
"""Of the expected time: nine in ten of the published figures lie in it."""
WIDE_RANGE = (0.6, 1.7)
"""The same where confidence is low."""

CHOSEN_FROM = frozenset({FMS, FOUNDRY, GPJT, QWEN, ANSWER})
"""The repositories whose figures moved a constant."""
