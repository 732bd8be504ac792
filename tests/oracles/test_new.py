"""Every config that `new` writes is accepted by axolotl's own validator, and no key of it is lost."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ..new.matrix import MODELS, Case, all_cases, few_cases, fitting
from .asking import Axolotl

pytestmark = pytest.mark.oracle

OLD = {"bf16": False, "fp8": False, "tf32": False, "compute_capability": "sm_75"}
"""What a T4 can do."""
OF_PLUGINS = ("plugins", "liger_", "cut_cross_entropy")
"""Keys that only an import of the plugins makes known."""


def written(case: Case, folder: Path) -> dict[str, dict[str, Any]]:
    """The values of each config of a case; JSONs are put where they are named."""
    found: dict[str, dict[str, Any]] = {}
    for way in fitting(case):
        (_, text), *others = way.files.items()
        values = yaml.safe_load(text)
        for _, content in others:
            values["deepspeed"] = f"{way.training}.json"
            (folder / values["deepspeed"]).write_text(content)
        found[f"{' '.join(case)} {way.training}"] = values
    return found


@pytest.mark.parametrize("model", MODELS)
def test_axolotl_accepts_what_is_written(axolotl: Axolotl, tmp_path: Path, model: str):
    for case in (case for case in all_cases() if case[0] == model):
        can = OLD if "t4" in case[1] else {}
        for name, values in written(case, tmp_path).items():
            said = axolotl.says(values, tmp_path, int(case[1].partition("x")[0]), can)
            assert said.ok, f"{name}: {said.error}"


@pytest.mark.parametrize("case", [case for case in few_cases() if "t4" not in case[1]], ids=" ".join)
def test_axolotl_keeps_every_key(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config: Any = pytest.importorskip("axolotl.utils.config")
    dictionary: Any = pytest.importorskip("axolotl.utils.dict")
    monkeypatch.chdir(tmp_path)
    can = {"bf16": True, "fp8": True, "tf32": True, "compute_capability": "sm_90", "n_gpu": int(case[1][0])}
    for name, values in written(case, tmp_path).items():
        own = {key: value for key, value in values.items() if not key.startswith(OF_PLUGINS)}
        asked = dictionary.DictDefault(own)
        kept = config.validate_config(asked, capabilities=can, env_capabilities={"torch_version": "2.13.0"})
        assert own.keys() <= kept.keys(), name
        for before, after in zip(own["datasets"], kept["datasets"], strict=True):
            assert before.items() <= dict(after).items(), name
