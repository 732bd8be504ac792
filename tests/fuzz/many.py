"""Mutated inputs: ``python -m tests.fuzz.many KIND INPUTS [SEED]``; the kinds are those of ``KINDS``.

``yaml``, ``json`` and ``model`` go through the commands, ``pipeline`` through what a fix promises without the commands,
``options`` are odd calls of every command, ``launch`` lines of a shell with nothing behind them, ``log``, ``hardware`` and
``settings`` short texts through what reads them.

A process of its own, so that a hang ends it: the files of the input then stay in the newest temporary folder.
Prints how many inputs there were, how fast, and what became of them. A seed gives other inputs, the same each time; without
one and with ADVISOR_FUZZ_INPUTS set they are others each time.
"""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from advisor.models.catalogue import entries
from advisor.report import FORMATS

from . import odd, texts
from .check import LOOKS, checked
from .mutations import LINES, harmed, mutated
from .pipeline import piped
from .seeds import Seed, seeds

ALL = seeds()
WITH_JSON = [seed for seed in ALL if seed.json is not None]
MODELS = [entry["config"] for entry in entries()]
CARDS = ("1x t4", "2x v100-32gb", "1x rtx-4090", "2x rtx-4090", "4x l40s host=128GiB", "8x a100-40gb")
GPUS = [*CARDS, *4 * ["8x h200"], *10 * [""]]
"""Of what an input is checked on: a third on cards where most runs need a plan, which takes five times as long as the rest."""
LOOKED_AT = [*8 * [look for look in (*FORMATS, *LOOKS) if look != "html"], "html"]
"""HTML also shows the cards that would do, which takes as long as ten other formats."""
Through = Callable[[Path], str]
"""Puts an input that is drawn through, in an empty folder, and says what became of it; it shows as a call."""


@st.composite
def mutated_yaml(draw: Any) -> tuple[Seed, str, str | None]:
    """A YAML with one to four harms."""
    seed = draw(st.sampled_from(ALL))
    text = seed.yaml
    for _ in range(draw(st.integers(1, 4))):
        text = mutated(draw, st, text, LINES)
    return seed, text, seed.json


def harmed_text(draw: Any, text: str) -> str:
    """A JSON text with one to three harms: mostly to its values, sometimes to its syntax."""
    if draw(st.integers(0, 3)):
        value = json.loads(text)
        for _ in range(draw(st.integers(1, 3))):
            value = harmed(draw, st, value)
        return json.dumps(value, indent=2)
    for _ in range(draw(st.integers(1, 3))):
        text = mutated(draw, st, text, text.split("\n"))
    return text


@st.composite
def mutated_json(draw: Any) -> tuple[Seed, str, str | None]:
    """A YAML that names a JSON with one to three harms."""
    seed = draw(st.sampled_from(WITH_JSON))
    text = harmed_text(draw, seed.json or "{}")
    kept = [line for line in seed.yaml.split("\n") if not line.startswith(("deepspeed:", "fsdp"))]
    return seed, "\n".join([*kept, "deepspeed: ds.json", ""]), text


@st.composite
def mutated_model(draw: Any) -> tuple[Seed, str, str | None]:
    """A YAML whose model is a folder, with one to three harms to the config.json in it."""
    seed = draw(st.sampled_from(ALL))
    config = json.dumps(draw(st.sampled_from(MODELS)))
    kept = [line for line in seed.yaml.split("\n") if not line.startswith(("base_model:", "deepspeed:"))]
    return seed, "\n".join(["base_model: .", *kept]), harmed_text(draw, config)


@st.composite
def mutated_anything(draw: Any) -> tuple[Seed, str, str | None]:
    """A YAML with harms, or one whose JSON has them, on cards old and new, one and several, or on none."""
    seed, text, deepspeed = draw(st.one_of(mutated_yaml(), mutated_json()))
    return replace(seed, gpus=draw(st.sampled_from([seed.gpus, *GPUS]))), text, deepspeed


@st.composite
def through_commands(draw: Any, inputs: Any, name: str) -> Through:
    """A config and the file next to it, through the commands."""
    seed, raws = drawn(draw, inputs)
    look = draw(st.sampled_from(LOOKED_AT))
    return partial(checked, raw=raws[0] or b"", other=(name, raws[1]), gpus=seed.gpus, look=look)


