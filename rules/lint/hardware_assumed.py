"""The name of the hardware leaves open which card it is, or by what its GPUs are linked."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only


def finds(run: Run) -> Iterator[Hit]:
    """Where the name has more than one reading, and where the time of a step rests on a link that nobody stated."""
    hardware = run.hardware
    if hardware is None:
        return
    if hardware.assumed:
        yield Hit("base_model", f"{hardware.assumed} ({hardware.source})")
    if hardware.link_assumed:
        linked = f"PCIe of {hardware.gpu.pcie_bytes_per_s / 1e9:g} GB/s, the default for this card"
        yield Hit(
            "base_model",
            f"the {hardware.gpus_per_node} GPUs are taken to be linked by {linked}, for the time of a step;"
            " write `link=pcie-slow` behind them if their slots have fewer lanes, else `link=pcie`",
        )


rule = Rule(
    id="hardware-assumed",
    stage="lint",
    title="The name of the hardware leaves open which card it is, or how its GPUs are linked",
    finds=finds,
    level="note",
    proof="read",
    why="""
        `a100` is sold with 40 and with 80 GB, `v100` with 16 and 32. The most common one is taken; a verdict for the
        wrong one is worth nothing, so name the size.
        Cards without NVLink are linked by PCIe, but how many lanes each has is the board's business: the time of a step
        is said for the lanes of the card itself. A consumer board often gives the second card four.
    """,
    safe=False,
    source="advisor/hardware/catalogue.py",
    examples=lambda: (
        only("base_model: meta-llama/Llama-3.1-8B", gpus="8x a100", fires=True),
        but(gpus="2x rtx-4090", fires=True),
        but(gpus="2x rtx-4090 link=pcie"),
        but(gpus="8x a100-80gb"),
        but(gpus=""),
    ),
)
