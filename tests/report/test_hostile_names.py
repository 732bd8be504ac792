"""File names are somebody else's text: in every format they stay names, on one line."""

import json
import os
import re
from collections import Counter
from dataclasses import replace
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from advisor.documents import Edit
from advisor.engine.finding import Finding, Fix, Place, Report
from advisor.engine.plan_findings import unified
from advisor.errors import InputError
from advisor.report import FORMATS, render_check, render_error

from .samples import DOES_NOT_FIT, FITS, LINT, ROOM, TIGHT

MARKDOWN = MarkdownIt("commonmark").enable("table")
PARTS = [
    *("a", " ", "/", ".yaml", ",", "%", "%0A", "|", "\\", "`", "``", "<img src=x>", "@octocat", "[x](y)", '"', "-- b"),
    *("\n", "\r", "\t", "\x1b[2J", "\x1b]0;t\x07", "\x85", "\u2028", "\u202e", "\x7f", "\x9b", "\x0b", "\x0c", "\x1c"),
    *("\udcff", "é", "\n::error::x", "::add-mask::y", "##[add-mask]z", "\n+++ b", "| x |", "</code>", "&lt;"),
]
NAMES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join)
LEVELS = ("error", "warning", "note")


def renamed(report: Report, name: str) -> Report:
    """The report with all it says of one file said of another."""

    def fix(value: Fix | None) -> Fix | None:
        if value is None:
            return None
        edits = tuple(replace(edit, file=name) for edit in value.edits)
        return replace(value, edits=edits, diff=unified("a: 1\n", "a: 2\n", name) if value.diff else "")

    def finding(value: Finding) -> Finding:
        return replace(value, place=replace(value.place, file=name), fix=fix(value.fix))

    texts = dict.fromkeys([name], next(iter(report.texts.values()), ""))
    return replace(report, file=name, findings=tuple(map(finding, report.findings)), texts=texts)


def many(name: str) -> Report:
    """More findings than GitHub takes as annotations."""
    findings = [Finding("r", level, "m", Place(name, n, 1, n, 2)) for level in LEVELS for n in range(1, 13)]
    edits = (Edit(name, 0, 1, "b"),)
    return replace(FITS, findings=(*findings, Finding("f", "note", "m", Place(name, 1), fix=Fix(True, edits))))


def reports(name: str) -> list[Report]:
    return [*(renamed(report, name) for report in (FITS, TIGHT, DOES_NOT_FIT, LINT, ROOM)), renamed(many(name), name)]


@pytest.mark.slow
@given(NAMES)
@example("\n::stop-commands::zzz\n::error file=README.md,line=1::x.yaml")
@example("c|d`<img src=x>@octocat.yaml")
@example("x\\|<img src=x>")
@example("b\x1b]0;t\x07.yaml")
@settings(max_examples=60, deadline=None)
def test_a_name_steers_no_terminal_and_begins_no_line(name: str):
    for form in FORMATS:
        text = render_check(reports(name), form, width=10_000)
        plain = render_check(reports("n"), form, width=10_000)
        assert text.count("\n") == plain.count("\n"), form
        assert all(mark.isprintable() or mark == "\n" for mark in text.replace("\u00a0", "")), form
        text.encode()
    shown = render_error(InputError("m", name, 3, 4, "r"))
    assert shown.count("\n") == 2 and all(mark.isprintable() or mark == "\n" for mark in shown)


@given(NAMES)
@settings(max_examples=60, deadline=None)
def test_in_the_log_of_github_a_name_is_no_command(name: str):
    for line in render_check(reports(name), "github").split("\n"):
        command = re.match(r"::(error|warning|notice) title=advisor \([\w -]+\),file=([^:,\n]*)(,\w+=\d+)+::", line)
        if command is None:
            assert not line.lstrip().startswith("::") and "##[" not in line and "::" not in line


@given(NAMES)
@settings(max_examples=60, deadline=None)
def test_in_markdown_a_name_opens_nothing(name: str):
    text = render_check(reports(name), "markdown")
    html = MARKDOWN.render(text)
    assert tags(html) == tags(MARKDOWN.render(render_check(reports("n"), "markdown")))
    assert "@octocat" not in re.sub(r"<code[^>]*>[^<]*</code>", "", html)


def tags(html: str) -> Counter[str]:
    """How many of each tag, code aside: a name is ``code`` in one of two ways."""
    return Counter(tag for tag in re.findall(r"<(\w+)", html))


@given(NAMES)
@settings(max_examples=60, deadline=None)
def test_programs_read_the_name_as_it_is(name: str):
    found = reports(name)
    assert {run["file"] for run in json.loads(render_check(found, "json"))["runs"]} == {name}
    (log,) = json.loads(render_check(found, "sarif"))["runs"]
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in log["results"]}
    assert {decoded(uri) for uri in uris} <= known(name)
    paths = {issue["location"]["path"] for issue in json.loads(render_check(found, "gitlab"))}
    assert paths <= known(name)


def decoded(uri: str) -> str:
    return unquote_to_bytes(uri).decode(errors="surrogateescape")


def known(name: str) -> set[str]:
    return {name, os.path.normpath(name), os.path.relpath(name)}


@pytest.mark.parametrize(
    ("name", "header"),
    [("a b.yaml", "+++ a b.yaml"), ("a\nb", '+++ "a\\012b"'), ('"', '+++ "\\""'), ("\udcff", '+++ "\\377"')],
)
def test_a_diff_quotes_a_name_as_git_does(name: str, header: str):
    assert unified("a\n", "b\n", name).splitlines()[1] == header


@pytest.mark.parametrize(
    "message",
    [
        "`a``<img src=x>`",
        "``<img src=x>`",
        "\\`<img src=x>`",
        "`a`` b ``<img src=x>",
        "x ` <img src=x>",
        "![x](http://y)",
        "`" * 9 + "<img src=x>" + "`" * 9,
    ],
)
def test_a_message_opens_nothing_in_markdown(message: str):
    finding = Finding("a", "error", message, Place("a.yaml"))
    text = render_check([replace(LINT, findings=(finding,))], "markdown")
    html = MARKDOWN.render(text)
    assert "<img" not in html and "<a " not in html
