"""A folder full of traps: what somebody who is only looked at may put in the way of whoever looks."""

import json
import os
import subprocess
from pathlib import Path

SECRET = "SECRET-7"
"""Stands in every file outside of the folder."""
KEYS = (
    r"\e]0;title\a\e[2J",
    r"x\n::error file=README.md,line=1::forged",
    r"\u0085::add-mask::z",
    "<img src=https://evil.example/i.png onerror=alert(1)>",
    "</code></pre><script>alert(1)</script>",
    "`q` ![a](https://evil.example/t) [c](command:evil)",
    "https://evil.example/bare www.evil.example/bare @octocat #12",
    "| a | b |",
    r"\u202egnp.exe",
    r"%0A::stop-commands::t",
    "--- a/x",
    "/close",
)
NAMES = (
    "\x1b]0;title\x07.yaml",
    "\n::error file=README.md,line=1::forged.yaml",
    "<img src=x onerror=alert(1)>.yaml",
    "`[a](command:b)`@octocat|.yaml",
    "$(touch ran)`touch ran`;touch ran;.yaml",
    "--fix.yaml",
    "www.evil.example.yaml",
    "\u202egnp.yaml",
)
BASE = """\
base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 16
gradient_accumulation_steps: 1
num_epochs: 1
learning_rate: 0.0002
optimizer: adamw_torch_fused
bf16: true
gradient_checkpointing: true
attn_implementation: flash_attention_2
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
"""
MODULES = (
    *("advisor", "yaml", "click", "json", "re", "venv", "pip", "ensurepip", "importlib", "tomllib", "sitecustomize"),
    *("usercustomize", "pygls", "lsprotocol", "mcp", "pydantic", "jsonschema", "axolotl", "deepspeed", "torch"),
    *("transformers", "pynvml", "numpy", "urllib", "evil", "tokenizer", "readline", "conftest", "setup"),
)
PROGRAMS = ("git", "nvidia-smi", "npm", "node", "gh", "vi", "python3", "true", "axolotl", "less")
GIT = ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv", "diff.external", "core.fsmonitor")
GIT += ("core.pager", "core.sshCommand", "credential.helper", "core.editor", "gpg.program", "remote.origin.uploadpack")
RULE = """\
{trap}
from advisor import Hit, Rule
rule = Rule(
    id="house-rule", stage="lint", title="t", level="error", why="w", source="s", examples=(),
    finds=lambda run: [Hit("base_model", "says the house")],
)
"""
TOML = """\
rules = ["house", "../outside/rules", "."]
flowchart = "theirs"
output-format = "json=written-by-settings.json"
exclude = ["{stars}nothing"]
select = []
ignore = ["house-rule"]

[flowcharts]
theirs = ["house-step", "smaller-micro-batch", "__import__('os').system('touch ran')", "zero-2"]

[per-file-ignores]
"{stars}*" = ["house-rule"]
"""


def trap(name: str, marks: Path) -> str:
    """Python that says that it ran, and ends whatever runs it."""
    return f"open({str(marks / name)!r}, 'w').close()\nraise SystemExit(3)\n"


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    path.chmod(mode)


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, env=quiet)


def config(first: str = "") -> str:
    """A config that does not fit, with keys that want to be something else."""
    return first + BASE + "".join(f'"{key}": 1\n' for key in KEYS) + "plugins: [evil.Plugin]\n"


def outside(folder: Path, marks: Path) -> None:
    """What belongs to whoever looks."""
    write(folder / "rules" / "house_out.py", trap("rule-outside", marks))
    secret = {
        "auths": {"host": {"auth": SECRET}},
        "optimizer": {"type": SECRET},
        "zero_optimization": {"stage": SECRET},
    }
    write(folder / "config.json", json.dumps(secret | {"model_type": "llama", "x": SECRET}, indent=2))
    write(folder / "run.yaml", f"base_model: {SECRET}\nlora_dropuot: {SECRET}\n")
    write(folder / "advisor.toml", f'[models]\n"a/b" = "{SECRET}"\n')
    write(folder / "report.md", f"{SECRET}\n")
    write(folder / "review.json", json.dumps([{"body": SECRET, "position": {}}]))
    write(folder / "train.log", f"torch.OutOfMemoryError: {SECRET}\n")


