"""What each optimizer keeps per trained element, by the names that axolotl and transformers accept.

Names: transformers/training_args.py:117-157@5.16.1; axolotl/utils/schemas/enums.py:86-106@0.19.0.
"""

from typing import Literal

from advisor.record import record

Width = Literal["param", "fp32", "int8", "int4", "fp8", "factored", "none"]


@record(eq=False)
class Optimizer:
    """``states``: the width of each state. ``step``: extra elements of the parameter's width alive during the step.

    ``matrix_step``: extra bytes per element of one matrix, alive while that is stepped, of optimizers that step one
    tensor after the other. ``blocks``: states are quantized where these many elements make a block; the rest keeps
    its own width.

    ``paged``: states in CUDA managed memory, outside torch's allocator. ``embeddings_fp32``: the Trainer keeps the
    states of ``nn.Embedding`` in 32 bits. ``matrices_only``: the states of 2-D weights; the rest is trained by AdamW.
    ``fused_backward``: gradients are consumed one by one. ``low_rank``: states live in a projected space of that rank.
    """

    states: tuple[Width, ...]
    source: str
    step: float = 0.0
    matrix_step: float = 0.0
    blocks: int = 0
    paged: bool = False
    embeddings_fp32: bool = False
    matrices_only: bool = False
    fused_backward: bool = False
    low_rank: int = 0
    is_adamw: bool = False
    approximate: bool = False


ADAM: tuple[Width, Width] = ("param", "param")
BNB = "bitsandbytes/optim/optimizer.py:431-487; transformers/trainer.py: GlobalOptimManager keeps embeddings in 32 bits"
TORCHAO = "torchao/optim/adam.py:71-78@0.17.0; transformers/trainer_optimizer.py:460@5.16.1: blocks of 256"
TORCHAO_FP8 = "torchao/optim/adam.py:71-78@0.17.0"
FOREACH = "torch/optim/adamw.py _multi_tensor_adamw: one list of temporaries of the parameter's width"
NO_TEMPORARIES = "torch/optim/adamw.py, fused=True: one kernel, no temporaries"


def _bnb(count: int, width: Width = "int8", *, paged: bool = False) -> Optimizer:
    return Optimizer((width,) * count, BNB, paged=paged, embeddings_fp32=width == "int8")


