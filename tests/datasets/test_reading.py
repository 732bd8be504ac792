"""Files of rows: which kinds, which lines, how many."""

import csv
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from advisor.datasets import around, rows_in
from advisor.errors import InputError


def rows(folder: Path, name: str, content: str | bytes) -> Any:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return rows_in(str(folder / name))


def test_lines_are_those_of_the_file(tmp_path: Path):
    assert rows(tmp_path, "a.jsonl", '\n{"a": 1}\n\n\n{"a": 2}\n').lines == (2, 5)
    assert rows(tmp_path, "b.json", '[\n {"a": 1},\n\n {"a":\n 2}, {"a": "]"}]').lines == (2, 4, 5)
    assert rows(tmp_path, "c.csv", 'a,b\n"x\ny",1\n\nz,2\n').lines == (2, 5)
    assert rows(tmp_path, "d.txt", "one\n\nthree\n").lines == (1, 2, 3)


def test_all_rows_are_counted_and_the_first_are_looked_at(tmp_path: Path):
    many = rows(tmp_path, "a.jsonl", '{"a": 1}\n\n' * 1000 + "no JSON\n")
    assert (many.count, len(many.first), many.whole) == (1001, 200, False)
    assert rows(tmp_path, "b.json", json.dumps([{"a": 1}] * 300)).count == 300
    assert rows(tmp_path, "c.csv", "a\n" + '"x\ny"\n' * 300).count == 300


def test_csv_is_read_as_pandas_reads_it(tmp_path: Path):
    text = '\ufeffa,b\r\n"say ""hi""\n, then","NA"\r\n" x",\r\n'
    found = rows(tmp_path, "a.csv", text).first
    assert found == ({"a": 'say "hi"\n, then', "b": None}, {"a": " x", "b": None})
    assert csv.field_size_limit() <= sys.maxsize
    long = "x" * 300_000
    assert rows(tmp_path, "b.csv", f"a\n{long}\n").first == ({"a": long},)


def test_gzip_is_unpacked_whatever_its_name(tmp_path: Path):
    packed = gzip.compress(b'{"a": 1}\n')
    assert rows(tmp_path, "a.jsonl.gz", packed).first == rows(tmp_path, "b.jsonl", packed).first == ({"a": 1},)
    with pytest.raises(InputError, match="cannot be read"):
        rows(tmp_path, "c.jsonl.gz", packed[:-9])


@pytest.mark.parametrize(
    ("name", "content", "line", "said"),
    [
        ("a.csv", "a,b\n1,2\n1,2,3\n", 3, "3 cells under 2 columns"),
        ("a.csv", "a\tb\n1\t2\n", 1, "commas alone"),
        ("a.tsv", "a\tb\n", 0, "not read here"),
        ("a.json", '{\n "data": []\n}', 1, "one JSON object over several lines"),
        ("a.json", '[{"a": 1}, 2]', 1, "a bare value"),
        ("a.json", '[{"a": 1},\n', 2, "no JSON"),
        ("a.jsonl", '{"a": 1}\n{"a"\n', 2, "no JSON object"),
        ("a.csv", "a\n", 0, "no rows"),
        ("a.jsonl", "\ufeff \n", 0, "no rows"),
    ],
)
def test_what_is_no_row_is_said_with_its_line(tmp_path: Path, name: str, content: str, line: int, said: str):
    with pytest.raises(InputError, match=said) as caught:
        rows(tmp_path, name, content)
    assert caught.value.line == line and caught.value.remedy


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match="needs pyarrow") as caught:
        rows(tmp_path, "a.parquet", b"PAR1")
    assert "axolotl-advisor[parquet]" in caught.value.remedy


def test_parquet_is_read_by_pyarrow(tmp_path: Path):
    arrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.Table.from_pylist([{"messages": [{"role": "user", "content": "a"}]}] * 300), path)
    found = rows_in(str(path))
    assert (found.count, len(found.first)) == (300, 200) and found.first[0]["messages"][0]["role"] == "user"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="no Parquet"):
        rows_in(str(path))


def test_a_length_has_its_doubt():
    assert (around(100).low, around(100).high) == (70.0, 130.0) and str(around(1000)) == "700 to 1,300"
