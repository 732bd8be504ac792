"""axolotl's own schema, asked in a process of its own.

A question is ``{"config", "folder", "capabilities", "torch"}``: the values of a YAML, the working directory, and the
GPUs as axolotl/cli/config.py:361-384@0.19.0 probes them. An answer is ``{"problems", "left_out", "trouble"}``: what
it rejects, the plugins that it went on without, and
why it could not judge.
"""

import copy
import importlib
import os
from typing import Any

from advisor.schemas.validate.server import Values, problems, serve


def answer(asked: Values) -> Values:
    """What axolotl says of one config."""
    base: Any = importlib.import_module("axolotl.integrations.base")
    config: Any = importlib.import_module("axolotl.utils.config")
    wrapped: Any = importlib.import_module("axolotl.utils.dict").DictDefault(copy.deepcopy(asked["config"]))
    # The manager is a singleton: an earlier config's plugins would add their keys to this one's schema.
    registered = base.PluginManager.get_instance().plugins
    registered.clear()
    environment = {"torch_version": asked["torch"]}
    found: Values = {"problems": [], "left_out": [], "trouble": ""}
    os.chdir(asked["folder"])
    try:
        config.prepare_plugins(wrapped)
        # axolotl logs a plugin that cannot be imported, and goes on without it: integrations/base.py:402-425@0.19.0.
        found["left_out"] = [name for name in wrapped.get("plugins") or () if name not in registered]
        config.validate_config(wrapped, capabilities=asked["capabilities"], env_capabilities=environment)
    except ImportError as error:
        found["trouble"] = str(error)
    except Exception as error:
        found["problems"] = problems(error)
    return found


def main() -> None:
    """Serve."""
    serve(answer, ["axolotl.utils.config"], AXOLOTL_DO_NOT_TRACK="1")
