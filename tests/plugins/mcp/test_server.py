"""The server, asked by the SDK's own client over standard input and output."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from threading import Timer
from typing import Any

import anyio
import jsonschema
import pytest
from click.testing import CliRunner

from advisor.cli.main import PLUGINS, main
from advisor.session import RunOptions

mcp: Any = pytest.importorskip("mcp.client.client", reason="the SDK `mcp` is not installed")
stdio: Any = pytest.importorskip("mcp.client.stdio")

ROOT = Path(__file__).parents[3]
INSTRUCTIONS: str = importlib.import_module("advisor.plugins.mcp.server").INSTRUCTIONS
SAMPLES = ROOT / "sample_configs"
ADVISOR = [sys.executable, "-m", "advisor", "mcp"]
LORA = "lora-8b-large-batch.yaml"
Call = tuple[str, dict[str, Any]]
TOOLS = ["check", "plan", "estimate", "max", "oom", "hardware", "new", "explain"]
MOST_READ = 9000
"""Bytes of names, descriptions and arguments, which a model reads."""
MOST_LISTED = 20_000
"""The same with the schemas of the answers, which clients read."""
MOST = {"check": 1100, "plan": 900, "estimate": 2400, "max": 300, "oom": 1100, "hardware": 2700, "explain": 800}
"""Bytes of the answers about one sample."""
DEATH = """\
Traceback (most recent call last):
  File "/site-packages/transformers/trainer.py", line 3736, in training_step
    loss = self.compute_loss(model, inputs)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 23.53 GiB of \
