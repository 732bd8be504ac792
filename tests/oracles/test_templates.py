"""axolotl's templates end an answer as the table of chats says."""

import importlib.util
import json
from pathlib import Path

import pytest

from advisor.learning.chat import CHAT

pytestmark = pytest.mark.oracle
ENDS: dict[str, str] = json.loads(CHAT.read_text(encoding="utf-8"))["ends"]


def folder() -> Path:
    """Where axolotl has them."""
    package = importlib.util.find_spec("axolotl")
    if package is None or not package.submodule_search_locations:
        pytest.skip("axolotl is not installed")
    return Path(package.submodule_search_locations[0]) / "utils" / "chat_templates" / "templates"


@pytest.mark.parametrize("name", ENDS)
def test_a_template_spells_out_the_token_that_ends_an_answer(name: str):
    text = (folder() / f"{name}.jinja").read_text(encoding="utf-8")
    assert ENDS[name] in text
