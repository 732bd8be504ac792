"""The tables of families agree with the table of where they are."""

from importlib import import_module

import pytest

from advisor.models import count
from advisor.models.config import class_defaults

MODULES = ("dense", "sparse", "classic", "hybrid", "gemma", "deepseek", "llama")


def table(module: str) -> set[str]:
    loaded = import_module(f"advisor.models.{module}")
    return set(loaded.MULTIMODAL if module == "multimodal" else loaded.FAMILIES)


@pytest.mark.parametrize("module", [*MODULES, "multimodal"])
def test_every_model_type_is_looked_up_where_it_stands(module: str) -> None:
    assert {count.home(model_type) for model_type in table(module)} == {module}


def test_no_model_type_stands_in_two_tables() -> None:
    types = [model_type for module in (*MODULES, "multimodal") for model_type in table(module)]

    assert len(types) == len(set(types))


def test_decoders_of_multimodal_models_are_known() -> None:
    from advisor.models.multimodal import MULTIMODAL

    assert all(count.family_of(row.text) is not None for row in MULTIMODAL.values())


def test_class_defaults_are_known_for_every_model_type() -> None:
    types = {model_type for module in (*MODULES, "multimodal") for model_type in table(module)}

    assert types <= set(class_defaults())
