# pyright: basic
"""How many tokens evaluation feeds at once, against axolotl's own datasets and trainer."""

import importlib.util
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from advisor.opening import open_configs
from advisor.run import Run

from .axolotl_venv import ROOT, UnavailableError, environment
from .ranks import differences, each

pytestmark = pytest.mark.oracle

SEQUENCE = 128
SHORTER, LONGER = 64, 192
# Multiples of 32, so that bins of 128 and of 256 tokens are filled to the last one; rows of 320 tokens are always left out.
LENGTHS = (*(32, 32, 64, 64, 64, 64, 64, 64), *(96, 128, 128, 128, 128, 128), *(192, 192, 192, 192, 320, 320))
WORDS = ("<unk>", "<s>", "</s>", "<pad>", *(f"word{number}" for number in range(60)))
MODEL: Mapping[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
}


@dataclass(frozen=True)
class Case:
    """One config: the evaluation set and what decides how long its rows are."""

    evaluated: str = "split"
    longest: int | None = None
    packing: str = "none"
    padded: bool | None = None
    rows: int = 1

    @property
    def name(self) -> str:
        return differences(self) or "nothing given"

    @property
    def packs_evaluation(self) -> bool:
        return self.packing == "both"

    @property
    def outgrows_bins(self) -> bool:
        """Whether a row can be longer than a bin of evaluation."""
        return self.packs_evaluation and self.evaluated == "apart" and (self.longest or 0) > self.rows * SEQUENCE

    def keys(self, folder: Path) -> dict[str, Any]:
        values = base(folder) | {"micro_batch_size": self.rows, "dataset_prepared_path": str(folder / self.name)}
        given = {"eval_sequence_len": self.longest, "pad_to_sequence_len": self.padded}
        values |= {key: value for key, value in given.items() if value is not None}
        if self.packing != "none":
            values |= {"sample_packing": True, "eval_sample_packing": self.packs_evaluation}
            values["attn_implementation"] = "flash_attention_2"
        if self.evaluated == "split":
            return values | {"val_set_size": 12}
        return values | {"test_datasets": [rows_at(folder, "train" if self.evaluated == "same" else "test")]}


def cases() -> Iterable[Case]:
    """Every way to evaluate, with every length; and the set that was trained on, evaluated again."""
    axes = ("split", "apart"), (None, SHORTER, LONGER), ("none", "training", "both"), (None, False, True), (1, 2)
    yield from (Case(*values) for values in itertools.product(*axes))
    yield from (Case("same", SHORTER, packing) for packing in ("none", "training", "both"))


CASES = list(cases())


def base(folder: Path) -> dict[str, Any]:
    """What all configs say."""
    return {
        "base_model": str(folder),
        "datasets": [rows_at(folder, "train")],
        "sequence_len": SEQUENCE,
        "gradient_accumulation_steps": 1,
        "num_epochs": 1,
        "learning_rate": 1e-4,
        "optimizer": "adamw_torch",
        "bf16": False,
        "fp16": False,
        "evals_per_epoch": 1,
        "output_dir": str(folder / "out"),
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
    }


def rows_at(folder: Path, name: str) -> dict[str, str]:
    """A dataset of tokens, as a config names it."""
    return {"path": str(folder / f"{name}.jsonl"), "ds_type": "json", "split": "train"}


def write(folder: Path) -> None:
    """The model, its tokenizer, the datasets and the configs."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = dict(zip(("unk_token", "bos_token", "eos_token", "pad_token"), WORDS, strict=False))
    PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(MODEL))
    for name in ("train", "test"):
        (folder / f"{name}.jsonl").write_text("".join(map(row, range(len(LENGTHS)), LENGTHS)))
    (folder / "cases.json").write_text(json.dumps({case.name: case.keys(folder) for case in CASES}))


def row(first: int, length: int) -> str:
    """One row of a dataset that is tokenized already."""
    tokens = [4 + (first + number) % 60 for number in range(length)]
    return json.dumps({"input_ids": tokens, "attention_mask": [1] * length, "labels": tokens}) + "\n"


@dataclass(frozen=True)
class Fed:
    """What axolotl evaluates: tokens of the longest row of the set, and the shapes of the batches."""

    longest: int
    shapes: Sequence[Sequence[int]]

    @property
    def tokens(self) -> int:
        """Of the largest batch."""
        return max(rows * width for rows, width in self.shapes)

    @property
    def widest(self) -> int:
        return max(width for _, width in self.shapes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("evaluation")
    write(made)
    return made


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, Fed]:
    """Every case, as axolotl feeds it."""
    if importlib.util.find_spec("axolotl") is None:
        pytest.skip("axolotl is not installed with these tests")
    try:
        place = environment()
    except UnavailableError as error:
        pytest.skip(f"what axolotl's trainer needs cannot be had: {error}")
    command = (str(place.bin / "python"), "-m", "tests.oracles.eval_length_worker", str(folder))
    done = place.run(*command, folder=folder, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: Fed(**found) for name, found in json.loads(done.stdout.splitlines()[-1]).items()}


@pytest.fixture
def fed(case: Case, outcomes: Mapping[str, Fed]) -> Fed:
    return outcomes[case.name]


@pytest.fixture
def run(case: Case, folder: Path) -> Run:
    return open_configs(case.keys(folder), None, "1x a100-80gb", {}).run


@each(case for case in CASES if not case.outgrows_bins or case.padded is not False)
def test_the_largest_batch_has_the_tokens_that_are_counted(run: Run, fed: Fed) -> None:
    assert run.eval_batch_size * run.eval_sequence_len == fed.tokens


@each(case for case in CASES if not case.packs_evaluation)
def test_a_row_is_as_wide_as_is_counted(run: Run, fed: Fed) -> None:
    assert run.eval_sequence_len == fed.widest


@each(case for case in CASES if case.outgrows_bins and case.padded is False)
def test_a_row_longer_than_its_bin_is_counted_as_if_it_were_padded(run: Run, fed: Fed) -> None:
    """It is fed as it is: to count it in whole bins is at most one row of ``sequence_len`` too much."""
    assert 0 <= run.eval_batch_size * run.eval_sequence_len - fed.tokens < SEQUENCE


@each(case for case in CASES if case.longest is not None)
def test_the_key_has_an_effect_where_the_advisor_says_so(run: Run, case: Case, fed: Fed, outcomes: Mapping[str, Fed]):
    if case.evaluated == "same":
        assert not run.cuts_evaluation
        assert fed.longest == SEQUENCE
        return
    without = outcomes[Case(case.evaluated, None, case.packing, case.padded, case.rows).name]
    cut = fed.longest != without.longest
    assert cut == (case.evaluated == "apart")
    if run.cuts_evaluation:
        assert (fed.tokens < without.tokens) == (case.longest == SHORTER)
