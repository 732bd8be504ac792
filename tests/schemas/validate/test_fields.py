"""What a library says names the field that it speaks of."""

from typing import Any

import pytest

from advisor.schemas.validate.rules import with_field


@pytest.mark.parametrize(
    ("at", "path", "said"),
    [
        (["learning_rate"], "", "learning_rate: Field required"),
        (["lr_groups", 0, "lr"], "lr_groups.0", "lr: Field required"),
        (["datasets", 0, "SFTDataset", "path"], "datasets.0.path", "Field required"),
        (["bf16", "bool"], "bf16", "Field required"),
        ([], "", "Field required"),
    ],
)
def test_a_field_that_the_path_does_not_name_is_named_in_words(at: list[Any], path: str, said: str):
    assert with_field({"at": at, "message": "Field required"}, path) == said
