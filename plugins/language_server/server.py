"""The server: what an editor tells, and what it asks. Keys are answered at once, plans and tables in pauses."""

import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import advisor
from advisor.engine.finding import PLANNED, Report
from advisor.errors import InputError

from .actions import FIX_ALL, QUICK, actions, is_at_model
from .checking import MOST_TYPED, Checked, Checker, may_be_ours, with_plan
from .diagnostics import broken, diagnostics, too_large, verdict_hint
from .hovering import MODEL, hover, key_at
from .pausing import Pausing
from .protocol import Protocol
from .texts import as_text, lsp, path_of, units, uri_of

Found = Checked | InputError | None
"""What a check gives; None for a text that is no config."""


class Open:
    """The open texts, what is found of them, and what waits for a pause."""

    def __init__(self, server: Any, checker: Checker) -> None:
        self.server, self.checker = server, checker
        self.checked: dict[str, Checked] = {}
        self.checks: dict[str, Pausing[tuple[Found]]] = {}
        self.plans: dict[str, Pausing[Report]] = {}
        self.hovers: list[Pausing[str]] = []
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
        """Findings at once; the plan in the next pause."""
        found = self.found(path, text)
        self.show(path, found)
        if isinstance(found, Checked):
            self.plans[path] = Pausing(lambda: with_plan(found), lambda report: self.publish(path, diagnostics(report)))

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
        for waiting in (self.plans.pop(path, None), self.checks.pop(path, None), *self.hovers):
            if waiting is not None:
                waiting.drop()
        self.hovers.clear()

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

    async def plan(self, path: str) -> Report | None:
        """The report with its plan, as soon as it is there; None if a key comes first."""
        waiting = self.plans.get(path)
        return await waiting.wait() if waiting is not None else None

    async def hover(self, path: str, line: int) -> str:
        """What is shown over a line; nothing if a key comes first."""
        checked = next(iter(self.about(path)), None)
        if checked is None:
            return ""
        planned = await self.plan(path) if path == checked.path and key_at(checked, path, line) == MODEL else None
        if self.checked.get(checked.path) is not checked:
            return ""
        waiting = Pausing(lambda: hover(checked, path, line, planned), lambda _: None, pause=0)
        self.hovers.append(waiting)
        return await waiting.wait() or ""


def server_of(gpus: str | None, rules: tuple[str, ...] = ()) -> Any:
    """The server; an editor may state the GPUs as `initializationOptions: {"gpus": "8x a100-80gb"}`.

    Not the rules: what an editor sends may be settings of the folder that it looks at.
    """
    server: Any = import_module("pygls.lsp.server").LanguageServer(
        "axolotl-advisor", advisor.__version__, protocol_cls=Protocol
    )
    told: set[str] = set()

    def tell(line: str) -> None:
        if line not in told:
            told.add(line)
            server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"advisor: {as_text(line)}"))

    checker = Checker(gpus, rules, tell)
    texts = Open(server, checker)

    @server.feature(lsp.INITIALIZE)
    def initialize(params: Any) -> None:
        asked: Any = params.initialization_options
        if isinstance(asked, dict) and "gpus" in asked:
            checker.gpus = str(asked["gpus"])  # pyright: ignore[reportUnknownArgumentType]
        if params.root_uri and os.path.isdir(root := path_of(params.root_uri)):
            os.chdir(root)  # axolotl resolves `deepspeed:` from where it is started

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: Any) -> None:
        checker.refresh()
        texts.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: Any) -> None:
        texts.changed(params.text_document.uri, typing=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: Any) -> None:
        checker.refresh()
        texts.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: Any) -> None:
        texts.closed(params.text_document.uri)

    kinds = lsp.CodeActionOptions(code_action_kinds=[QUICK, FIX_ALL])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def code_actions(params: Any) -> list[Any]:
        if params is None:
            return []
        path, found = path_of(params.text_document.uri), list[Any]()
        for checked in texts.about(path):
            whole = checked.report.verdict in PLANNED or is_at_model(checked, path, params.range)
            planned = await texts.plan(checked.path) if whole else None
            if texts.checked.get(checked.path) is checked:
                found += actions(checked, planned, path, params.range, params.context.only or [])
        return found

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hovered(params: Any) -> Any:
        if params is None:
            return None
        said = await texts.hover(path_of(params.text_document.uri), params.position.line)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, said)) if said else None

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: Any) -> list[Any]:
        checked = texts.checked.get(path_of(params.text_document.uri)) if params is not None else None
        span = checked.found.run.config.span("base_model") if checked is not None else None
        if checked is None or span is None:
            return []
        row = checked.text.split("\n")[span.line - 1].rstrip("\r")
        return [verdict_hint(checked.report, span.line - 1, units(row))]

    return server
