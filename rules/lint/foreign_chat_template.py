"""A chat model that is trained on another family's template."""

from collections.abc import Iterator

from advisor import Hit, Rule, Run, Set, but, is_list, is_mapping, only
from advisor.learning import chat_of, end_of
from advisor.models.catalogue import lookup
from advisor.util import regex

CHATS = regex(r"-(instruct|it|chat)(-|$)", 2)
"""How a published model is called that was trained to chat."""
NEW_TOKENS = ("tokens", "special_tokens", "added_tokens_overrides", "tokenizer_config")


def finds(run: Run) -> Iterator[Hit]:
    """A template whose turns end in a token that is not the one this model ends them with."""
    template = run.config.get("chat_template")
    chat = chat_of(run.model.model_type, run.base_model) if run.model is not None else None
    if chat is None or not chat.certain or not isinstance(template, str) or not is_published_chat(run.base_model):
        return
    if end_of(template) in {"", chat.end}:
        return
    if any(run.config.get(key) for key in NEW_TOKENS) or not renders_by_it(run):
        return
    message = (
        f"`chat_template: {template}` ends turns with `{end_of(template)}`, which this model never learned: "
        f"its own end with `{chat.end}`; write `chat_template: {chat.template}`"
    )
    edits = (Set("chat_template", chat.template),)
    yield Hit("chat_template", message, edits, level="warning" if run.adapter is not None else None)


def is_published_chat(name: str) -> bool:
    """Whether the catalogue has a model of this very name, which says that it chats."""
    return CHATS.search(name) is not None and lookup(name) is not None


def renders_by_it(run: Run) -> bool:
    """Whether a dataset is rendered by the template of the whole config."""
    datasets = run.config.get("datasets")
    items = [item for item in datasets if is_mapping(item)] if is_list(datasets) else []
    return any("chat_template" in str(item.get("type")) and not item.get("chat_template") for item in items)


rule = Rule(
    id="foreign-chat-template",
    stage="lint",
    title="A chat model is trained on another family's template",
    finds=finds,
    level="note",
    proof="read",
    safe=False,
    why="""
        A model that was trained to chat knows the markers of its own template. Another template's are split into
        several tokens, or have rows that nobody trained; an adapter leaves those frozen. What the model learned of
        turns is lost, and whoever serves it must use the other template, too.
    """,
    cost="The rows are rendered otherwise: what was trained with the other template does not go on.",
    source="axolotl/utils/chat_templates/base.py:82-85@0.19.0; advisor/learning/chat.json",
    examples=lambda: (
        only(
            "base_model: google/gemma-2-9b-it",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "chat_template: chatml",
            "datasets:\n  - path: someone/chats\n    type: chat_template",
            fires=True,
        ),
        but("chat_template: gemma"),
        but("chat_template: alpaca"),
        but("chat_template: [chatml]"),
        but("base_model: google/gemma-2-9b"),
        but("base_model: google/gemma-2-9b-chat"),
        but("base_model: tiiuae/Falcon-H1-7B-Instruct", "chat_template: llama3"),
        but("base_model: Qwen/Qwen2.5-7B-Instruct"),
        but("base_model: nobody/has-heard-of-it"),
        but("special_tokens:\n  eos_token: <|im_end|>"),
        but("datasets:\n  - path: someone/chats\n    type: chat_template\n    chat_template: gemma"),
        but("datasets:\n  - path: someone/texts\n    type: completion"),
        but("datasets: someone/chats"),
    ),
)
