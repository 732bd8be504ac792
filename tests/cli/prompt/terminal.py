"""Commands that ask, in a pseudo-terminal of their own; ``advisor check -p`` is one."""

import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pexpect

LLAMA = """\
# a comment that stays
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
sequence_len: 4096
micro_batch_size: 4  # rows
gradient_accumulation_steps: 2
sample_packing: true
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
learning_rate: 1e-5
"""
QUESTION = re.compile(r"Apply this edit \[([a-z?,]+)\]\?(?:\x1b\[0m)? ")
STEERING = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\r")


def heeding_ctrl_c() -> None:
    """A job in the background of a shell ignores ctrl-C, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Asking:
    """A command that asks: what a person sees, and what they type."""

    QUESTION: re.Pattern[str]
    DROPPED = frozenset({"CI", "PRE_COMMIT", "VISUAL"})
    """Variables that it does not inherit."""

    def __init__(self, folder: Path, program: str, arguments: Sequence[str], width: int, **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in self.DROPPED}
        self.raw = ""
        self.process: pexpect.spawn[str] = pexpect.spawn(
            program,
            list(arguments),
            cwd=str(folder),
            env={**kept, "TERM": "xterm", "NO_COLOR": "1", "EDITOR": "false", **environment},
            encoding="utf-8",
            dimensions=(50, width),
            timeout=60,
            preexec_fn=heeding_ctrl_c,
        )

    def asks(self) -> str:
        """All that is shown until the next question, without colours."""
        self.process.expect(self.QUESTION)
        shown = f"{self.process.before}{self.process.after}"
        self.raw += shown
        return STEERING.sub("", shown)

    def answer(self, letter: str) -> str:
        """Types a letter; what is shown until the next question."""
        self.process.sendline(letter)
        return self.asks()

    def last(self, letter: str) -> str:
        """Types the last answer; what is shown until the end."""
        self.process.sendline(letter)
        return self.end()

    def end(self) -> str:
        """What is shown until the end."""
        self.process.expect(pexpect.EOF)
        self.process.close()
        return STEERING.sub("", f"{self.process.before}")

    @property
    def code(self) -> int | None:
        """The exit code; minus the signal that ended it."""
        signal = self.process.signalstatus
        return -signal if signal else self.process.exitstatus


class Terminal(Asking):
    """``advisor check -p``."""

    QUESTION = QUESTION

    def __init__(self, folder: Path, *arguments: str, color: bool = False, **environment: str) -> None:
        colors = {"NO_COLOR": ""} if color else {}
        command = ("-m", "advisor", "check", "--isolated", *arguments)
        super().__init__(folder, sys.executable, command, 80, **colors, **environment)

    @property
    def letters(self) -> str:
        """The answers that the last question offers."""
        return self.process.match[1]


def proposed(shown: str) -> str:
    """The rule of the last edit that is shown."""
    found = re.findall(r"^(?:\d+\. |(?:error|warning|note)\[)([a-z0-9-]+)", shown, re.MULTILINE)
    return found[-1]
