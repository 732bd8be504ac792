"""axolotl's own schema as a judge: JSON lines ``{"id", "config"}`` in, ``{"id", "ok", "error", ...}`` out.

``folder`` in a question is the working directory, and ``n_gpu`` the number of GPUs, that axolotl is to see. Runs beside
an installed axolotl, without a GPU and without the network. Packages that only a plugin needs, and that are
not installed, are environment: they are stood in for while the plugin is imported, so that its keys are still judged;
a plugin that cannot be imported even so is left out and named in ``without``.
"""

import contextlib
import copy
import importlib
import importlib.util
import json
import logging
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", AXOLOTL_DO_NOT_TRACK="1", CUDA_VISIBLE_DEVICES="")
CAPABILITIES = {"bf16": True, "fp8": True, "tf32": True, "compute_capability": "sm_89"}
ENVIRONMENT = {"torch_version": "2.13.0"}
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
    from axolotl.integrations.base import PluginManager
    from axolotl.utils.config import prepare_plugins, validate_config
    from axolotl.utils.dict import DictDefault

    config = copy.deepcopy(asked["config"])
    # The manager is a singleton: an earlier config's plugins would add their keys to this one's schema.
    PluginManager.get_instance().plugins.clear()
    without: list[str] = []
    stood_in: set[str] = set()
    for plugin in list(config.get("plugins") or []):
        known, missing = importable(plugin)
        stood_in |= missing
        if not known:
            config["plugins"].remove(plugin)
            without.append(plugin)
    if "plugins" in config and not config["plugins"]:
        del config["plugins"]
    answer = {"id": asked["id"], "without": without, "stood_in": sorted(stood_in)}
    try:
        wrapped = DictDefault(config)
        prepare_plugins(wrapped)
        capabilities = CAPABILITIES | {"n_gpu": asked.get("n_gpu", 1)}
        validate_config(wrapped, capabilities=capabilities, env_capabilities=ENVIRONMENT)
    except Exception as error:
        return answer | {"ok": False, "error": f"{type(error).__name__}: {' '.join(words(error).split())}"}
    return answer | {"ok": True, "error": ""}


def words(error: Exception) -> str:
    """What an error says, without the values that pydantic repeats."""
    listed = getattr(error, "errors", None)
    if listed is None:
        return str(error)
    return "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}".strip() for one in listed())


def main() -> None:
    """Judge standard input, line by line, as it comes; what axolotl prints goes to standard error."""
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        import axolotl.utils.config  # noqa: F401  (before the stand-ins, so that it sees what is really there)

        logging.disable(logging.CRITICAL)
        for name in NEEDED_BY_VALIDATORS:
            if importlib.util.find_spec(name) is None:
                sys.modules[name] = StandIn(name)
        for line in sys.stdin:
            asked = json.loads(line)
            os.chdir(asked.get("folder") or ".")
            out.write(json.dumps(judged(asked)) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
