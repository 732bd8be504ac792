"""The YAML of ``--cloud`` -> the GPUs on which axolotl will have the run trained."""

import re
from collections.abc import Mapping

from advisor.documents import Document, read
from advisor.errors import InputError
from advisor.hardware import Hardware, parse_hardware
from advisor.hardware.catalogue import variants
from advisor.hardware.gpu import GIB
from advisor.hardware.parse import parse_size
from advisor.record import record, replace
from advisor.util import regex

CARDS = ("gpu", "gpu_type", "accelerator", "accelerators", "instance_type", "machine_type", "platform")
COUNTS = ("gpu_count", "num_gpus", "gpus", "count")
NODES = ("node_count", "num_nodes", "nodes")
PRESET = regex(r"(?P<gpus>\d{1,3})gpu-\d+vcpu-(?P<memory>\d{1,5})gb")
"""Nebius: ``8gpu-128vcpu-1600gb``."""


@record
class _Provider:
    """What axolotl makes of one provider's YAML. ``memory`` in GiB, where it says none."""

    cards: Mapping[str, str]
    """What a name means there."""
    card: str = ""
    """The card that it takes whatever the YAML says."""
    memory: int | None = None
    overrides: bool = False
    """Whether keys of the command line reach the run."""


# axolotl/cli/cloud/modal_.py:203-227@0.19.0; axolotl/cli/cloud/baseten/template/train_sft.py@0.19.0.
PROVIDERS: Mapping[str, _Provider] = {
    "modal": _Provider(
        {"a100": "a100-40gb-sxm", "a100-80gb": "a100-80gb-sxm", "a10": "a10g", "h100": "h100-80gb-sxm"}, memory=128
    ),
    "baseten": _Provider({}, card="h100-80gb-sxm"),
}
OTHER = _Provider({}, overrides=True)
"""A provider that came by an entry point of the group ``axolotl.cloud_providers``: read by the usual keys."""


@record
class Cloud:
    """The GPUs of a cloud YAML, and what to say of it."""

    hardware: Hardware
    overrides: bool
    remarks: tuple[str, ...] = ()


def read_cloud(path: str) -> Cloud:
    """Reads the YAML of ``--cloud``. A name that leaves the size open means the largest card of that name.

    Raises ``InputError`` if it cannot be read, has a value that axolotl's own providers cannot use, or names no card.
    """
    document = read(path)
    name = str(document.get("provider") or "modal").lower()
    provider = PROVIDERS.get(name, OTHER)
    if name in PROVIDERS and not _is_readable(document) and (wrong := _wrong_in(document)):
        raise wrong
    said = first_of(document, CARDS)
    preset = PRESET.fullmatch(str(document.get("preset") or ""))
    family, _, many = said.partition(":")
    card = provider.card or provider.cards.get(family.lower(), family).removeprefix("gpu-")
    if not card:
        raise InputError(
            f"names no `gpu` for {name}", path, remedy='state it: `gpu: a100-80gb`, or --gpus "8x a100-80gb"'
        )
    found, remarks = largest(parse_hardware(card, file=path)), list[str]()
    if provider.card and said and said.lower() not in {"h100", provider.card}:
        remarks.append(f"{path}: axolotl requests {found.gpu.title} from {name} and ignores `gpu`")
    if found.assumed:
        remarks.append(f"{path}: {found.assumed}")
    count = number(preset["gpus"] if preset else first_of(document, COUNTS) or many)
    memory = _memory_of(document.get("memory") or (f"{preset['memory']}GiB" if preset else provider.memory))
    hardware = replace(
        found,
        gpus_per_node=count or found.gpus_per_node,
        nodes=number(first_of(document, NODES)) or found.nodes,
        host_bytes=memory or found.host_bytes,
        source=path,
    )
    return Cloud(hardware, provider.overrides, tuple(remarks))


def _is_readable(document: Document) -> bool:
    """Whether the keys of axolotl's own providers have values that can be used; a blank one says nothing."""
    card, memory = document.get("gpu"), document.get("memory")
    counts = [document.get(key) for key in ("gpu_count", "node_count")]
    return (
        (card is None or type(card) in {str, int})
        and all(count is None or number(str(count)) for count in counts)
        and (memory is None or _memory_of(memory) is not None)
    )


def _wrong_in(document: Document) -> InputError | None:
    """What is wrong with it, in the words of ``cloud_schema``."""
    from advisor.cli.launchers.cloud_schema import what_is_wrong

    return what_is_wrong(document)


def largest(found: Hardware) -> Hardware:
    """The largest card that the name may mean: what fails there fails on every other."""
    if not found.assumed:
        return found
    name = found.assumed.split("`")[1]
    others = variants(name)
    if not others:
        return found
    gpu = max(others, key=lambda gpu: gpu.total_bytes)
    assumed = f"`{name}` may be {' or '.join(other.title for other in others)}: checked on {gpu.title}"
    return replace(found, gpu=gpu, assumed=assumed if len(others) > 1 else found.assumed)


def first_of(document: Document, keys: tuple[str, ...]) -> str:
    """The first of some keys that has a value."""
    return next((str(value) for key in keys if isinstance(value := document.get(key), str | int) and value), "")


def number(text: str) -> int | None:
    """A count of GPUs or nodes; None if there is none."""
    return int(text) if re.fullmatch(r"[1-9]\d{0,3}", text) else None


def _memory_of(value: object) -> int | None:
    """Memory of a machine: plain numbers are GiB."""
    text = str(value or "")
    if re.fullmatch(r"\d{1,6}", text):
        return int(text) * GIB or None
    try:
        return parse_size(text) if text else None
    except InputError:
        return None
