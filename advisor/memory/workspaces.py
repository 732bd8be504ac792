"""What cuBLAS works in: torch allocates a workspace for each thread that multiplies, the main one and autograd's."""

from advisor.run import Run

THREADS = 2
SMALL, LARGE = 8_519_680, 32 << 20
WITH_LARGE = frozenset({9, 10, 11, 12})
"""Major compute capabilities: Hopper, and in newer versions of torch Blackwell."""
CUBLAS = "aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: 8,519,680 B, or 32 MiB"


def workspace_bytes(run: Run) -> int:
    """One of them, on the card of the run."""
    capability = run.hardware.gpu.compute_capability if run.hardware else None
    return LARGE if capability and capability[0] in WITH_LARGE else SMALL