OPTIMIZERS: dict[str, Optimizer] = {
    "adamw_torch": Optimizer(ADAM, FOREACH, step=1.0, is_adamw=True),
    "adamw_torch_fused": Optimizer(ADAM, NO_TEMPORARIES, is_adamw=True),
    "adamw_torch_xla": Optimizer(ADAM, FOREACH, step=1.0, is_adamw=True),
    "adamw_torch_npu_fused": Optimizer(ADAM, NO_TEMPORARIES, is_adamw=True),
    "adamw_anyprecision": Optimizer(
        ("param", "param", "param"), "transformers: Kahan compensation buffer", approximate=True
    ),
    "adamw_torch_4bit": Optimizer(("int4", "int4"), TORCHAO, matrix_step=24 + 8 / 256, blocks=256),
    "adamw_torch_8bit": Optimizer(("int8", "int8"), TORCHAO, matrix_step=8 + 8 / 256, blocks=256),
    "ao_adamw_fp8": Optimizer(("fp8", "fp8"), TORCHAO_FP8, matrix_step=8 / 256, blocks=256),
    "adamw_bnb_8bit": _bnb(2),
    "adamw_8bit": _bnb(2),
    "paged_adamw_32bit": _bnb(2, "fp32", paged=True),
    "paged_adamw_8bit": _bnb(2, paged=True),
    "ademamix": Optimizer(("param", "param", "param"), "bitsandbytes AdEMAMix: two momenta, one variance"),
    "ademamix_8bit": _bnb(3),
    "paged_ademamix_32bit": _bnb(3, "fp32", paged=True),
    "paged_ademamix_8bit": _bnb(3, paged=True),
    "lion_8bit": _bnb(1),
    "lion_32bit": _bnb(1, "fp32"),
    "paged_lion_32bit": _bnb(1, "fp32", paged=True),
    "paged_lion_8bit": _bnb(1, paged=True),
    "sgd": Optimizer((), "torch/optim/sgd.py: no state without momentum"),
    "adagrad": Optimizer(("param",), "torch/optim/adagrad.py", step=1.0),
    "rmsprop": Optimizer(("param",), "torch/optim/rmsprop.py", step=1.0),
    "rmsprop_bnb": _bnb(1, "fp32"),
    "rmsprop_bnb_8bit": _bnb(1),
    "rmsprop_bnb_32bit": _bnb(1, "fp32"),
    "adafactor": Optimizer(("factored",), "transformers/optimization.py Adafactor: one row and one column each, fp32"),
    "galore_adamw": Optimizer(ADAM, "galore_torch, rank 128", low_rank=128, approximate=True),
    "galore_adamw_8bit": Optimizer(("int8", "int8"), "galore_torch, rank 128", low_rank=128, approximate=True),
    "galore_adafactor": Optimizer(("factored",), "galore_torch, rank 128", low_rank=128, approximate=True),
    "apollo_adamw": Optimizer(ADAM, "apollo_torch, rank 1 unless optim_args says so", low_rank=1, approximate=True),
    "lomo": Optimizer((), "lomo_optim: updates inside backward", fused_backward=True),
    "adalomo": Optimizer(("factored",), "lomo_optim: updates inside backward", fused_backward=True),
    "grokadamw": Optimizer(("param", "param", "param"), "grokadamw: one more average", approximate=True),
    "schedule_free_radam": Optimizer(ADAM, "schedulefree: z and the second moment"),
    "schedule_free_adamw": Optimizer(ADAM, "schedulefree: z and the second moment"),
    "schedule_free_sgd": Optimizer(("param",), "schedulefree: z"),
    "stable_adamw": Optimizer(ADAM, "optimi StableAdamW", approximate=True),
    "optimi_adamw": Optimizer(
        ("param", "param", "param"), "optimi AdamW: Kahan buffer for half precision", approximate=True
    ),
    "adopt_adamw": Optimizer(ADAM, "axolotl/utils/optimizers/adopt.py@0.19.0", step=1.0),
    "adamc": Optimizer(ADAM, "axolotl/utils/optimizers/adamc.py@0.19.0", step=1.0),
    "came_pytorch": Optimizer(
        ("fp32", "factored"), "came_pytorch: one momentum, factored second moments", approximate=True
    ),
    "muon": Optimizer(("param",), "axolotl muon: one momentum for matrices, AdamW for the rest", matrices_only=True),
    "dion": Optimizer(
        ("param",),
        "dion: one momentum for matrices, AdamW for the rest",
        matrices_only=True,
        approximate=True,
    ),
    "sinkgd": Optimizer(
        (),
        "axolotl/utils/optimizers/sinkgd.py@0.19.0: stateless for matrices",
        matrices_only=True,
        approximate=True,
    ),
    "polora": Optimizer(("param",), "axolotl/utils/optimizers/polora.py@0.19.0", approximate=True),
    "flash_adamw": Optimizer(("int8", "int8", "int8"), "flashoptim: 8-bit moments, 8-bit correction", approximate=True),
    "flash_adam": Optimizer(("int8", "int8", "int8"), "flashoptim: 8-bit moments, 8-bit correction", approximate=True),
    "flash_sgd": Optimizer(("int8", "int8"), "flashoptim: 8-bit momentum, 8-bit correction", approximate=True),
    "flash_sgdw": Optimizer(("int8", "int8"), "flashoptim: 8-bit momentum, 8-bit correction", approximate=True),
    "flash_lion": Optimizer(("int8", "int8"), "flashoptim: 8-bit momentum, 8-bit correction", approximate=True),
    "q_galore_adamw8bit": Optimizer(("int8", "int8"), "q-galore, rank 256", low_rank=256, approximate=True),
}

LEAST_PAGED = 100_000
"""Elements from which bitsandbytes pages states: bitsandbytes/optim/optimizer.py, get_state_buffer@0.50.2."""
LEAST_QUANTIZED = 4096
"""Elements from which it quantizes them: min_8bit_size."""

UNKNOWN = Optimizer(ADAM, "unknown optimizer: counted as AdamW", approximate=True)

# Bytes per element; block scales: fp32 per 256 elements.
BYTES: dict[Width, float] = {
    "fp32": 4.0,
    "int8": 1 + 4 / 256,
    "int4": 0.5 + 4 / 256,
    "fp8": 1 + 4 / 256,
    "none": 0.0,
}


def optimizer_named(name: str) -> Optimizer:
    """The optimizer of that name; layer-wise variants count as their base. An unknown name counts as AdamW."""
    return OPTIMIZERS.get(name.removesuffix("_layerwise"), UNKNOWN)


def is_known(name: str) -> bool:
    """Whether axolotl or transformers has an optimizer of that name."""
    return name.removesuffix("_layerwise") in OPTIMIZERS
