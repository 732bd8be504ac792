"""axolotl's own examples: model, method, length and cards taken from each, what `new` writes for them next to it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import yaml

from advisor.documents import read
from advisor.engine.states import State
from advisor.errors import InputError
from advisor.learning import Training
from advisor.memory import estimate
from advisor.new import Request, Way, ways
from advisor.new.draft import RANK, rate_for
from advisor.new.start import start_of
from advisor.opening import Context, open_run
from advisor.run import Run
from advisor.session import RunOptions
from advisor.session.text import plain_session
from advisor.speed import StepTime, step_time

from ..corpus import configs

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

CARDS = ("1x rtx-4090", "1x h100-80gb", "8x h100-80gb")
OTHERS = ("reward_model", "process_reward_model", "pretraining_dataset", "processor_type", "reinit_weights")
AS_FAST = 0.95
SLOWER = {
    "archived/mpt-7b/config.yml": "its weights have no fp32 masters, at a rate of 2e-7",
    "granite4/granite-4.0-tiny-fft.yaml": "the same, with 8-bit states",
    "qwen3/8b-qat-fsdp2.yml": "the same, under FSDP2 on one card",
    "phi/phi-ft.yml": "the same",
    "archived/stablelm-2/1.6b/fft.yml": "the same, with 8-bit states",
    "glm47-flash/qlora.yaml": "adapters of attention alone, and 8-bit states",
    "gemma3n/gemma-3n-e2b-qlora.yml": "adapters of the language model alone",
    "gemma4/26b-a4b-moe-qlora.yaml": "adapters of the language model alone, and 8-bit states",
    "archived/pythia/lora.yml": "adapters of one layer in each block",
    "archived/starcoder2/qlora.yml": "plain LoRA's micro batch of 2 is 6 % faster, less than two edits are worth",
}
"""By our model, and why."""


class Pair(NamedTuple):
    """An example, where it is compared, and what `new` writes there."""

    name: str
    gpus: str
    run: Run
    way: Way
    training: Training


def fitting_card(path: Path) -> "tuple[str, Run] | None":
    """The first card on which an example fits as it is."""
    for gpus in CARDS:
        try:
            run = open_run(read(str(path)), Context(gpus=gpus)).run
        except InputError:
            return None
        found = estimate(run)
        if found is not None and found.verdict == "fits":
            return gpus, run
    return None


def pairs(corpus: Path) -> Iterator[Pair]:
    """Examples of SFT and DPO that fit somewhere, and have a time."""
    for path in sorted((corpus / "corpus" / "axolotl" / "examples").rglob("*.y*ml")):
        values: Any = yaml.safe_load(path.read_text())
        if not isinstance(values, dict) or "base_model" not in values:
            continue
        config = cast("dict[str, Any]", values)
        training = config.get("adapter") or "full"
        if training not in {"full", "lora", "qlora"} or config.get("rl") not in {None, "dpo"}:
            continue
        found = None if any(config.get(key) for key in OTHERS) else fitting_card(path)
        if found is None or not isinstance(step_time(found[1]), StepTime):
            continue
        gpus, run = found
        request = Request(
            model=config["base_model"],
            method="dpo" if config.get("rl") else training,
            training=training,
            sequence_len=run.sequence_len,
            options=RunOptions(gpus=gpus),
        )
        way = next(one for one in ways(request).ways if one.training == training)
        yield Pair(str(path.relative_to(corpus / "corpus" / "axolotl" / "examples")), gpus, run, way, training)


@pytest.fixture(scope="module")
def found() -> list[Pair]:
    folder = configs.folder()
    if folder is None:
        pytest.skip("ADVISOR_CORPUS is not set")
    here = os.getcwd()
    os.chdir(folder / "corpus" / "axolotl")  # DeepSpeed's JSONs are named from there
    try:
        return list(pairs(folder))
    finally:
        os.chdir(here)


def speed_of(run: Run) -> float:
    """Tokens a second of all cards."""
    time = step_time(run)
    assert isinstance(time, StepTime) and State(run).seconds
    return time.tokens * run.world_size / time.expected


def test_there_are_many(found: list[Pair]):
    assert sum(pair.way.fits for pair in found) >= 90


def test_no_config_is_slower_but_for_a_reason(found: list[Pair]):
    slower = {
        pair.name: round((pair.way.tokens_per_second or 0.0) / speed_of(pair.run), 2)
        for pair in found
        if pair.way.fits and (pair.way.tokens_per_second or 0.0) < AS_FAST * speed_of(pair.run)
    }
    assert slower.keys() <= SLOWER.keys(), slower


def test_rates_ranks_and_batches_are_usual(found: list[Pair]):
    for pair in found:
        if not pair.way.fits:
            continue
        written = yaml.safe_load(pair.way.files["run.yaml"])
        options = RunOptions(gpus=pair.gpus)
        paired = "dpo" if written.get("rl") else "auto"
        start = start_of(Request(model=written["base_model"], method=paired, options=options), plain_session(options))
        band = rate_for(start, pair.training)
        assert band.low <= written["learning_rate"] <= band.high, pair.name
        assert pair.training == "full" or (written["lora_r"], written["lora_alpha"]) == (RANK, 2 * RANK)
        rows = written["micro_batch_size"] * written["gradient_accumulation_steps"] * int(pair.gpus.partition("x")[0])
        tokens = rows * written["sequence_len"] * (2 if written.get("rl") else 1)
        assert 8_000 <= tokens <= 1_000_000, (pair.name, tokens)
