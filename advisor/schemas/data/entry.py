"""A dataset's entry of a run, next to the rows that `--data` names."""

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from advisor.datasets import Row, Rows, turns_in
from advisor.errors import InputError
from advisor.record import record
from advisor.run import Run
from advisor.util import is_list, is_mapping

PREFERRED = ("dpo", "ipo", "simpo", "orpo")
ROLES = {"human": "user", "user": "user", "assistant": "assistant", "gpt": "assistant", "system": "system"}
"""axolotl/prompt_strategies/chat_template.py:71-80@0.19.0, with `tool`, which is never an answer."""
OF_PROMPTS = {"field_instruction": "instruction", "field_output": "output"}
"""axolotl/prompt_strategies/user_defined.py:22-24@0.19.0."""


@record(eq=False)
class Entry:
    """An item of ``datasets``, its dotted path, and the rows of its file."""

    at: str
    values: Mapping[Any, Any]
    rl: str
    rows: Rows

    @property
    def type(self) -> str:
        """The name of its type; empty where that is a mapping, or missing."""
        kind = self.values.get("type")
        return kind if isinstance(kind, str) else ""

    @property
    def is_paired(self) -> bool:
        """Whether its rows are a chosen and a rejected answer."""
        return self.rl in PREFERRED

    @property
    def is_chat(self) -> bool:
        """Whether its rows are turns, each trained or not by its role."""
        return self.type == "chat_template" and not self.rl

    def named(self, key: str, usual: str) -> str:
        """The column that a key names."""
        given = self.values.get(key)
        return given if isinstance(given, str) else usual

    @property
    def is_known(self) -> bool:
        """Whether its type is one of axolotl's own; another may be a module, whose code would run."""
        if is_mapping(self.values.get("type")):
            return True
        name = self.type.partition(":")[0]
        return name in {"chat_template", "completion", *_types()} - {"about", "source"}

    @property
    def columns(self) -> Mapping[str, str]:
        """Each column that must be there, by the dotted path of the key that names it."""
        kind = self.values.get("type")
        if is_mapping(kind):
            return {} if self.rl else {f"type.{key}": str(kind.get(key) or own) for key, own in OF_PROMPTS.items()}
        if self.is_chat:
            return {"field_messages": self.named("field_messages", "messages")}
        if self.is_paired and self.type in {"chat_template.default", "chat_template"}:
            names = {"messages": "messages", "chosen": "chosen", "rejected": "rejected"}
            return {f"field_{key}": self.named(f"field_{key}", own) for key, own in names.items()}
        if self.is_paired:
            return {f"field_{key}": self.named(f"field_{key}", key) for key in ("chosen", "rejected")}
        if self.type == "completion":
            return {"field": self.named("field", "text")}
        return {} if self.rl else {f"type.{name}": name for name in _types().get(self.type.partition(":")[0], ())}

    def place(self, key: str) -> str:
        """The dotted path of the key, of its ``type``, or of the entry: the first that is written."""
        outer = key.partition(".")[0]
        return f"{self.at}.{outer}" if outer in self.values else f"{self.at}.type" if self.type else self.at

    @property
    def keys_of_turns(self) -> tuple[str, str]:
        """Who speaks, and what, in a turn."""
        mapping = self.values.get("message_property_mappings")
        given: Mapping[Any, Any] = mapping if is_mapping(mapping) else {}
        return str(given.get("role", "role")), str(given.get("content", "content"))

    def turns(self, row: Row) -> Iterator[tuple[str, str, Any]]:
        """Of a row of chats: the role as the row has it, as axolotl has it, and what is said."""
        role, content = self.keys_of_turns
        for turn in turns_in(row.get(self.named("field_messages", "messages"))):
            own = str(turn.get(role))
            yield own, self.roles.get(own, own), turn.get(content) or turn.get("tool_calls")

    @property
    def roles(self) -> Mapping[str, str]:
        """axolotl's name of each role."""
        given = self.values.get("roles")
        if not is_mapping(given):
            return ROLES
        return {str(one): str(name) for name, others in given.items() for one in (others if is_list(others) else ())}

    @property
    def trained(self) -> frozenset[str]:
        """The roles whose turns are trained."""
        given = self.values.get("roles_to_train")
        return frozenset(map(str, given)) if is_list(given) else frozenset({"assistant"})

    def answers(self, row: Row) -> tuple[str, str]:
        """The two answers of a pair; the last turn is one."""
        chosen, rejected = (row.get(self.named(f"field_{key}", key)) for key in ("chosen", "rejected"))
        return _answer(chosen), _answer(rejected)


def entries_of(run: Run, rows: Rows) -> Iterator[Entry]:
    """The entry of ``datasets`` that has these rows: by its path, or the only one."""
    listed = run.config.get("datasets")
    found = [(at, item) for at, item in enumerate(listed if is_list(listed) else ()) if is_mapping(item)]
    named = [(at, item) for at, item in found if _is_named(run, item, rows.path)]
    if not named and len(found) > 1:
        message = f"is the path of none of the {len(found)} entries of `datasets`"
        raise InputError(message, rows.path, remedy="name the file as one of them does")
    for at, item in named or found:
        yield Entry(f"datasets.{at}", item, str(run.config.get("rl") or ""), rows)


def _is_named(run: Run, item: Mapping[Any, Any], path: str) -> bool:
    files = item.get("data_files")
    names = [item.get("path"), *(files if is_list(files) else [files])]
    here = os.path.realpath(path)
    return any(os.path.realpath(os.path.join(run.working_directory, str(name))) == here for name in names if name)


def _answer(value: Any) -> str:
    turn = value[-1] if is_list(value) and value else value
    said = turn.get("content") if is_mapping(turn) else turn
    return said if isinstance(said, str) else ""


@cache
def _types() -> Any:
    return json.loads(Path(__file__).with_name("types.json").read_text(encoding="utf-8"))
