"""What frozen weights ask of the rest of a config: reentrant checkpoints under ZeRO-3, saved copies for new tokens."""

from advisor.run import Run
from advisor.run.edits import RunEdits

FIXED = "0.19.3"
"""DeepSpeed from which non-reentrant checkpoints work with frozen weights that ZeRO-3 shards."""
# TRL's trainers for these force reentrant checkpoints on an adapter under ZeRO-3; those for ORPO and SimPO do not.
FORCED = frozenset(["dpo", "ipo", "kto", "grpo", "gdpo", "ebft"])
# The embedding and the head by the names that PEFT ties (EMBEDDING_LAYER_NAMES, peft/utils/constants.py:399@0.20.0).
TIED_BY_PEFT = frozenset(["embed_tokens", "lm_head"])


def stops_zero_3(run: Run) -> bool:
    """Whether the first backward under ZeRO-3 would stop with a CheckpointError: where weights are frozen."""
    frozen = run.adapter is not None or bool(run.unfrozen_parameters)
    if not frozen or not run.activation_checkpointing or run.stack.at_least("deepspeed", FIXED):
        return False
    rewards = run.config.get("reward_model") or run.config.get("process_reward_model")
    forced = run.adapter is not None and (run.rl in FORCED or bool(rewards))
    return not forced and not run.reentrant


def may_be_reentrant(run: Run) -> bool:
    """Whether axolotl accepts, and keeps, reentrant checkpoints.

    Refused: validation.py:474-485, 736-755, 1612-1616@0.19.0. Undone for Gemma 4: utils/config/__init__.py:403-417.
    """
    undone = run.model is None or run.model.family.checkpoints == "non-reentrant"
    refused = run.unfrozen_parameters or run.config.get("selective_checkpointing")
    return not undone and not refused and not (run.rl is not None and run.adapter == "qlora")


def bears_zero_3(run: Run) -> bool:
    """Whether the run's checkpoints go with ZeRO-3, or can be made to."""
    return not stops_zero_3(run) or may_be_reentrant(run)


def for_zero_3(run: Run) -> RunEdits:
    """What ZeRO-3 needs of the run's checkpoints."""
    return {"reentrant": True} if stops_zero_3(run) else {}


def for_new_tokens(run: Run) -> RunEdits:
    """What an adapter must train and save where ``tokens`` adds rows: axolotl/loaders/utils.py:123-137@0.19.0."""
    if run.model is None or not run.config.get("tokens"):
        return {}
    tied: RunEdits = {"ensure_tying": True} if must_tie(run) else {}
    return {"lora_modules_to_save": list(run.model.family.embedding_modules), **tied}


def must_tie(run: Run) -> bool:
    """Whether axolotl's merge would drop a trained head: all but the legacy one do (cli/merge_lora.py:27-28@0.19.0)."""
    if run.model is None or not run.model.tied or run.config.get("merge_method") == "legacy":
        return False
    return not TIED_BY_PEFT.isdisjoint(run.model.family.embedding_modules)
