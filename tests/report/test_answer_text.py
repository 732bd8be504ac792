"""The answer on the screen: rows of options, bars, what is not said twice."""

from dataclasses import replace

from advisor.engine.answer import Answer, AnswerStep, NotTaken, Option, Reason
from advisor.engine.answer_steps import step_of
from advisor.engine.finding import Finding, Report
from advisor.report import render_check
from advisor.report.cards import HEADS
from advisor.util import counted, number

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


def test_an_option_that_no_edits_start_is_no_way_next_to_one_that_starts():
    stopped = replace(SAME, starts=False, recommended=False)
    report = with_options(replace(stopped, command=None, end=None), replace(OTHER, recommended=True))
    assert row(report, "A") == "A  same training: no way: does not start"
    assert row(report, "B").split()[-2:] == ["--fix", "--unsafe-fixes"]
    report = with_options(stopped, replace(OTHER, recommended=True))
    assert row(report, "A").startswith("A  same training, once corrected")


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
    assert "3 edits with --fix, 1 more with --unsafe-fixes (changes training)." in said


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
    note = Finding("pure-bf16-low-rate", "note", "no masters", ANSWERED.findings[0].place, title="Keep fp32 masters")
    report = replace(ANSWERED, findings=(note,))
    assert any("no masters" in line for line in lines(report))
    better = replace(report, answer=answer(replace(SAME, has_masters=True)))
    assert not any("no masters" in line for line in lines(better))
    assert "1 note (-v)" in lines(better)[-1]


def test_a_note_that_a_step_of_the_option_answers_is_counted():
    note = Finding("deprecated-key", "note", "`a` is old; write `b`", ANSWERED.findings[0].place, title="An old key")
    report = replace(ANSWERED, findings=(note,))
    assert any("`a` is old; write `b` [deprecated-key]" in line for line in lines(report))
    done = replace(report, answer=answer(replace(SAME, steps=(*SAME.steps, step_of(note)))))
    assert not any("[deprecated-key]" in line for line in lines(done)) and "1 note (-v)" in lines(done)[-1]


def test_the_last_line_counts_edits_as_the_headline_does_and_names_what_writes_them():
    assert lines(ANSWERED)[-1].endswith(f" {counted(SAME.changes, 'edit')} with {SAME.flags}. Nothing was written.")


def test_all_that_is_said_has_what_each_phase_needs():
    shown = " ".join(lines(ANSWERED, detail="verbose"))
    assert ANSWERED.estimate is not None
    assert all(f"{phase.name} {number(phase.bytes)}" in shown for phase in ANSWERED.estimate.phases)


def test_without_gpus_the_headline_has_the_cheapest_card_and_the_table_a_few():
    rows = [(f"1x {name}", "9.0 of 22.0", "", "as written", "900", "1.0", "1", "$5.00", "") for name in "ABCDEFGH"]
    rows[7] = (*rows[7][:-1], "fastest")
    report = replace(
        ANSWERED,
        hardware=None,
        verdict="unknown",
        estimate=None,
        answer=Answer("unknown", True, Reason("no-gpus"), "Needs 9.0 GiB on one GPU.", "Say which", needs=9 << 30),
        cards=(HEADS, *rows),
        cheapest="Cheapest that works: 1x A, $5.00 for 100M tokens.",
        card_caption="cost for 100M tokens",
        card_notes=("a long note",),
        findings=(),
    )
    shown = lines(report)
    assert " ".join(shown[:2]).startswith("Needs 9.0 GiB on one GPU. Cheapest that works: 1x A, $5.00 for 100M tokens.")
    assert [line.split()[1] for line in shown if line.startswith("1x ")] == [*"ABCDE", "H"]
    assert "All that would do: `advisor hardware llama.yaml`" in shown
    assert "cost for 100M tokens" in shown and "a long note" not in " ".join(shown)
    assert "note: a long note" in lines(report, detail="verbose")


def test_what_the_headline_says_is_no_finding_of_the_whole_report():
    shown = lines(ANSWERED, detail="verbose")
    assert shown[0].startswith("Does not fit: needs ") and not any("error[does-not-fit]" in line for line in shown)


def test_a_way_that_keeps_more_says_its_memory_and_its_time_where_there_is_one():
    way = NotTaken("All weights trained, 2 edits", "adapters come first", memory=21 << 30, keeps_more=True)
    chosen = replace(OTHER, recommended=True, seconds=4.0)
    for seconds, said in ((None, ""), (5.0, ", 5.00 s a step in place of 4.00")):
        shown = replace(ANSWERED, answer=replace(answer(chosen), not_taken=(replace(way, seconds=seconds),)))
        line = f"Not taken: All weights trained, 2 edits, 21.0 GiB{said}; adapters come first."
        assert line in " ".join(render_check([shown], "full").split())
