"""Mutated configs through every command: ``python -m tests.fuzz.many yaml|json|model|pipeline INPUTS``.

A process of its own, so that a hang ends it: the files of the input then stay in the newest temporary folder.
``pipeline`` leaves the commands out and checks what a fix promises, which takes less time for each input.
Prints how many inputs there were, how fast, and what became of them. With ADVISOR_FUZZ_INPUTS set they are others each time.
"""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from advisor.models.catalogue import entries
from advisor.report import FORMATS

from .check import checked
from .mutations import LINES, harmed, mutated
from .pipeline import piped
from .seeds import Seed, seeds

ALL = seeds()
WITH_JSON = [seed for seed in ALL if seed.json is not None]
MODELS = [entry["config"] for entry in entries()]
outcomes: Counter[str] = Counter()


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
    """A YAML with harms, or one whose JSON has them, on any of some cards: old and new, one and several."""
    seed, text, deepspeed = draw(st.one_of(mutated_yaml(), mutated_json()))
    return replace(seed, gpus=draw(st.sampled_from([seed.gpus, *CARDS]))), text, deepspeed


KINDS: dict[str, Callable[[], Any]] = {
    "yaml": mutated_yaml,
    "json": mutated_json,
    "model": mutated_model,
    "pipeline": mutated_anything,
}
CARDS = ("1x t4", "2x v100-32gb", "1x rtx-4090", "2x rtx-4090", "4x l40s host=128GiB", "8x a100-40gb")


def main(kind: str, inputs: int) -> None:
    """As many inputs as asked; the first that fails is shown as small as it can be made."""

    @settings(
        max_examples=inputs,
        derandomize="ADVISOR_FUZZ_INPUTS" not in os.environ,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(KINDS[kind](), st.sampled_from(list(FORMATS)), st.booleans())
    def every_input(given_: tuple[Seed, str, str | None], form: str, windows: bool) -> None:
        seed, text, deepspeed = given_
        ends = "\r\n" if windows else "\n"
        raws = [part.replace("\n", ends).encode() if part is not None else None for part in (text, deepspeed)]
        with tempfile.TemporaryDirectory() as folder:
            json_file = "config.json" if kind == "model" else "ds.json", raws[1]
            put_through = piped if kind == "pipeline" else checked
            outcomes[put_through(Path(folder), raws[0] or b"", json_file, seed.gpus, form)] += 1

    here, start = Path.cwd(), time.monotonic()
    try:
        every_input()
    finally:
        os.chdir(here)
    rate = sum(outcomes.values()) / (time.monotonic() - start)
    told = ", ".join(f"{count} {what}" for what, count in outcomes.most_common())
    print(f"{kind}: {sum(outcomes.values())} inputs, {told}; {rate:.0f} a second")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