which 1.20 GiB is free. Including non-PyTorch memory, this process has 22.32 GiB memory in use. Of the allocated \
memory 21.20 GiB is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated.
"""
SMALL = """\
base_model: Qwen/Qwen3-0.6B
datasets: [{path: a, type: alpaca}]
learning_rate: 1e-5
bf16: true
flash_attention: true
adapter: lora
lora_r: 8
lora_target_linear: true
gradient_checkpointing: true
micro_batch_size: 1
gradient_accumulation_steps: 4
sequence_len: 2048
num_epochs: 1
"""


def asked(folder: Path, *calls: Call, options: tuple[str, ...] = ()) -> list[Any]:
    """The results of calls in one session."""
    found: list[Any] = []

    async def talk() -> None:
        server = stdio.StdioServerParameters(
            command=sys.executable, args=["-m", "advisor", "mcp", "--root", str(folder), *options]
        )
        async with mcp.Client(stdio.stdio_client(server)) as client:
            found.append(await client.list_tools())
            for name, arguments in calls:
                found.append(await client.call_tool(name, arguments))

    anyio.run(talk)
    return found


def text(result: Any) -> str:
    (block,) = result.content
    return block.text


def answer(result: Any) -> Any:
    """What a call answers, which is the same as text and as a value."""
    assert not result.is_error, text(result)
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root") / "configs"
    shutil.copytree(SAMPLES, folder)
    (folder.parent / "secret.yaml").write_text("base_model: SECRET\n")
    (folder / "link.yaml").symlink_to(folder.parent / "secret.yaml")
    return folder


@pytest.mark.slow
def test_an_agent_checks_plans_and_chooses_cards(folder: Path):
    on = {"path": LORA, "gpus": "1x rtx-4090"}
    calls: list[Call] = [
        ("check", on),
        ("plan", on),
        ("estimate", on | {"ledger": True}),
        ("max", on | {"key": "micro_batch_size"}),
        ("oom", on | {"log": DEATH}),
        ("hardware", on | {"tokens": "10M"}),
        ("explain", {"rule": "zero-2"}),
    ]
    tools, *results = asked(folder, *calls)
    assert [tool.name for tool in tools.tools] == TOOLS
    assert all(tool.annotations.read_only_hint for tool in tools.tools)
    read = [[tool.name, tool.description, tool.input_schema] for tool in tools.tools]
    assert len(json.dumps([INSTRUCTIONS, *read])) < MOST_READ
    assert sum(len(tool.model_dump_json(exclude_none=True)) for tool in tools.tools) < MOST_LISTED
    schemas = {tool.name: tool.output_schema for tool in tools.tools}
    for (name, _), result in zip(calls, results, strict=True):
        jsonschema.validate(answer(result), schemas[name])
        assert len(text(result).encode()) < MOST[name], name
    check, plan, estimate, most, oom, hardware, explained = map(answer, results)
    (option,) = check["options"]
    assert check["verdict"] == "does-not-fit" and option["id"] == "A" and option["recommended"]
    assert option["steps"][0]["rule"] == plan["steps"][0]["rule"] == "smaller-micro-batch"
    assert option["needed_gib"] == plan["after"]["needed_gib"][1] == plan["steps"][-1]["needed_gib"]
    assert plan["after"]["verdict"] == "fits" and "+micro_batch_size: 1" in plan["diff"]
    assert estimate["peak_phase"] == "forward and loss" and estimate["terms"][0]["gib"] > 10
    assert most["as_written"]["value"] == 1 and most["with_steps"]["value"] > 8
    assert oom["phase"] == "forward and loss" and oom["options"][0]["id"] == "A" and "remedies" not in oom
    costs = [card["cost"] for card in hardware["cards"]]
    assert costs == sorted(costs) and hardware["currency"] == "USD" and "cheapest" in hardware["cards"][0]["best"]
    assert explained["applicability"] == "safe"
    assert (folder / LORA).read_text() == (SAMPLES / LORA).read_text()


@pytest.mark.slow
def test_an_agent_gets_a_config_from_a_blank_page(folder: Path):
    (folder / "rows.jsonl").write_text('{"prompt": "a", "chosen": "b", "rejected": "c"}\n' * 300)
    asks = {"model": "Qwen/Qwen3-8B", "data": "rows.jsonl", "gpus": "1x rtx-4090", "method": "dpo"}
    _, done, outside, unknown = asked(
        folder, ("new", asks), ("new", asks | {"data": "../secret.yaml"}), ("new", asks | {"method": "kto"})
    )
    said = answer(done)
    assert [way["training"] for way in said["ways"]] == ["full", "lora", "qlora"] and said["taken"] == "lora"
    assert "rl: dpo" in said["files"]["run.yaml"] and not (folder / "run.yaml").exists()
    assert "is not below" in text(outside) and "qlora-1b-kto" in text(unknown)


@pytest.mark.slow
def test_an_agent_hears_how_the_room_that_is_left_is_used(folder: Path):
    (folder / "small.yaml").write_text(SMALL + "lora_alpha: 16\n")
    _, result = asked(folder, ("check", {"path": "small.yaml", "gpus": "1x h100-80gb"}))
    said = answer(result)
    assert said["verdict"] == "fits" and [option["id"] for option in said["options"]] == ["F"]
    assert "no-checkpointing" in {each["rule"] for each in said["options"][0]["steps"]}


@pytest.mark.slow
def test_texts_that_are_on_no_disk_are_checked_with_their_json(folder: Path):
    config = "base_model: Qwen/Qwen3-8B\ndeepspeed: ds.json\nlearning_rate: 1e-5\ndatasets: [{path: a, type: alpaca}]\n"
    files = {"ds.json": '{"zero_optimization": {"stage": 7}}'}
    _, result = asked(folder, ("check", {"config": config, "files": files}), options=("--gpus", "8x h100-80gb"))
    said = answer(result)
    assert said["hardware"] == "8x H100-80GB SXM"
    assert any("ds.json" in found.get("file", "") and found["level"] == "error" for found in said["findings"])


@pytest.mark.slow
def test_rules_of_the_folder_are_not_run_and_the_answer_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
    (folder / "theirs" / "rules").mkdir(parents=True)
    (folder / "theirs" / "advisor.toml").write_text('rules = ["rules"]\n')
    (folder / "theirs" / "small.yaml").write_text(SMALL)
    rule = folder / "theirs" / "rules" / "house_rule.py"
    rule.write_text(f"open({str(folder.parent / 'ran')!r}, 'w')\nraise ValueError('it ran')\n")
    calls = [(name, {"path": "theirs/small.yaml", "gpus": "1x h200"}) for name in ("check", "estimate", "plan")]
    _, *results = asked(folder, *calls)
    for result in results:
        (note,) = answer(result)["notes"]
        assert "are not run" in note and "`advisor trust theirs`" in note
    assert not (folder.parent / "ran").exists()
    _, result = asked(folder, calls[0], options=("--rules", str(rule.parent)))
    assert result.is_error and "it ran" in text(result)


def answers_to(folder: Path, *calls: Call, command: Sequence[str] = ADVISOR, **started: Any) -> list[str]:
    """What comes back for calls, also those that the SDK's client would not send."""
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    sent: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
    ]
    for number, (name, arguments) in enumerate(calls, 1):
        sent.append({"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    with subprocess.Popen(
        [*command, "--root", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **started
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in sent))
        server.stdin.flush()
        ends = Timer(300, server.kill)
        ends.start()
        found = [json.loads(server.stdout.readline()) for _ in range(len(calls) + 1)]
        ends.cancel()
        server.stdin.close()
    return [each["result"]["content"][0]["text"] for each in sorted(found, key=lambda each: each["id"])[1:]]


@pytest.fixture
def sub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a server, which is a folder of a repository; what lies next to it is not the agent's to read."""
    root = tmp_path / "repo" / "sub"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    monkeypatch.chdir(root)
    return root


def schemas_of(own: Any) -> dict[str, Any]:
    """The schema of each tool's answers."""
    tools: list[Any] = anyio.run(own.list_tools)
    return {tool.name: tool.output_schema for tool in tools}


def server(root: Path = SAMPLES, gpus: str | None = "8x a100-80gb") -> Any:
    """A server in this process."""
    module: Any = importlib.import_module("advisor.plugins.mcp.server")
    return module.server_of(str(root), RunOptions(gpus=gpus, details=True))


def served(root: Path, name: str, arguments: dict[str, Any]) -> str:
    """What a tool of a server in this process says, also where it is an error."""
    strict: Any = importlib.import_module("advisor.plugins.mcp.strict")
    try:
        return text(anyio.run(server(root).call_tool, name, arguments))
    except strict.ToolError as error:
        return str(error)


SECRETS = {
    "auths": {"SECRET-KEY": "SECRET-1"},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "nvme_path": "SECRET-2"}},
    "gradient_clipping": "SECRET-3",
    "bf16": {"enabled": True},
}


