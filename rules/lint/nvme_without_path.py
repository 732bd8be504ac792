"""Offloading to NVMe without saying where the disk is."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, json_hit, only

SECTIONS = ("offload_optimizer", "offload_param")


def finds(run: Run) -> Iterator[Hit]:
    """Each of ZeRO-3's sections for a disk that has no folder on it."""
    section = run.deepspeed
    if section is None or run.zero_stage < 3:
        return
    for name in SECTIONS:
        at = f"zero_optimization.{name}"
        if section.at(f"{at}.device") == "nvme" and not section.at(f"{at}.nvme_path"):
            message = f"`device: nvme` under `{name}` without `nvme_path` stops DeepSpeed once the model is loaded"
            yield json_hit(run, f"{at}.device", f"{message}; name a folder on the disk")


rule = Rule(
    id="nvme-without-path",
    stage="lint",
    title="Offloading to NVMe without a folder on the disk",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    alone=True,
    why="""
        DeepSpeed's schema takes the section without it. The optimizer's swapper then joins None and a folder's name:
        TypeError; for parameters it asserts that there is one.
    """,
    source="deepspeed/runtime/zero/stage3.py:711-713, partition_parameters.py:1149@0.18.9",
    examples=lambda: (
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "deepspeed: ds.json",
            gpus="2x a100-80gb",
            deepspeed='{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}}',
            fires=True,
        ),
        but(
            deepspeed='{"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}}',
            fires=True,
        ),
        but(
            deepspeed='{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/d"}}}'
        ),
        but(deepspeed='{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}'),
        but(deepspeed='{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}}'),
    ),
)
