"""A real library in a process of its own, asked line by line."""

import json
import queue
import subprocess
import sys
import threading
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from advisor.errors import InputError

Values = dict[str, Any]
LIMIT_S = 300
# Not the working directory, which PYTHONPATH may name too: no folder there is the library, or any other module.
START = """
import os, sys
sys.path[:] = [each for each in sys.path if os.path.realpath(each) != os.path.realpath(".")] + [sys.argv[1]]
import importlib
importlib.import_module(sys.argv[2]).main()
"""


class Library:
    """One library. Its process is started by the first question, and ends with this one."""

    def __init__(self, name: str, module: str, limit_s: float = LIMIT_S) -> None:
        self.name = name
        self.module = module
        self.limit_s = limit_s
        self.version = installed_version(name)
        self.answers: dict[str, Values] = {}
        self.trouble = ""
        self.process: subprocess.Popen[str] | None = None
        self.lines: queue.Queue[str] = queue.Queue()
        self.last_words: list[str] = []
        self.listeners: list[threading.Thread] = []

    def says(self, question: Values) -> Values:
        """Its answer; ``{"trouble": why}`` where it has none."""
        asked = json.dumps(question, default=str, sort_keys=True)
        if asked not in self.answers and not self.trouble:
            self.answers[asked] = self.answered(asked)
        return self.answers.get(asked) or {"trouble": self.trouble}

    def answered(self, asked: str) -> Values:
        """What comes back for one line. A process that gives nothing back is asked no more."""
        try:
            process = self.process = self.process or self.started()
            assert process.stdin is not None
            process.stdin.write(asked + "\n")
            process.stdin.flush()
            return json.loads(self.lines.get(timeout=self.limit_s))
        except queue.Empty:
            self.trouble = f"no answer within {self.limit_s:g} s"
        except (OSError, ValueError):
            self.trouble = self.reason()
        if self.process is not None:
            self.process.kill()
        return {}

    def reason(self) -> str:
        """The last words of a process that ended."""
        for listener in self.listeners:
            listener.join(timeout=1)
        said = [line.strip() for line in self.last_words if line.strip()]
        return f"its process ended: {said[-1]}" if said else "its process ended without output"

    def started(self) -> subprocess.Popen[str]:
        """The process, with what it says gathered as it comes."""
        root = str(Path(__file__).parents[3])
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", START, root, self.module]
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8", errors="replace"
        )
        for gather in (self.gather_answers, self.gather_words):
            self.listeners.append(threading.Thread(target=gather, args=(process,), daemon=True))
            self.listeners[-1].start()
        return process

    def gather_answers(self, process: "subprocess.Popen[str]") -> None:
        """Each line of answer; an empty one at the end."""
        for line in process.stdout or ():
            self.lines.put(line)
        self.lines.put("")

    def gather_words(self, process: "subprocess.Popen[str]") -> None:
        """The last lines of what else it prints."""
        for line in process.stderr or ():
            self.last_words = [*self.last_words[-20:], line]


def installed_version(name: str) -> str:
    """The version that is installed with the advisor. Without one, an ``InputError`` that says how to get it."""
    try:
        return version(name)
    except PackageNotFoundError:
        remedy = f'pip install "axolotl-advisor[{name}]"'
        raise InputError(
            f"--validate needs {name}, which is not installed in the advisor's environment", remedy=remedy
        ) from None
