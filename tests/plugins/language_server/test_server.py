"""The server as an editor uses it: a client over standard input and output, unsaved texts, edits applied."""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Union

import pytest
import yaml

from advisor.util import toml_library

client: Any = pytest.importorskip("pygls.lsp.client", reason="pygls is not installed")
lsp: Any = pytest.importorskip("lsprotocol.types")

CONFIG = """\
# advisor: gpus=1x rtx-4090
base_model: meta-llama/Llama-3.1-8B  # é𝄞
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 8
gradient_accumulation_steps: 1
num_epochs: 1
learning_rate: 0.0002
optimizer: adamw_torch_fused
bf16: true
gradient_checkpointing: true
attn_implementation: flash_attention_2
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
"""
TYPO = CONFIG.replace("lora_r: 16", "lora_rr: 16  # é𝄞 why")
ROOMY = (
    CONFIG.replace("1x rtx-4090", "1x a100-80gb")
    .replace("micro_batch_size: 8", "micro_batch_size: 1")
    .replace("gradient_accumulation_steps: 1", "gradient_accumulation_steps: 8")
)
LONGEST = 120


def converter() -> Any:
    """lsprotocol's, but that an action with a command is an action: it takes one for a command."""
    made = pytest.importorskip("lsprotocol.converters").get_converter()
    kinds = lsp.Command | lsp.CodeAction
    for kind in (kinds, Union[lsp.Command, lsp.CodeAction]):  # noqa: UP007
        made.register_structure_hook(
            kind,
            lambda said, _: made.structure(
                said, lsp.Command if isinstance(said.get("command"), str) else lsp.CodeAction
            ),
        )
    return made


