"""The DeepSpeed JSON has an optimizer of its own."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rule, Run, but, is_mapping, only
from advisor.run.deepspeed import Section

TORCH_ADAMW = frozenset(["adamw_torch", "adamw_torch_fused"])
# Settings of the YAML that make DeepSpeed's one group of parameters differ from the trainer's.
GROUPED = (
    "weight_decay",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "embedding_lr",
    "embedding_lr_scale",
    "lr_groups",
    "loraplus_lr_ratio",
)


def finds(run: Run) -> Iterator[Hit]:
    """A block that wins over the YAML's ``optimizer``, unless both say the same AdamW."""
    section = run.deepspeed
    if section is None or run.zero is None or run.zero.own_optimizer is None or same(run, section):
        return
    without_lr = section.at("optimizer.params.lr") is None
    consequence = f"the YAML's `{run.optimizer}` is never built" + (
        ", nor is its `learning_rate` used: without `lr` it is DeepSpeed's 1e-3" if without_lr else ""
    )
    yield Hit(
        "optimizer",
        f"`optimizer` of type `{run.zero.own_optimizer}` in the DeepSpeed JSON wins: {consequence}; remove the block",
        edits=(Remove("optimizer"),),
        document="deepspeed",
        on_key=True,
    )


def same(run: Run, section: Section) -> bool:
    """Whether DeepSpeed's AdamW is what the trainer would have built."""
    kind = str(section.at("optimizer.type")).lower()
    params = section.at("optimizer.params")
    if kind not in {"adam", "adamw"} or not is_mapping(params) or params.get("lr") is None:
        return False
    plain_adam = kind == "adam" and params.get("adam_w_mode") is False
    return run.optimizer in TORCH_ADAMW and not plain_adam and not any(run.config.get(key) for key in GROUPED)


rule = Rule(
    id="optimizer-in-deepspeed-json",
    stage="lint",
    title="The DeepSpeed JSON has an optimizer of its own",
    finds=finds,
    level="warning",
    proof="accepts",
    why="""
        Where the JSON has an `optimizer`, transformers hands accelerate a placeholder, and DeepSpeed builds its own
        over one group of all parameters: the YAML's `optimizer` and its learning rates by group have no effect, and
        decay falls on norms and biases too. Only what says "auto" there takes the YAML's value.
    """,
    source="transformers/integrations/deepspeed.py:545-547@5.16.1;"
    " axolotl/core/trainers/mixins/optimizer.py:107-130@0.19.0; deepspeed/runtime/engine.py:1593-1598@0.18.9",
    examples=lambda: (
        Example(
            gpus="8x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                optimizer: adamw_bnb_8bit
                learning_rate: 0.00002
                deepspeed: zero1.json
            """,
            deepspeed="""
                {
                  "optimizer": {
                    "type": "AdamW",
                    "params": {"lr": "auto", "weight_decay": "auto"}
                  },
                  "zero_optimization": {"stage": 1}
                }
            """,
            after_deepspeed="""
                {
                  "zero_optimization": {"stage": 1}
                }
            """,
        ),
        but(
            "optimizer: adamw_torch_fused",
            deepspeed='{"optimizer": {"type": "AdamW", "params": {"lr": "auto"}}, "zero_optimization": {"stage": 1}}',
        ),
        only("base_model: meta-llama/Llama-3.1-8B", "deepspeed: deepspeed_configs/zero1.json"),
        but(
            "weight_decay: 0.1",
            without=("optimizer", "learning_rate"),
            gpus="1x a100-80gb",
            deepspeed='{"optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}',
            fires=True,
        ),
        but(
            "deepspeed: zero.json",
            without=("optimizer", "learning_rate"),
            deepspeed="""
                {
                  "zero_optimization": {"stage": 2},
                  "bf16": {"enabled": true},
                  "train_micro_batch_size_per_gpu": "auto",
                  "gradient_accumulation_steps": "auto"
                }
            """,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "optimizer: adamw_torch_fused",
            "deepspeed: zero.json",
            deepspeed='{"optimizer": {"type": "AdamW", "params": {"lr": "auto", "adam_w_mode": false}}}',
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "optimizer: adamw_torch_fused",
            "deepspeed: zero.json",
            deepspeed='{"optimizer": {"type": "Lamb", "params": {"lr": "auto"}}}',
            fires=True,
        ),
        but(deepspeed='{"optimizer": {"type": "AdamW"}}', fires=True),
        but(deepspeed='{"optimizer": {"type": "Adam", "params": {"lr": "auto", "adam_w_mode": false}}}', fires=True),
        but(deepspeed='{"optimizer": {"type": "Adam", "params": {"lr": "auto"}}}'),
        but(deepspeed='{"optimizer": {"type": "AdamW", "params": {"betas": "auto"}}}', fires=True),
        but(
            "optimizer: lion_8bit",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            deepspeed='{"optimizer": {"type": "AdamW"}}',
        ),
    ),
)
