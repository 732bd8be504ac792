"""Tables and sentences in the columns of a terminal."""

import pytest

from advisor.accuracy.columns import WIDEST, Row, table, wrapped

ROWS = (
    Row("name", f"{'runs':>6}{'error':>8}", "  verdict"),
    Row("short", f"{12:>6}{'1.0%':>8}", "  fits"),
    Row("a-name-that-has-no-room-next-to-its-figures", f"{3:>6}{'2.5%':>8}", "  tight"),
    Row("without figures, but with a name of many words"),
)


def test_figures_stand_in_columns_where_there_is_room():
    lines = list(table(ROWS, 80))
    assert len(lines) == len(ROWS)
    assert {line.index(word) + len(word) for line, word in zip(lines, ("error", "1.0%", "2.5%"), strict=False)} == {71}
    assert max(map(len, lines)) <= 80


def test_figures_without_room_stand_below_their_name_in_the_same_columns():
    head, short, name, figures, *rest = table(ROWS, 44)
    assert name == ROWS[2].name and figures.split() == ["3", "2.5%", "tight"]
    assert {line.index(word) for line, word in ((head, "verdict"), (short, "fits"), (figures, "tight"))} == {37}
    assert " ".join(" ".join(rest).split()) == ROWS[3].name


def test_words_without_room_stand_below_the_figures():
    lines = list(table([Row("one", f"{1:>30}", "  words that follow")], 40))
    assert lines == ["one" + f"{1:>37}", "    words that follow"]


@pytest.mark.parametrize("columns", [60, 80, 120, 300])
def test_no_line_is_wider_than_the_columns(columns: int):
    assert max(map(len, table(ROWS, columns))) <= min(columns, WIDEST)


def test_a_path_breaks_after_a_slash_and_no_word_elsewhere():
    lines = wrapped("see examples/a-folder-of-configs/a-config-with-a-long-name.yaml there", 40)
    assert lines == ["see examples/a-folder-of-configs/", "    a-config-with-a-long-name.yaml there"]
