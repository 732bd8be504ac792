"""Models that end in a score: transformers puts a small linear layer where the vocabulary's head was."""

from advisor.models.architecture import Architecture
from advisor.models.blocks import WeightShape
from advisor.record import replace


def classifier(model: Architecture, classes: int, *, bias: bool) -> Architecture:
    """The model with ``classes`` outputs a token in place of its head.

    transformers/modeling_layers.py, GenericForSequenceClassification and GenericForTokenClassification@5.16.1; the
    latter's has a bias.
    """
    if model.classes == classes:
        return model
    score = [WeightShape("score.weight", "head", (classes, model.hidden_size), linear=True)]
    score += [WeightShape("score.bias", "head", (classes,))] if bias else []
    body = (tensor for tensor in model.tensors if tensor.kind != "head")
    return replace(model, tensors=(*body, *score), tied=False, classes=classes)
