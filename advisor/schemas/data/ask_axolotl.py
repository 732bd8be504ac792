"""axolotl's own reading of rows, asked in a process of its own: its strategy, its template, its labels.

A question is that of `advisor.schemas.validate.ask_axolotl` with ``rows`` and the number of the ``entry``. An answer
is ``{"rows": [[tokens, trained], ...]}``, or ``{"trouble"}``. No code of a model's repository runs, and no plugin.
"""

import importlib
import os
from typing import Any

from advisor.schemas.validate.server import Values, serve

NOT_TRAINED = -100
RUNS_CODE = ("plugins", "trust_remote_code")


def answer(asked: Values) -> Values:
    """Tokens of each row, and how many of them have a label."""
    os.chdir(asked["folder"])
    try:
        return {"rows": counted(asked)}
    except (Exception, SystemExit) as error:
        return {"trouble": " ".join(f"{type(error).__name__}: {error}".split())}


def counted(asked: Values) -> list[tuple[int, int]]:
    """By axolotl/utils/data/sft.py:388-419@0.19.0, without its files."""
    values = {key: value for key, value in asked["config"].items() if key not in RUNS_CODE}
    config: Any = importlib.import_module("axolotl.utils.config")
    wrapped: Any = importlib.import_module("axolotl.utils.dict").DictDefault(values)
    environment = {"torch_version": asked["torch"]}
    cfg = config.validate_config(wrapped, capabilities=asked["capabilities"], env_capabilities=environment)
    cfg.base_model_config = cfg.base_model_config or cfg.base_model
    cfg.tokenizer_config = cfg.tokenizer_config or cfg.base_model_config
    cfg.dataset_num_proc = 1
    entry: Any = cfg.datasets[asked["entry"]]
    tokenizer: Any = importlib.import_module("axolotl.loaders.tokenizer").load_tokenizer(cfg)
    sft: Any = importlib.import_module("axolotl.utils.data.sft")
    rows: Any = importlib.import_module("datasets").Dataset.from_list(asked["rows"])
    base, style = sft._parse_dataset_type(entry.type)
    read, _ = sft.get_dataset_wrapper(
        dataset_config=entry,
        tokenizer=tokenizer,
        cfg=cfg,
        dataset_base_type=base,
        dataset=rows,
        dataset_prompt_style=style,
    )
    return [(len(row["input_ids"]), sum(label != NOT_TRAINED for label in row["labels"])) for row in read]


def main() -> None:
    """Serve."""
    serve(answer, ["axolotl.utils.config"], AXOLOTL_DO_NOT_TRACK="1", HF_DATASETS_OFFLINE="1")
