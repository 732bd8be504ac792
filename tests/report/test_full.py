import re
from dataclasses import replace

import pytest

from advisor.engine.finding import Place, Report
from advisor.report import render_check

from .samples import DOES_NOT_FIT, FITS, JSON_ALONE, LINT, ROOM, TIGHT, YAML

ALL = {
    "fits": FITS,
    "tight": TIGHT,
    "does-not-fit": DOES_NOT_FIT,
    "lint": LINT,
    "room": ROOM,
    "json-alone": JSON_ALONE,
}


def full(*reports: Report, **options: bool | int) -> str:
    return "\n" + render_check(reports, "full", **options) + "\n"  # pyright: ignore[reportArgumentType]


def pointing_at(place: Place, text: str) -> str:
    """How the tight finding looks at another place, in a file of this text."""
    finding = replace(TIGHT.findings[0], place=place, help=())
    return full(replace(TIGHT, findings=(finding,), texts={place.file: text}))


def test_one_line_says_so_when_all_is_well():
    expected = """
llama.yaml: fits 8x A100-80GB SXM: 61.0 to 66.2 of 78.2 GiB
"""
    assert full(FITS) == expected


def test_a_tight_run_is_a_warning_with_its_line_and_advice():
    expected = """
warning[tight-fit]: 77.0 to 80.5 GiB needed, 78.2 GiB usable on each of 8x
  A100-80GB SXM
 --> llama.yaml:3:1
  |
3 | deepspeed: deepspeed_configs/zero1.json
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` against
          fragmentation

1 warning.
"""
    assert full(TIGHT) == expected


def test_a_run_that_does_not_fit_shows_the_plan_step_by_step():
    expected = """
error[does-not-fit]: 90.7 to 95.0 GiB needed, 78.2 GiB usable on each of 8x
  A100-80GB SXM
 --> llama.yaml:3:12
  |
3 | deepspeed: deepspeed_configs/zero1.json
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: 8x H200-141GB would do without any edit

plan for llama.yaml: 3 steps, then it fits (22.9 to 25.1 of 78.2 GiB)

1. zero-2: Shard optimizer states and gradients across the GPUs (ZeRO-2)
   90.7 -> 88.1 GiB per GPU: does not fit; same training
   cost: no extra traffic
   --- /dev/null
   +++ llama.zero-2.json
   @@ -0,0 +1,3 @@
   +{
   +  "zero_optimization": {"stage": 2}
   +}
   --- llama.yaml
   +++ llama.yaml
   @@ -3 +3 @@
   -deepspeed: deepspeed_configs/zero1.json
   +deepspeed: llama.zero-2.json

2. gradient-checkpointing: Keep one tensor a layer and compute the rest again
   (gradient checkpointing)
   88.1 -> 79.0 GiB per GPU: does not fit; same training
   cost: about 30 % slower steps
   --- llama.yaml
   +++ llama.yaml
   @@ -4,0 +5 @@
   +gradient_checkpointing: true

3. lora: Train low-rank adapters instead of all weights (LoRA)
   79.0 -> 22.9 GiB per GPU: fits; changes what is trained (left out: needs
   --unsafe-fixes)
   cost: adapters only: less capacity to learn; the learning rate is left as it
         is
   --- llama.yaml
   +++ llama.yaml
   @@ -5,0 +6 @@
   +adapter: lora

skipped:
  zero-3: would not lower the peak: 90.7 -> 91.2 GiB per GPU

1 error, 3 notes. 2 safe edits (--fix), 1 changes what is trained
(--unsafe-fixes).
"""
    assert full(DOES_NOT_FIT) == expected


def test_lint_findings_point_into_yaml_and_json_and_show_their_edits():
    expected = """
error[offload-param-without-zero-3]: `zero_optimization.offload_param` with
  stage 2: DeepSpeed refuses it at the start; remove it
 --> zero2.json:4:5
  |
4 |     "offload_param": {
  |     ^^^^^^^^^^^^^^^^^^
  |
  = help: --fix writes this edit (same training)
    --- zero2.json
    +++ zero2.json
    @@ -3,4 +3 @@
    -    "stage": 2,
    -    "offload_param": {
    -      "device": "cpu"
    -    }
    +    "stage": 2

warning[bf16-unsupported]: `bf16: true` on a V100, which has no bf16 units: the
  launch fails or crawls; use fp16
 --> llama.yaml:4:7
  |
4 | bf16: true
  |       ^^^^
  |
  = note: GPUs before Ampere have no bf16 units.
  = help: --unsafe-fixes writes this edit (changes what is trained)
    --- llama.yaml
    +++ llama.yaml
    @@ -4 +4,2 @@
    -bf16: true
    +bf16: false
    +fp16: true

note[no-hardware]: the hardware is unknown, so memory was not estimated
  --> llama.yaml
   = help: --gpus

1 error, 1 warning, 1 note. 1 safe edit (--fix), 1 changes what is trained
(--unsafe-fixes).
"""
    assert full(LINT) == expected


def test_suggestions_for_speed_are_compact_and_not_counted_as_edits():
    expected = """
also possible with the memory that is left (advice; --fix does not apply it):
  larger-micro-batch: Run the same global batch in fewer, larger steps
    60.0 -> 68.0 GiB per GPU: fits; same training

llama.yaml: fits 8x A100-80GB SXM: 61.0 to 66.2 of 78.2 GiB
1 note.
"""
    assert full(ROOM) == expected


