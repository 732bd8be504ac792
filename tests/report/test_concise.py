from advisor.report import render_check

from .samples import DOES_NOT_FIT, FITS, LINT


def test_a_line_a_finding_most_severe_first_steps_in_their_order():
    assert render_check([DOES_NOT_FIT], "concise").splitlines() == [
        "llama.yaml:3:12: error[does-not-fit] 90.7 to 95.0 GiB needed, 78.2 GiB usable on each of 8x A100-80GB SXM",
        "llama.yaml:3:12: note[zero-2] Shard optimizer states and gradients across the GPUs (ZeRO-2): "
        "90.7 -> 88.1 GiB per GPU: does not fit [*]",
        "llama.yaml:1:1: note[gradient-checkpointing] Keep one tensor a layer and compute the rest again "
        "(gradient checkpointing): 88.1 -> 79.0 GiB per GPU: does not fit [*]",
        "llama.yaml:1:1: note[lora] Train low-rank adapters instead of all weights (LoRA): "
        "79.0 -> 22.9 GiB per GPU: fits [!]",
        "1 error, 3 notes. 2 edits with --fix, 1 more with --unsafe-fixes (changes training).",
    ]


def test_a_finding_about_the_whole_file_stands_on_its_first_line():
    lines = render_check([LINT], "concise").splitlines()
    assert lines[2] == "llama.yaml:1:1: note[no-hardware] the hardware is unknown, so memory was not estimated"


def test_findings_of_several_files_are_sorted_by_level_over_all():
    levels = [line.split()[1].split("[")[0] for line in render_check([DOES_NOT_FIT, LINT], "concise").splitlines()]
    assert levels[:-1] == ["error", "error", "warning", "note", "note", "note", "note"]


def test_a_file_without_findings_gives_its_verdict():
    assert render_check([FITS], "concise") == "llama.yaml: fits 8x A100-80GB SXM: 61.0 to 66.2 of 78.2 GiB"


def test_only_the_level_is_coloured():
    assert "llama.yaml:3:12: \x1b[1;31merror\x1b[0m[does-not-fit] 90.7" in render_check(
        [DOES_NOT_FIT], "concise", color=True
    )
