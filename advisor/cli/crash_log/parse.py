"""The log of a run that died -> what was allocated, what was asked for, and in which phase."""

import re
from collections.abc import Mapping
from typing import Literal

from advisor.cli.crash_log.frames import Moment, moment_of
from advisor.record import record

Cause = Literal["gpu", "host", "elsewhere"]
"""A GPU's memory, the host's, or another rank: this log shows only what followed from it."""
UNITS: Mapping[str, int] = {"B": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
SIZE = r"(\d+(?:\.\d+)?) (bytes|B|[KMGT]iB)"

# c10/cuda/CUDACachingAllocator.cpp, OutOfMemoryError; "capacty" was its spelling in torch 2.1.
TRIED = re.compile(rf"(?:CUDA|HIP) out of memory\.\s+(?:\[\w+\]:\s*)?Tried to allocate {SIZE}")
FIELDS: Mapping[str, re.Pattern[str]] = {
    "capacity": re.compile(rf"total capac(?:i?ty) of {SIZE}|{SIZE} total capacity"),
    "free": re.compile(rf"of which {SIZE} is free|{SIZE} free"),
    "in_use": re.compile(rf"this process has {SIZE} memory in use"),
    "allocated": re.compile(rf"{SIZE} is allocated by PyTorch|{SIZE} already allocated"),
    "unallocated": re.compile(rf"{SIZE} is reserved by PyTorch but unallocated"),
    "reserved": re.compile(rf"{SIZE} reserved in total by PyTorch"),
}
GPU = re.compile(r"\bGPU (\d+)")
RANK = re.compile(r"^\[(?:rank|default)\d+\]:", re.MULTILINE)
# Out of memory, told by a library that has no figures.
BARE = re.compile(
    r"CUBLAS_STATUS_ALLOC_FAILED|CUDA error: out of memory|Cuda failure (?:2 )?'out of memory'"
    r"|CUDNN_STATUS_ALLOC_FAILED|NCCL .*unhandled cuda error.*out of memory"
)
# torch/distributed/elastic/multiprocessing/errors; slurmstepd; the kernel's log; c10/core/impl/alloc_cpu.cpp.
HOST = re.compile(
    r"exitcode\s*:\s*-9\b|exit(?:ed with)? code (?:-9|137)\b|Signal 9 \(SIGKILL\)"
    r"|oom[-_]kill|Out of memory: Killed process"
    r"|^(?:.*: line \d+: +\d+ )?Killed\b|DefaultCPUAllocator: (?:can't|not enough)|\bMemoryError\b",
    re.MULTILINE,
)
FOLLOWED = re.compile(
    r"Watchdog caught collective operation timeout|NCCL communicator was aborted|Connection (?:closed|reset) by peer"
    r"|ncclRemoteError|ncclSystemError|Broken pipe|DistBackendError"
)


@record
class Death:
    """How a run died. Sizes in bytes, None where the log does not say."""

    cause: Cause
    moment: Moment | None = None
    tried: int | None = None
    capacity: int | None = None
    free: int | None = None
    in_use: int | None = None
    allocated: int | None = None
    unallocated: int | None = None
    """Reserved by torch in pieces, and not allocated."""
    gpu: int | None = None
    line: int = 0

    @property
    def available(self) -> int | None:
        """What torch could have had: allocated, in pieces, and free."""
        if self.allocated is None or self.free is None:
            return None
        return self.allocated + (self.unallocated or 0) + self.free

    @property
    def needed(self) -> int | None:
        """The least that this moment needed."""
        return None if self.allocated is None or self.tried is None else self.allocated + self.tried

    @property
    def in_pieces(self) -> bool:
        """Whether the memory was there, but not in one piece."""
        if self.tried is None or self.free is None or not self.unallocated:
            return False
        return self.tried <= self.free + self.unallocated


def read_death(log: str) -> Death | None:
    """The death that a log tells of; None if it tells of none. A GPU that ran out counts before what followed."""
    if match := TRIED.search(log):
        return of_torch(log, match)
    if match := BARE.search(log):
        return Death("gpu", moment_of(log, match.start()), line=line_of(log, match.start()))
    if match := HOST.search(log):
        return Death("host", moment_of(log, match.start()), line=line_of(log, match.start()))
    if match := FOLLOWED.search(log):
        return Death("elsewhere", line=line_of(log, match.start()))
    return None


def of_torch(log: str, match: re.Match[str]) -> Death:
    """torch's own message, in its forms since 1.x."""
    end = log.find("Traceback (most recent call last)", match.end())
    said = log[match.start() : min(end if end >= 0 else len(log), match.start() + 1500)]
    message = " ".join(RANK.sub("", said).split())
    found = {name: size_in(pattern, message) for name, pattern in FIELDS.items()}
    reserved, allocated = found.pop("reserved"), found["allocated"]
    if reserved is not None and allocated is not None:
        found["unallocated"] = max(0, reserved - allocated)
    gpu = GPU.search(message)
    return Death(
        "gpu",
        moment_of(log, match.start()),
        tried=size(match[1], match[2]),
        gpu=int(gpu[1]) if gpu else None,
        line=line_of(log, match.start()),
        **found,
    )


def size_in(pattern: re.Pattern[str], message: str) -> int | None:
    """The size that a pattern finds, in whichever of its forms."""
    match = pattern.search(message)
    if match is None:
        return None
    number, unit = (group for group in match.groups() if group is not None)
    return size(number, unit)


def size(number: str, unit: str) -> int:
    """Bytes."""
    return round(float(number) * UNITS[unit])


def line_of(text: str, position: int) -> int:
    """The line of a position, from 1."""
    return text.count("\n", 0, position) + 1