def test_files_that_are_well_share_a_block_and_the_last_line_counts_all():
    expected = """
llama.yaml: fits 8x A100-80GB SXM: 61.0 to 66.2 of 78.2 GiB
zero3.json: no findings

warning[tight-fit]: 77.0 to 80.5 GiB needed, 78.2 GiB usable on each of 8x
  A100-80GB SXM
 --> llama.yaml:3:1
  |
3 | deepspeed: deepspeed_configs/zero1.json
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` against
          fragmentation

3 files: 1 warning.
"""
    assert full(FITS, JSON_ALONE, TIGHT) == expected


def test_several_files_without_findings_say_that():
    assert full(FITS, FITS).endswith("\n2 files: no findings.\n")


def test_what_has_been_fixed_is_counted():
    assert full(replace(FITS, fixed=2)).endswith("\nno findings. 2 fixed.\n")


def test_a_plan_that_falls_short_says_so():
    short = full(replace(DOES_NOT_FIT, planned=DOES_NOT_FIT.estimate))
    assert "plan for llama.yaml: 3 steps, and it still does not fit (90.7 to 95.0 of 78.2\n  GiB)\n" in short


def test_more_unsafe_edits_than_one_are_in_the_plural():
    (lora,) = (finding for finding in DOES_NOT_FIT.findings if finding.rule == "lora")
    twice = replace(DOES_NOT_FIT, findings=(lora, replace(lora, rule="qlora", step=4)))
    assert full(twice).endswith("\n2 notes. 2 edits change what is trained (--unsafe-fixes).\n")


@pytest.mark.parametrize("name", ALL)
def test_prose_keeps_to_80_columns(name: str):
    wide = [line for line in full(ALL[name]).splitlines() if len(line) > 80]
    assert wide == []


@pytest.mark.parametrize("name", ALL)
def test_colour_changes_no_character(name: str):
    colored = full(ALL[name], color=True)
    assert "\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == full(ALL[name])


def test_width_is_kept_on_a_narrow_terminal():
    lines = [line for line in full(DOES_NOT_FIT, width=60).splitlines() if "|" not in line]
    assert max(len(line) for line in lines) <= 60


def test_code_is_cut_at_the_width_of_a_terminal_and_whole_in_a_pipe():
    long = f"base_model: x  # {'y' * 90}\n"
    finding = replace(TIGHT.findings[0], place=Place("a.yaml", 1, 1, 1, 11))
    report = replace(TIGHT, findings=(finding,), texts={"a.yaml": long})
    assert long.rstrip() in full(report)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", full(report, color=True))
    assert max(len(line) for line in shown.splitlines()) == 80
    assert "yyy…" in shown
    assert "yyy..." in full(report, color=True, unicode=False)


def test_a_span_over_several_lines_is_underlined_on_its_first():
    assert "3 |   b:\n  |   ^^\n" in pointing_at(Place("a.yaml", 3, 3, 5, 1), "a:\n\n  b:\n    c: 1\n")


def test_carets_stand_under_the_span_after_tabs():
    assert '1 |     "stage": 2\n  |              ^\n' in pointing_at(Place("z.json", 1, 11, 1, 12), '\t"stage": 2\n')


def test_a_line_number_of_two_digits_widens_the_gutter():
    shown = pointing_at(Place("a.yaml", 10, 1, 1, 3), "\n" * 9 + YAML)
    assert "\n  --> a.yaml:10:1\n   |\n10 | base_model" in shown


def test_an_empty_span_still_gets_a_caret():
    assert "1 | a:\n  |   ^\n" in pointing_at(Place("a.yaml", 1, 3, 1, 3), "a:\n")


def test_a_place_beyond_the_text_shows_no_code():
    shown = pointing_at(Place("a.yaml", 9, 1, 9, 2), "a: 1\n")
    assert " --> a.yaml:9:1\n" in shown
    assert "9 |" not in shown


def test_the_verdict_comes_after_other_errors_so_that_the_plan_follows_it():
    lint = LINT.findings[1]
    report = replace(DOES_NOT_FIT, findings=(*DOES_NOT_FIT.findings, lint))
    shown = full(report)
    assert shown.index("error[offload-param") < shown.index("error[does-not-fit]") < shown.index("\nplan for")


@pytest.mark.parametrize("code", ["\x1b[2J", "\x9b2J", "\x07", "\b"])
def test_escape_codes_in_a_config_do_not_reach_the_terminal(code: str):
    shown = pointing_at(Place("a.yaml", 1, 1, 1, 2), f"a: {code}gone\n")
    assert code[0] not in shown
    assert f"a: \ufffd{code[1:]}gone\n" in shown


def test_text_cannot_turn_the_reading_direction():
    assert "a: \ufffdgone" in pointing_at(Place("a.yaml", 1, 1, 1, 2), "a: \u202egone\n")


def test_lines_are_counted_as_in_the_file():
    assert "2 | b: 2\n" in pointing_at(Place("a.yaml", 2, 1, 2, 2), "a: \f1\r\nb: 2\r\n")


def test_line_ends_of_windows_leave_no_mark_in_a_diff():
    finding = DOES_NOT_FIT.findings[2]
    assert finding.fix is not None
    windows = replace(finding, fix=replace(finding.fix, diff="-a\r\n+b\r\n"))
    assert "   -a\n   +b\n\n" in full(replace(DOES_NOT_FIT, findings=(windows,)))


def test_a_very_long_diff_is_cut_and_says_how_much_is_missing():
    finding = DOES_NOT_FIT.findings[1]
    assert finding.fix is not None
    long = replace(finding, fix=replace(finding.fix, diff="".join(f"+line {n}\n" for n in range(100))))
    shown = full(replace(DOES_NOT_FIT, findings=(long,)))
    assert "+line 47\n   (52 more lines: --diff shows them all)\n" in shown
