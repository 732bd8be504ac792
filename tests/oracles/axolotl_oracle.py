"""axolotl's own schema as a judge: JSON lines ``{"id", "config"}`` in, ``{"id", "ok", "error", ...}`` out.

``folder`` in a question is the working directory, ``n_gpu`` the number of GPUs, ``capabilities`` what they can do, and
``torch`` its version.
Runs with an installed axolotl, without a GPU and without the network. Packages that only a plugin needs, and that are
not installed, are environment: they are stood in for while the plugin is imported, so that its keys are still judged;
a plugin that cannot be imported even so is left out and named in ``without``.
"""

import importlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from advisor.schemas.validate.ask_axolotl import answer
from advisor.schemas.validate.server import serve

os.environ.update(HF_HUB_OFFLINE="1", AXOLOTL_DO_NOT_TRACK="1", CUDA_VISIBLE_DEVICES="")
CAPABILITIES = {"bf16": True, "fp8": True, "tf32": True, "compute_capability": "sm_89"}
TORCH = "2.13.0"
# Asked for by validators at the moment that a config needs them; nothing of them is called.
NEEDED_BY_VALIDATORS = ("ring_flash_attn", "mistral_common")
MOST_STAND_INS = 30


class StandIn(ModuleType):
    """A package that is not installed: every public name in it is an empty class."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def importable(plugin: str) -> tuple[bool, set[str]]:
    """Whether a plugin can be imported, and which packages had to be stood in for."""
    stood_in: set[str] = set()
    module, _, name = plugin.rpartition(".")
    try:
        for _ in range(MOST_STAND_INS):
            try:
                getattr(importlib.import_module(module), name)
                return True, stood_in
            except ModuleNotFoundError as error:
                missing = error.name or ""
                if not missing or missing in sys.modules or missing.split(".")[0] == module.split(".")[0]:
                    return False, stood_in
                sys.modules[missing] = StandIn(missing)
                stood_in.add(missing)
        return False, stood_in
    except Exception:
        return False, stood_in
    finally:
        for missing in stood_in:
            sys.modules.pop(missing, None)


def judged(asked: dict[str, Any]) -> dict[str, Any]:
    """What axolotl says of one config."""
    config = dict(asked["config"])
    without: list[str] = []
    stood_in: set[str] = set()
    for plugin in config.get("plugins") or ():
        known, missing = importable(plugin)
        stood_in |= missing
        if not known:
            without.append(plugin)
    if "plugins" in config:
        config["plugins"] = [plugin for plugin in config["plugins"] or () if plugin not in without]
    capabilities = CAPABILITIES | {"n_gpu": asked.get("n_gpu", 1)} | asked.get("capabilities", {})
    folder, torch = asked.get("folder") or ".", asked.get("torch") or TORCH
    said = answer({"config": config, "folder": folder, "capabilities": capabilities, "torch": torch})
    about = {"id": asked["id"], "without": without, "stood_in": sorted(stood_in)}
    error = said["trouble"] or "; ".join(words(problem) for problem in said["problems"])
    return about | {"ok": not error, "error": " ".join(error.split())}


def words(problem: dict[str, Any]) -> str:
    """What one problem says, with the place that pydantic gives it."""
    return f"{'.'.join(map(str, problem['at']))} {problem['message']}".strip()


def main() -> None:
    """Judge standard input, line by line, as it comes."""
    import axolotl.utils.config  # noqa: F401  (before the stand-ins, so that it sees what is really there)

    for name in NEEDED_BY_VALIDATORS:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = StandIn(name)
    serve(judged, ())


if __name__ == "__main__":
    main()
