"""How much of the rows axolotl's own strategy trains on, asked where it and the tokenizer are on this machine."""

import os
from collections.abc import Iterator
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from advisor.engine.rule import Hit
from advisor.run import Run
from advisor.schemas.data.entry import Entry
from advisor.schemas.validate.client import Library
from advisor.schemas.validate.requests import axolotl_question

OF_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")


class Trained:
    """axolotl, in a process that the first run with a tokenizer starts."""

    @cached_property
    def library(self) -> Library:
        """The process that answers."""
        return Library("axolotl", "advisor.schemas.data.ask_axolotl")

    def finds(self, run: Run, entry: Entry) -> Iterator[Hit]:
        """The share of tokens that are trained, and rows without one. Nothing of pairs, which have no labels yet."""
        if entry.rl or not entry.is_known or not _is_installed() or not _has_tokenizer(run):
            return
        question = axolotl_question(run) | {"rows": list(entry.rows.first), "entry": int(entry.at.rpartition(".")[2])}
        yield from hits(entry, self.library.says(question), self.library.version)


def hits(entry: Entry, answer: dict[str, Any], which: str) -> Iterator[Hit]:
    """An answer as a finding."""
    who, seen = f"axolotl {which}", entry.rows.seen
    if answer.get("trouble"):
        yield Hit(entry.at, f"{who} could not read {seen}: {answer['trouble'][:300]}", level="note")
        return
    counts: list[tuple[int, int]] = [(tokens, trained) for tokens, trained in answer["rows"]]
    tokens, trained = sum(one for one, _ in counts), sum(one for _, one in counts)
    empty = sum(not one for _, one in counts)
    if not trained:
        level = "error" if entry.rows.whole else "warning"
        yield Hit(entry.at, f"{who} trains on no token of {seen}", level=level)
        return
    message = f"{who} trains on {100 * trained / tokens:.0f} % of the {tokens:,} tokens of {seen}"
    if empty:
        yield Hit(entry.at, f"{message}; {empty} have no label at all", level="warning")
    else:
        yield Hit(entry.at, message)


def _is_installed() -> bool:
    try:
        return bool(version("axolotl") and version("datasets"))
    except PackageNotFoundError:
        return False


def _has_tokenizer(run: Run) -> bool:
    """Whether the tokenizer is in the folder that the config names, or in the cache of the hub."""
    name = str(run.config.get("tokenizer_config") or run.config.get("base_model") or "")
    folder = os.path.join(run.working_directory, name)
    if os.path.isdir(folder):
        return any(os.path.exists(os.path.join(folder, file)) for file in OF_TOKENIZERS)
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")
    cached = os.path.join(home, "hub", "models--" + name.replace("/", "--"), "snapshots")
    if not name or not os.path.isdir(cached):
        return False
    snapshots = (os.path.join(cached, one) for one in os.listdir(cached))
    return any(os.path.exists(os.path.join(one, file)) for one in snapshots for file in OF_TOKENIZERS)
