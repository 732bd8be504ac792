"""A shell or a script in front of a launch -> the training that it surely starts."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from advisor.cli.launchers.launchers import ENVIRONMENT, Scale
from advisor.cli.launchers.shell import ASSIGNMENT, SHELLS, UNKNOWN, Line, commands, script_text
from advisor.cli.launchers.training import Command
from advisor.record import record, replace

Reader = Callable[[Sequence[str], Mapping[str, str], Scale, int], Command]
WRAPPERS = {"env", "nohup", "time", "sudo", "exec", "nice", "setsid", "stdbuf", "timeout", "srun", "mpirun", "command"}
COUNTING = {"CUDA_VISIBLE_DEVICES", *ENVIRONMENT}
"""Variables that say how many processes there are: where one is not known, nothing is checked."""
SAYING = {"echo", "printf", "grep", "cat", "ls", "test", "[", "[[", "which", "type", "alias", "trap", "tee", "pip"}
"""Commands that name axolotl without running it."""
DEEPEST = 3
"""Scripts that call scripts."""


@record
class _Script:
    """A text for a shell, with what it was called with."""

    name: str
    text: str
    arguments: tuple[str, ...]
    folder: str


def script_in(tokens: Sequence[str], index: int) -> _Script | None:
    """The script that the command runs from this word on: ``bash run.sh``, ``./run.sh``, ``sh -lc '...'``."""
    name = tokens[index].rpartition("/")[2]
    if name in SHELLS:
        return _of_shell(name, tokens[index + 1 :])
    first = all(
        token in WRAPPERS or token.startswith("-") or token.isdecimal() or ASSIGNMENT.match(token)
        for token in tokens[:index]
    )
    return _of_file(tokens[index], tokens[index + 1 :]) if first and "/" in tokens[index] else None


def _of_shell(shell: str, tokens: Sequence[str]) -> _Script | None:
    """What a shell is given: ``-c TEXT [NAME ARGUMENT...]`` or ``FILE [ARGUMENT...]``."""
    rest = list(tokens)
    by_text = False
    while rest and rest[0][:1] in {"-", "+"}:
        option = rest.pop(0)
        by_text = by_text or re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", option) is not None
        if re.fullmatch(r"[-+][a-zA-Z]*[oO]", option) or option in {"--rcfile", "--init-file"}:
            rest = rest[1:]
    if not rest:
        return None
    if by_text:
        return _Script(f"{shell} -c", rest[0], tuple(rest[1:]) or (shell,), "")
    return _of_file(rest[0], rest[1:])


def _of_file(path: str, arguments: Sequence[str]) -> _Script | None:
    """A script in a file."""
    text = script_text(path)
    folder = os.path.dirname(os.path.abspath(path))
    return None if text is None else _Script(path, text, (path, *arguments), folder)


def trained_by(script: _Script, read: Reader, environment: Mapping[str, str], scale: Scale, depth: int) -> Command:
    """The first training that a script surely starts, or why none is checked."""
    found: Command | None = None
    for line in commands(script.text, script.arguments, {**os.environ, **environment}, script.folder):
        command = _of_line(line, read, environment, scale, depth)
        if command is None or not command.trains:
            continue
        if found is not None:
            return replace(found, remark=f"{script.name} trains more than once; the first training is checked")
        if unsure := _unsure_of(line, command):
            return Command(scale=scale, environment=environment, trains=True, reason=f"{script.name}: {unsure}")
        found = placed(command, line.folder or "")
    reason = f"{script.name} has no plain `axolotl train` line"
    return found or Command(scale=scale, environment=environment, reason=reason)


def _of_line(line: Line, read: Reader, environment: Mapping[str, str], scale: Scale, depth: int) -> Command | None:
    """What a line of a script starts."""
    if depth >= DEEPEST or line.words[0] in SAYING:
        return None
    own = {name: value for name, value in line.exported.items() if UNKNOWN not in value}
    words = [os.path.expanduser(word) for word in line.words if not _is_open_assignment(word)]
    return read(words, {**environment, **own}, scale, depth + 1)


def _is_open_assignment(word: str) -> bool:
    """``NAME=$(...)`` in front of a command."""
    return UNKNOWN in word and ASSIGNMENT.match(word) is not None


def _unsure_of(line: Line, command: Command) -> str:
    """Why the training of a line is not checked; empty if it is sure."""
    open_names = {word.partition("=")[0] for word in line.words if _is_open_assignment(word)}
    open_names |= {name for name, value in line.exported.items() if UNKNOWN in value}
    if not line.surely:
        return "the training command is in a branch, a loop or a function"
    if any(UNKNOWN in word and not _is_open_assignment(word) for word in line.words) or open_names & COUNTING:
        return "the training command has values known only at run time"
    if line.folder is None and command.config and not os.path.isabs(command.config):
        return "it changes to a folder known only at run time"
    return ""


def placed(command: Command, folder: str) -> Command:
    """The command with its files as they are named from here."""
    if os.path.normpath(folder) == "." or command.config is None:
        return command
    path, cloud = os.path.join(folder, command.config), command.cloud
    inner = os.path.normpath(os.path.join(folder, command.folder))
    return replace(command, config=_from_here(path), folder=inner, cloud=cloud and os.path.join(folder, cloud))


def _from_here(path: str) -> str:
    """A path relative to the working directory, if it lies below."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
