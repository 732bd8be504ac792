"""Values that axolotl's schema takes as any text, and that its code, or transformers, then looks up by name."""

# axolotl/utils/schemas/enums.py:110-122, 137-141@0.19.0. A name with a slash is a kernel of the hub.
ATTENTION = (
    *("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flash_attention_torch"),
    *("flex_attention", "xformers", "sage", "fp8"),
)
# SchedulerType of transformers (training_args.py:1523@5.16.1), then the two that axolotl builds itself
# (axolotl/core/builders/base.py:280-287@0.19.0).
LR_SCHEDULERS = (
    *("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup", "inverse_sqrt"),
    *("reduce_lr_on_plateau", "cosine_with_min_lr", "cosine_warmup_with_min_lr", "warmup_stable_decay", "greedy"),
    *("one_cycle", "rex"),
)
# The modules of axolotl/prompt_strategies, then the handlers of utils/data/wrappers.py, all @0.19.0.
DATASET_STRATEGIES = (
    *("alpaca_chat", "alpaca_instruct", "alpaca_w_system", "chat_template", "completion", "context_qa"),
    *("creative_acr", "input_output", "llama2_chat", "messages", "metharme", "orcamini", "pretrain", "pygmalion"),
    *("stepwise_supervised", "user_defined", "bradley_terry", "_synthetic", "base", "dpo", "ebft", "kto", "orpo"),
    "jinja_template_analyzer",
)
DATASET_HANDLERS = (
    *("alpaca", "explainchoice", "concisechoice", "summarizetldr", "jeopardy", "oasst", "gpteacher", "reflection"),
)
# The functions of axolotl/prompt_strategies/dpo, kto and orpo, each of a module, @0.19.0. IPO and SimPO take DPO's.
_PAIRS = ("default", "argilla_chat", "icr", "intel", "prompt_pairs", "ultra")
_OF_DPO = {
    "chat_template": ("default", "argilla_chat"),
    "chatml": _PAIRS,
    "llama3": _PAIRS,
    "passthrough": ("default",),
    "user_defined": ("default",),
    "zephyr": ("nectar",),
}
_RATED = ("argilla", "argilla_chat", "intel", "prompt_pairs", "ultra")
PREFERENCE_STRATEGIES = {
    **dict.fromkeys(("dpo", "ipo", "simpo"), _OF_DPO),
    "kto": {"chatml": _RATED, "llama3": _RATED, "user_defined": ("default",)},
    "orpo": {"chat_template": ("argilla", "load")},
}
