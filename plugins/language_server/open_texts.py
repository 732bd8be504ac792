"""The open texts, and what is found of them: keys are answered at once, answers and tables in pauses."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from advisor.engine.finding import PLANNED
from advisor.errors import InputError

from .actions import actions, is_about_the_run
from .checking import MOST_TYPED, Checked, Checker, may_be_ours
from .completing import completions
from .diagnostics import broken, diagnostics, too_large, verdict_hint
from .hovering import MODEL, hover, key_at
from .pausing import PAUSE, Pausing
from .planning import Planned, needs_of, planned
from .texts import lsp, path_of, units, uri_of

T = TypeVar("T")
Found = Checked | InputError | None
"""What a check gives; None for a text that is no config."""


class Open:
    """The open texts, what is found of them, and what waits for a pause."""

    def __init__(self, server: Any, checker: Checker) -> None:
        self.server, self.checker = server, checker
        self.checked: dict[str, Checked] = {}
        self.checks: dict[str, Pausing[tuple[Found]]] = {}
        self.plans: dict[str, Pausing[Planned]] = {}
        self.asked: list[Pausing[Any]] = []
        self.published: dict[str, set[str]] = {}

    def changed(self, uri: str, *, typing: bool = False) -> None:
        """A text was opened or changed: it is checked, and with a JSON the YAMLs that read it.

        A large one is checked when it is opened or saved, while keys go on being answered.
        """
        path = path_of(uri)
        text = self.server.workspace.get_text_document(uri).source
        self.checker.buffers[path] = text
        self.drop(path)
        if len(text) > MOST_TYPED:
            self.checked.pop(path, None)
            self.publish(path, {path: [too_large(text)]} if may_be_ours(text) else {})
            if not typing and may_be_ours(text):
                self.checks[path] = Pausing(lambda: (self.found(path, text),), lambda found: self.show(path, *found), 0)
            return
        users = [user for user, checked in self.checked.items() if user != path and path in checked.report.texts]
        if users:
            for user in users:
                self.drop(user)
                self.check(user, self.checker.buffers[user])
        else:
            self.check(path, text)

    def check(self, path: str, text: str) -> None:
        """Findings at once; the answer in the next pause where diagnostics say it, else once somebody asks."""
        found = self.found(path, text)
        self.show(path, found)
        if isinstance(found, Checked):
            said = found.report.verdict in PLANNED

            def then(made: Planned) -> None:
                if said:
                    self.publish(path, diagnostics(made.report))

            self.plans[path] = Pausing(lambda: planned(found), then, PAUSE if said else None)

    def found(self, path: str, text: str) -> Found:
        """What is found of a text, or why it cannot be read; None where it is no config."""
        try:
            return self.checker.checked(path, text)
        except InputError as error:
            return error

    def show(self, path: str, found: Found) -> None:
        """Publishes it, and keeps what later questions are about."""
        self.checked.pop(path, None)
        match found:
            case None:
                self.publish(path, {})
            case InputError():
                self.publish(path, {os.path.abspath(found.file) if found.file else path: [broken(found)]})
            case Checked():
                self.checked[path] = found
                self.publish(path, diagnostics(found.report))

    def publish(self, path: str, found: dict[str, list[Any]]) -> None:
        """The diagnostics of one config, and of the files that it reads; those of files that it reads no more go."""
        files = {os.path.abspath(file): said for file, said in found.items()}
        files.setdefault(path, [])
        for file in self.published.get(path, set()) - files.keys():
            files[file] = []
        self.published[path] = {file for file, said in files.items() if said}
        for file, said in files.items():
            self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri_of(file), said))

    def drop(self, path: str) -> None:
        """Nobody waits any more for what was about the text before."""
        for waiting in (self.plans.pop(path, None), self.checks.pop(path, None), *self.asked):
            if waiting is not None:
                waiting.drop()
        self.asked.clear()

    def closed(self, uri: str) -> None:
        """The text on disk counts again."""
        path = path_of(uri)
        self.checker.buffers.pop(path, None)
        self.drop(path)
        if self.checked.pop(path, None) is not None:
            self.publish(path, {})

    def about(self, path: str) -> Iterable[Checked]:
        """The runs that a file is part of."""
        own = self.checked.get(path)
        others = [each for each in self.checked.values() if each is not own and path in each.report.texts]
        return [own, *others] if own is not None else others

    async def plan(self, path: str) -> Planned | None:
        """The run with its answer, as soon as it is there; None if a key comes first."""
        waiting = self.plans.get(path)
        return await waiting.wait() if waiting is not None else None

    async def hover(self, path: str, line: int) -> str:
        """What is shown over a line; nothing if a key comes first."""
        checked = next(iter(self.about(path)), None)
        if checked is None:
            return ""
        plan = await self.plan(path) if path == checked.path and key_at(checked, path, line) == MODEL else None
        if self.checked.get(checked.path) is not checked:
            return ""
        return await self.worked_out(lambda: hover(checked, path, line, plan)) or ""

    async def actions(self, path: str, at: Any, only: Sequence[Any]) -> list[Any]:
        """What can be done at a range; nothing if a key comes first."""
        found = list[Any]()
        for checked in self.about(path):
            plan = await self.plan(checked.path) if is_about_the_run(checked, path, at) else None
            if self.checked.get(checked.path) is checked:
                found += await self.worked_out(partial(offered, checked, plan, path, at, only)) or []
        return found

    async def worked_out(self, work: Callable[[], T]) -> T | None:
        """An answer that takes longer than a key may wait; None if one comes first."""
        waiting = Pausing(work, lambda _: None, pause=0)
        self.asked.append(waiting)
        return await waiting.wait()

    def made(self, files: Mapping[Any, Any]) -> None:
        """An action has made files: they count as there before they are saved."""
        self.checker.created |= {path_of(str(uri)): str(text) for uri, text in files.items()}
        for path, text in list(self.checker.buffers.items()):
            if path not in self.checker.created and len(text) <= MOST_TYPED:
                self.drop(path)
                self.check(path, text)

    def completions(self, path: str, at: Any, *, typed: bool) -> list[Any]:
        """What may be put at a position; ``typed``: asked for by a mark that was typed."""
        text = self.checker.buffers.get(path, "")
        if len(text) > MOST_TYPED:
            return []
        return completions(path, text, at, self.checker.buffers, self.checker.session(path).context.own, typed=typed)

    def hint(self, path: str) -> Any:
        """The verdict, at the end of the line of the model."""
        checked = self.checked.get(path)
        span = checked.found.run.config.span(MODEL) if checked is not None else None
        if checked is None or span is None:
            return None
        row = checked.text.split("\n")[span.line - 1].rstrip("\r")
        return verdict_hint(checked.report, span.line - 1, units(row), needs_of(checked))


def offered(checked: Checked, plan: Planned | None, path: str, at: Any, only: Sequence[Any]) -> list[Any]:
    """The actions, worked out."""
    return list(actions(checked, plan, path, at, only))
