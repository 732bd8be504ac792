"""Whether a run's chat template strips blanks from the ends of answers."""

from advisor.learning import chat_of, trimming_templates
from advisor.run import Run

OF_THE_TOKENIZER = "tokenizer_default"


def trims(run: Run) -> bool:
    """By the template that is named; by the model's family where its own is."""
    named = str(run.config.get("chat_template") or OF_THE_TOKENIZER)
    if not named.startswith(OF_THE_TOKENIZER):
        return named in trimming_templates()
    chat = chat_of(run.model.model_type, str(run.config.get("base_model"))) if run.model is not None else None
    return chat is not None and chat.trims
