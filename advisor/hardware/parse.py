"""Hardware as people write it: ``8x a100-80gb``, ``2n8x h100 host=1TiB``, ``a100:8``, ``p4d.24xlarge``."""

import re
from collections.abc import Mapping

from advisor.errors import InputError
from advisor.hardware.catalogue import GAP, assumption, find_gpu, known_gpus, near_names
from advisor.hardware.gpu import UNITS, Gpu, Hardware, Link, size_text
from advisor.hardware.instances import find_instance, near_instances
from advisor.hardware.own import assumed_of, label_of, of_memory
from advisor.record import replace
from advisor.util import gib, regex

SPEC = regex(
    r"""\s*
    (?:(?:(?P<nodes>\d+)\s*(?:n(?:odes?)?(?:\s+of)?|[x×*])\s*)?(?P<gpus>\d+)\s*[x×*]\s*|(?P<plain>\d{1,3})\s+(?=[a-z]))?
    (?P<name>.*?)
    (?:\s*:\s*(?P<colon>\d+)|(?:\s+x|\s*[×*])\s*(?P<after>\d+))?
    \s*""",
    re.VERBOSE,
)
OPTION = regex(r"[\s,]+(?P<name>[a-z]+)\s*=\s*(?P<value>[^=]*?)(?=[\s,]+[a-z]+\s*=|\s*$)")
Own = Mapping[str, Gpu]
NONE: Own = {}
COUNTS = ("gpus", "plain", "colon", "after")
SIZE = regex(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
# A lone prefix is binary, as free(1), docker and slurm have it.
SIZE_UNITS = {unit.lower(): factor for unit, factor in UNITS.items()} | {
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
}
MOST_GPUS, MOST_NODES = 128, 4096
DESKTOP = 8
LONGEST = 20
"""Digits of a size; a longer one is none."""
EXAMPLES = {"host": "512GiB", "free": "20GiB", "link": "pcie", "net": "100Gb/s"}
"""The options, each with a value."""
WHOLE = {"network": "net"}
"""What an option is called in full."""
MOST_ABOVE = 1.05
"""Of a catalogue's total, which is the lowest that was read of the card, what may be free of one."""


NET = regex(r"(\d+(?:\.\d+)?)\s*(g|t)b(?:it)?(?:/s|ps)?")
LINKS: tuple[Link, ...] = ("nvlink", "pcie", "pcie-slow")


def parse_hardware(text: str, *, file: str = "", line: int = 0, own: Own = NONE) -> Hardware:
    """Hardware from ``[<nodes>n]<gpus>x <gpu name>[ host=<size>][ free=<size>][ link=<link>][ net=<rate>]``.

    One GPU without a count.

    The count may follow (``a100 x8``, ``a100:8``), and ``2x8x h100`` is ``2n8x h100``. The name may be an id, an alias,
    what nvidia-smi and torch print, or a machine of a cloud (``p4d.24xlarge``), which brings its cards and memory; a
    count is then one of machines.
    ``24GB`` is a card that is known by its memory alone, and ``own`` are cards of the settings.
    ``a100`` and ``h100`` alone are the 80 GB SXM boards, and ``assumed`` says so. ``host`` is memory per node
    (``512GiB``, ``2TB``, ``64G`` = 64 GiB), ``free`` what others leave of each card; ``link`` is ``nvlink``, ``pcie``
    or ``pcie-slow`` between the GPUs of a node, ``net`` the network of a node (``100Gb/s``). ``file`` and ``line`` say
    where the text stands; without them it came from ``--gpus``. Raises ``InputError``.
    """
    source = f"{file}:{line}" if file and line else file or "--gpus"
    try:
        return _parse(text, source, own)
    except InputError as error:
        raise InputError(error.message, file, line, remedy=error.remedy) from None


def _parse(text: str, source: str, own: Own) -> Hardware:
    options, start = options_of(text)
    match = SPEC.fullmatch(GAP.sub("", text[:start].lower()))
    if match is None or not match["name"]:
        raise InputError(f"`{text}` names no GPU", remedy="write for example `8x a100-80gb`")
    counts = [match[name] for name in COUNTS if match[name]]
    if len(counts) > 1:
        raise InputError(f"`{text}` states the number of GPUs twice", remedy="write for example `8x a100-80gb`")
    nodes, gpus = _count(match["nodes"]), _count(counts[0] if counts else None)
    host, free = (parse_size(options[each], each) if each in options else None for each in ("host", "free"))
    name, assumed = match["name"], ""
    if machine := find_instance(name):
        if match["nodes"] and gpus != machine.gpus:
            raise InputError(f"{machine.name} has {machine.gpus} GPUs", remedy=f"write `{nodes}x {machine.name}`")
        count = nodes if match["nodes"] else gpus
        assumed = f"`{text}` is read as {count} machines of {machine.gpus} GPUs" if count > 1 else ""
        gpu, gpus, nodes, host = machine.gpu, machine.gpus, count, host or machine.host_bytes
    else:
        gpu = gpu_named(name, own)
        assumed = _assumed(name, gpu, own)
        many = _many_in_one(text, gpu, gpus) if nodes == 1 and not match["nodes"] else ""
        assumed = "; ".join(part for part in (assumed, many) if part)
    if not (0 < gpus <= MOST_GPUS and 0 < nodes <= MOST_NODES):
        remedy = f"write `<nodes>n<gpus>x <name>`, with 1 to {MOST_GPUS} GPUs per node and 1 to {MOST_NODES} nodes"
        raise InputError(f"`{text}` has {gpus} GPUs per node on {nodes} nodes", remedy=remedy)
    link, net = options.get("link"), options.get("net")
    return Hardware(
        gpu if free is None else _with_free(gpu, free),
        gpus,
        nodes,
        host,
        free,
        link=None if link is None else _parse_link(link),
        network_bytes_per_s=None if net is None else _parse_network(net),
        source=source,
        assumed=assumed,
    )


def _with_free(gpu: Gpu, free: int) -> Gpu:
    """The card, whose total is not below what is free of it. Raises ``InputError``."""
    if free > MOST_ABOVE * gpu.total_bytes:
        raise InputError(
            f"`free={size_text(free)}` is more than a {gpu.title} has", remedy=f"state at most {gib(gpu.total_bytes)}"
        )
    return replace(gpu, total_bytes=max(free, gpu.total_bytes))


def _assumed(name: str, gpu: Gpu, own: Own) -> str:
    """What a name leaves open; a card of the settings leaves nothing."""
    if gpu.id in own:
        return ""
    return assumed_of(gpu) if label_of(name) is not None else assumption(name)


def _many_in_one(text: str, gpu: Gpu, gpus: int) -> str:
    """What to say of more GPUs without nodes than a machine with this card commonly has; desktops hold up to eight."""
    common = gpu.gpus_per_node if gpu.data_centre else max(gpu.gpus_per_node, DESKTOP)
    if gpus <= common:
        return ""
    nodes, left = divmod(gpus, common)
    remedy = "" if left else f"; if they are {nodes} nodes of {common}, write `{nodes}n{common}x {gpu.id}`"
    return f"`{text.strip()}` is read as one node of {gpus} GPUs, where {gpu.title} has {common} as a rule{remedy}"


def options_of(text: str) -> tuple[dict[str, str], int]:
    """``host=``, ``free=``, ``link=``, ``net=``, and where the first of them starts. ``InputError`` for another."""
    found: dict[str, str] = {}
    matches = list(OPTION.finditer(text.lower()))
    for match in matches:
        name = WHOLE.get(match["name"], match["name"])
        if name not in EXAMPLES or name in found:
            problem = "is stated twice" if name in found else "is not known"
            remedy = ", ".join(f"`{option}={value}`" for option, value in EXAMPLES.items())
            raise InputError(f"`{match['name']}=` in `{text}` {problem}", remedy=f"write {remedy}")
        found[name] = text[match.start("value") : match.end("value")].strip()
    return found, matches[0].start() if matches else len(text)


def _parse_link(text: str) -> Link:
    """The link between the GPUs of a node. Raises ``InputError``."""
    for link in LINKS:
        if link == text.lower():
            return link
    names = ", ".join(f"`link={link}`" for link in LINKS)
    raise InputError(f"`link={text}` is not a link", remedy=f"write one of {names}")


def _parse_network(text: str) -> float:
    """Bytes a second of ``100Gb/s``. Raises ``InputError``."""
    match = NET.fullmatch(text.strip().lower())
    rate = float(match[1]) * {"g": 1e9, "t": 1e12}[match[2]] / 8 if match and len(match[1]) < LONGEST else 0.0
    if not rate:
        raise InputError(f"`net={text}` is not the rate of a network", remedy="write for example `net=100Gb/s`")
    return rate


def _count(digits: str | None) -> int:
    # More digits than any count has: int() itself refuses thousands of them.
    return int((digits or "1")[:12])


def gpu_named(name: str, own: Own = NONE) -> Gpu:
    """The GPU of that name, also in the plural: one of the settings, of the catalogue, or a size alone.

    ``InputError`` with the nearest ones.
    """
    for spelled in (name, name.removesuffix("s")):
        if gpu := own.get(spelled) or of_memory(spelled) or find_gpu(spelled):
            return gpu
    known = known_gpus()
    cards = [f"`{other}` ({known[other].nominal_gb} GB)" for other in near_names(name)]
    near = " or ".join([f"`{other}`" for other in near_instances(name)] or cards)
    remedy = (
        f"did you mean {near}?"
        if near
        else "name it as nvidia-smi does, by model and size: `a100-80gb`, or by its memory: `24GB`"
    )
    raise InputError(f"unknown GPU `{name}`", remedy=remedy)


def parse_size(text: str, name: str = "host") -> int:
    """Bytes of ``512GiB`` (2**30), ``2TB`` (10**12) or ``64G`` (2**30). Raises ``InputError``."""
    match = SIZE.fullmatch(text.strip().lower())
    factor = SIZE_UNITS.get(match[2].lower()) if match else None
    size = int(float(match[1]) * factor) if match and factor and len(match[1]) < LONGEST else 0
    if size <= 0:
        raise InputError(
            f"`{name}={text}` is not a size of memory", remedy=f"write for example `{name}={EXAMPLES[name]}`"
        )
    return size
