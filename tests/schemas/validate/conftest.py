"""Stand-ins for axolotl, transformers and DeepSpeed, installed with the advisor for one test."""

import os
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

AXOLOTL = {
    "axolotl/__init__.py": "",
    "axolotl/integrations/__init__.py": "",
    "axolotl/integrations/base.py": """
        class PluginManager:
            plugins = {}

            @classmethod
            def get_instance(cls):
                return cls
    """,
    "axolotl/utils/__init__.py": "",
    "axolotl/utils/dict.py": "DictDefault = dict",
    "axolotl/utils/config.py": """
        import os, sys, time

        class Invalid(ValueError):
            title = "AxolotlInputConfig"

            def errors(self):
                return self.args[0]

        def prepare_plugins(config):
            from axolotl.integrations.base import PluginManager
            PluginManager.plugins |= {name: 1 for name in config.get("plugins") or () if name.startswith("good.")}

        def validate_config(config, capabilities, env_capabilities):
            print("chatter on standard output")
            if config.get("seed") == 1:
                raise Invalid([{"loc": ("sequence_len",), "msg": "Value error, too long"}])
            if config.get("seed") == 2:
                raise ValueError("cfg.micro_batch_size is too large")
            if config.get("seed") == 3:
                raise ValueError("no, thank you")
            if config.get("seed") == 4:
                sys.stderr.write("a last word")
                os._exit(3)
            if config.get("seed") == 5:
                raise ImportError("ring_flash_attn is not installed")
            if config.get("seed") == 6:
                raise ValueError(f"on {capabilities['n_gpu']} GPUs of {capabilities['compute_capability']}")
            if config.get("seed") == 7:
                time.sleep(60)
    """,
}
DEEPSPEED = {
    "deepspeed/__init__.py": "",
    "deepspeed/runtime/__init__.py": "",
    "deepspeed/runtime/config.py": """
        class dist:
            get_rank = get_world_size = None

        class Forbidden(ValueError):
            title = "DeepSpeedZeroConfig"

            def errors(self):
                return [{"loc": (self.args[0],), "msg": "Extra inputs are not permitted"}]

        def DeepSpeedConfig(values):
            for key in values.get("zero_optimization", {}):
                if key != "stage":
                    raise Forbidden(key)
    """,
    "transformers/__init__.py": "",
    "transformers/integrations/__init__.py": "",
    "transformers/integrations/deepspeed.py": """
        class HfTrainerDeepSpeedConfig:
            def __init__(self, values):
                self.config = values

            def trainer_config_process(self, args):
                self.world = args.world_size * args.per_device_train_batch_size * args.gradient_accumulation_steps

            def trainer_config_finalize(self, args, model, steps):
                given = self.config.get("train_batch_size", self.world)
                if given != self.world:
                    lines = [f"- ds train_batch_size={given} vs hf train_batch_size (calculated)={self.world}"]
                    raise ValueError("Please correct:\\n" + "\\n".join(lines))
    """,
}


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both libraries, for this process and those that it starts."""
    folder = tmp_path / "packages"
    written(folder, {**AXOLOTL, **DEEPSPEED})
    for name in ("axolotl", "deepspeed"):
        written(folder, {f"{name}-9.9.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n"})
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])))
    return folder


def written(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
