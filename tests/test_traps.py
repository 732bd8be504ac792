"""A folder full of traps through every command and front end.

Nothing of it runs, nothing outside of it is shown or written, and nothing of it is more than text in what is said.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from advisor.report import FORMATS

from . import traps
from .plugins.gitlab.test_comment import gitlab  # noqa: F401 (a fixture)
from .plugins.test_github_action import GH, Job, commands

pytestmark = pytest.mark.slow

ADVISOR = str(Path(sys.executable).with_name("advisor"))
GPU = ("--gpus", "1x rtx-4090")
MARKDOWN = MarkdownIt("commonmark").enable("table")
TAGS = {"details", "summary", "b", "sub", "code"}
"""What our Markdown writes as HTML."""
OF_THE_FOLDER = "evil.example"


class World:
    """The folder, what lies around it, and what has run."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.away, self.marks = root, root / "folder", root / "outside", root / "ran"
        for path in (self.folder, self.away, self.marks, root / "out", root / "home", root / "state"):
            path.mkdir()
        traps.outside(self.away, self.marks)
        traps.fill(self.folder, self.away, self.marks)
        self.before = traps.content(self.away), traps.content(self.folder)

    @property
    def environment(self) -> dict[str, str]:
        """As a user has it, with nothing that leads into the folder."""
        dropped = ("GIT_", "PYTHON", "ADVISOR_", "GITHUB_", "CI", "RANK", "LOCAL_RANK")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        return kept | {
            "HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CACHE_HOME": str(self.root / "state"),
            "CUDA_VISIBLE_DEVICES": "",
        }

    def run(self, *command: str, codes: Sequence[int] = (0, 1, 2), text: str = "") -> str:
        """All that a command says."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=300,
        )
        said = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
        assert done.returncode in codes and "Traceback" not in said, said
        return said

    def advisor(self, *words: str, codes: Sequence[int] = (0, 1, 2), text: str = "") -> str:
        """All that the advisor says."""
        return self.run(ADVISOR, *words, codes=codes, text=text)

    def python(self, script: str) -> str:
        """All that a script says, in a Python without the working directory, as axolotl's own command has it."""
        return self.run(sys.executable, "-I", "-c", script, codes=(0, 1))

    def held(self, *said: str) -> None:
        """Nothing ran, nothing outside was read out or written."""
        assert sorted(path.name for path in self.marks.iterdir()) == []
        for text in said:
            assert traps.SECRET not in text, text
        away, folder = self.before
        assert traps.content(self.away) == away
        assert traps.content(self.folder) == folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("traps"))


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    """The same for all tests, which leave it as it was."""
    yield shared
    shared.held()


@pytest.fixture
def own(tmp_path: Path) -> World:
    """One to write into."""
    return World(tmp_path)


def plain(text: str) -> None:
    """No line of a terminal is steered."""
    assert all(mark.isprintable() or mark in "\n\t" for mark in text.replace("\u00a0", "")), repr(text)


def no_command(text: str) -> None:
    """No line of a log is a command of GitHub's but our own."""
    for line in commands(text):
        assert re.match(r"::(error|warning|notice) title=advisor[\w ()-]*(,file=[^:,]+(,\w+=\d+)+)?::", line), line


class Tags(HTMLParser):
    """Every tag, address and handler of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        addresses = [str(value) for name, value in attrs if name in ("src", "href", "action", "style", "srcset")]
        assert not any(OF_THE_FOLDER in value or "command:" in value for value in addresses), addresses
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        self.found.append(tag)


def no_markup(page: str, allowed: set[str] | None = None) -> None:
    """A page holds no tag, address or handler of the folder's."""
    tags = Tags()
    tags.feed(page)
    assert not {"img", "script", "iframe", "object", "embed"} & set(tags.found)
    assert allowed is None or set(tags.found) <= allowed


def no_markdown(text: str) -> None:
    """A comment holds no tag, image, link or mention of the folder's, and no line is a command of GitLab's."""
    html = MARKDOWN.render(text)
    no_markup(html)
    raw = {
        token.content
        for block in MARKDOWN.parse(text)
        for token in (block.children or [block])
        if token.type in ("html_inline", "html_block")
    }
    assert all(set(re.findall(r"</?(\w+)", tag)) <= TAGS for tag in raw), raw
    shown = re.sub(r"<(code|pre)[^>]*>.*?</\1>", "", html, flags=re.DOTALL)
    assert not any(mark in shown for mark in (f"://{OF_THE_FOLDER}", "www.evil", "@octocat", "#12")), shown
    assert not any(line.startswith("/") for line in text.splitlines())


