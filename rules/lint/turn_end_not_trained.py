"""The token that ends an answer is not among those that are trained."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, Set, but, is_list, is_mapping, only, without
from advisor.learning import Chat, chat_of, end_of

OTHER_TOKENIZER = ("tokenizer_config", "added_tokens_overrides", "tokenizer_use_mistral_common")


def finds(run: Run) -> Iterator[Hit]:
    """A chat whose template ends answers otherwise than the tokenizer ends texts, and nothing that says so."""
    chat = chat_of(run.model.model_type, run.base_model) if run.model is not None else None
    if chat is None or not chat.certain or run.rl is not None or run.classifier is not None or not trains_on_chats(run):
        return
    if run.config.get("processor_type") and not run.sample_packing:
        return  # turns with images are masked by their own markers, the end among what is trained
    template = run.config.get("chat_template") or "tokenizer_default"
    usual = chat.base_template if chat.is_base(run.base_model) else chat.template
    if template != usual and end_of(str(template)) != chat.end:
        return
    if any(run.config.get(key) for key in OTHER_TOKENIZER):
        return
    needed = needed_by(run, chat)
    given = [*listed(run.config.get("eot_tokens")), run.config.at("special_tokens.eos_token")]
    if needed and not any(token in given for token in needed):
        at = "chat_template" if run.config.get("chat_template") else "datasets"
        message = f"`{needed[0]}` ends each answer and is silently never trained, so the model does not learn to stop"
        remedy = "name it" if len(needed) == 1 else f"name {' and '.join(f'`{token}`' for token in needed)}"
        yield Hit(at, f"{message}; {remedy} in `eot_tokens`", (Set("eot_tokens", list(needed)),))


def needed_by(run: Run, chat: Chat) -> tuple[str, ...]:
    """What must be named for the end to be trained: more for a base, whose tokenizer knows no turns."""
    return chat.base_eot_tokens if chat.is_base(run.base_model) else chat.eot_tokens


def trains_on_chats(run: Run) -> bool:
    """Whether a dataset is rendered by the template of the whole config."""
    datasets = (item for item in listed(run.config.get("datasets")) if is_mapping(item))
    return any(item.get("type") == "chat_template" and not item.get("chat_template") for item in datasets)


def listed(value: object) -> list[object]:
    """A list, or nothing."""
    return list(value) if is_list(value) else []


rule = Rule(
    id="turn-end-not-trained",
    stage="lint",
    title="The token that ends an answer is not trained",
    finds=finds,
    level="warning",
    proof="read",
    safe=False,
    why="""
        axolotl trains the tokenizer's eos token after each answer, unless `eot_tokens` names others. Gemma's, Phi-3's
        and many bases' tokenizers end a text, not a turn: the token of the template stays masked. The loss looks well,
        and the model talks on. axolotl says so in a line of its log.
    """,
    cost="The model learns to stop.",
    source=(
        "axolotl/prompt_strategies/chat_template.py:339-347,378-391@0.19.0; "
        "axolotl/core/builders/causal.py:520-536@0.19.0; advisor/learning/chat.json; "
        "https://github.com/axolotl-ai-cloud/axolotl/issues/3754"
    ),
    examples=lambda: (
        only(
            "base_model: google/gemma-3-4b-pt",
            "chat_template: gemma3",
            "datasets:\n  - path: someone/chats\n    type: chat_template",
            fires=True,
        ),
        but("eot_tokens: [<end_of_turn>]"),
        but("special_tokens:\n  eos_token: <end_of_turn>"),
        but("eot_tokens: [<eos>]", fires=True),
        but("base_model: Qwen/Qwen2.5-7B", without=("chat_template",), fires=True),
        but("base_model: Qwen/Qwen2.5-7B-Instruct", without=("chat_template",)),
        but("base_model: meta-llama/Llama-3.1-8B", "chat_template: llama3", fires=True),
        but("base_model: meta-llama/Llama-3.1-8B-Instruct", "chat_template: llama3"),
        but("base_model: meta-llama/Llama-3.1-8B", without=("chat_template",)),
        but("base_model: nobody/knows-this"),
        but("base_model: tiiuae/Falcon-H1-7B-Base", "chat_template: falcon_h1"),
        but("base_model: Qwen/Qwen2.5-7B", "chat_template: chatml", fires=True),
        but("chat_template: chatml"),
        but("rl: dpo"),
        but("reward_model: true"),
        but("tokenizer_config: ./my-tokenizer"),
        but("processor_type: AutoProcessor"),
        but("processor_type: AutoProcessor", "sample_packing: true", fires=True),
        but("datasets:\n  - path: someone/texts\n    type: completion"),
        but("datasets:\n  - path: someone/chats\n    type: chat_template\n    chat_template: chatml"),
        without("datasets"),
    ),
)
