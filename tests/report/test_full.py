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


def full(*reports: Report, **options: bool | int | str) -> str:
    return "\n" + render_check(reports, "full", **options) + "\n"  # pyright: ignore[reportArgumentType]


def pointing_at(place: Place, text: str) -> str:
    """How the tight finding looks at another place, in a file of this text."""
    finding = replace(TIGHT.findings[0], place=place, help=())
    return full(replace(TIGHT, findings=(finding,), texts={place.file: text}), detail="verbose")


def test_one_line_says_so_when_all_is_well():
    expected = """
llama.yaml: fits 8x A100-80GB SXM: 61.0 to 66.2 of 78.2 GiB
"""
    assert full(FITS) == expected


def test_in_full_a_verdict_has_its_line_and_advice():
    expected = """
llama.yaml: near the limit on 8x A100-80GB SXM: 77.0 to 80.5 of 78.2 GiB

warning[tight-fit]: 77.0 to 80.5 GiB needed, 78.2 GiB usable on each of 8x
  A100-80GB SXM
 --> llama.yaml:3:1
  |
3 | deepspeed: deepspeed_configs/zero1.json
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` against
          fragmentation

llama.yaml: near the limit. Nothing was written.
"""
    assert full(TIGHT, detail="verbose") == expected


def test_lint_findings_are_a_line_each_and_their_edits_are_counted():
    expected = """
llama.yaml: memory unknown

error 4  zero2.json: `zero_optimization.offload_param` with stage 2: DeepSpeed
         refuses it at the start; remove it [offload-param-without-zero-3]
warn  4  `bf16: true` on a V100, which has no bf16 units: the launch fails or
         crawls; use fp16 [bf16-unsupported]

llama.yaml: no verdict. 1 error, 1 warning, 1 note (-v). 1 edit with --fix, 1
more with --unsafe-fixes (changes training). Nothing was written.
"""
    assert full(LINT) == expected


def test_in_full_findings_point_into_yaml_and_json_and_show_their_edits():
    expected = """
error[offload-param-without-zero-3]: `zero_optimization.offload_param` with
  stage 2: DeepSpeed refuses it at the start; remove it
 --> zero2.json:4:5
  |
4 |     "offload_param": {
  |     ^^^^^^^^^^^^^^^^^^
  |
  = source: deepspeed/runtime/zero/config.py:200@0.18.9
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
  = source: https://docs.nvidia.com/cuda/ampere-tuning-guide/
  = help: --unsafe-fixes writes this edit (changes what is trained)
    --- llama.yaml
    +++ llama.yaml
    @@ -4 +4,2 @@
    -bf16: true
    +bf16: false
    +fp16: true
"""
    assert expected in full(LINT, detail="verbose")


def test_files_that_are_well_share_a_block_and_the_last_line_counts_all():
    expected = """
llama.yaml: fits 8x A100-80GB SXM: 61.0 to 66.2 of 78.2 GiB
zero3.json: no findings
llama.yaml: near the limit on 8x A100-80GB SXM: 77.0 to 80.5 of 78.2 GiB
3 files: 1 warning.
"""
    assert full(FITS, JSON_ALONE, TIGHT) == expected


def test_findings_of_one_rule_and_remedy_are_one_with_the_other_lines():
    first = replace(LINT.findings[1], place=Place("llama.yaml", 4, 1, 4, 5))
    other = replace(first, place=Place("llama.yaml", 9, 1, 9, 5))
    shown = full(replace(LINT, findings=(first, other)))
    assert "(also line 9)" in shown
    assert shown.count("[offload-param-without-zero-3]") == 1


def test_of_many_notes_three_are_shown_and_the_rest_counted():
    note = LINT.findings[2] if LINT.findings[2].level == "note" else LINT.findings[0]
    many = tuple(replace(note, rule=f"rule-{number}") for number in range(5))
    shown = full(replace(LINT, findings=many))
    assert "5 notes (-v)" in shown
    assert "rule-2" in shown
    assert "rule-3" not in shown


def test_no_error_and_no_warning_is_hidden():
    loud = tuple(replace(LINT.findings[0], rule=f"rule-{n}", level="warning", message=f"m{n}") for n in range(30))
    assert all(f"[rule-{n}]" in full(replace(LINT, findings=loud)) for n in range(30))


def test_several_files_without_findings_say_that():
    assert full(FITS, FITS).endswith("\n2 files: no findings.\n")


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
    assert long.rstrip() in full(report, detail="verbose")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", full(report, color=True, detail="verbose"))
    assert max(len(line) for line in shown.splitlines()) == 80
    assert "yyy…" in shown
    assert "yyy..." in full(report, color=True, unicode=False, detail="verbose")


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


@pytest.mark.parametrize("code", ["\x1b[2J", "\x9b2J", "\x07", "\b"])
def test_escape_codes_in_a_config_do_not_reach_the_terminal(code: str):
    shown = pointing_at(Place("a.yaml", 1, 1, 1, 2), f"a: {code}gone\n")
    assert code[0] not in shown
    assert f"a: \ufffd{code[1:]}gone\n" in shown


def test_text_cannot_turn_the_reading_direction():
    assert "a: \ufffdgone" in pointing_at(Place("a.yaml", 1, 1, 1, 2), "a: \u202egone\n")


def test_lines_are_counted_as_in_the_file():
    assert "2 | b: 2\n" in pointing_at(Place("a.yaml", 2, 1, 2, 2), "a: \f1\r\nb: 2\r\n")