@st.composite
def through_promises(draw: Any) -> Through:
    """A config and the file next to it, through what one fix promises."""
    seed, raws = drawn(draw, mutated_anything())
    form, unsafe = draw(st.sampled_from(list(FORMATS))), draw(st.booleans())
    other = "ds.json", raws[1]
    return partial(piped, raw=raws[0] or b"", other=other, gpus=seed.gpus, form=form, unsafe=unsafe)


@st.composite
def through_options(draw: Any) -> Through:
    """A config with the files next to it, through one command with odd options."""
    return partial(odd.called, files=draw(odd_files()), words=draw(odd.call()))


@st.composite
def through_launch(draw: Any) -> Through:
    """A config with the files next to it, through a launch line with nothing behind it."""
    names = draw(st.lists(st.sampled_from(sorted(odd.VARIABLES)), max_size=2, unique=True))
    environment = {name: draw(st.sampled_from(odd.VARIABLES[name])) for name in names}
    own = odd.options(draw, {name: odd.OF_A_RUN[name] for name in ("--gpus", "--flowchart")}, 2)
    return partial(odd.launched, files=draw(odd_files()), words=draw(odd.line()), environment=environment, own=own)


@st.composite
def odd_files(draw: Any) -> dict[str, str]:
    """A config and what it and odd options may name; seldom with settings."""
    seed = draw(st.sampled_from(ALL))
    files = {
        "run.yaml": draw(odd.harmed_config(seed.yaml)),
        "ds.json": harmed_text(draw, seed.json or texts.DEEPSPEED) if draw(st.booleans()) else texts.DEEPSPEED,
        "log.txt": draw(texts.log()),
        "prices.toml": draw(st.sampled_from(odd.PRICE_FILES)),
        "run.sh": draw(st.sampled_from(odd.SCRIPTS)),
        "cloud.yaml": draw(st.sampled_from(odd.CLOUDS)),
    }
    return files | ({} if draw(st.integers(0, 7)) else {"advisor.toml": draw(texts.settings_file())})


@st.composite
def through_reader(draw: Any, inputs: Any, reader: Callable[..., str]) -> Through:
    """A short text, through what reads it."""
    return partial(reader, text=draw(inputs))


def drawn(draw: Any, inputs: Any) -> tuple[Seed, list[bytes | None]]:
    """A config and the file next to it, with the line ends of one system."""
    seed, *parts = draw(inputs)
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    return seed, [part.replace("\n", ends).encode() if part is not None else None for part in parts]


KINDS: dict[str, Callable[[], Any]] = {
    "yaml": lambda: through_commands(mutated_yaml(), "ds.json"),
    "json": lambda: through_commands(mutated_json(), "ds.json"),
    "model": lambda: through_commands(mutated_model(), "config.json"),
    "pipeline": through_promises,
    "options": through_options,
    "launch": through_launch,
    "log": lambda: through_reader(texts.log(), texts.log_read),
    "hardware": lambda: through_reader(texts.hardware(), texts.hardware_read),
    "settings": lambda: through_reader(texts.settings_file(), texts.settings_read),
}


def outcomes_of(kind: str, inputs: int, seed: int | None = None, *, shrink: bool = True) -> Counter[str]:
    """What became of as many inputs as asked. The first that fails is raised, with ``shrink`` as small as it can be made."""
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=inputs,
        derandomize=seed is None and "ADVISOR_FUZZ_INPUTS" not in os.environ,
        deadline=None,
        database=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(KINDS[kind]())
    def every_input(through: Through) -> None:
        with tempfile.TemporaryDirectory() as folder:
            outcomes[through(Path(folder))] += 1

    here = Path.cwd()
    try:
        (every_input if seed is None else seeded(seed)(every_input))()
    finally:
        os.chdir(here)
    return outcomes


def main(kind: str, inputs: int, seed: int | None = None) -> None:
    """Puts so many inputs through, and says how it went."""
    start = time.monotonic()
    outcomes = outcomes_of(kind, inputs, seed)
    rate = outcomes.total() / (time.monotonic() - start)
    told = ", ".join(f"{count} {what}" for what, count in outcomes.most_common())
    print(f"{kind}: {outcomes.total()} inputs, {told}; {rate:.0f} a second")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