class Editor:
    """An editor with some files open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = client.LanguageClient("editor", "1", converter_factory=converter)
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.said: dict[str, list[Any]] = {}
        self.news: dict[str, asyncio.Event] = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: Any) -> None:
            self.said[params.uri] = list(params.diagnostics)
            self.news.setdefault(params.uri, asyncio.Event()).set()

    async def start(self, options: Any = None) -> None:
        command = [sys.executable, "-m", "advisor", "server", "--stdio"]
        await self.client.start_io(*command, cwd=str(self.folder), env={**os.environ, "CI": "1"})
        asked = lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(), root_uri=self.folder.as_uri(), initialization_options=options
        )
        self.capabilities = (await self.client.initialize_async(asked)).capabilities
        self.client.initialized(lsp.InitializedParams())

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    async def open(self, name: str, text: str) -> list[Any]:
        self.texts[name], self.versions[name] = text, 1
        language = "json" if name.endswith("json") else "yaml"
        item = lsp.TextDocumentItem(self.uri(name), language, 1, text)
        self.news[self.uri(name)] = asyncio.Event()
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.next(name)

    async def type(self, name: str, text: str) -> list[Any]:
        self.send(name, text)
        return await self.next(name)

    def send(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.versions[name] += 1
        self.news[self.uri(name)] = asyncio.Event()
        document = lsp.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name))
        whole = [lsp.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, whole))

    async def next(self, name: str) -> list[Any]:
        await asyncio.wait_for(self.news.setdefault(self.uri(name), asyncio.Event()).wait(), LONGEST)
        await asyncio.sleep(0)
        return self.said.get(self.uri(name), [])

    async def until(self, fulfilled: Callable[[], bool]) -> None:
        for _ in range(LONGEST * 20):
            if fulfilled():
                return
            await asyncio.sleep(0.05)
        raise AssertionError(self.said)

    def whole(self, name: str) -> Any:
        return lsp.Range(lsp.Position(0, 0), lsp.Position(self.texts[name].count("\n"), 0))

    async def actions(self, name: str, only: list[str] | None = None) -> dict[str, Any]:
        context = lsp.CodeActionContext([], only=only)
        asked = lsp.CodeActionParams(lsp.TextDocumentIdentifier(self.uri(name)), self.whole(name), context)
        return {each.title: each for each in await self.client.text_document_code_action_async(asked) or []}

    async def hover(self, name: str, words: str) -> str:
        line = next(number for number, row in enumerate(self.texts[name].split("\n")) if row.startswith(words))
        asked = lsp.HoverParams(lsp.TextDocumentIdentifier(self.uri(name)), lsp.Position(line, 2))
        found = await self.client.text_document_hover_async(asked)
        return found.contents.value if found else ""

    def accept(self, action: Any) -> dict[str, str]:
        """The texts after an action, as an editor applies it."""
        after = dict(self.texts)
        for change in action.edit.document_changes:
            uri = change.uri if hasattr(change, "uri") else change.text_document.uri
            name = os.path.relpath(uri.removeprefix("file://"), self.folder)
            if not hasattr(change, "edits"):
                after.setdefault(name, "")
                continue
            after[name] = edited(after[name], change.edits)
        return after


def edited(text: str, edits: list[Any]) -> str:
    units = text.encode("utf-16-le")
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line.encode("utf-16-le")) + 2)

    def offset(place: Any) -> int:
        return min(len(units), starts[place.line] + 2 * place.character)

    for edit in sorted(edits, key=lambda edit: -offset(edit.range.start)):
        start, end = offset(edit.range.start), offset(edit.range.end)
        units = units[:start] + edit.new_text.encode("utf-16-le") + units[end:]
    return units.decode("utf-16-le")


def with_editor(folder: Path, used: Callable[[Editor], Awaitable[None]], options: Any = None) -> None:
    async def talk() -> None:
        editor = Editor(folder)
        await editor.start(options)
        try:
            await used(editor)
        finally:
            await editor.stop()

    asyncio.run(talk())


def codes(found: list[Any]) -> list[str]:
    return [each.code for each in found]


def test_findings_are_at_their_places_in_the_units_of_the_protocol(tmp_path: Path):
    async def used(editor: Editor) -> None:
        found = await editor.open("run.yaml", TYPO)
        (typo,) = (each for each in found if each.code == "unknown-key")
        row = TYPO.split("\n")[typo.range.start.line]
        assert row[typo.range.start.character : typo.range.end.character].startswith("lora_rr")
        assert typo.severity == lsp.DiagnosticSeverity.Warning or typo.severity == lsp.DiagnosticSeverity.Error
        assert "does-not-fit" in codes(found)

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_what_cannot_be_read_is_said_at_its_line_and_gone_once_it_can(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG)
        (broken,) = await editor.type("run.yaml", CONFIG + "foo: [1,\n")
        assert broken.code == "unreadable" and broken.range.start.line >= CONFIG.count("\n")
        assert "unreadable" not in codes(await editor.type("run.yaml", CONFIG))
        assert await editor.open("other.yaml", "jobs: {}\n") == []

    with_editor(tmp_path, used)


def test_quick_fixes_do_what_fix_does(tmp_path: Path):
    text = TYPO.replace("attn_implementation: flash_attention_2", "flash_attention: true  # é𝄞 old")

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", text)
        found = await editor.actions("run.yaml")
        (fit,) = (title for title in found if "Make it fit: same training, " in title)
        after_all = editor.accept(found[fit])["run.yaml"]
        assert after_all != text and "# é𝄞 why" in after_all and "flash_attention: true" not in after_all
        unsafe = found["advisor: Fix unknown-key (changes what is trained)"]
        assert "lora_r: 16  # é𝄞 why" in editor.accept(unsafe)["run.yaml"] and not unsafe.is_preferred
        one = found["advisor: Fix deprecated-key"]
        assert "attn_implementation: flash_attention_2  # é𝄞 old" in editor.accept(one)["run.yaml"] and one.is_preferred
        everything = await editor.actions("run.yaml", ["source.fixAll"])
        assert list(everything) == ["advisor: Fix all that is safe"]
        after = editor.accept(everything["advisor: Fix all that is safe"])["run.yaml"]
        said = codes(await editor.type("run.yaml", after))
        assert "deprecated-key" not in said and "unknown-key" in said
        assert "does-not-fit" not in codes(await editor.type("run.yaml", after_all))

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_a_plan_makes_the_files_that_it_needs(tmp_path: Path):
    text = (
        CONFIG.replace("adapter: lora\n", "")
        .replace("1x rtx-4090", "4x a100-40gb")
        .replace("micro_batch_size: 8", "micro_batch_size: 1")
        .replace("num_epochs: 1", "num_epochs: 1\ndeepspeed: deepspeed_configs/zero1.json")
    )
    text = "".join(row for row in text.splitlines(True) if not row.startswith("lora"))

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", text)
        found = await editor.actions("run.yaml")
        (fit,) = (each for title, each in found.items() if "Make it fit: same training" in title)
        after = editor.accept(fit)
        (new,) = (name for name in after if name.endswith(".json"))
        stage = json.loads(after[new])["zero_optimization"]["stage"]
        assert stage in {1, 2, 3} and f"deepspeed: {new}" in after["run.yaml"]
        await editor.open(new, after[new])
        assert "does-not-fit" not in codes(await editor.type("run.yaml", after["run.yaml"]))

    with_editor(tmp_path, used)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tail", "expected"),
    [("", "  # advisor: ignore[unknown-key]"), ("  # why", "# advisor: ignore[unknown-key]\nlora_rr")],
)
def test_a_rule_is_ignored_by_a_comment(tmp_path: Path, tail: str, expected: str):
    text = CONFIG.replace("lora_r: 16", f"lora_rr: 16{tail}")

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", text)
        found = await editor.actions("run.yaml")
        after = editor.accept(found["advisor: Ignore unknown-key here"])["run.yaml"]
        assert expected in after
        assert not {"unknown-key", "unused-ignore"} & set(codes(await editor.type("run.yaml", after)))

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_an_unsaved_json_counts_and_has_its_own_findings(tmp_path: Path):
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}')
    unsaved = '{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}, "bf16": {"enabled": true}}'

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG + "deepspeed: ds.json\n")
        assert not any("offload" in each.code for each in editor.said.get(editor.uri("ds.json"), []))
        await editor.open("ds.json", unsaved)
        await editor.until(lambda: any("offload" in each.code for each in editor.said.get(editor.uri("ds.json"), [])))
        editor.send("ds.json", '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}')
        await editor.until(lambda: not any("offload" in each.code for each in editor.said[editor.uri("ds.json")]))

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_hover_says_what_a_key_does_to_this_run(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", TYPO)
        batch = await editor.hover("run.yaml", "micro_batch_size")
        assert "| tokens/s |" in batch
        rows = [row.split("|")[1].strip() for row in batch.split("\n") if row.startswith("| ")][2:]
        assert rows == ["1", "2", "4", "**8**", "16"] and "does not fit" in batch and "The largest that fits" in batch
        assert "The largest that fits" in await editor.hover("run.yaml", "sequence_len")
        assert "adamw_bnb_8bit" in await editor.hover("run.yaml", "optimizer")
        assert "| **true** |" in await editor.hover("run.yaml", "gradient_checkpointing")
        assert "unknown-key" in await editor.hover("run.yaml", "lora_rr")
        assert await editor.hover("run.yaml", "num_epochs") == ""

    with_editor(tmp_path, used)


def test_hover_shows_text_of_the_file_as_text(tmp_path: Path):
    """Editors load images and open addresses."""
    key = '"q` ![a](https://evil/tracker) [c](command:evil) <img src=x>`"'

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", f"{CONFIG}{key}: 1\noptimizer_note: x\n")
        said = await editor.hover("run.yaml", '"q`')
        assert "evil/tracker" in said and "unknown-key" in said
        shown = re.sub(r"`[^`]*`", "", said.replace("\\`", ""))
        assert not any(mark in shown for mark in ("![", " [", "://", "<img")), said

    with_editor(tmp_path, used)


RULE = """\
from pathlib import Path
from advisor import Hit, Rule
Path({mark!r}).touch()
rule = Rule(
    id="house-rule", stage="lint", title="t", level="error", why="w", source="s", examples=(),
    finds=lambda run: [Hit("base_model", "says the house")],
)
"""


@pytest.mark.slow
def test_rules_of_the_folder_run_once_they_are_trusted_and_it_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, mark = tmp_path / "[a](command:b)", tmp_path / "ran"
    (folder / "house").mkdir(parents=True)
    (folder / "house" / "house_rule.py").write_text(RULE.format(mark=str(mark)))
    (folder / "inner").mkdir()
    (folder / "inner" / "advisor.toml").write_text('rules = ["../house"]\n')
    shown: list[str] = []

    async def used(editor: Editor) -> None:
        @editor.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def message(params: Any) -> None:
            shown.append(params.message)

        (editor.folder / "advisor.toml").write_text('rules = ["house"]\n')
        for name in ("a.yaml", "b.yaml"):
            assert "house-rule" not in codes(await editor.open(name, CONFIG))
        await editor.until(lambda: bool(shown))
        assert not mark.exists() and len(shown) == 1
        assert "are not run" in shown[0] and "](" not in shown[0]
        trust = [sys.executable, "-m", "advisor", "trust", str(folder)]
        subprocess.run(trust, check=True, capture_output=True)
        assert "house-rule" in codes(await editor.open("c.yaml", CONFIG))
        assert mark.exists()

    with_editor(folder, used)


@pytest.mark.slow
def test_hover_over_the_model_shows_the_flowchart_and_what_the_room_is_good_for(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG)
        said = await editor.hover("run.yaml", "base_model")
        assert "| gradient checkpointing | done |" in said and "| LoRA | done |" in said
        assert "| same training | 1 | 19.8 |" in said and "**same training**\n\n1. micro batch 8 -> 1" in said
        assert "Does not fit: needs 44.8 GiB on 1x RTX 4090" in said and "+5% time: quick fix" in said
        await editor.type("run.yaml", ROOMY)
        said = await editor.hover("run.yaml", "base_model")
        assert "**faster, same training**\n\n1. no gradient checkpointing" in said
        assert "flowchart" not in said and "--fix" not in said

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_the_room_that_is_left_is_used_with_one_edit(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", ROOMY)
        found = await editor.actions("run.yaml")
        (title,) = (title for title in found if "Use the free memory: faster, same training, " in title)
        after = editor.accept(found[title])["run.yaml"]
        assert after != ROOMY and "# é𝄞" in after
        assert "does-not-fit" not in codes(await editor.type("run.yaml", after))
        await editor.type("run.yaml", CONFIG)
        assert not [title for title in await editor.actions("run.yaml") if "Use the" in title]

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_the_verdict_is_a_hint_at_base_model(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG)
        asked = lsp.InlayHintParams(lsp.TextDocumentIdentifier(editor.uri("run.yaml")), editor.whole("run.yaml"))
        (hint,) = await editor.client.text_document_inlay_hint_async(asked)
        assert hint.label == "does not fit 1x RTX 4090: 44.8 of 23.1 GiB"
        assert (hint.position.line, hint.position.character) == (1, len(CONFIG.split("\n")[1]) + 1)

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_the_editor_may_state_the_gpus(tmp_path: Path):
    text = CONFIG.partition("\n")[2]

    async def used(editor: Editor) -> None:
        assert "does-not-fit" in codes(await editor.open("run.yaml", text))

    with_editor(tmp_path, used, {"gpus": "1x rtx-4090"})


@pytest.mark.slow
def test_a_plan_is_dropped_at_the_next_key_and_keys_are_answered(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG)
        asked = asyncio.create_task(editor.actions("run.yaml"))
        await asyncio.sleep(0.01)
        for batch in range(2, 40):
            await editor.type("run.yaml", CONFIG.replace("micro_batch_size: 8", f"micro_batch_size: {batch}"))
        assert not any("Make it fit" in title for title in await asked)
        assert any("Make it fit" in title for title in await editor.actions("run.yaml"))

    with_editor(tmp_path, used)


def measured(folder: Path, changes: int = 60) -> float:
    """The median of the seconds from a change to its findings; for benchmarks, not asserted."""
    times: list[float] = []

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG)
        for change in range(changes):
            start = time.perf_counter()
            await editor.type("run.yaml", CONFIG.replace("micro_batch_size: 8", f"micro_batch_size: {1 + change % 16}"))
            times.append(time.perf_counter() - start)
            if change % 10 == 9:
                await asyncio.sleep(0.4)

    with_editor(folder, used)
    return statistics.median(times)


@pytest.mark.slow
def test_a_large_text_is_checked_when_it_is_opened_and_saved_and_questions_are_answered_meanwhile(tmp_path: Path):
    """Without a limit each key would take seconds; the plan alone half a minute."""
    large = CONFIG + "".join(f"key_{number}_unknown: {number}\n" for number in range(40_000))

    async def used(editor: Editor) -> None:
        uri, identifier = editor.uri("run.yaml"), lsp.TextDocumentIdentifier(editor.uri("run.yaml"))
        assert codes(await editor.open("run.yaml", large)) == ["too-large"]
        assert await editor.hover("run.yaml", "micro_batch_size") == ""
        await editor.until(lambda: "does-not-fit" in codes(editor.said[uri]))
        for typed in range(3):
            editor.send("run.yaml", f"# {typed}\n{large}")
        assert codes(await editor.next("run.yaml")) == ["too-large"]
        assert await editor.actions("run.yaml") == {}
        editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(identifier))
        await editor.until(lambda: "unknown-key" in codes(editor.said[uri]))
        assert await editor.type("run.yaml", large.replace("\n", "\r\n")) != []
        assert "does-not-fit" in codes(await editor.type("run.yaml", CONFIG))

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_a_large_text_that_is_no_config_is_left_alone(tmp_path: Path):
    async def used(editor: Editor) -> None:
        assert await editor.open("data.json", json.dumps([{"text": "x"}] * 20_000)) == []
        assert codes(await editor.open("broken.yaml", "base_model: [\n" + "# a\n" * 20_000)) == ["too-large"]
        await editor.until(lambda: codes(editor.said[editor.uri("broken.yaml")]) == ["unreadable"])
        assert codes(await editor.open("other.yaml", "a: base_model\n" + "# a\n" * 20_000)) == ["too-large"]
        await editor.until(lambda: editor.said[editor.uri("other.yaml")] == [])

    with_editor(tmp_path, used)


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        [],
        {"textDocument": {"uri": "file:///x.yaml"}},
        {"textDocument": {"uri": "file:///x.yaml"}, "position": {"line": -1, "character": 0}},
        {"textDocument": {"uri": "file:///x.yaml"}, "position": {"line": 2**40, "character": 2**40}},
        {"textDocument": {"uri": "file:///x.yaml"}, "position": {"line": 999999, "character": 0}},
        {"textDocument": {"uri": 7}, "position": None},
    ],
)
def test_a_hover_that_cannot_be_read_is_answered_with_nothing(params: object):
    answers = talked({"id": 7, "method": "textDocument/hover", "params": params})
    assert [answer["result"] for answer in answers if answer.get("id") == 7] == [None]


@pytest.mark.slow
def test_odd_messages_end_nothing():
    place = {"textDocument": {"uri": "file:///x.yaml"}}
    answers = talked(
        {"method": "textDocument/didOpen"},
        {"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "x:", "text": "base_model: a"}}},
        {"method": "textDocument/didChange", "params": {**place, "contentChanges": [{"text": "a"}]}},
        {"method": "textDocument/didChange", "params": {**place, "contentChanges": "a"}},
        {"method": "textDocument/didSave", "params": []},
        {"method": "textDocument/didClose", "params": place},
        {"method": "textDocument/didClose", "params": {"textDocument": {"uri": "\x00"}}},
        {"method": "$/cancelRequest", "params": {"id": 99}},
        {"method": "$/setTrace"},
        {"method": "no/such", "params": {"a": [None]}},
        {"id": 3, "method": "no/such"},
        {"id": 4, "method": "textDocument/codeAction", "params": place},
        {"id": 5, "method": "textDocument/inlayHint"},
        {"id": 6, "method": 7},
        {"id": 7, "method": "textDocument/hover", "params": place},
    )
    by_id = {answer["id"]: answer for answer in answers if "id" in answer}
    assert by_id[4]["result"] == [] and by_id[5]["result"] == [] and by_id[7]["result"] is None
    assert "error" in by_id[3]


def talked(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """What a server answers to messages as they are, between a start and an end as they should be; it exits with 0."""
    start = {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}}
    end = ({"id": 2, "method": "shutdown"}, {"method": "exit"})
    bodies = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in (start, *messages, *end)]
    sent = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies)
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "server"], input=sent, capture_output=True, timeout=LONGEST, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(part) for part in re.findall(rb"\r\n\r\n(\{.*?\})(?=Content-Length|\Z)", done.stdout, re.DOTALL)]


@pytest.mark.slow
def test_a_closed_file_has_no_findings(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG)
        identifier = lsp.TextDocumentIdentifier(editor.uri("run.yaml"))
        editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(identifier))
        await editor.until(lambda: editor.said[editor.uri("run.yaml")] == [])

    with_editor(tmp_path, used)


def test_without_pygls_the_command_says_what_to_install():
    hidden = "import sys; sys.modules['pygls'] = None; sys.modules['lsprotocol'] = None\n"
    hidden += "from advisor.cli.main import main; main(['server'])"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and 'pip install "axolotl-advisor[lsp]"' in done.stderr


README = Path(__file__).parents[3] / "plugins" / "language_server" / "README.md"


def test_the_settings_of_the_editors_can_be_read():
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", README.read_text(), re.DOTALL))
    assert set(blocks) == {"sh", "json", "lua", "toml", "jsonc"}
    assert json.loads(blocks["json"])["glspc.server.commandArguments"] == ["server"]
    helix = toml_library().loads(blocks["toml"])
    assert helix["language-server"]["advisor"] == {"command": "advisor", "args": ["server"]}
    zed = yaml.safe_load(blocks["jsonc"])
    assert zed["lsp"]["advisor"]["binary"]["arguments"] == ["server"]
    assert '{ "advisor", "server" }' in blocks["lua"]


MADE = (
    CONFIG.replace("adapter: lora\n", "")
    .replace("1x rtx-4090", "4x a100-40gb")
    .replace("micro_batch_size: 8", "micro_batch_size: 1")
    .replace("num_epochs: 1", "num_epochs: 1\ndeepspeed: deepspeed_configs/zero1.json")
    .replace("lora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n", "")
)
"""Its plan makes a JSON."""


@pytest.mark.slow
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_json_that_an_action_made_counts_as_there_before_it_is_saved(tmp_path: Path, on_disk: bool):
    """Neovim makes an empty file and fills a buffer that it tells nobody of."""

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", MADE)
        found = await editor.actions("run.yaml")
        (fit,) = (each for title, each in found.items() if "Make it fit: " in title)
        after = editor.accept(fit)
        (new,) = (name for name in after if name.endswith(".json"))
        if on_disk:
            (tmp_path / new).touch()
        said = codes(await editor.type("run.yaml", after["run.yaml"]))
        assert "missing-deepspeed-file" in said or codes(editor.said[editor.uri(new)]) == ["unreadable"]
        told = lsp.ExecuteCommandParams(fit.command.command, arguments=fit.command.arguments)
        editor.news[editor.uri("run.yaml")] = asyncio.Event()
        await editor.client.workspace_execute_command_async(told)
        assert not {"does-not-fit", "missing-deepspeed-file", "unreadable"} & set(codes(await editor.next("run.yaml")))
        assert codes(editor.said.get(editor.uri(new), [])) == []
        (tmp_path / new).write_text('{"zero_optimization": {"stage": 1}}')
        assert "does-not-fit" in codes(await editor.type("run.yaml", after["run.yaml"] + "# saved\n"))

    with_editor(tmp_path, used)


@pytest.mark.slow
def test_each_step_that_helps_is_an_action_of_its_own(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG.replace("sequence_len: 2048", "sequence_len: 4096"))
        found = await editor.actions("run.yaml")
        (batch,) = (title for title in found if "Step 1 alone: micro batch 8 -> 2, accumulation 1 -> 4 (" in title)
        (loss,) = (title for title in found if "Step 2 alone: fused loss (Liger) (" in title)
        after = editor.accept(found[batch])["run.yaml"]
        assert "micro_batch_size: 2" in after and "Liger" not in after and "# é𝄞" in after
        after = editor.accept(found[loss])["run.yaml"]
        assert "micro_batch_size: 8" in after and "LigerPlugin" in after
        before, _, reached = re.findall(r"\(([\d.]+) (->) ([\d.]+) GiB", batch)[0]
        assert float(reached) < float(before)
        said = await editor.hover("run.yaml", "base_model")
        assert f"{before} -> {reached} GiB" in said

    with_editor(tmp_path, used)


def test_gpus_are_stated_by_an_action_that_says_what_follows(tmp_path: Path):
    text = CONFIG.partition("\n")[2]

    async def used(editor: Editor) -> None:
        assert "unknown-hardware" in codes(await editor.open("run.yaml", text))
        asked = lsp.InlayHintParams(lsp.TextDocumentIdentifier(editor.uri("run.yaml")), editor.whole("run.yaml"))
        (hint,) = await editor.client.text_document_inlay_hint_async(asked)
        assert hint.label == "needs 44.8 GiB; no GPUs stated"
        found = await editor.actions("run.yaml")
        stated = [title for title in found if "State GPUs: " in title]
        assert "advisor: State GPUs: 1x RTX 4090 (does not fit: 44.8 of 23.1 GiB)" in stated
        assert ": fits" in stated[0].replace("(fits", ": fits"), "first the smallest that would do"
        after = editor.accept(found["advisor: State GPUs: 1x RTX 4090 (does not fit: 44.8 of 23.1 GiB)"])["run.yaml"]
        assert after == f"# advisor: gpus=1x rtx-4090\n{text}"
        assert "does-not-fit" in codes(await editor.type("run.yaml", after))
        assert not [title for title in await editor.actions("run.yaml") if "State GPUs" in title]

    with_editor(tmp_path, used)


def test_the_verdict_says_the_answer_once_typing_pauses(tmp_path: Path):
    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", CONFIG)

        def answered() -> bool:
            return any(
                "1 edit brings it down to 19.8 GiB" in each.message for each in editor.said[editor.uri("run.yaml")]
            )

        assert not answered()
        await editor.until(answered)
        (verdict,) = (each for each in editor.said[editor.uri("run.yaml")] if each.code == "does-not-fit")
        assert "quick fix" in verdict.message and "--fix" not in verdict.message
        assert "batch size 1 needs" in verdict.message and "ignore[does-not-fit]" in verdict.message

    with_editor(tmp_path, used)


def test_completion_over_the_protocol_replaces_the_word_that_is_typed(tmp_path: Path):
    text = CONFIG.replace("optimizer: adamw_torch_fused", "optimizer: 8b")

    async def used(editor: Editor) -> None:
        await editor.open("run.yaml", text)
        line = text[: text.index("optimizer: 8b")].count("\n")
        where = (lsp.TextDocumentIdentifier(editor.uri("run.yaml")), lsp.Position(line, len("optimizer: 8b")))
        found = await editor.client.text_document_completion_async(lsp.CompletionParams(*where))
        (item,) = (each for each in found if each.label == "adamw_bnb_8bit")
        assert "optimizer: adamw_bnb_8bit\n" in edited(text, [item.text_edit])

    with_editor(tmp_path, used)