def messages(value: Any) -> Iterator[str]:
    """Every message of a SARIF log, in which links may be embedded (3.11)."""
    if isinstance(value, dict) and isinstance(value.get("text"), str) and "startLine" not in value:
        yield value["text"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from messages(inner)


def test_what_is_checked_in_every_format(world: World):
    out = world.root / "out"
    options = [word for name in FORMATS for word in ("--output-format", f"{name}={out / name}")]
    said = world.advisor("check", *GPU, *options, ".", codes=(2,))
    assert "are not run" in said and "advisor trust" in said
    written = {name: (out / name).read_text(encoding="utf-8") for name in FORMATS}
    for name, text in written.items():
        world.held(text)
        assert name in ("github-review", "gitlab-review") or "run.yaml" in text, name
        plain(text)
    no_command(written["github"])
    no_markup(written["html"])
    no_markdown(written["markdown"])
    for name in ("json", "sarif", "gitlab"):
        json.loads(written[name])
    for message in messages(json.loads(written["sarif"])):
        assert not re.search(r"(?<!\\)\[[^\[\]]*\]\(", message), message
    plain(said)


@pytest.mark.parametrize(
    "words",
    [
        ("check", "run.yaml"),
        ("check", *GPU, "--output-format", "github", "."),
        ("check", *GPU, "--diff", "--unsafe-fixes", "run.yaml", "ds.yaml", "ds2.yaml", "ds3.yaml"),
        ("check", *GPU, "--changed-since", "base", "--output-format", "concise", "."),
        ("check", *GPU, "--against", "base", "--output-format", "concise", "run.yaml", "moved.yaml", "hard.yaml"),
        ("check", *GPU, "linked-run.yaml", "linked/run.yaml"),
        ("check", *GPU, "hangs/run.yaml", "deep", "model.yaml"),
        ("check", *GPU, "sub/run.yaml"),
        ("check", *GPU, "--flowchart", "theirs", "run.yaml"),
        ("check", *GPU, "--flowchart", "advisor.toml", "run.yaml"),
        ("check", *GPU, "--", "names", "names/--fix.yaml"),
        ("estimate", *GPU, "--ledger", "run.yaml"),
        ("estimate", *GPU, "--output-format", "json", "run.yaml"),
        ("estimate", *GPU, "ds2.yaml"),
        ("estimate", *GPU, "--max", "sequence_len", "model.yaml"),
        ("hardware", "--cards", "h100", "--output-format", "markdown", "run.yaml"),
        ("hardware", "--cards", "h100", "--output-format", "json", "run.yaml"),
        ("oom", *GPU, "--config", "run.yaml", "train.log"),
        ("oom", "train.log"),
        ("launch", *GPU, "--", "/bin/true", "run.yaml"),
        ("launch", *GPU, "--", "accelerate", "launch", "-m", "axolotl.cli.train", "run.yaml"),
        ("rule",),
        ("rule", "--output-format", "json", "house-rule"),
        ("trust", "--list"),
        ("trust", "--remove"),
        ("trust", "names"),
        ("test",),
        ("accuracy",),
    ],
    ids=lambda words: " ".join(words),
)
def test_what_is_said_on_a_terminal(world: World, words: tuple[str, ...]):
    said = world.advisor(*words)
    world.held(said if "linked-run.yaml" not in words else "")
    plain(said)
    if "github" in words:
        no_command(said)


def test_standard_input(world: World):
    said = world.advisor("check", *GPU, "-", text=traps.config())
    world.held(said)
    plain(said)


def test_pages(world: World):
    for words in (
        ("check", *GPU, "--output-format", "html", "run.yaml", "moved.yaml", "ds.yaml"),
        ("estimate", *GPU, "--output-format", "html", "run.yaml"),
        ("hardware", "--cards", "h100", "--output-format", "html", "run.yaml"),
    ):
        said = world.advisor(*words)
        world.held(said)
        no_markup(said[said.find("<") :])


def test_reviews(world: World):
    out = world.root / "out"
    options = [
        word
        for name in ("github-review", "gitlab-review", "markdown")
        for word in ("--output-format", f"{name}={out / name}")
    ]
    world.advisor("check", *GPU, "--against", "base", *options, "run.yaml", "moved.yaml")
    review = json.loads((out / "github-review").read_text())
    assert review["comments"]
    for body in [each["body"] for each in review["comments"]] + [(out / "markdown").read_text()]:
        world.held(body)
        no_markdown(re.sub(r"^<!-- axolotl-advisor \w+ -->\n", "", body))
    assert json.loads((out / "gitlab-review").read_text())


@pytest.mark.parametrize("options", [("--fix",), ("--fix", "--unsafe-fixes")])
def test_what_is_fixed_is_of_the_folder(own: World, options: tuple[str, ...]):
    away, before = own.before
    said = own.advisor(
        "check", *GPU, *options, "run.yaml", "ds.yaml", "ds2.yaml", "ds3.yaml", "hard.yaml", "moved.yaml"
    )
    said += own.advisor("check", *GPU, *options, "linked/run.yaml", "linked-run.yaml")
    said += own.advisor("check", *GPU, *options, "--output-dir", "linked", "run.yaml")
    said += own.advisor("check", *GPU, "-o", "linked-report.md", "--output-format", "json=linked/out.json", "run.yaml")
    said += own.advisor("estimate", *GPU, "--timeline", "linked/step.svg", "run.yaml")
    assert traps.content(own.away) == away and not list(own.marks.iterdir())
    after = traps.content(own.folder)
    changed = {os.path.relpath(name, own.folder) for name in after if after[name] != before.get(name)}
    assert changed <= {"run.yaml", "moved.yaml", "ds.yaml", "ds2.yaml", "ds3.yaml", "hard.yaml", *new_jsons(changed)}
    assert "run.yaml" in changed and before.keys() <= after.keys(), said
    plain(said)


def new_jsons(names: set[str]) -> set[str]:
    """DeepSpeed JSONs that a plan writes next to a YAML."""
    return {name for name in names if re.fullmatch(r"(run|moved|ds\d?|hard)\.[\w-]+\.json", name)}


PLUGIN = """
import logging, sys, types, yaml
base = types.ModuleType("axolotl.integrations.base")
base.BasePlugin = type("BasePlugin", (), {})
for name in ("axolotl", "axolotl.integrations"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[base.__name__] = base
sys.argv = ["/venv/bin/axolotl", "train", "run.yaml"]
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from advisor.plugins.axolotl import AdvisorPlugin
config = yaml.safe_load(open("run.yaml")) | {"axolotl_config_path": "run.yaml"}
config["advisor"] = {"mode": MODE, "gpus": "1x rtx-4090"}
AdvisorPlugin().register(config)
"""
ADVISE = """
import sys
from advisor.plugins.axolotl.advise import advise
advise(["--gpus", "1x rtx-4090", "run.yaml"])
"""
TEXT = """
import advisor
text = open("run.yaml").read()
for report in (
    advisor.check_text(text, file="run.yaml", settings=True, gpus="1x rtx-4090"),
    advisor.check_text(text, file="ds2.yaml", files={"x.json": "{}"}),
    advisor.check("run.yaml", gpus="1x rtx-4090"),
    advisor.check("ds.yaml"),
):
    print(report.verdict, [ascii(finding.message) for finding in report.findings])
print(advisor.estimate("run.yaml", gpus="1x h200").verdict, advisor.step_time("run.yaml", gpus="1x h200").low)
"""


@pytest.mark.parametrize(
    "script",
    [PLUGIN.replace("MODE", "'block'"), PLUGIN.replace("MODE", "'warn'"), ADVISE, TEXT],
    ids=["block", "warn", "advise", "python"],
)
def test_axolotl_and_python(world: World, script: str):
    said = world.python(script)
    assert "fit" in said
    world.held(said)
    plain(said)


WEB = """
import json, sys
from advisor.plugins.web import answering
text = sys.argv[1]
request = json.dumps({"config": text, "gpus": "1x rtx-4090", "files": {"ds.json": sys.argv[2]}})
for asked in (answering.quick, answering.full, answering.others, answering.reserved, answering.matrix):
    print(asked(request))
menus = {"model": text, "method": "lora", "length": 2048, "tokens": 1e8, "gpus": "1x rtx-4090", "files": {}}
for asked in (answering.draft, answering.ways):
    print(asked(json.dumps(menus)))
"""


def test_the_page(world: World):
    config = traps.config() + "deepspeed: ds.json\n"
    zero = json.dumps(
        {"zero_optimization": {"stage": 2, "<img src=x onerror=alert(1)>": 1}, **dict.fromkeys(traps.KEYS, 1)}
    )
    said = world.run(sys.executable, "-I", "-c", WEB, config, zero, codes=(0,))
    for line in filter(None, said.splitlines()):
        answer = json.loads(line)
        no_markup(answer.get("top", "") + answer.get("html", ""))
        world.held(answer.get("top", "") + answer.get("html", ""))


def test_agents(world: World):
    pytest.importorskip("mcp", reason="the SDK `mcp` is not installed")
    from .plugins.mcp.test_server import answers_to

    paths = ("run.yaml", "linked/run.yaml", "linked-run.yaml", "../outside/run.yaml")
    paths += ("ds2.yaml", "hangs/run.yaml", "names/--fix.yaml")
    calls = [(tool, {"path": path, "gpus": "1x rtx-4090"}) for path in paths for tool in ("check", "plan")]
    calls += [("estimate", {"path": "run.yaml"}), ("hardware", {"path": "run.yaml"})]
    given: dict[str, Any] = {"config": traps.config(), "files": {"linked/config.json": "{}"}}
    calls += [("explain", {"rule": "house-rule"}), ("check", given)]
    started = {"cwd": world.folder, "env": world.environment, "stderr": subprocess.DEVNULL}
    texts = answers_to(Path("."), *calls, command=(ADVISOR, "mcp"), **started)
    world.held(*texts)
    assert all("is not below" in text for text in texts[2:8])
    assert "are not run" in texts[0]


def test_editors(world: World):
    pytest.importorskip("pygls.lsp.client", reason="pygls is not installed")
    from .plugins.language_server.test_server import Editor, lsp

    shown: list[str] = []

    async def talk() -> None:
        editor = Editor(world.folder)

        @editor.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def message(params: Any) -> None:
            shown.append(params.message)

        await editor.client.start_io(ADVISOR, "server", cwd=str(world.folder), env=world.environment)
        asked = lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=world.folder.as_uri())
        await editor.client.initialize_async(asked)
        editor.client.initialized(lsp.InitializedParams())
        for name in ("run.yaml", "ds2.yaml", "linked/run.yaml", "hangs/run.yaml"):
            text = (world.folder / name).read_text()
            said = await editor.open(name, text)
            for each in said if name != "linked/run.yaml" else []:
                plain(each.message)
                world.held(each.message)
            for number, _ in enumerate(text.split("\n") if name == "run.yaml" else []):
                place = lsp.HoverParams(lsp.TextDocumentIdentifier(editor.uri(name)), lsp.Position(number, 2))
                found = await editor.client.text_document_hover_async(place)
                if found is not None:
                    world.held(found.contents.value)
                    no_markdown(found.contents.value)
            for title in await editor.actions(name):
                plain(title)
        await editor.stop()

    asyncio.run(talk())
    assert any("are not run" in line for line in shown)
    for line in shown:
        plain(line)


