"""A dataset that axolotl has prepared: found by the name that it has, its longest row read from its Arrow files."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import Document, read
from advisor.memory import estimate
from advisor.opening import Context, open_run
from advisor.run import Run
from advisor.run.axolotl.arrow import longest_list
from advisor.run.axolotl.prepared import dataset_hash, longest_row
from advisor.run.build import edited

# What datasets 5.2.0's `save_to_disk` writes of three rows with lists of 5, 700 and 9 tokens, after columns of text,
# of structs and of nothing.
WRITTEN = zlib.decompress(
    base64.b64decode(
        "eNrt2ndUU1ccwPGXAIKCiFoRFRXjVtx74957axUDBIxCQEjce4+6995779U9ta2zQ23de1dbtVWr6ffm3UhIwdJz+lfP+x0+eeOO"
        "d/Nyx3vnYLfb7Ts8FSVAEZFJ8VcyKF6KD3uEzvPNeT8+PeX5YnqxTzLEeR8+RZoP+3/q1LRf2A4xmC3R8YbqIUMM0Saj1ZZoSnIc"
        "JMXbEiNNjt0o66AEsWdIsiaaLTGG0BBDuPNUJ2OszWQYximKWtSiifGxJtcK/0Ulb061MCdZHWcsKUubLdbKFVMrLPIOMJljeltT"
        "FrDYYmPTuJjZkmCzhpujktJuLJerUD7dbTVarSaL1RxvCY8zJvV9a61V011prDHCFPv2JqZ+R/5eG6H48rv3tsXE8BtEGyNN9CS1"
        "r7xLXyiLbzmOUtT+oby22+lBfu+wG6wk9ydxLMqpTVOUJ6/s9lA1r170xSBnebk1W01xYv+AI4+iC+PjXZe6C7nULa7jj5T3UlG6"
        "kH9GOq4RbFevIfr5xy7XCHG5hiibUZRxdgDZtkfpqH+orF/UF+LY1+nc84t7o/ZFxix5mqj5Mge5tINbrrSQ99ILjuHDNoy8A+3J"
        "7Qh2qVe03SLHso/i7RjLzvu5xZ72byX2xaAUmVeQ76ya1+tt3/MIeQIo7cO38XbMIAFynlHLBbt9X3W+EOc835ynCvtEvdoGxTEP"
        "BcqZy89Ro+Lh6bj+2UIyAzNXkJynxBz2nk6d8zyU5MippB0BbtuMchvili+tY2e5sm7pZd3Sw+TW2a4mbvmdx0Fy28stvZdbfQlu"
        "6c7jYr7qdoFvynTnsbP8Brd05/HXenU70D9luvPYWX6iW7rzuE1g8jk/t99B+Q+PPdJId7Zf+Y/SnXkyyL5hjIhU/1zSdXJseqRy"
        "bLPZ3pxLbavIsfyJPvnaruU9ldTPeck2eTvGtto20f995X3PLOfELPI3y4psyC7Hdw4EyrEh+lwu5EYeOU7zIh/yy75eAAYUlHNv"
        "YRRBUdHnUBwlUBKhKIXSKCPHQjmURwVURCVURhVURTVURw3URC3URh05duqiHuqjARqiERrLsdMUzdBczpEt0QqtRZ9EW7RDe3RA"
        "R3RCZ3RBV3RDd7HOoAd6IlyOPSMiECnXOjExRiNGrI1iDkQf9BVrHOLkvBsvx2Y/MZ+KOU/M26JfoL+Y88XYwiAMxhCxXmAYhmME"
        "RmIURmMMxmIcxmOCGHuYhMmYIuZATMU0TMcMzMQszMYczMU8zBdzAxZiERZjCZZiGZaL+R8rsQqrsQZrsQ7rxdyBjdiEzWJdwVZs"
        "w3bswE7swm7swV7sw36xjuIgDuEw3scH+BAfiTVZjA98is/wOb7Al/hKrDs4KsYuvlHU55FjOI4TOIlTOI3v8D1+wI84I9YSnMNP"
        "+BnncQEXcQmXcQVXcQ3XcQM3cQu3cQd3cQ/38QAPxfMyHuExfsVveIKneIbf8Qee4wVeimdtvBKPUmI9lINfBz08xHM4vJAB3vBB"
        "RmSCL/yQGf7IItZDZEU2ZMc7yIFA5EQQciE38iAYeZEP+RGCAjCgIAqhMIqgKIqhOEqgJEJRCqVRRj4jlkN5VEBFVEJlVEFVVEN1"
        "1EBN1EJt1EEY6qIe6qMBGqIRGqMJmqIZmqMFWqIVWqMN2qId2qMDOqITOqMLuqIbuuvU59oe6Ilw9IIREYhEFEyIRgx6w4w+6ItY"
        "xMGCeCSgHxKRBCts6I8BGIhBGCzerTAUwzAcIzASozAaYzAW4zAeEzARkzAZU3TqM9BUTMN0zMBMzMJszMFczMN8LMBCLMJiLMFS"
        "LMNyrMBKrMJqrMFarMN6bMBGbMJmbMFWbMN27MBO7MJu7MFe7MN+HMBBHMJhvI8P8CE+wsf4BJ/iM3yOL/AlvsIRHMXX+Ea8j+AY"
        "juMETuIUTuM7fI8f8CPO4CzO4Sf8jPO4gIu4hMu4gqu4huu4gZu4hdu4g7u4h/t4gIc69X35ER7jV/yGJ3iKZ/gdf+A5XuClTn3X"
        "foXXsMuFXwc9PMQ7OryQAd7wQUZkgi/8kBn+yIIAZEU2ZBfP1siBQOREEHIhN/IgGHmRD/kRggIwoCAKoTCKoKhefRcsjhIoiVCU"
        "QmmUQVmUQ3lUQEVUQmVUQVVUQ3XUQE3UQm3UQRjqoh7qowEaohEaowmaohmaowVaohVaow3aoh3aowM6ohM6owu6ohu6i/da9EBP"
        "hKMXjIhAJKJgQjRi0Btm9EFfxCIOFsQjAf2QiCRYYUN/DMBADMJgDMFQDMNwjMBIjMJojMFYjMN4TIB4X5qEyZiC9zAV0zAdMzAT"
        "szAbczAX8zAfC7AQi7AYS7AUy7AcK7ASq7Aaa7AW67AeG7ARm7AZW7AV27AdO7ATu7Abe7AX+7AfB3AQh3BYn77nXffnZp0WWvwv"
        "Iu33Qi200EILLbTQQgsttNBCCy200EILLbTQQgsttPinsKv/k6j8BRMofX4="
    )
)
CONFIG: dict[str, Any] = {
    "base_model": "meta-llama/Llama-3.1-8B",
    "datasets": [{"path": "org/data", "type": "alpaca"}],
    "adapter": "lora",
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_linear": True,
    "learning_rate": 1e-4,
    "bf16": True,
    "sequence_len": 4096,
    "micro_batch_size": 4,
    "gradient_checkpointing": True,
    "dataset_prepared_path": "prepared",
}


def written(folder: Path, config: dict[str, Any]) -> Document:
    (folder / "run.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return read(folder / "run.yaml")


def prepare(folder: Path, content: bytes = WRITTEN) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data-00000-of-00001.arrow").write_bytes(content)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")


def opened(folder: Path, config: dict[str, Any], *, prepared: bool = True) -> Run:
    document = written(folder, config)
    name = dataset_hash(document)
    assert name is not None
    if prepared and not (folder / "prepared" / name).exists():
        prepare(folder / "prepared" / name)
    return open_run(document, Context(working_directory=str(folder), gpus="1x a100-40gb")).run


def peak(run: Run) -> int:
    found = estimate(run)
    assert found is not None
    return found.allocated_peak


def test_the_longest_row_is_read_from_what_datasets_writes(tmp_path: Path):
    prepare(tmp_path / "data")
    assert longest_row(str(tmp_path / "data")) == 700
    assert longest_list(str(tmp_path / "data" / "data-00000-of-00001.arrow"), "labels") == 700


@pytest.mark.parametrize("column", ["source", "weight", "turns", "nothing"])
def test_a_column_without_lists_is_refused(tmp_path: Path, column: str):
    prepare(tmp_path / "data")
    with pytest.raises(ValueError):
        longest_list(str(tmp_path / "data" / "data-00000-of-00001.arrow"), column)


def test_what_is_no_arrow_stream_is_as_if_nothing_were_there(tmp_path: Path):
    assert longest_row(str(tmp_path)) is None
    for number, content in enumerate((b"", b"ARROW1", b"\xff" * 4000, WRITTEN[:900], WRITTEN[:1900])):
        prepare(tmp_path / str(number), content)
        assert longest_row(str(tmp_path / str(number))) in (None, 0), number


def test_a_damaged_stream_ends_without_an_error(tmp_path: Path):
    prepare(tmp_path)
    for at in range(0, 2600, 3):
        (tmp_path / "data-00000-of-00001.arrow").write_bytes(WRITTEN[:at] + b"\x7f\xff" + WRITTEN[at + 2 :])
        assert isinstance(longest_row(str(tmp_path)), int | None)


def test_rows_are_counted_at_the_longest_that_is_prepared(tmp_path: Path):
    run = opened(tmp_path, CONFIG)
    found = estimate(run)
    assert found is not None
    # Batches are padded to a multiple of 64.
    assert (found.rows.length, found.rows.full) == (704, False)
    assert found.grounds.endswith(", for rows of up to 704 tokens, the longest prepared")
    assert any("the longest row of prepared/" in note for note in found.notes)
    assert found.allocated_peak == peak(opened(tmp_path, CONFIG | {"sequence_len": 704}, prepared=False))
    exact = estimate(opened(tmp_path, CONFIG | {"pad_to_sequence_len": False}))
    assert exact is not None
    assert exact.rows.length == 700


@pytest.mark.parametrize(
    "change",
    [
        {"sequence_len": 2048},
        {"datasets": [{"path": "org/other", "type": "alpaca"}]},
        {"tokenizer_config": "org/other"},
        {"special_tokens": {"pad_token": "<pad>"}},
        {"dataset_prepared_path": "elsewhere"},
        {"skip_prepare_dataset": True},
    ],
)
def test_a_dataset_that_was_prepared_for_another_config_says_nothing(tmp_path: Path, change: dict[str, Any]):
    opened(tmp_path, CONFIG)
    run = open_run(
        written(tmp_path, CONFIG | change), Context(working_directory=str(tmp_path), gpus="1x a100-40gb")
    ).run
    found = estimate(run)
    assert found is not None
    assert (found.rows.length, found.rows.origin) == (run.sequence_len, "sequence_len")


@pytest.mark.parametrize("change", [{"pad_to_sequence_len": True}, {"sample_packing": True}])
def test_full_rows_are_as_long_as_they_are_made(tmp_path: Path, change: dict[str, Any]):
    run = opened(tmp_path, CONFIG | change)
    found = estimate(run)
    assert found is not None
    assert (found.rows.length, found.rows.full) == (4096, True)


def test_a_step_that_cuts_rows_shorter_counts_and_one_that_allows_longer_ones_forgets(tmp_path: Path):
    run = opened(tmp_path, CONFIG)
    lengths = {}
    for length in (512, 2048, 8192):
        found = estimate(edited(run, {"sequence_len": length}, "step"))
        assert found is not None
        lengths[length] = found.rows.length
    assert lengths == {512: 512, 2048: 704, 8192: 8192}
