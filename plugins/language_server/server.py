"""The server: what an editor tells, and what it asks."""

import os
from importlib import import_module
from typing import Any

import advisor

from .actions import FIX_ALL, QUICK
from .checking import Checker
from .completing import TRIGGERS
from .open_texts import Open
from .options import CREATED
from .protocol import Protocol
from .texts import as_text, lsp, path_of


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
        return await texts.actions(path_of(params.text_document.uri), params.range, params.context.only or [])

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hovered(params: Any) -> Any:
        if params is None:
            return None
        said = await texts.hover(path_of(params.text_document.uri), params.position.line)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, said)) if said else None

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=list(TRIGGERS)))
    def completed(params: Any) -> list[Any]:
        if params is None:
            return []
        typed = params.context is not None and params.context.trigger_kind == lsp.CompletionTriggerKind.TriggerCharacter
        return texts.completions(path_of(params.text_document.uri), params.position, typed=typed)

    @server.command(CREATED)
    def created(files: Any) -> None:
        if isinstance(files, dict):
            texts.made(files)  # pyright: ignore[reportUnknownArgumentType]

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: Any) -> list[Any]:
        hint = texts.hint(path_of(params.text_document.uri)) if params is not None else None
        return [hint] if hint is not None else []

    return server
