"""The built-in catalogue of GPUs, and how people, nvidia-smi and torch name them.

``gpus.json`` has the common ones. ``rarer_gpus.json`` is read only for a name that is none of those, and for lists of
all cards, so that it costs nobody else anything.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.hardware.gpu import GIB, Gpu
from advisor.record import record
from advisor.util import regex

GPUS = Path(__file__).with_name("gpus.json")
RARER = Path(__file__).with_name("rarer_gpus.json")
# Words that tell no two cards of the catalogue apart. "laptop", "d", "max-q" and "super" do, so they stay.
DECORATION = frozenset(
    [
        *("nvidia", "amd", "radeon", "geforce", "instinct", "tesla", "rtx", "generation", "blackwell", "workstation"),
        *("server", "edition", "hbm2", "hbm2e", "hbm3", "hbm3e", "gpu", "gpus"),
    ]
)
WORD, SIZE, GAP = regex("[a-z0-9]+"), regex(r"(\d+)g(?:i?b)?"), regex(r"(?<=\d)\s+(?=gi?b\b)")
MODEL, STATIONS = regex(r"([a-z]*)(\d{1,6})([a-z].*)?"), frozenset(["ada"])
FORMS = {
    "sxm": "sxm",
    "sxm2": "sxm",
    "sxm4": "sxm",
    "sxm5": "sxm",
    "sxm6": "sxm",
    "pcie": "pcie",
    "nvl": "nvl",
}


class Name(NamedTuple):
    """A GPU's name taken apart: ``A100 80GB PCIe`` is model ``a100``, 80 GB, form ``pcie``; a key of large tables."""

    model: str
    nominal_gb: int | None
    form: str | None


def _read_name(text: str) -> Name:
    """Takes a name apart; case, spaces, dashes and makers' words do not matter."""
    model, size, form = "", None, None
    for word in WORD.findall(GAP.sub("", text.lower())):
        named, sized, formed = _read_word(word)
        model += named
        size, form = size if sized is None else sized, formed or form
    # A Quadro RTX 6000 is another card than those that are called RTX 6000; a Quadro RTX A6000 is the A6000.
    model = model.removeprefix("quadro") if model.startswith("quadroa") else model
    return Name(model if model == "rtx" else model.removeprefix("rtx"), size, form)


@lru_cache(maxsize=512)
def _read_word(word: str) -> tuple[str, int | None, str | None]:
    """What a word of a name says: a part of the model, a size in GB, or a form. Makers' words say nothing."""
    if sized := SIZE.fullmatch(word):
        return "", int(sized[1]), None
    if word in FORMS:
        return "", None, FORMS[word]
    return ("" if word in DECORATION else word), None, None


@record(eq=False)
class _Catalogue:
    """GPUs by id, by every alias, title and device name, and by model, the most common variant first."""

    gpus: Mapping[str, Gpu]
    names: Mapping[Name, Gpu]
    models: Mapping[str, tuple[Gpu, ...]]
    loose: Mapping[Name, tuple[Gpu, str]]
    """Short names that are no card's own, with the card that they are taken for and what else they may mean."""
    devices: Mapping[str, tuple[Gpu, ...]]
    """GPUs by the names that the driver and torch print; of two sizes with one name the most common first."""
    outside_torch_gib: Mapping[str, Any]


class Entry(dict[str, Any]):
    """One GPU's line of ``gpus.json``. A key that it lacks is an ``InputError``."""

    def __missing__(self, key: str) -> Any:
        raise InputError(f"the GPU `{self.get('id', '?')}` has no `{key}`", str(GPUS), remedy="add the key")


@lru_cache(maxsize=1)
def catalogue() -> _Catalogue:
    """The common cards, read once."""
    data = json.loads(GPUS.read_text(encoding="utf-8"))
    return _indexed(data["gpus"], data["outside_torch_gib"])


@lru_cache(maxsize=1)
def rarer() -> _Catalogue:
    """The other cards, read once, and only where they are asked for."""
    return _indexed(json.loads(RARER.read_text(encoding="utf-8"))["gpus"], catalogue().outside_torch_gib)


def known_gpus() -> Mapping[str, Gpu]:
    """All cards by id, the common ones first."""
    return {**catalogue().gpus, **rarer().gpus}


def _indexed(entries: Iterable[Mapping[str, Any]], outside_torch_gib: Mapping[str, Any]) -> _Catalogue:
    """The lines of one file."""
    gpus: dict[str, Gpu] = {}
    names: dict[Name, Gpu] = {}
    models: dict[str, tuple[Gpu, ...]] = {}
    loose: dict[Name, tuple[Gpu, str]] = {}
    devices: dict[str, tuple[Gpu, ...]] = {}
    for entry in map(Entry, entries):
        gpu = _read_gpu(entry, outside_torch_gib)
        gpus[gpu.id] = gpu
        for name in map(_read_name, (gpu.id, gpu.title, *entry["aliases"], *entry["device_names"])):
            names.setdefault(name, gpu)
            alike = models.get(name.model, ())
            if not alike or alike[-1] is not gpu:
                models[name.model] = (*alike, gpu)
        for device in entry["device_names"]:
            devices[device] = (*devices.get(device, ()), gpu)
        loose |= {_read_name(name): (gpu, other) for name, other in entry.get("loose_names", {}).items()}
    return _Catalogue(gpus, names, models, loose, devices, outside_torch_gib)