def fill(folder: Path, away: Path, marks: Path) -> None:
    """The folder: a checkout with a commit before the last changes, and traps in its files, names and settings."""
    write(folder / "run.yaml", config().replace("micro_batch_size: 16", "micro_batch_size: 1"))
    write(folder / "old.yaml", config())
    write(folder / "advisor.toml", TOML.replace("{stars}", "**/" * 40))
    write(folder / "house" / "house_rule.py", RULE.format(trap=trap("rule", marks)))
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "branch", "base")
    git(folder, "mv", "old.yaml", "moved.yaml")
    write(folder / "run.yaml", config())
    links(folder, away)
    for name in NAMES:
        write(folder / "names" / name, BASE + "lora_dropuot: 1\n")
    write(folder / "bad" / "broken.yaml", f"base_model: [\n# {KEYS[0]}")
    write(folder / "deep" / "/".join("d" * 40) / "run.yaml", BASE)
    write(folder / "model.yaml", BASE.replace("meta-llama/Llama-3.1-8B", "./model"))
    remote = {"model_type": "theirs", "architectures": ["Theirs"], "auto_map": {"AutoConfig": "theirs.Config"}}
    write(folder / "model" / "config.json", json.dumps(remote))
    write(folder / "model" / "theirs.py", trap("model", marks))
    write(
        folder / "train.log",
        f"{KEYS[1]}\n\x1b]0;t\x07torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    )
    code(folder, marks)
    bare(folder, marks)
    settings(folder, marks)


def links(folder: Path, away: Path) -> None:
    """Links out of the folder: of files, of a folder, of settings, and a hard one."""
    for name in ("config.json", "run.yaml", "report.md", "review.json"):
        (folder / f"linked-{name}").symlink_to(away / name)
    (folder / "linked").symlink_to(away)
    (folder / "last_run_prepared").symlink_to(away)
    write(folder / "ds.yaml", BASE + "deepspeed: linked-config.json\n")
    write(folder / "ds2.yaml", BASE + "deepspeed: linked/config.json\n")
    write(folder / "ds3.yaml", BASE + "deepspeed: ../outside/config.json\n")
    write(folder / "sub" / "run.yaml", BASE)
    (folder / "sub" / "advisor.toml").symlink_to(away / "advisor.toml")
    write(folder / "hangs" / "run.yaml", BASE)
    (folder / "hangs" / "pyproject.toml").symlink_to("/proc/kmsg")
    write(away / "hard.yaml", BASE + "lora_dropuot: 1\n")
    os.link(away / "hard.yaml", folder / "hard.yaml")


def code(folder: Path, marks: Path) -> None:
    """Modules and programs of every name that somebody may look for."""
    for name in MODULES:
        for file in (f"{name}/__init__.py", f"{name}/__main__.py", f"{name}.py"):
            write(folder / file, trap(f"module-{name}", marks))
    for name in PROGRAMS:
        write(
            folder / name if not (folder / name).is_dir() else folder / "bin" / name,
            f"#!/bin/sh\ntouch {marks}/program-{name}\n",
            0o755,
        )
    write(folder / "house" / "__pycache__" / "house_rule.cpython-311.pyc", "not bytecode")
    write(folder / ".env", "ADVISOR_RULES=house\n")
    write(folder / ".vscode" / "settings.json", '{"glspc.server.commandArguments": ["server", "--rules", "house"]}')


def bare(folder: Path, marks: Path) -> None:
    """A folder that poses as a repository."""
    inner = folder / "names"
    git(folder, "init", "--quiet", "--bare", str(inner))
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand"):
        git(folder, "config", "--file", str(inner / "config"), name, f"touch {marks}/bare-{name}")
    git(folder, "config", "--file", str(inner / "config"), "core.bare", "false")
    git(folder, "config", "--file", str(inner / "config"), "core.worktree", str(folder))


def settings(folder: Path, marks: Path) -> None:
    """What git may run."""
    for name in GIT:
        git(folder, "config", name, f"touch {marks}/git-{name.replace('.', '-')}; cat")
    hooks = folder / ".git" / "traps"
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"):
        write(hooks / hook, f"#!/bin/sh\ntouch {marks}/hook-{hook}\n", 0o755)
    for name, value in {
        "core.hooksPath": str(hooks),
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {marks}/transport",
        "protocol.ext.allow": "always",
        "filter.x.required": "true",
    }.items():
        git(folder, "config", name, value)
    write(folder / ".gitattributes", "* filter=x diff=x\n")
    write(folder / ".git" / "info" / "attributes", "* filter=x diff=x\n")


def content(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder, links not followed."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path)] = os.fsencode(os.readlink(path))
        elif path.is_file():
            found[str(path)] = path.read_bytes()
    return found
