"""Rows that are evaluated: which key says how long they are, and how many go through the model together."""

import pytest

LLAMA = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 4096\nmicro_batch_size: 2\n"
SPLIT = "val_set_size: 0.05\nevals_per_epoch: 1\n"
APART = "test_datasets: [{path: org/data, split: test, type: alpaca}]\nevals_per_epoch: 1\n"
SHORT = "eval_sequence_len: 512\n"
PACKED = "sample_packing: true\nattn_implementation: flash_attention_2\n"


@pytest.mark.parametrize(
    ("said", "length"),
    [
        (SPLIT + SHORT, 4096),
        (APART + SHORT, 512),
        (APART, 4096),
        (APART + "eval_sequence_len: 9000\n", 9000),
        (APART + SHORT + "pad_to_sequence_len: true\n", 4096),
        (APART + "eval_sequence_len: 5000\npad_to_sequence_len: true\n", 8192),
        (APART + SHORT + PACKED, 4096),
        (APART + SHORT + PACKED + "eval_sample_packing: false\n", 4096),
        (APART + SHORT + PACKED + "eval_sample_packing: false\npad_to_sequence_len: false\n", 512),
        (APART + SHORT + "skip_prepare_dataset: true\n", 4096),
        (APART + SHORT + "rl: dpo\n", 4096),
        (APART + SHORT + APART.partition("\n")[0].removeprefix("test_") + "\n", 4096),
        (APART + SHORT + "reward_model: true\n", 4096),
    ],
)
def test_evaluated_rows_are_as_long_as_the_key_that_axolotl_reads(make_run, said: str, length: int):
    run = make_run(LLAMA + said)
    assert run.eval_sequence_len == length
    assert run.cuts_evaluation == (length not in (4096, 8192) or said == APART)


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        ("eval_batch_size: 8\n", 8),
        ("eval_batch_size: 8\n" + PACKED, 2),
        ("eval_batch_size: 8\n" + PACKED + "eval_sample_packing: false\n", 8),
    ],
)
def test_packed_evaluation_fills_the_bins_of_training(make_run, said: str, rows: int):
    assert make_run(LLAMA + SPLIT + said).eval_batch_size == rows
