"""One row for each family, found where the index says, and no model type named anywhere else."""

import ast
from pathlib import Path

import pytest

from advisor.models import family
from advisor.models.config import class_defaults
from advisor.models.decoder import Decoder
from advisor.models.multimodal import Multimodal

from .tables import tables

ROOT = Path(__file__).parents[2]
ALLOWED = {
    ("rules/lint/not_for_this_model.py", "falcon"): "axolotl looks for it in the model's name, not in its config",
    ("rules/lint/not_for_this_model.py", "mpt"): "likewise",
}
"""Words of code outside of ``advisor/models/`` that happen to be model types, and why they are not meant as such."""


@pytest.mark.parametrize("module", tables())
def test_every_model_type_is_looked_up_where_it_stands(module: str) -> None:
    assert {model_type: family.home(model_type) for model_type in tables()[module]} == dict.fromkeys(
        tables()[module], module
    ), "run `make defaults`"


def test_no_model_type_is_looked_up_that_stands_nowhere() -> None:
    assert set(family.homes()) == {one for rows in tables().values() for one in rows}, "run `make defaults`"


def test_no_model_type_stands_in_two_tables() -> None:
    types = [model_type for rows in tables().values() for model_type in rows]

    assert len(types) == len(set(types))


def test_decoders_of_multimodal_models_are_known() -> None:
    layouts = [row.layout for row in family.families().values()]
    decoders = [family.family_of(layout.text) for layout in layouts if isinstance(layout, Multimodal)]

    assert decoders
    assert all(row is not None and isinstance(row.layout, Decoder) for row in decoders)


def test_a_multimodal_model_computes_as_its_decoder_does() -> None:
    for model_type, row in family.families().items():
        if isinstance(row.layout, Multimodal):
            assert family.variant_of(model_type) is family.variant_of(row.layout.text)


def test_kernels_are_known_to_stop_at_plain_layer_norms() -> None:
    """Under autocast they hand on fp32: whoever adds such a family meets it here."""
    rows = {one: row for one, row in family.families().items() if isinstance(row.layout, Decoder)}
    plain = {one for one, row in rows.items() if is_plain_layer_norm(row.layout) and row.lora_kernels != "unpatchable"}

    assert plain == {one for one, row in rows.items() if row.lora_kernels == "need half-precision norms"}


def is_plain_layer_norm(layout: object) -> bool:
    return isinstance(layout, Decoder) and layout.norm == "layer" and layout.variant.norm is None


def words(tree: ast.AST) -> set[str]:
    """The words of all strings of code but those of examples, docstrings and messages."""
    skipped = {id(inner) for node in ast.walk(tree) if is_prose(node) for inner in ast.walk(node)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in skipped)
    return {word for node in strings if isinstance(node.value, str) for word in listed(node.value)}


def is_prose(node: ast.AST) -> bool:
    """Whether what is below is text for people, or a config for a test."""
    example = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Example"
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return example or docstring or isinstance(node, ast.JoinedStr)


def listed(text: str) -> list[str]:
    """A string that is one word, or a list of such."""
    found = text.split()
    return found if all(word.isidentifier() and word.islower() for word in found) else []


def named_outside_of_models() -> set[tuple[str, str]]:
    files = [*ROOT.glob("advisor/**/*.py"), *ROOT.glob("rules/**/*.py"), *ROOT.glob("plugins/**/*.py")]
    outside = [file for file in files if (ROOT / "advisor" / "models") not in file.parents]
    types = set(class_defaults())
    return {
        (file.relative_to(ROOT).as_posix(), word)
        for file in outside
        for word in words(ast.parse(file.read_text(encoding="utf-8"))) & types
    }


def test_no_model_type_is_named_outside_of_the_models() -> None:
    assert named_outside_of_models() == set(ALLOWED), "a fact about a family is a field of its row (advisor/models/)"
