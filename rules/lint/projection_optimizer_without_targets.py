"""GaLore or APOLLO without the modules whose gradients it projects."""

from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, Set, but
from advisor.memory.optimizers import is_known


def finds(run: Run) -> Iterator[Hit]:
    """No targets; Q-GaLore has a default of axolotl's."""
    name = run.optimizer
    if not name.startswith(("galore_", "apollo_")) or not is_known(name) or run.config.get("optim_target_modules"):
        return
    yield Hit(
        "optimizer",
        f"`optimizer: {name}` needs `optim_target_modules`, and without it stops the run once the model is loaded;"
        " name the linear layers, such as `[attn, mlp]`",
        edits=(Set("optim_target_modules", ["attn", "mlp"], after="optimizer"),),
    )


rule = Rule(
    id="projection-optimizer-without-targets",
    stage="lint",
    title="GaLore or APOLLO without the modules whose gradients it projects",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        GaLore and APOLLO keep their states in a low-rank projection of chosen linear layers; everything else is trained
        in full. There is no default for the choice. `[attn, mlp]` matches names by their parts, and is what axolotl
        itself takes for Q-GaLore; `all_linear` is every linear layer.
    """,
    source="transformers/trainer_optimizer.py:121-122, 153-154@5.16.1;"
    " axolotl/utils/schemas/validation.py:1049-1054@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: galore_adamw_8bit
                learning_rate: 0.00002
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: galore_adamw_8bit
                optim_target_modules:
                  - attn
                  - mlp
                learning_rate: 0.00002
            """,
        ),
        but("optimizer: apollo_adamw", "optim_target_modules: all_linear", without=("learning_rate",)),
        but("optimizer: q_galore_adamw8bit", without=("learning_rate",)),
        but("optimizer: apollo_", without=("learning_rate",)),
    ),
)
