"""The log of a run that died -> what was allocated, what was asked for, and in which phase."""

import re
from collections.abc import Mapping
from typing import Literal

from advisor.cli.crash_log.frames import Moment, moment_of
from advisor.cli.crash_log.log import clipped
from advisor.errors import InputError
from advisor.record import record
from advisor.util import regex

Cause = Literal["gpu", "apple", "vllm", "host", "elsewhere"]
"""A GPU's memory, Apple's, vLLM's share of a GPU, the host's, or another rank: this log shows what followed from it."""
UNITS: Mapping[str, int] = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE = r"(\d+(?:\.\d+)?) (bytes|B|[KMGT]i?B)"
LONGEST = 15
"""Digits of a size in a log; a longer one is none."""
SCATTERED = 0.05
"""Of a card: reserved memory in pieces from which on it is fragmented. Below it the card is full."""

# c10/cuda/CUDACachingAllocator.cpp, OutOfMemoryError; "capacty" was its spelling in torch 2.1.
TRIED = regex(rf"(?:CUDA|HIP|XPU) out of memory\.\s+(?:\[\w+\]:\s*)?Tried to allocate {SIZE}")
# aten/src/ATen/mps/MPSAllocator.mm; its GB are of 1024 MB.
APPLE = regex(
    rf"MPS backend out of memory \(MPS allocated: {SIZE}, other allocations: {SIZE}, max allowed: {SIZE}\)\."
    rf" Tried to allocate {SIZE}"
)
FIELDS: Mapping[str, re.Pattern[str]] = {
    "capacity": re.compile(rf"total capac(?:i?ty) of {SIZE}|{SIZE} total capacity"),
    "free": re.compile(rf"of which {SIZE} is free|{SIZE} free"),
    "in_use": re.compile(rf"this process has {SIZE} memory in use"),
    "allocated": re.compile(rf"{SIZE} is allocated by PyTorch|{SIZE} already allocated"),
    "unallocated": re.compile(rf"{SIZE} is reserved by PyTorch but unallocated"),
    "reserved": re.compile(rf"{SIZE} reserved in total by PyTorch|{SIZE} cached"),
}
GPU = regex(r"\bGPU (\d+)")
RANK = regex(r"^\[(?:rank|default)\d+\]:", re.MULTILINE)
BARE: Mapping[str, re.Pattern[str]] = {
    "cuBLAS": re.compile(r"CUBLAS_STATUS_ALLOC_FAILED"),
    "CUDA": re.compile(r"CUDA error: out of memory"),
    "cuDNN": re.compile(r"CUDNN_STATUS_ALLOC_FAILED"),
    "NCCL": re.compile(r"Cuda failure (?:2 )?'out of memory'|unhandled cuda error[^\n\r]{0,80}out of memory"),
    # csrc/pythonInterface.cpp (managed memory of paged optimizers), csrc/ops.cu; CUDA_CHECK_RETURN in csrc/common.cuh.
    "bitsandbytes's paged optimizer": re.compile(r"Error out of memory at line \d+ in file \S*pythonInterface"),
    "bitsandbytes": re.compile(r"Error out of memory at line \d+"),
}
"""Out of memory, said by a library that has no figures."""
# vllm/v1/core/kv_cache_utils.py, check_enough_kv_cache_memory; vllm/v1/worker/utils.py, request_memory.
VLLM = regex(
    r"No available memory for the cache blocks|larger than the available KV cache memory"
    r"|on startup is less than desired GPU memory utilization"
)
# torch/distributed/elastic/multiprocessing/errors; deepspeed/launcher/launch.py:341@0.18.9; subprocess; slurmstepd;
# Kubernetes; the kernel's log; c10/core/impl/alloc_cpu.cpp.
HOST = regex(
    r"exitcode\s*:\s*-9\b|(?:[Ee]xit(?:ed)?(?: with)?|return|non-zero exit) (?:[Cc]ode|status)[:= ]{1,8}(?:-9|137)\b"
    r"|Signal 9 \(SIGKILL\)|died with <Signals\.SIGKILL"
    r"|oom[-_]kill|OOMKilled|Out of memory: Killed process"
    r"|^(?:.*: line \d+: +\d+ )?Killed\b|DefaultCPUAllocator: (?:can't|not enough)|\bMemoryError\b",
    re.MULTILINE,
)
FOLLOWED = regex(
    r"Watchdog caught collective operation timeout|NCCL communicator was aborted|Connection (?:closed|reset) by peer"
    r"|ncclRemoteError|ncclSystemError|ncclInternalError|Broken pipe|DistBackendError|NCCL error"
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
    teller: str = "torch"
    """Which library says that memory ran out."""
    followed: int = 0
    """The line of the first error of communication, which followed from the death; 0 without one."""

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
        """Whether the memory was there, but not in one piece: enough for the request, and more than a full card has."""
        if self.tried is None or self.free is None or not self.unallocated or self.too_large:
            return False
        whole = self.capacity or self.available or 0
        return self.tried <= self.free + self.unallocated and self.unallocated >= SCATTERED * whole

    @property
    def too_large(self) -> bool:
        """Whether this one request is larger than the card."""
        return self.tried is not None and self.capacity is not None and self.tried > self.capacity


def read_death(log: str) -> Death | None:
    """The out-of-memory error in a log; None if there is none. A GPU that ran out counts before what followed.

    Raises ``InputError`` for figures that are none.
    """
    log = clipped(log)
    return _first_death(log)


def _first_death(log: str) -> Death | None:
    """Of the deaths that a log may tell of, the one that caused the others."""
    if match := TRIED.search(log):
        return _of_torch(log, match)
    if match := APPLE.search(log):
        return _of_apple(log, match)
    if match := VLLM.search(log):
        return Death("vllm", line=line_of(log, match.start()), teller="vLLM")
    for teller, pattern in BARE.items():
        if match := pattern.search(log):
            line = line_of(log, match.start())
            return Death("gpu", moment_of(log, match.start()), line=line, teller=teller, followed=following(log))
    if match := HOST.search(log):
        line = line_of(log, match.start())
        return Death("host", moment_of(log, match.start()), line=line, followed=following(log))
    if match := FOLLOWED.search(log):
        return Death("elsewhere", line=line_of(log, match.start()))
    return None


def following(log: str) -> int:
    """The line of the first error of communication."""
    match = FOLLOWED.search(log)
    return line_of(log, match.start()) if match else 0


def _of_torch(log: str, match: re.Match[str]) -> Death:
    """torch's own message, in its forms since 1.x."""
    line = line_of(log, match.start())
    end = log.find("Traceback (most recent call last)", match.end())
    said = log[match.start() : min(end if end >= 0 else len(log), match.start() + 1500)]
    message = " ".join(RANK.sub("", said).split())
    found: dict[str, int | None] = {name: _size_in(pattern, message, line) for name, pattern in FIELDS.items()}
    reserved, allocated = found["reserved"], found["allocated"]
    if reserved is not None and allocated is not None:
        found["unallocated"] = max(0, reserved - allocated)
    gpu = GPU.search(message)
    return Death(
        "gpu",
        moment_of(log, match.start()),
        tried=size(match[1], match[2], line),
        gpu=number(gpu[1], "GPU", line) if gpu else None,
        line=line,
        capacity=found["capacity"],
        free=found["free"],
        in_use=found["in_use"],
        allocated=allocated,
        unallocated=found["unallocated"],
        followed=following(log),
    )


def _of_apple(log: str, match: re.Match[str]) -> Death:
    """The message of torch's MPS backend."""
    line = line_of(log, match.start())
    allocated, other, allowed, tried = (size(match[at], match[at + 1], line) for at in (1, 3, 5, 7))
    moment, in_use = moment_of(log, match.start()), allocated + other
    return Death("apple", moment, tried=tried, capacity=allowed, in_use=in_use, allocated=allocated, line=line)


def _size_in(pattern: re.Pattern[str], message: str, line: int) -> int | None:
    """The size that a pattern finds, in whichever of its forms."""
    match = pattern.search(message)
    if match is None:
        return None
    digits, unit = (group for group in match.groups() if group is not None)
    return size(digits, unit, line)


def size(digits: str, unit: str, line: int = 0) -> int:
    """Bytes."""
    if len(digits) > LONGEST:
        raise absurd(f"{digits[:LONGEST]}... {unit}", "a size of memory", line)
    return round(float(digits) * UNITS[unit[0].upper()])


def number(digits: str, what: str, line: int, most: int = 9999) -> int:
    """The number of a GPU or a rank."""
    if len(digits) > len(str(most)) or int(digits) > most:
        raise absurd(digits[:LONGEST] + "..." * (len(digits) > LONGEST), f"the number of a {what}", line)
    return int(digits)


def absurd(said: str, what: str, line: int) -> InputError:
    """The error for a figure that cannot be meant."""
    return InputError(f"`{said}` is not {what}", line=line, remedy="pass the log as the run wrote it")


def line_of(text: str, position: int) -> int:
    """The line of a position, from 1."""
    return text.count("\n", 0, position) + 1
