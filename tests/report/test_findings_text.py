from dataclasses import replace

import pytest

from advisor.engine.answer import Answer, Option, Reason
from advisor.engine.answer_steps import step_of
from advisor.engine.finding import Finding, Place
from advisor.engine.rule import Level
from advisor.report.findings_text import brief, finding_lines, merged
from advisor.report.style import Style

from .samples import FITS

ANSWER = Answer("fits", True, None, "Fits.", "")


def found(level: Level, message: str, line: int, rule: str = "r", title: str = "") -> Finding:
    return Finding(rule, level, message, Place("llama.yaml", line, 1), title=title)


def lines(*findings: Finding) -> list[str]:
    return finding_lines(replace(FITS, findings=findings), Style())


def test_errors_of_one_rule_and_remedy_are_one_with_all_lines():
    told = [found("error", f"`{key}` is `auto`: it takes a list", line) for line, key in enumerate("abc", 4)]
    other = found("error", "`d` is `auto`: it takes a number", 9)
    assert lines(*told, other) == [
        "error 4  `a` is `auto`: it takes a list (also lines 5, 6) [r]",
        "error 9  `d` is `auto`: it takes a number [r]",
    ]


@pytest.mark.parametrize(
    ("message", "short"),
    [
        ("`a` with `b: c`: axolotl stops, since one is enough; keep one", "`a` with `b: c`; keep one"),
        ("`a` (a long aside) is lost, so it is nothing; remove it", "`a` is lost; remove it"),
        ("`a` is no key of axolotl, which drops it silently; is `b` meant?", "`a` is no key of axolotl; is `b` meant?"),
        ("`a` stops; do this; or do that; and see there", "`a` stops; do this; or do that"),
        ("`a (b)` is refused: it takes a list", "`a (b)` is refused: it takes a list"),
    ],
)
def test_a_brief_message_keeps_key_and_remedy(message: str, short: str):
    assert brief(message) == short


def test_a_message_is_cut_short_only_where_that_saves_lines():
    assert lines(found("warning", "`a` is lost: so says axolotl; remove it", 3)) == [
        "warn  3  `a` is lost: so says axolotl; remove it [r]"
    ]
    assert lines(found("warning", f"`a` is lost: {'so says axolotl ' * 5}; remove it", 3)) == [
        "warn  3  `a` is lost; remove it [r]"
    ]


def test_warnings_of_one_rule_with_remedies_of_their_own_name_their_keys_as_one_where_they_are_many():
    title = "A key under its old name"
    told = [
        found("warning", f"`{key}` is old; {'now ' * 16}`{key * 2}`", line, title=title)
        for line, key in enumerate("abc", 1)
    ]
    assert lines(*told, replace(told[2], place=Place("llama.yaml", 8, 1))) == [
        "warn  1  `a` -> `aa`, `b` -> `bb` (line 2), `c` -> `cc` (lines 3, 8) [r]",
    ]
    assert len(lines(*(replace(each, level="error") for each in told))) == 6
    assert len(lines(*told[:1])) == 2
    many = [replace(told[2], place=Place("llama.yaml", line, 1)) for line in range(101, 107)]
    assert lines(*told[:2], *many) == [
        "warn    1  `a` -> `aa`, `b` -> `bb` (line 2), `c` -> `cc` (lines 101, 102, 103,",
        "           104, 105, 106): each a key under its old name [r]",
    ]
    short = [found("warning", f"`{key}` is old; write `{key * 2}`", 1, title=title) for key in "abc"]
    assert lines(*short) == [f"warn  1  `{key}` is old; write `{key * 2}` [r]" for key in "abc"]


def test_a_remedy_that_goes_without_saying_is_left_out_where_it_takes_a_line():
    key = "a_key_of_some_length"
    long = found("warning", f"`{key}` is not a key of axolotl: it is dropped; remove or correct it", 3)
    assert lines(long) == [f"warn  3  `{key}` is not a key of axolotl [r]"]


def test_of_many_lines_warnings_take_one_each_by_their_titles():
    long = [
        found(level, f"`{key}` {'is lost ' * 9}; {'write it again ' * 4}", line, key, title)
        for level, key, line, title in (
            ("error", "a", 1, "An error"),
            ("warning", "b", 2, "A key that is lost"),
            ("warning", "c", 3, "Keys that are lost"),
        )
    ]
    assert len(lines(*long[1:2])) > 1
    told = lines(*long)
    assert told[-2:] == ["warn  2  `b`: a key that is lost [b]", "warn  3  Keys that are lost [c]"]
    assert told[0].startswith("error 1  `a` is lost") and len(told) > 3