def _read_gpu(entry: Mapping[str, Any], outside_torch_gib: Mapping[str, Any]) -> Gpu:
    """One entry of ``gpus.json``; its family must be one of those whose memory outside torch is known."""
    if entry["family"] not in outside_torch_gib:
        raise InputError(f"the GPU `{entry['id']}` has an unknown family `{entry['family']}`", str(GPUS))
    total = int(entry["torch_total_gib"] * GIB)
    capability = tuple(entry["compute_capability"]) if entry["compute_capability"] else None
    shown, link = entry["nvidia_smi_mib"], entry["link_gb_s"]
    return Gpu(
        id=entry["id"],
        title=entry["title"],
        vendor=entry["vendor"],
        compute_capability=capability,
        total_bytes=total,
        bf16=entry["bf16"],
        fp8=entry["fp8"],
        bandwidth_bytes_per_s=entry["bandwidth_gb_s"] * 1e9,
        bf16_tflops=entry["bf16_tflops"],
        fp16_tflops=entry["fp16_tflops"],
        link_bytes_per_s=link * 1e9 if link else None,
        pcie_bytes_per_s=entry["pcie_gb_s"] * 1e9,
        gpus_per_node=entry["gpus_per_node"],
        flash_attention=entry.get("flash_attention", capability is None or capability >= (8, 0)),
        data_centre=entry["data_centre"],
        nominal_gb=entry["nominal_gb"],
        context_bytes=int(outside_torch_gib[entry["family"]] * GIB),
        driver_bytes=max(0, (shown << 20) - total) if shown else None,
        host_bytes=int(entry["host_gib_per_gpu"] * GIB),
        approximate=entry.get("approximate", ""),
    )


def find_gpu(text: str) -> Gpu | None:
    """The GPU of that name, or None.

    A name that leaves size or form open means the most common variant: ``a100`` and ``h100`` are the 80 GB
    SXM boards.
    """
    name = _read_name(text)
    found = _found_in(catalogue(), name)
    return found if found is not None else _found_in(rarer(), name)


def _found_in(known: _Catalogue, name: Name) -> Gpu | None:
    """The GPU of that name in one file."""
    if name in known.names:
        return known.names[name]
    for gpu in known.models.get(name.model, ()):
        form = _read_name(gpu.title).form
        if name.nominal_gb in {None, gpu.nominal_gb} and name.form in {None, form}:
            return gpu
    return known.loose[name][0] if name in known.loose else None


def printed_by(device: str) -> tuple[Gpu, ...]:
    """The cards for which the driver prints this name, the most common first: one name may be that of two sizes."""
    return (*catalogue().devices.get(device, ()), *rarer().devices.get(device, ()))


def variants(text: str) -> tuple[Gpu, ...]:
    """The cards of different size that a name may mean, the one that it is taken for first; one if it is clear."""
    name, gpu = _read_name(text), find_gpu(text)
    if gpu is None or name.nominal_gb is not None:
        return () if gpu is None else (gpu,)
    known = catalogue() if gpu.id in catalogue().gpus else rarer()
    by_size = {gpu.nominal_gb: gpu}
    for other in known.models.get(name.model, ()):
        if name.form in {None, _read_name(other.title).form}:
            by_size.setdefault(other.nominal_gb, other)
    return tuple(by_size.values())


def assumption(text: str) -> str:
    """How a name that leaves a size open was read, and what else it may mean; what is rough of the card."""
    found = variants(text)
    if not found:
        return ""
    rough = found[0].roughly
    if loose := catalogue().loose.get(_read_name(text)):
        return f"`{text}` is read as {found[0].title}; {loose[1]}"
    others = " or ".join(f"`{gpu.id}`" for gpu in found[1:])
    read = f"`{text}` is read as {found[0].title}; if you mean another, write {others}" if others else ""
    return "; ".join(part for part in (read, rough) if part)


def gpu_names() -> tuple[str, ...]:
    """The ids of all known GPUs, the common ones first, in the order of the files."""
    return tuple(known_gpus())


def near_names(text: str) -> list[str]:
    """Up to three ids of the same line of cards, the nearest number first; none of another line."""
    import difflib

    name = _read_name(text)
    names = {**rarer().names, **catalogue().names}
    line, number = _line(name.model)

    def far(other: Name) -> tuple[int, float]:
        alike = difflib.SequenceMatcher(None, name.model, other.model).ratio()
        return abs(_line(other.model)[1] - number), -alike

    same = sorted((other for other in names if line and _line(other.model)[0] == line), key=far)
    variants = [gpu.id for known in (catalogue(), rarer()) for gpu in known.models.get(name.model, ())]
    return list(dict.fromkeys(variants + [names[other].id for other in same]))[:3]


def _line(model: str) -> tuple[str, int]:
    """The line that a model belongs to, and its number there: ``3070`` is of ``30..``, ``h800`` of ``h...``.

    The letters in front, how many digits follow, the generation of four digits, and whether it is a workstation's.
    """
    match = MODEL.fullmatch(model)
    if match is None:
        return "", 0
    letters, digits, rest = match.groups()
    generation = digits[:2] if not letters and len(digits) == 4 else ""
    station = rest if rest in STATIONS else ""
    return f"{letters} {len(digits)} {'' if station else generation} {station}", int(digits)


def larger_gpus(gpu: Gpu) -> tuple[Gpu, ...]:
    """Common cards of the same vendor with more memory, ascending, one for each size on the label.

    Of one size a data-centre card comes before others, and the most common variant before its siblings. Cards
    without bf16 are never proposed.
    """
    by_size: dict[int, Gpu] = {}
    for other in sorted(catalogue().gpus.values(), key=lambda card: not card.data_centre):
        larger = other.total_bytes > gpu.total_bytes and other.nominal_gb > gpu.nominal_gb
        if larger and other.vendor == gpu.vendor and other.bf16:
            by_size.setdefault(other.nominal_gb, other)
    return tuple(sorted(by_size.values(), key=lambda card: card.total_bytes))
