"""GPUs: the built-in catalogue, the text that names hardware, and detection."""

from advisor.hardware.catalogue import find_gpu, gpu_names, larger_gpus
from advisor.hardware.gpu import Gpu, Hardware, Link
from advisor.hardware.parse import gpu_named, parse_hardware

__all__ = ["Gpu", "Hardware", "Link", "detect", "find_gpu", "gpu_named", "gpu_names", "larger_gpus", "parse_hardware"]


def detect() -> Hardware | None:
    """This machine's GPUs through nvidia-smi or NVML, never by initialising CUDA; None if there are none to be read."""
    from advisor.hardware import detection

    return detection.detect()
