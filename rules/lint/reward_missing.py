"""GRPO without anything that gives a reward."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, but, only

METHODS = ("grpo", "gdpo")


def finds(run: Run) -> Iterator[Hit]:
    """No reward function, and no plugin that might bring one."""
    if run.rl in METHODS and not run.config.at("trl.reward_funcs") and not run.config.get("plugins"):
        message = f"`rl: {run.rl}` without `trl.reward_funcs` stops once the model is loaded: nothing gives a reward"
        yield Hit("rl", f"{message}; name a function, `my_rewards.right_answer`, or a reward model")


rule = Rule(
    id="reward-missing",
    stage="lint",
    title="GRPO without anything that gives a reward",
    finds=finds,
    level="error",
    proof="read",
    fatal=True,
    why="""
        axolotl hands TRL the functions that `trl.reward_funcs` names, and nothing else that could be one. TRL's trainer
        refuses to be built without: "No reward source provided", after the model has been loaded.
    """,
    source="trl/trainer/grpo_trainer.py:690-694@1.9.0",
    examples=lambda: (
        only("base_model: Qwen/Qwen2.5-7B", "rl: grpo", fires=True),
        but("trl:\n  reward_funcs: [my_rewards.right_answer]"),
        but("plugins: [axolotl.integrations.nemo_gym.NemoGymPlugin]"),
        but("rl: dpo"),
    ),
)