@pytest.mark.parametrize("named", ["../x.json", "link.json", "absolute"])
@pytest.mark.parametrize("content", [json.dumps(SECRETS, indent=2), '{"bf16": "SECRET-1"}', '{"a": "SECRET-1" "b"}'])
def test_of_a_json_outside_the_root_only_names_of_keys_are_said(sub: Path, named: str, content: str):
    """Though it lies in the repository that the root is a folder of."""
    secret = sub.parent / "x.json"
    secret.write_text(content)
    (sub / "link.json").symlink_to(secret)
    config = SMALL.replace("adapter: lora\n", "").replace("batch_size: 1", "batch_size: 64")
    (sub / "run.yaml").write_text(f"{config}deepspeed: {secret if named == 'absolute' else named}\n")
    said = ""
    for name in ("check", "plan", "estimate", "hardware"):
        said += served(sub, name, {"path": "run.yaml"})
        said += served(sub, name, {"config": (sub / "run.yaml").read_text()})
    said += served(sub, "plan", {"path": "run.yaml", "option": "B", "text": True})
    assert "outside the repository" in said
    assert not re.search(r"SECRET-\d", said), said


def test_the_faster_plan_after_one_that_changes_the_training_has_its_adapter(sub: Path):
    whole = re.sub(r"(?m)^(adapter|lora).*\n", "", SMALL).replace("Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B")
    (sub / "run.yaml").write_text(whole)
    said = served(sub, "plan", {"path": "run.yaml", "option": "F", "gpus": "1x a100-40gb"})
    assert "+adapter: lora" in said and "+gradient_checkpointing: false" in said


def test_a_json_of_the_root_is_shown_from_each_of_its_folders(sub: Path):
    (sub / "x.json").write_text(json.dumps({"zero_optimization": {"stage": 7}, "bf16": {"enabled": True}}))
    (sub / "inner" / "run.yaml").write_text(f"{SMALL}deepspeed: ../x.json\n")
    said = served(sub, "check", {"path": "inner/run.yaml"})
    assert "x.json" in said and "outside the repository" not in said


