"""Reports made by hand, small enough to read, one for each thing that a report can say."""

from dataclasses import replace

from advisor.documents import Edit
from advisor.engine.finding import Finding, Fix, Place, Report
from advisor.engine.skipped import Skipped
from advisor.memory.ledger import Estimate, HostTerm, Phase, Range, Term

GIB = 1 << 30


def gib(value: float) -> int:
    return round(value * GIB)


CARD = "8x A100-80GB SXM"
SUMMARY = "full fine-tune, bf16, seq 4096, micro batch 2, global batch 128"
YAML = """\
base_model: meta-llama/Llama-3.1-8B
micro_batch_size: 2
deepspeed: deepspeed_configs/zero1.json
bf16: true
"""
JSON = """\
{
  "zero_optimization": {
    "stage": 2,
    "offload_param": {
      "device": "cpu"
    }
  }
}
"""


def estimate(peak: float, low: float, high: float, *, host: bool = False, notes: tuple[str, ...] = ()) -> Estimate:
    """A full fine-tune on a card of 78.2 GiB: half the peak is activations."""
    weights = Term("weights", "weights", gib(15), "2 B x 8,030,261,248", "transformers/modeling_utils.py:4100@5.16.1")
    gradients = Term("gradients", "gradients", gib(15), "2 B x 8,030,261,248", "engine.py:1@0.18.9")
    states = Term(
        "AdamW states", "optimizer", gib(11.2), "12 B x 8,030,261,248 / 8", "https://arxiv.org/abs/1910.02054"
    )
    kept = Term(
        "activations",
        "activations",
        gib(peak) - gib(43.8),
        "34 x 4096 B x 8,192 tokens x 32 layers",
        "https://arxiv.org/abs/2205.05198",
    )
    buckets = Term("buckets", "overhead", gib(2.6), "2 x 500,000,000 elements", "stage_1_and_2.py:300@0.18.9")
    backward = Phase("backward", (weights, gradients, states, kept, buckets))
    phases = (
        Phase("load", (weights,)),
        backward,
        Phase("optimizer step", (weights, gradients, states, buckets)),
    )
    offloaded = (
        HostTerm("optimizer states", gib(89.7), True, "12 B x 8,030,261,248", "stage_1_and_2.py:600@0.18.9"),
        HostTerm("page cache", gib(15), False, "the checkpoint", "modeling_utils.py:10@5.16.1"),
    )
    return Estimate(
        phases,
        offloaded if host else (),
        Range(gib(low), gib(high)),
        Range(gib(peak), gib(peak * 1.1)),
        gib(78.2),
        gib(1.1),
        notes,
    )


FITS = Report("llama.yaml", CARD, "fits", estimate(60, 61, 66.2), (), summary=SUMMARY)
TIGHT = Report(
    "llama.yaml",
    CARD,
    "tight",
    estimate(76, 77, 80.5),
    (
        Finding(
            "tight-fit",
            "warning",
            "77.0 to 80.5 GiB needed, 78.2 GiB usable on each of 8x A100-80GB SXM",
            Place("llama.yaml", 3, 1, 3, 40),
            help=("set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` against fragmentation",),
        ),
    ),
    summary=SUMMARY,
    texts={"llama.yaml": YAML},
)