def test_notes_are_three_alone_and_counted_next_to_a_warning():
    notes = [found("note", "m " * 40, line, f"n{line}", "A note") for line in range(1, 6)]
    assert lines(*notes)[2:] == ["note  3  A note [n3]", "2 more notes (-v)"]
    assert lines(*notes, found("warning", "`a` is lost", 7))[1:] == ["5 notes (-v)"]


def test_the_note_on_the_learning_rate_is_told_next_to_a_warning():
    rate = found("note", "`learning_rate: 1e-5` could be a slip", 9, "learning-rate-unusual", "A rate")
    told = lines(found("note", "m", 2, "n2", "A note"), rate, found("warning", "`a` is lost", 7))
    assert told == [
        "warn  7  `a` is lost [r]",
        "note  9  `learning_rate: 1e-5` could be a slip [learning-rate-unusual]",
        "1 more note (-v)",
    ]
    long = replace(rate, message=f"`learning_rate: 1e-5` could be a slip: {'so many say ' * 6}")
    assert len(lines(long)) == 2 and "A rate" not in " ".join(lines(long))


def test_a_note_has_its_text_where_that_is_one_line_else_its_title():
    assert lines(found("note", "`a` is old; write `b`", 4, "old", "An old key")) == [
        "note  4  `a` is old; write `b` [old]"
    ]
    because = f"`a` is old, since {'so it is ' * 9}; write `b`"
    assert lines(found("note", because, 4, "old", "An old key")) == ["note  4  `a` is old; write `b` [old]"]
    assert lines(found("note", "`a` is old " * 9, 4, "old", "An old key")) == ["note  4  An old key [old]"]


def test_what_the_headline_says_is_not_said_again():
    unknown = found("warning", "the model is unknown", 1, "unknown-model")
    answer = replace(ANSWER, verdict="unknown", reason=Reason("unknown-model"), headline="No verdict.")
    assert finding_lines(replace(FITS, findings=(unknown,), answer=answer), Style()) == []
    assert len(lines(unknown)) == 1


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ("pads-every-row", replace(ANSWER, padding="Said.")),
        ("packing", replace(ANSWER, padding="Said.")),
        ("pure-bf16-low-rate", replace(ANSWER, masters="Said.")),
        ("learning-rate-unusual", replace(ANSWER, rate="Said.")),
    ],
)
def test_what_a_sentence_after_the_headline_says_is_no_note_as_well(rule: str, answer: Answer):
    note = found("note", "message", 3, rule)
    assert lines(note) != []
    assert finding_lines(replace(FITS, findings=(note,), answer=answer), Style()) == []


def test_next_to_the_steps_of_the_option_what_they_fix_is_named_by_its_rule():
    left = found("warning", "`a` is lost; write `b`", 3, "lost")
    fixed = [found("warning", f"`{key}` is old; write `{key * 2}`", line, "old") for line, key in enumerate("cd", 7)]
    option = Option("A", "same", "same training", tuple(map(step_of, fixed)), recommended=True)
    report = replace(FITS, findings=(left, *fixed), answer=replace(ANSWER, options=(option,)))
    assert finding_lines(report, Style(), alone=True) == [
        "warn  3  `a` is lost; write `b` [lost]",
        "A fixes lines 7, 8 [old]",
    ]
    assert len(finding_lines(report, Style())) == 3


def test_an_error_that_the_answer_tells_in_full_is_not_told_twice():
    cause, remedy = f"`a` is {'lost ' * 12}".strip(), f"write {'it ' * 9}again"
    error = found("error", f"{cause}; {remedy}", 4)
    assert len(lines(error)) > 1
    answer = Answer("unknown", False, None, f"Does not start: {cause} (line 4).", f"Correct line 4 by hand: {remedy}.")
    assert finding_lines(replace(FITS, findings=(error,), answer=answer), Style()) == ["error 4  said above [r]"]
    elsewhere = replace(answer, action="Correct line 9 by hand: remove it.")
    assert len(finding_lines(replace(FITS, findings=(error,), answer=elsewhere), Style())) > 1


def test_findings_of_several_files_stay_apart():
    here = found("warning", "`a` is lost; remove it", 1)
    assert len(merged([here, replace(here, place=Place("zero.json", 1, 1))])) == 2