@pytest.mark.parametrize("event", ["pull_request_target", "pull_request"])
def test_the_action(own: World, event: str):
    base = subprocess.run(["git", "rev-parse", "base"], cwd=own.folder, check=True, capture_output=True, text=True)
    traps.write(own.root / "bin" / "gh", GH, 0o755)
    (own.root / "output").touch()
    job = Job(own.folder, {"gpus": "1x rtx-4090"}, event=event, base=base.stdout.strip())
    job = Job(own.folder, {"gpus": "1x rtx-4090", "rules": "", "paths": "."}, event=event, base=job.base)
    texts = ""
    for step in ("Check", "Comment", "Suggest"):
        done = job.step(step, HOME=str(own.root / "home"))
        assert done.returncode == 0, done.stderr
        texts += done.stdout + done.stderr
    no_command(texts)
    # The base's rules are the repository's own: they ran, from where they were written to.
    assert [path.name for path in own.marks.iterdir()] in ([], ["rule"])
    for mark in own.marks.iterdir():
        mark.unlink()
    body = job.read("gh.log.body")
    assert body.startswith("<!-- axolotl-advisor -->")
    no_markdown(body.partition("\n")[2])
    own.held(texts, body, job.read("summary"), job.read("advisor.html"), job.read("advisor.sarif"))
    no_markup(job.read("advisor.html"))


