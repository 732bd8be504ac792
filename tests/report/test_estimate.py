import re
from dataclasses import replace
from typing import Any

import pytest

from advisor.engine.finding import Report
from advisor.memory.ledger import Estimate, Phase, Range, Term
from advisor.report import render_estimate
from advisor.report.wording import StepRow, step_rows

from .samples import DOES_NOT_FIT, FITS, LINT, SUMMARY, TIGHT, gib


def screen(report: Report, **options: Any) -> str:
    return "\n" + render_estimate(report, "full", **options) + "\n"


def test_parts_are_bars_against_the_card_with_their_arithmetic():
    expected = """
llama.yaml   full fine-tune, bf16, seq 4096, micro batch 2, global batch 128
8x A100-80GB SXM

  weights        15.0 GiB  ███▉                  2 B x 8,030,261,248
  gradients      15.0 GiB  ███▉                  2 B x 8,030,261,248
  optimizer      11.2 GiB  ██▉                   12 B x 8,030,261,248 / 8
  activations    16.2 GiB  ████▏                 34 x 4096 B x 8,192 tokens x 3…
  loss            0.0 GiB
  overhead        2.6 GiB  ▋                     2 x 500,000,000 elements
               ──────────
  peak           60.0 GiB  of 78.2 usable on each GPU: fits (12.0 GiB to spare)

  needs 61.0 to 66.2 GiB; nvidia-smi will show up to about 67.1 GiB

  phase                 GiB
  load                 15.0
  backward             60.0  <- peak
  optimizer step       43.8
"""
    assert screen(FITS) == expected


def test_host_memory_options_and_notes_follow():
    expected = """
llama.yaml   full fine-tune, bf16, seq 4096, micro batch 2, global batch 128
8x A100-80GB SXM

  weights        15.0 GiB  ███▉                  2 B x 8,030,261,248
  gradients      15.0 GiB  ███▉                  2 B x 8,030,261,248
  optimizer      11.2 GiB  ██▉                   12 B x 8,030,261,248 / 8
  activations    46.9 GiB  ████████████          34 x 4096 B x 8,192 tokens x 3…
  loss            0.0 GiB
  overhead        2.6 GiB  ▋                     2 x 500,000,000 elements
               ──────────
  peak           90.7 GiB  of 78.2 usable on each GPU: does not fit (+12.5 GiB)

  needs 90.7 to 95.0 GiB; on a large enough card nvidia-smi would show up to
  about 100.9 GiB

  phase                 GiB
  load                 15.0
  backward             90.7  <- peak
  optimizer step       43.8

  host memory of each node: 104.7 GiB (89.7 pinned, 15.0 pageable)
    optimizer states       89.7 GiB  pinned    12 B x 8,030,261,248
    page cache             15.0 GiB  pageable  the checkpoint

  step                        per GPU  fits   cost
  as written                 90.7 GiB  no
  + zero-2                   88.1 GiB  no     no extra traffic
  + gradient-checkpointing   79.0 GiB  no     about 30 % slower steps
  ------------------------------------------ below: changes what is trained
  + lora                     22.9 GiB  yes    adapters only: less capacity to
                                              learn; the learning rate is ten
                                              times the written one

  note: lengths are the worst case: every row has sequence_len tokens
"""
    assert screen(DOES_NOT_FIT, rows=step_rows(DOES_NOT_FIT)) == expected


def test_the_ledger_has_every_term_of_every_phase_with_its_source():
    ledger = screen(DOES_NOT_FIT, ledger=True)
    assert DOES_NOT_FIT.estimate is not None
    for phase in DOES_NOT_FIT.estimate.phases:
        for term in phase.terms:
            assert f"{term.bytes:,}  {term.name}" in ledger
            assert term.source in ledger
    assert "\nbackward: 97,388,383,437 bytes, 90.7 GiB, the peak\n     16,106,127,360  weights\n" in ledger
    assert "\nhost memory of each node: 112,420,768,973 bytes, 104.7 GiB\n" in ledger
    assert "  optimizer states (pinned)\n" in ledger


