"""A key without which axolotl refuses the config."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only
from advisor.schemas import axolotl_keys
from advisor.schemas.refusals import refused

DATA = ("datasets", "pretraining_dataset")
WHY = {"learning_rate": "there is no default for it"}
REMEDY = {"learning_rate": "add for example `learning_rate: 2e-4` for LoRA, `1e-5` for a full fine-tune"}


def finds(run: Run) -> Iterator[Hit]:
    """Keys that the whole config needs, then those that a mapping inside it needs."""
    if run.is_json_alone:
        return
    if all(run.config.get(key) is None for key in DATA):
        head = "neither `datasets` nor `pretraining_dataset`"
        yield Hit("base_model", refused(run, head, "there is nothing to train on", "name a dataset under `datasets`"))
    table = axolotl_keys()
    for key in table.required(table.root):
        if not run.config.has(key):
            because, remedy = WHY.get(key, "it is required"), REMEDY.get(key, "add it")
            yield Hit("base_model", refused(run, f"`{key}` is missing", because, remedy))
    yield from inside(run)


def inside(run: Run) -> Iterator[Hit]:
    """Mappings below the top level."""
    table = axolotl_keys()
    seen: set[int] = set()
    for found in table.walk(run.config):
        needed = table.required(found.level) if found.level != table.root else ()
        if not needed or id(found.siblings) in seen:
            continue
        seen.add(id(found.siblings))
        at = ".".join(map(str, found.path[:-1]))
        for key in needed:
            if key not in found.siblings:
                yield Hit(at, refused(run, f"`{at}` without `{key}`", "it is required", "add it"))


rule = Rule(
    id="required-key-missing",
    stage="lint",
    title="A key without which axolotl refuses the config",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        axolotl has a default for nearly everything, but not for the model, the data and the learning rate. A key that
        is given on the command line counts: `axolotl train config.yaml --learning-rate 1e-4`.
    """,
    source="axolotl/utils/schemas/training.py:115-117@0.19.0; axolotl/utils/schemas/validation.py:81-86@0.19.0; "
    "advisor/schemas/axolotl.json",
    examples=lambda: (
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "micro_batch_size: 1",
            "gradient_accumulation_steps: 1",
            "datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca",
            fires=True,
        ),
        but("learning_rate: 0.0001", without=("datasets",), fires=True),
        but("learning_rate: 0.0001", "lr_groups:\n  - name: attention\n    modules: [q_proj]", fires=True),
        but("learning_rate: 0.0001"),
        but("""
                learning_rate: 0.0001
                lr_groups:
                  - name: attention
                    modules: [q_proj]
                    lr: 0.0001
            """),
    ),
)