ZERO_2 = Finding(
    "zero-2",
    "note",
    "`deepspeed` names ZeRO-1, which shards optimizer states only; name a ZeRO-2 file",
    Place("llama.yaml", 3, 12, 3, 40),
    title="Shard optimizer states and gradients across the GPUs (ZeRO-2)",
    cost="no extra traffic",
    source="https://arxiv.org/abs/1910.02054",
    step=1,
    fix=Fix(
        True,
        (
            Edit("llama.zero-2.json", 0, 0, '{\n  "zero_optimization": {"stage": 2}\n}\n', create=True),
            Edit("llama.yaml", 67, 95, "llama.zero-2.json"),
        ),
        gib(90.7),
        gib(88.1),
        "does-not-fit",
        "--- /dev/null\n+++ llama.zero-2.json\n@@ -0,0 +1,3 @@\n+{\n"
        '+  "zero_optimization": {"stage": 2}\n+}\n'
        "--- llama.yaml\n+++ llama.yaml\n@@ -3 +3 @@\n"
        "-deepspeed: deepspeed_configs/zero1.json\n+deepspeed: llama.zero-2.json\n",
    ),
)
CHECKPOINTING = Finding(
    "gradient-checkpointing",
    "note",
    "`gradient_checkpointing` is off; turn it on",
    Place("llama.yaml", 1, 1, 1, 11),
    title="Keep one tensor a layer and compute the rest again (gradient checkpointing)",
    cost="about 30 % slower steps",
    source="https://arxiv.org/abs/1604.06174",
    step=2,
    fix=Fix(
        True,
        (Edit("llama.yaml", 96, 96, "gradient_checkpointing: true\n"),),
        gib(88.1),
        gib(79),
        "does-not-fit",
        "--- llama.yaml\n+++ llama.yaml\n@@ -4,0 +5 @@\n+gradient_checkpointing: true\n",
    ),
)
LORA = Finding(
    "lora",
    "note",
    "`adapter` is not set; train an adapter",
    Place("llama.yaml", 1, 1, 1, 11),
    title="Train low-rank adapters instead of all weights (LoRA)",
    cost="adapters only: less capacity to learn; the learning rate is ten times the written one",
    source="https://arxiv.org/abs/2106.09685",
    step=3,
    fix=Fix(
        False,
        (Edit("llama.yaml", 125, 125, "adapter: lora\n"),),
        gib(79),
        gib(22.9),
        "fits",
        "--- llama.yaml\n+++ llama.yaml\n@@ -5,0 +6 @@\n+adapter: lora\n",
    ),
    offered=False,
)
DOES_NOT_FIT = Report(
    "llama.yaml",
    CARD,
    "does-not-fit",
    estimate(90.7, 90.7, 95, host=True, notes=("lengths are the worst case: every row has sequence_len tokens",)),
    (
        Finding(
            "does-not-fit",
            "error",
            "90.7 to 95.0 GiB needed, 78.2 GiB usable on each of 8x A100-80GB SXM",
            Place("llama.yaml", 3, 12, 3, 40),
            help=("8x H200-141GB would do without any edit",),
            why="skip this check with `# advisor: ignore[does-not-fit] reason` on this line",
        ),
        ZERO_2,
        CHECKPOINTING,
        LORA,
    ),
    (Skipped("zero-3", "would not lower the peak: 90.7 -> 91.2 GiB per GPU"),),
    SUMMARY,
    {"llama.yaml": YAML},
    planned=replace(estimate(60, 22.9, 25.1)),
)
OFFER = Finding(
    "larger-micro-batch",
    "note",
    "`micro_batch_size: 2` leaves 12.0 GiB free; 4 fits",
    Place("llama.yaml", 2, 1, 2, 20),
    title="Run the same global batch in fewer, larger steps",
    fix=Fix(True, (Edit("llama.yaml", 54, 55, "4"),), gib(60), gib(68), "fits", "@@ -2 +2 @@\n"),
)
ROOM = replace(FITS, findings=(OFFER,), texts={"llama.yaml": YAML})
LINT = Report(
    "llama.yaml",
    None,
    "unknown",
    None,
    (
        Finding(
            "bf16-unsupported",
            "warning",
            "`bf16: true` on a V100, which has no bf16 units: the launch fails or crawls; use fp16",
            Place("llama.yaml", 4, 7, 4, 11),
            why="GPUs before Ampere have no bf16 units.",
            source="https://docs.nvidia.com/cuda/ampere-tuning-guide/",
            fix=Fix(
                False,
                (Edit("llama.yaml", 102, 106, "false\nfp16: true"),),
                diff="--- llama.yaml\n+++ llama.yaml\n@@ -4 +4,2 @@\n-bf16: true\n+bf16: false\n+fp16: true\n",
            ),
        ),
        Finding(
            "offload-param-without-zero-3",
            "error",
            "`zero_optimization.offload_param` with stage 2: DeepSpeed refuses it at the start; remove it",
            Place("zero2.json", 4, 5, 6, 6),
            source="deepspeed/runtime/zero/config.py:200@0.18.9",
            fix=Fix(
                True,
                (Edit("zero2.json", 44, 90, ""),),
                diff="--- zero2.json\n+++ zero2.json\n@@ -3,4 +3 @@\n"
                '-    "stage": 2,\n-    "offload_param": {\n-      "device": "cpu"\n-    }\n'
                '+    "stage": 2\n',
            ),
        ),
        Finding(
            "no-hardware",
            "note",
            "the hardware is unknown, so memory was not estimated",
            Place("llama.yaml"),
            help=("--gpus",),
        ),
    ),
    texts={"llama.yaml": YAML, "zero2.json": JSON},
)
JSON_ALONE = Report("zero3.json", None, "unknown", None, ())