def test_without_unicode_the_screen_is_ascii():
    shown = screen(DOES_NOT_FIT, unicode=False, ledger=True, rows=step_rows(DOES_NOT_FIT))
    assert shown.isascii()
    assert "  activations    46.9 GiB  ############          34 x" in shown


@pytest.mark.parametrize("report", [FITS, TIGHT, DOES_NOT_FIT, LINT], ids=lambda report: report.verdict)
def test_no_line_is_wider_than_the_terminal(report: Report):
    for width in (60, 80, 120):
        shown = screen(report, width=width, ledger=True, rows=step_rows(report))
        assert [line for line in shown.splitlines() if len(line) > width and ".py:" not in line] == []


def test_colour_changes_no_character():
    colored = screen(DOES_NOT_FIT, color=True, rows=step_rows(DOES_NOT_FIT), ledger=True)
    assert "\x1b[1;31m" in colored
    plain = screen(DOES_NOT_FIT, rows=step_rows(DOES_NOT_FIT), ledger=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_a_tight_run_says_what_it_may_lack():
    assert "of 78.2 usable on each GPU: near the limit (may lack 2.3 GiB)" in " ".join(screen(TIGHT).split())


def test_a_run_whose_peak_alone_would_fit_says_what_is_missing_at_the_least():
    assert DOES_NOT_FIT.estimate is not None
    estimate = replace(DOES_NOT_FIT.estimate, usable=gib(92), needed=Range(gib(93), gib(99)))
    assert "does not fit (+1.0 GiB)\n" in screen(replace(DOES_NOT_FIT, estimate=estimate))


def test_a_part_larger_than_the_card_fills_its_bar_and_points_beyond():
    phase = Phase("load", (Term("weights", "weights", gib(200), "2 B x 100", "here"),))
    estimate = Estimate((phase,), (), Range(gib(200), gib(210)), Range(0, gib(220)), gib(78), gib(1))
    shown = screen(replace(FITS, estimate=estimate, verdict="does-not-fit"))
    assert f"  weights       200.0 GiB  {'█' * 19}>  2 B x 100\n" in shown


def test_a_part_of_several_terms_shows_the_arithmetic_of_the_largest_first():
    terms = (
        Term("embedding", "weights", gib(1), "2 B x 5", "here"),
        Term("layers", "weights", gib(9), "2 B x 50", "here"),
    )
    phase = Phase("load", terms)
    estimate = Estimate((phase,), (), Range(gib(10), gib(11)), Range(0, gib(11)), gib(78), gib(1))
    assert "  2 B x 50 + 2 B x 5\n" in screen(replace(FITS, estimate=estimate))


def test_an_unknown_model_gives_the_reason_instead_of_numbers():
    shown = screen(replace(LINT, summary=SUMMARY, findings=LINT.findings[2:]))
    assert shown.endswith(
        "\n\n  memory unknown\n  note: the hardware is unknown, so memory was not estimated\n  help: --gpus\n"
    )


def test_the_table_of_steps_is_the_plan_on_top_of_the_run_as_written():
    assert step_rows(DOES_NOT_FIT) == (
        StepRow("as written", gib(90.7), "does-not-fit"),
        StepRow("zero-2", gib(88.1), "does-not-fit", "no extra traffic"),
        StepRow("gradient-checkpointing", gib(79), "does-not-fit", "about 30 % slower steps"),
        StepRow(
            "lora",
            gib(22.9),
            "fits",
            "adapters only: less capacity to learn; the learning rate is ten times the written one",
            safe=False,
        ),
    )
    assert step_rows(FITS) == ()


def test_what_follows_an_unsafe_step_stands_below_the_one_line():
    zero_2, checkpointing, lora = DOES_NOT_FIT.findings[1:]
    order = (replace(lora, step=1), replace(zero_2, step=2), replace(checkpointing, step=3))
    rows = step_rows(replace(DOES_NOT_FIT, findings=order))
    assert [row.safe for row in rows] == [True, False, False, False]
    assert screen(DOES_NOT_FIT, rows=rows).count("below: changes what is trained") == 1
