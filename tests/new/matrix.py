"""Models, cards and methods for which `new` writes configs."""

from collections.abc import Iterator
from functools import cache

from advisor.new import Method, Request, Way, ways
from advisor.session import RunOptions

MODELS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen3-30B-A3B",
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.3-70B-Instruct",
    "google/gemma-2-9b",
    "google/gemma-3-27b-it",
    "mistralai/Mistral-7B-v0.3",
    "mistralai/Mixtral-8x7B-v0.1",
    "openai/gpt-oss-20b",
    "microsoft/Phi-3.5-mini-instruct",
    "ibm-granite/granite-3.1-8b-instruct",
    "allenai/OLMo-2-1124-7B",
    "LiquidAI/LFM2-1.2B",
    "zai-org/GLM-4.5-Air",
)
CARDS = ("1x t4", "1x rtx-4090", "2x rtx-3090", "4x l40s", "1x h100-80gb", "8x h100-80gb")
METHODS: tuple[Method, ...] = ("auto", "dpo")
Case = tuple[str, str, Method]


def all_cases() -> list[Case]:
    """Every model on every card, on rows and on pairs."""
    return [(model, gpus, method) for model in MODELS for gpus in CARDS for method in METHODS]


def few_cases() -> list[Case]:
    """Every model once, the cards and methods in turn."""
    return [(model, CARDS[at % len(CARDS)], METHODS[at // 2 % 2]) for at, model in enumerate(MODELS)]


@cache
def ways_of(case: Case) -> tuple[Way, ...]:
    """The ways of a case."""
    model, gpus, method = case
    return ways(Request(model=model, method=method, options=RunOptions(gpus=gpus))).ways


def fitting(case: Case) -> Iterator[Way]:
    """Those that fit."""
    return (way for way in ways_of(case) if way.fits)
