"""The GPUs of this machine, through nvidia-smi or NVML; CUDA is never initialised."""

import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from advisor.hardware.asking import answer_of
from advisor.hardware.catalogue import find_gpu, known_gpus, printed_by
from advisor.hardware.gpu import DETECTED, GIB, Gpu, Hardware
from advisor.record import record, replace
from advisor.util import program_on_path

QUERY = ("index", "uuid", "name", "memory.total", "memory.free", "compute_cap", "mig.mode.current")
MIB = 1 << 20
CGROUPS, OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
MEMORY = Path("/proc/meminfo")


@record
class Card:
    """One GPU as the driver shows it; sizes in bytes. ``sliced``: MIG is on, so no process gets all of it."""

    index: int
    uuid: str
    name: str
    total: int
    free: int
    compute_capability: tuple[int, int]
    sliced: bool


def detect() -> Hardware | None:
    """This machine's visible GPUs, all taken for the smallest, and its host memory; None if it cannot tell.

    ``CUDA_VISIBLE_DEVICES`` is honoured: indices are nvidia-smi's, MIG slices and an empty list give None. A
    card outside the catalogue gets the rates of the nearest one in it, and an id that ``parse_hardware`` does
    not know.
    """
    try:
        there = _cards()
        cards = visible(there, os.environ.get("CUDA_VISIBLE_DEVICES"))
        if not cards or any(card.sliced or card.total <= 0 for card in cards):
            return None
        smallest = min(cards, key=lambda card: card.total)
        free = min(card.free for card in cards)
        here = Hardware(gpu_of(smallest), len(cards), 1, _host_memory(), free, DETECTED)
        return replace(here, swap_bytes=swap(), installed=len(there), assumed=here.gpu.roughly)
    except Exception:  # a machine without a driver, or with a broken one, is a machine without a GPU
        return None


def visible(cards: list[Card], devices: str | None) -> list[Card]:
    """The cards that CUDA would show: like CUDA, stops at the first entry that names none."""
    if devices is None:
        return cards
    shown: list[Card] = []
    for entry in devices.split(","):
        card = next((card for card in cards if _names(entry.strip(), card)), None)
        if card is None:
            break
        shown.append(card)
    return shown


def _names(entry: str, card: Card) -> bool:
    # CUDA takes the first characters of a UUID for the whole, as long as they are unique.
    return entry == str(card.index) if entry.isdigit() else len(entry) > 4 and card.uuid.startswith(entry)


def gpu_of(card: Card) -> Gpu:
    """The catalogue's entry with the card's own total, or one made from what was read."""
    if gpu := _known(card):
        driver = usual_driver_bytes(card.total) if gpu.driver_bytes is None else gpu.driver_bytes
        return replace(gpu, total_bytes=card.total - driver)
    capability = card.compute_capability
    return replace(
        _nearest(card),
        id=re.sub(r"[^a-z0-9]+", "-", card.name.lower()).strip("-"),
        title=card.name,
        compute_capability=capability,
        total_bytes=card.total - usual_driver_bytes(card.total),
        bf16=capability >= (8, 0),
        fp8=capability >= (8, 9),
        flash_attention=capability >= (8, 0),
        nominal_gb=0,
        driver_bytes=None,
    )


def _known(card: Card) -> Gpu | None:
    """The card of that name and size: of one name two sizes may be sold."""
    found = find_gpu(card.name)
    if found is not None and _is_of_size(card, found):
        return found
    return next((gpu for gpu in printed_by(card.name) if _is_of_size(card, gpu)), None)


def _is_of_size(card: Card, gpu: Gpu) -> bool:
    # Within a tenth: ECC takes a sixteenth; the sizes of one name are further apart.
    return abs(card.total / gpu.total_bytes - 1) < 0.1


def _nearest(card: Card) -> Gpu:
    def distance(gpu: Gpu) -> tuple[int, int]:
        major, minor = gpu.compute_capability or (0, 0)
        of_card = card.compute_capability
        return abs(10 * (major - of_card[0]) + minor - of_card[1]), abs(gpu.total_bytes - card.total)

    return min((gpu for gpu in known_gpus().values() if gpu.vendor == "NVIDIA"), key=distance)


def usual_driver_bytes(shown: int) -> int:
    """What the driver keeps of a card of ``shown`` bytes: 0.4 GiB and 0.8 %, at most 1.2 GiB.

    An upper bound over the catalogue's cards that nvidia-smi was read for.
    """
    return min(int(1.2 * GIB), int(0.4 * GIB + 0.008 * shown))


def _cards() -> list[Card]:
    """The GPUs as nvidia-smi shows them: it costs less than an interpreter with pynvml. NVML where it has no answer."""
    try:
        answer = answer_of((_smi(), f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"))
        return [_card(line) for line in answer.splitlines() if line.strip()]
    except TimeoutError:  # the driver hangs, and would again
        raise
    except Exception:  # not there, too old for a column, or broken
        return [_card(line) for line in answer_of(_nvml()).splitlines()]


def _smi() -> str:
    """Where nvidia-smi is; ``OSError`` where it is not on the path."""
    if found := program_on_path("nvidia-smi"):
        return found
    raise FileNotFoundError("nvidia-smi is not on the path")


def _nvml() -> tuple[str, ...]:
    """The command that asks NVML; ``OSError`` where pynvml is not installed."""
    found = PathFinder.find_spec("pynvml")
    if found is None or not found.origin:
        raise FileNotFoundError("pynvml is not installed")
    folder = os.path.dirname(found.origin)
    folder = os.path.dirname(folder) if found.submodule_search_locations else folder
    return sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), "nvml.py"), folder


def _card(line: str) -> Card:
    index, uuid, name, total, free, capability, mig = (value.strip() for value in line.split(","))
    major, minor = (int(part) for part in capability.split("."))
    return Card(int(index), uuid, name, int(total) * MIB, int(free) * MIB, (major, minor), mig == "Enabled")


def _host_memory() -> int | None:
    """This machine's memory in bytes, or its container's limit if that is less; whole GiB, rounded down."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return min((memory, *_cgroup_limits())) // GIB * GIB or None


def swap() -> int:
    """Bytes that this machine, or its container, can page out to; 0 under version 1 of cgroups, which limits the sum.

    ``/proc/meminfo`` has a line ``SwapTotal: 2097148 kB``.
    """
    lines = (line.split() for line in _read(MEMORY).splitlines() if line.startswith("SwapTotal:"))
    total = next((int(line[1]) * 1024 for line in lines if len(line) > 1 and line[1].isdigit()), 0)
    return 0 if any(_limits("memory", "memory.limit_in_bytes")) else min((total, *_limits("", "memory.swap.max")))


def _cgroup_limits() -> Iterator[int]:
    """The limits in bytes of this process's memory cgroup and those above it: version 2, then version 1.

    A group may lie deeper than the mount (slurm, systemd), and inside a container its path may lead nowhere: the
    mount's own limit then holds. Without a limit version 2 says ``max``, version 1 nearly 2**63.
    """
    yield from _limits("", "memory.max")
    yield from _limits("memory", "memory.limit_in_bytes")


def _limits(controller: str, file: str) -> Iterator[int]:
    folder = CGROUPS / controller
    path = folder / _cgroup(controller)
    for group in (path, *path.parents):
        if group.is_relative_to(folder) and (text := _read(group / file)).isdigit():
            yield int(text)


def _cgroup(controller: str) -> str:
    """The path of this process's group, below the mount; a line is ``<number>:<controllers>:<path>``."""
    for line in _read(OWN_CGROUPS).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controller in controllers.split(","):
            return path.lstrip("/")
    return ""


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
