"""Hardware as people write it: ``8x a100-80gb``, ``2n8x h100 host=1TiB``."""

import re

from advisor.errors import InputError
from advisor.hardware.catalogue import find_gpu, near_names
from advisor.hardware.gpu import UNITS, Gpu, Hardware

SPEC = re.compile(
    r"""\s*
    (?:(?:(?P<nodes>\d+)\s*n(?:odes?)?(?:\s+of)?\s*)?(?P<gpus>\d+)\s*[x×*]\s*)?
    (?P<name>.*?)
    (?:[\s,]+host\s*=\s*(?P<host>.*?))?
    \s*""",
    re.VERBOSE,
)
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
# A lone prefix is binary, as free(1), docker and slurm have it.
SIZE_UNITS = {unit.lower(): factor for unit, factor in UNITS.items()} | {
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
}
MOST_GPUS, MOST_NODES = 128, 4096


def parse_hardware(text: str, *, file: str = "", line: int = 0) -> Hardware:
    """Hardware from ``[<nodes>n]<gpus>x <gpu name>[ host=<size>]``; without a count it is one GPU.

    The name may be an id, an alias or what nvidia-smi and torch print; ``a100`` and ``h100`` alone are the
    80 GB SXM boards. ``host`` is memory per node (``512GiB``, ``2TB``, ``64G`` = 64 GiB). ``file`` and
    ``line`` say where the text stands; without them it came from ``--gpus``. Raises ``InputError``.
    """
    source = f"{file}:{line}" if file and line else file or "--gpus"
    try:
        return _parse(text, source)
    except InputError as error:
        raise InputError(error.message, file, line, remedy=error.remedy) from None


def _parse(text: str, source: str) -> Hardware:
    match = SPEC.fullmatch(text.lower())
    if match is None or not match["name"]:
        raise InputError(f"`{text}` names no GPU", remedy="write for example `8x a100-80gb`")
    nodes, gpus = int(match["nodes"] or 1), int(match["gpus"] or 1)
    if not (0 < gpus <= MOST_GPUS and 0 < nodes <= MOST_NODES):
        remedy = f"write `<nodes>n<gpus>x <name>`, with 1 to {MOST_GPUS} GPUs a node and 1 to {MOST_NODES} nodes"
        raise InputError(f"`{text}` has {gpus} GPUs a node on {nodes} nodes", remedy=remedy)
    host = None if match["host"] is None else parse_size(text[match.start("host") : match.end("host")])
    return Hardware(_gpu(match["name"]), gpus, nodes, host, source=source)


def _gpu(name: str) -> Gpu:
    gpu = find_gpu(name)
    if gpu is None:
        near = " or ".join(f"`{other}`" for other in near_names(name))
        remedy = f"did you mean {near}?" if near else "name it as nvidia-smi does, or by model and size: `a100-80gb`"
        raise InputError(f"unknown GPU `{name}`", remedy=remedy)
    return gpu


def parse_size(text: str) -> int:
    """Bytes of ``512GiB`` (2**30), ``2TB`` (10**12) or ``64G`` (2**30). Raises ``InputError``."""
    match = SIZE.fullmatch(text.strip().lower())
    factor = SIZE_UNITS.get(match[2].lower()) if match else None
    size = int(float(match[1]) * factor) if match and factor else 0
    if size <= 0:
        raise InputError(f"`host={text}` is not a size of memory", remedy="write for example `host=512GiB`")
    return size