def test_the_comment_on_gitlab(own: World, gitlab: Any, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    out = own.root / "out"
    forms = ("markdown", "gitlab-review")
    options = [word for name in forms for word in ("--output-format", f"{name}={out / name}")]
    own.advisor("check", *GPU, "--against", "base", *options, "run.yaml")
    names = [name for name in os.environ if name.startswith(("CI_", "ADVISOR_"))]
    environment = own.environment | {name: os.environ[name] for name in names}
    for report, review in (("linked-report.md", "linked-review.json"), (str(out / forms[0]), str(out / forms[1]))):
        command = [ADVISOR, "gitlab-comment", report, review]
        done = subprocess.run(command, cwd=own.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0
        own.held(done.stdout + done.stderr)
        assert ("is a link" in done.stdout) == report.startswith("linked")
    sent = [body["body"] for _, _, body in gitlab.asked if body]
    assert len(sent) >= 2
    for body in sent:
        own.held(body)
        no_markdown(re.sub(r"^<!-- axolotl-advisor[ \w]* -->\n", "", body))


def test_what_is_trusted_runs(own: World):
    """The traps would show: the same folder, once its rules are trusted or named."""
    for words in (("trust", "."), ("check", "--rules", "house", "run.yaml")):
        own.advisor(*words, codes=(0, 2, 3))
    assert [path.name for path in own.marks.iterdir()] == ["rule"]
