from dataclasses import replace

from advisor.engine.finding import Finding, Fix, Place, Report
from advisor.report import render_check

from .answers import ANSWERED, HOPELESS, ONLY_OTHER, WELL
from .samples import DOES_NOT_FIT, FITS, LINT, ROOM, ZERO_2, gib


def said(*reports: Report, width: int = 80) -> list[str]:
    return render_check(reports, "pre-commit", width=width).splitlines()


def test_nothing_is_said_where_all_is_well():
    assert said(FITS, WELL, ROOM) == []


def test_a_file_that_does_not_fit_has_its_verdict_and_what_to_do():
    assert said(ANSWERED, replace(WELL, file="./b.yaml"), replace(WELL, file="c.yaml")) == [
        "llama.yaml  does not fit  95.0 of 78.2 GiB on 8x A100-80GB SXM",
        "            1 edit, same training: 72.1 GiB",
        "1 of 3 configs does not fit. To write the edits: advisor check --fix FILE",
    ]


def test_what_changes_the_training_is_said():
    other = replace(ONLY_OTHER, findings=ONLY_OTHER.findings[:1])
    assert other.answer is not None
    recommended = replace(other.answer.options[1], recommended=True)
    other = replace(other, answer=replace(other.answer, options=(other.answer.options[0], recommended)))
    assert said(other, width=120)[1:] == [
        "            1 edit, changes training: 72.1 GiB",
        "1 of 1 config does not fit. To write the edits: advisor check --fix --unsafe-fixes FILE",
    ]


def test_where_nothing_helps_it_says_so():
    hopeless = replace(HOPELESS, findings=HOPELESS.findings[:1])
    assert said(hopeless)[1:] == ["            No edits make it fit.", "1 of 1 config does not fit."]


def test_two_findings_of_a_file_are_said_and_the_rest_counted():
    findings = [
        Finding(f"w{n}", "warning", f"`k{n}` does nothing; remove it", Place("./a.yaml", n, 1)) for n in (1, 2, 3)
    ]
    note = Finding("n", "note", "m", Place("./a.yaml", 9, 1), title="A note")
    assert said(replace(WELL, file="./a.yaml", findings=(*findings, note)))[:3] == [
        "a.yaml:1  warn  `k1` does nothing; remove it [w1]",
        "a.yaml:2  warn  `k2` does nothing; remove it [w2]",
        "a.yaml    2 more: 1 warning, 1 note",
    ]


def test_an_error_that_is_not_about_memory_stops_the_run():
    first, *_, last = said(LINT)
    assert first.split() == ["llama.yaml", "does", "not", "start"]
    assert last == "1 of 1 config does not start. To write the edits: advisor check --fix FILE"


def test_a_verdict_that_the_file_ignores_is_not_said():
    assert said(replace(ANSWERED, findings=())) == []


def test_what_is_fixed_is_said_last_with_what_to_do():
    step = replace(ZERO_2, fix=replace(ZERO_2.fix or Fix(True, ()), needed=(gib(95), gib(72.1))))
    fixed = replace(WELL, file="./llama.yaml", fixed=1, applied=(step,))
    assert said(WELL, fixed) == [
        "fixed llama.yaml  1 edit, same training: 95.0 -> 72.1 GiB",
        "Look at it with git diff, then git add and commit again.",
    ]


def test_lines_keep_to_the_width():
    assert all(len(line) <= 80 for line in said(LINT, ANSWERED, DOES_NOT_FIT))


def test_a_long_name_shifts_its_line_alone():
    long = replace(ANSWERED, file="configs/" + "n" * 50 + ".yaml")
    shown = said(ANSWERED, long, width=200)
    assert shown[0].startswith("llama.yaml  does not fit") and "n.yaml  does not fit  95.0" in shown[2]