@pytest.mark.parametrize("how", ["absolute", "above", "link", "link of its config", "comment", "home", "settings"])
def test_no_model_outside_the_root_is_read(sub: Path, monkeypatch: pytest.MonkeyPatch, how: str):
    model = sub.parent / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "SECRET"}')
    (sub / "link").symlink_to(model)
    (sub / "copy").mkdir()
    (sub / "copy" / "config.json").symlink_to(model / "config.json")
    (sub / "advisor.toml").write_text(f'[models]\n"acme/support" = "{model}"\n' if how == "settings" else "")
    monkeypatch.setenv("HOME", str(sub.parent))
    names = {
        "absolute": str(model),
        "above": "../model",
        "link": "link",
        "link of its config": "copy",
        "comment": f"acme/own  # advisor: model={model}/config.json",
        "home": "~/model",
        "settings": "acme/support",
    }
    (sub / "run.yaml").write_text(SMALL.replace("Qwen/Qwen3-0.6B", names[how]))
    said = served(sub, "check", {"path": "run.yaml"}) + served(sub, "estimate", {"path": "run.yaml"})
    assert "SECRET" not in said and "outside of the folder whose files may be read" in said
    assert "SECRET" not in served(sub, "check", {"path": "run.yaml", "model": "~/model"})


def test_a_model_of_the_root_is_read(sub: Path):
    (sub / "model").mkdir()
    (sub / "model" / "config.json").write_text('{"model_type": "of-the-root"}')
    (sub / "run.yaml").write_text(SMALL.replace("Qwen/Qwen3-0.6B", "./model"))
    assert "of-the-root" in served(sub, "check", {"path": "run.yaml"})


@pytest.mark.slow
def test_half_a_surrogate_pair_is_answered(folder: Path):
    config = "base_model: x/\ud800\U0001f600\\ud800\n"
    check, explain = answers_to(folder, ("check", {"config": config}), ("explain", {"rule": "\udc00"}))
    assert "base_model: x/\ufffd\U0001f600\\\\ud800" in check
    assert "unknown rule `\ufffd`" in explain


@pytest.mark.slow
def test_a_price_that_is_none_is_refused(folder: Path):
    for price in (-1, float("nan"), float("inf")):
        (said,) = answers_to(folder, ("hardware", {"path": LORA, "price": price}))
        assert f"`price` is {float(price)}" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("check", {"path": "a\0b.yaml"}, "a\ufffdb.yaml: is no path"),
        ("check", {"config": "a: 1", "files": {"a\0b": "{}"}}, "is no path"),
        ("check", {"path": "../secret.yaml"}, "start `advisor mcp --root DIR`"),
        ("check", {"path": "link.yaml"}, "is not below"),
        ("check", {"path": "/etc/hostname"}, "is not below"),
        ("check", {"config": "a: 1", "files": {"../x.json": "{}"}}, "is not below"),
        ("check", {}, "give one of the two"),
        ("check", {"path": "gone.yaml"}, "gone.yaml"),
        ("check", {"config": "a: [1"}, "config.yaml:1:6: not YAML"),
        ("estimate", {"path": LORA, "gpus": "1x rtx-9990"}, "name it as nvidia-smi does"),
        ("hardware", {"path": LORA, "tokens": "many"}, "--tokens 200M"),
        ("explain", {"rule": "zero-22"}, "did you mean `zero-2`?"),
        ("max", {"path": LORA}, "missing argument `key`"),
        ("max", {"path": LORA, "key": "lora_r"}, "`key` is 'lora_r': input should be 'micro_batch_size' or"),
        ("max", {"config": SMALL, "key": "sequence_len"}, "no GPUs are stated"),
        ("plan", {"path": LORA, "option": "C"}, "`option` is 'C'"),
        ("check", {"path": ["a"]}, "`path` is ['a']: input should be a valid string"),
        ("oom", {}, "give `log`, the text, or `log_path`"),
        ("oom", {"log": "all is well"}, "no out-of-memory error found"),
        ("oom", {"log_path": "../secret.yaml"}, "is not below"),
        ("hardware", {"path": LORA, "cards": "rtx-9990"}, "name it as nvidia-smi does"),
    ],
)
def test_what_is_wrong_comes_with_its_remedy(folder: Path, name: str, arguments: dict[str, Any], words: str):
    _, result = asked(folder, (name, arguments))
    assert result.is_error and words in text(result)
    assert "SECRET" not in text(result) and "Traceback" not in text(result)


