"""What the page has before Python runs: its menus, its examples, and the answer to the first of them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import advisor
from advisor.about import REPOSITORY, SITE, VERSION
from advisor.engine.cards import all_gpus
from advisor.hardware import Gpu
from advisor.hardware.prices import shipped_prices
from advisor.models.catalogue import entries
from advisor.new import METHODS

from . import answering

FIRST = "lora-8b-large-batch"
"""The example whose answer the page is built with: it does not fit, and one edit makes it fit."""
GPUS = "1x rtx-4090"
HEADS = re.compile(r"# (?P<title>.+?)\.? Expect: (?P<verdict>[\w-]+)")
NAMED = re.compile(r"^deepspeed: *(\S+)", re.MULTILINE)
WORDS = {
    "auto": "Best for these GPUs",
    "full": "Full fine-tune",
    "lora": "LoRA",
    "qlora": "QLoRA, 4 bits",
    "dpo": "DPO",
}
Example = Mapping[str, str]


def samples() -> Path:
    """The folder of the sample configs: in a wheel within the package, in a checkout next to it."""
    package = Path(str(advisor.__file__)).parent
    return next(each for each in (package / "sample_configs", package.parent / "sample_configs") if each.is_dir())


@cache
def examples() -> list[Example]:
    """Each sample with its DeepSpeed JSON, if it has one of its own, and what comes of it; the first one first."""
    found = [_example(path) for path in sorted(samples().glob("*.yaml"))]
    return sorted(found, key=lambda example: example["name"] != FIRST)


def _example(path: Path) -> Example:
    text = path.read_text(encoding="utf-8")
    head = HEADS.match(text)
    assert head is not None, f"{path.name} begins with what it shows and `Expect: VERDICT`"
    named = NAMED.search(text)
    own = samples().parent / named[1] if named else None
    other = own.read_text(encoding="utf-8") if own is not None and own.is_file() else ""
    return {"name": path.stem, "title": head["title"], "verdict": head["verdict"], "config": text, "json": other}


@cache
def first_answers() -> Mapping[str, Any]:
    """What Python will say of the first example, by what is asked."""
    example = examples()[0]
    request = json.dumps({"config": example["config"], "files": {}, "gpus": GPUS, "taken": ""})
    quick, whole = json.loads(answering.quick(request)), json.loads(answering.full(request))
    whole |= json.loads(answering.others(request))
    return {"quick": quick | {"top": whole["top"]}, "full": whole}


def filled(page: str) -> str:
    """The page's template with all of it."""
    first = first_answers()
    pieces: Mapping[str, Callable[[], str]] = {
        "models": lambda: _models(first["quick"]["fields"]["model"]),
        "methods": lambda: "".join(_options(WORDS.get, METHODS, first["quick"]["fields"]["method"])),
        "cards": lambda: _cards(first["quick"]["stated"]["card"]),
        "examples": lambda: "".join(map(_chip, examples())),
        "config": lambda: escape(examples()[0]["config"]),
        "quick": lambda: first["quick"]["top"],
        "options": lambda: first["full"]["options"],
        "memory": lambda: first["quick"]["memory"],
        "full": lambda: first["full"]["html"],
        "data": lambda: _data({"examples": examples(), "first": first}),
        "title": lambda: escape(first["quick"]["picture"]["headline"]),
        "repository": lambda: REPOSITORY,
        "address": lambda: f"{SITE}/try/",
        "version": lambda: VERSION,
    }
    return re.sub(r"@@(\w+)@@", lambda place: pieces[place[1]](), page)


def _data(value: object) -> str:
    """JSON within a script element, which nothing in it may end."""
    return json.dumps(value).replace("<", "\\u003c")


def _options(title: Callable[[str], str | None], ids: Iterable[str], chosen: str) -> Iterator[str]:
    for name in ids:
        mark = " selected" if name == chosen else ""
        yield f'<option value="{escape(name)}"{mark}>{escape(title(name) or name)}</option>'


def _group(label: str, options: Iterable[str]) -> str:
    return f'<optgroup label="{escape(label)}">{"".join(options)}</optgroup>'


def _models(chosen: str) -> str:
    """The catalogue's models by who published them."""
    ids = sorted((entry["id"] for entry in entries()), key=lambda name: (("/" not in name), name.lower()))
    owners = groupby(ids, key=lambda name: name.rpartition("/")[0] or "others")
    return "".join(
        _group(owner, _options(lambda name: name.rpartition("/")[2], names, chosen)) for owner, names in owners
    )


def _cards(chosen: str) -> str:
    """The catalogue's cards, those that clouds rent first."""
    gpus = {gpu.id: gpu for gpu in sorted(all_gpus(), key=lambda gpu: gpu.title)}
    rented = [name for name in gpus if name in shipped_prices()]
    groups = (("In clouds", rented), ("Others", [name for name in gpus if name not in rented]))
    return "".join(_group(label, _options(lambda name: _card(gpus[name]), names, chosen)) for label, names in groups)


def _card(gpu: Gpu) -> str:
    """Its name with its memory."""
    size = f"{gpu.nominal_gb} GB"
    return gpu.title if f"{gpu.nominal_gb}GB" in gpu.title else f"{gpu.title}, {size}"


def _chip(example: Example) -> str:
    """A button that opens an example."""
    name, title, verdict = (escape(example[key]) for key in ("name", "title", "verdict"))
    return f'<button type="button" data-example="{name}" title="{title}"><i class="{verdict}"></i>{name}</button>'
