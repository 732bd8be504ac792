"""What axolotl's own tests expect to be rejected is an error here too."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import parse
from advisor.engine.check import check_run
from advisor.engine.options import Options
from advisor.opening import Context, open_run

from ..corpus.configs import folder
from .asking import Axolotl

pytestmark = pytest.mark.oracle

GPUS = "2x h100-80gb"
OURS = {
    "no_conflict_save_strategy_752": "schedule-keys-exclude-each-other",
    "no_conflict_eval_strategy_828": "schedule-keys-exclude-each-other",
    "no_conflict_eval_strategy_903": "schedule-keys-exclude-each-other",
    "qlora_325": "qlora-without-4bit",
    "falcon_fsdp_477": "not-for-this-model",
    "mpt_gradient_checkpointing_519": "not-for-this-model",
    "load_in_x_bit_without_adapter_1043": "quantization-without-adapter",
    "unfrozen_parameters_w_peft_layers_to_transform_1122": "unfrozen-with-peft-layers",
    "torch_compile_options_rejects_disallowed_key_1320": "torch-compile-options",
    "torch_compile_options_rejects_when_torch_compile_false_1352": "torch-compile-options",
    "llama_add_tokens_adapter_1524": "tokens-without-saved-embeddings",
    "phi_add_tokens_adapter_1571": "tokens-without-saved-embeddings",
    "muon_deepspeed_332": "muon-with-deepspeed",
    "datasets_min_length_119": "wrong-type",
    "pretrain_dataset_min_length_151": "wrong-type",
    "hf_use_auth_token_429": "companion-key-missing",
    "eval_table_size_conflict_eval_packing_971": "keys-exclude-each-other",
    "flash_optimum_583": "keys-exclude-each-other",
}
# The test that the config was taken from changes it before it expects the rejection.
ACCEPTED_AS_IT_STANDS = {"qlora_4bit_validation_188"}
# Raised next to the model's config.json, after the schema: axolotl/loaders/utils.py:123-137@0.19.0.
AFTER_THE_SCHEMA = {"llama_add_tokens_adapter_1524", "phi_add_tokens_adapter_1571"}


def cases() -> dict[str, dict[str, Any]]:
    """The rejected configs, by the name and line of their test."""
    corpus = folder()
    if corpus is None:
        return {}
    listed = json.loads((corpus / "corpus" / "axolotl" / "rejected_by_axolotl.json").read_text(encoding="utf-8"))
    return {re.sub(r"^.*__test_(.*)\.yaml$", r"\1", case["file"]): case["config"] for case in listed}


CASES = cases()
needs_corpus = pytest.mark.skipif(not CASES, reason="ADVISOR_CORPUS is not set")


@needs_corpus
def test_every_case_has_its_rule():
    assert CASES.keys() == OURS.keys() | ACCEPTED_AS_IT_STANDS


@needs_corpus
def test_axolotl_still_rejects_them(axolotl: Axolotl, tmp_path: Path):
    accepted = {name for name, config in CASES.items() if axolotl.says(config, tmp_path).ok}
    assert accepted == ACCEPTED_AS_IT_STANDS | AFTER_THE_SCHEMA


@needs_corpus
@pytest.mark.parametrize("name", OURS)
def test_what_axolotl_rejects_is_an_error_here(name: str, tmp_path: Path):
    text = yaml.safe_dump(CASES[name], sort_keys=False)
    opened = open_run(parse(text.encode(), "config.yaml", "yaml"), Context(working_directory=str(tmp_path), gpus=GPUS))
    found = check_run(opened, Options(speed=False)).findings
    assert OURS[name] in {finding.rule for finding in found if finding.level == "error"}