@pytest.mark.slow
def test_the_server_ends_with_its_input(folder: Path):
    done = subprocess.run([*ADVISOR, "--root", str(folder)], input=b"", capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_without_the_sdk_the_command_says_what_to_install(tmp_path: Path):
    hidden = "import sys; sys.modules['mcp'] = None; from advisor.cli.main import main; main(['mcp'])"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and 'pip install "axolotl-advisor[mcp]"' in done.stderr


def test_a_root_that_is_no_folder_is_an_error(tmp_path: Path):
    done = subprocess.run([*ADVISOR, "--root", "gone"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "is not a folder" in done.stderr


def test_the_help_lists_commands_of_plugins():
    assert "  mcp " in CliRunner().invoke(main, ["--help"]).output


def test_a_plugin_that_cannot_be_loaded_harms_nobody_else(monkeypatch: pytest.MonkeyPatch):
    broken = EntryPoint("broken", "no.such.module:command", PLUGINS)
    monkeypatch.setattr("advisor.cli.own_command.plugin_commands", lambda: {"broken": broken})
    runner = CliRunner()
    assert runner.invoke(main, ["--help"]).exit_code == 0
    result = runner.invoke(main, ["broken"])
    assert result.exit_code == 2 and "cannot be loaded: No module named 'no'" in " ".join(result.output.split())


@pytest.mark.slow
def test_an_argument_that_a_tool_does_not_have_is_refused_with_the_near_one(folder: Path):
    tools, wrong, other = asked(folder, ("check", {"path": LORA, "gpu": "1x rtx-3060"}), ("check", {"cards": 8}))
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools.tools)
    assert wrong.is_error and "unknown argument `gpu`; did you mean `gpus`?" in text(wrong)
    assert other.is_error and "known: `config`, `path`, `gpus`" in text(other)


def test_every_argument_says_what_it_is():
    tools: list[Any] = anyio.run(server().list_tools)
    for tool in tools:
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}: {name}"
        assert tool.description and tool.output_schema["additionalProperties"] is False


CALLS: Mapping[str, Sequence[dict[str, Any]]] = {
    "check": ({}, {"gpus": "2x rtx-4090"}, {"gpus": "1x 48GB"}),
    "plan": ({"option": "B", "text": True}, {"option": "F"}, {"gpus": "1x rtx-4090"}),
    "estimate": ({"ledger": True},),
    "oom": ({"log": DEATH}, {"log": DEATH, "gpus": "4x rtx-4090 host=64GiB"}),
    "hardware": ({"cards": "rtx-4090,a100-80gb,mi300x", "price": 2.0},),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sample", [LORA, "full-8b-out-of-memory.yaml", "zero3-32b-small-host.yaml", "full-1b-fits.yaml"]
)
def test_answers_about_samples_are_as_their_schemas_say_and_small(sample: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(SAMPLES)
    own = server(SAMPLES, gpus=None)
    schemas = schemas_of(own)
    for name, variants in CALLS.items():
        for more in variants:
            result = anyio.run(own.call_tool, name, {"path": sample, **more})
            jsonschema.validate(answer(result), schemas[name])
            assert name != "check" or len(text(result).encode()) <= 2048, sample


def test_a_death_without_a_config_gets_what_usually_helps():
    own = server()
    result = anyio.run(own.call_tool, "oom", {"log": DEATH})
    said = answer(result)
    assert {one["training"] for one in said["remedies"]} == {"same", "changes"} and "options" not in said
    schemas = schemas_of(own)
    jsonschema.validate(said, schemas["oom"])


def test_a_config_that_is_unknown_or_wrong_has_an_answer_of_the_same_form():
    own = server(gpus=None)
    schemas = schemas_of(own)
    for config in ("base_model: x/y\nmicro_batch_sise: 1\n", SMALL, SMALL + "deepspeed: gone.json\n"):
        for name in ("check", "estimate", "plan"):
            jsonschema.validate(answer(anyio.run(own.call_tool, name, {"config": config})), schemas[name])
