"""Prints this machine's GPUs as nvidia-smi does, through NVML: ``python -I -S nvml.py FOLDER``, where pynvml lies.

A program of its own, which imports nothing else: a driver that hangs or crashes takes nothing along.
"""

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

MIB = 1 << 20


def lines(nvml: Any) -> Iterator[str]:
    """A line for each card, with the columns of ``detection.QUERY``."""
    nvml.nvmlInit()
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        names = text(nvml.nvmlDeviceGetUUID(handle)), text(nvml.nvmlDeviceGetName(handle))
        sizes = memory.total // MIB, memory.free // MIB
        yield ", ".join(map(str, (index, *names, *sizes, f"{major}.{minor}", mig(nvml, handle))))


def text(value: bytes | str) -> str:
    """Older versions of pynvml answer in bytes."""
    return value.decode() if isinstance(value, bytes) else value


def mig(nvml: Any, handle: Any) -> str:
    """Whether MIG is on; a card without it answers "not supported"."""
    try:
        return "Enabled" if nvml.nvmlDeviceGetMigMode(handle)[0] == 1 else "Disabled"
    except Exception:
        return "[N/A]"


def main(folder: str) -> None:
    """The answer on standard output, where nothing that the driver prints gets in between."""
    answer = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.append(folder)
    os.write(answer, "\n".join(lines(import_module("pynvml"))).encode())


if __name__ == "__main__":
    main(sys.argv[1])
