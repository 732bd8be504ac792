"""The answer on the screen: rows of options, bars, what is not said twice."""

from dataclasses import replace

from advisor.engine.answer import Answer, AnswerStep, Option
from advisor.engine.finding import Finding, Report
from advisor.report import render_check

from .answers import ANSWERED, HOPELESS, NO_WAY, OTHER, SAME
from .samples import TIGHT


def with_options(*options: Option, starts: bool = False) -> Report:
    return replace(ANSWERED, answer=answer(*options, starts=starts))


def answer(*options: Option, starts: bool = True) -> Answer:
    assert ANSWERED.answer is not None
    return replace(ANSWERED.answer, options=options, starts=starts)


def lines(report: Report, **options: str | int) -> list[str]:
    return render_check([report], "full", **options).splitlines()  # pyright: ignore[reportArgumentType]


def row(report: Report, letter: str) -> str:
    return next(line for line in lines(report) if line.startswith(f"{letter}  "))


def test_an_option_that_does_not_start_is_no_way_next_to_one_that_does():
    stopped = replace(SAME, starts=False, recommended=False)
    report = with_options(stopped, replace(OTHER, recommended=True))
    assert row(report, "A") == "A  same training: no way: does not start"
    assert row(report, "B").split()[-2:] == ["--fix", "--unsafe-fixes"]


def test_one_that_starts_after_a_correction_has_its_figures():
    report = with_options(replace(SAME, starts=False))
    assert row(report, "A").startswith("A  same training, once corrected") and row(report, "A").endswith("--fix")


def test_there_is_no_table_where_nothing_can_be_written():
    assert not [line for line in lines(HOPELESS) if "way out" in line]
    assert [line for line in lines(ANSWERED) if "way out" in line]


def test_edits_that_do_not_suffice_are_counted_as_they_are_written():
    same, other = replace(NO_WAY, starts=False, written=3), replace(NO_WAY, letter="B", starts=False, written=4)
    report = with_options(same, other)
    said = " ".join(lines(report))
    assert "3 safe edits (--fix), 1 changes what is trained (--unsafe-fixes)." in said


def test_bars_keep_to_the_width():
    assert TIGHT.estimate is not None
    for width in (60, 80, 100):
        near = replace(TIGHT, answer=replace(answer(), verdict="tight"))
        assert max(map(len, lines(near, width=width))) <= width


def test_fixes_of_one_rule_are_one_entry_with_a_line_each():
    fixes = [
        AnswerStep("deprecated-key", f"write `{new}`", f"`{old}` is deprecated.", "", True, heading="Old", tidies=True)
        for old, new in (("a", "x"), ("b", "y"), ("a", "x"))
    ]
    shown = lines(with_options(replace(SAME, steps=(*SAME.steps, *fixes)), starts=True))
    at = shown.index("2. Old: 3 edits")
    assert shown[at + 1 : at + 3] == [
        "   `a` is deprecated; write `x` (2 times)",
        "   `b` is deprecated; write `y`",
    ]


def test_the_note_on_masters_is_not_said_where_the_option_brings_them():
    note = Finding("pure-bf16-low-rate", "note", "No masters", ANSWERED.findings[0].place, title="Keep fp32 masters")
    report = replace(ANSWERED, findings=(note,))
    assert any("Keep fp32 masters" in line for line in lines(report))
    better = replace(report, answer=answer(replace(SAME, has_masters=True)))
    assert not any("Keep fp32 masters" in line for line in lines(better))
    assert "1 note (-v)" in lines(better)


def test_what_the_headline_says_is_no_finding_of_the_whole_report():
    shown = lines(ANSWERED, detail="verbose")
    assert shown[0].startswith("Does not fit: needs ") and not any("error[does-not-fit]" in line for line in shown)
