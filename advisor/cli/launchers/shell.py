"""A shell script, read as text: the simple commands that it surely runs, with the variables that it assigns in words.

Nothing of it is run. What it does not surely run (in a loop, a branch, a function), and what stands in words that are
not known before (``$(...)``, unknown variables), is left open.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from advisor.record import record
from advisor.util import read_start, regex

SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
MOST_BYTES = 1 << 20
SHEBANG = re.compile(rb"#![^\n]*\b(?:ba|z|da|k)?sh\b")
TOKEN = regex(
    r"""(?P<space>[ \t\r]+|\\\r?\n)|(?P<comment>(?<![^\s;&|()])\#[^\n]*)
    |(?P<heredoc><<-?(?!<)[ \t]*["']?(?P<end>\w+)["']?)
    |(?P<redirect>(?:\d{0,3}|&)(?:>>|>&|<&|>\||<<<|>|<))|(?P<operator>&&|\|\||;;|[;&|()\n])
    |'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<expansion>\$\{[^}\n]{0,200}\}|\$\w+|\$[@*])
    |(?P<open>`|\$\(|\$)|\\(?P<escaped>.)|(?P<plain>[^\s;&|()<>'"\\$`]+)""",
    re.VERBOSE | re.DOTALL,
)
INSIDE = regex(r"\\(?P<escaped>[\"\\$`\n])|(?P<expansion>\$\{[^}\n]{0,200}\}|\$\w+|\$[@*])|(?P<open>`|\$\()")
NAMED = regex(r"\$\{?(?P<name>\w+|[@*])(?P<default>:?-(?P<value>[^${}`]*))?\}?")
OWN_FOLDER = regex(
    r"""\$\(\s*(?:cd\s+["']?)?(?:\$\(\s*)?dirname\s+(?:--\s+)?["']?\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?["']?\s*\)"""
    r"""(?:["']?\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*\))?|\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}"""
)
"""The usual ways in which a script names its own folder."""
ASSIGNMENT = regex(r"[A-Za-z_]\w*=")
OPENING = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
AGAIN = {"then", "do", "else", "elif", "!", "time", "exec", "command", "nohup"}
"""Words before a command that leave it what it is."""
STOPS = {"exit", "return"}
TESTS = {"[", "[[", "test"}
CHANGING = {"source", ".", "eval", "shift", "set", "read", "unset"}
"""Commands after which no variable is known."""
HARMLESS = ("activate", ".bashrc", ".profile", "conda.sh", "/etc/profile")
"""Files whose reading is taken to leave a script's own variables alone."""


@record
class Line:
    """One simple command. What is not known of a word is ``UNKNOWN``; ``surely``: in no branch, loop or function."""

    words: tuple[str, ...]
    surely: bool
    folder: str | None
    """The working directory that the script has changed to; None if that is not known."""
    exported: Mapping[str, str]


@record
class _Simple:
    """Words between two operators, the operator before them, and whether a parenthesis is open."""

    words: tuple[str, ...]
    before: str
    opened: bool


def commands(text: str, arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> Iterator[Line]:
    """The simple commands of a script in order. ``arguments``: ``$0``, ``$1`` ...; ``folder``: where it lies."""
    state = State(dict(environment) | {str(index): word for index, word in enumerate(arguments)})
    text = OWN_FOLDER.sub(lambda _: folder or ".", text)
    for simple in _simple_commands(text, state.variables, arguments[1:]):
        words = state.within(simple.words)
        if not words:
            continue
        guarded = simple.before == "||" or (simple.before == "&&" and state.last in TESTS)
        surely = not state.inside and not simple.opened and not guarded
        state.last = words[0]
        if not state.changed(words, surely, simple.opened):
            yield Line(tuple(words), surely, state.folder, dict(state.exported))
        if words[0] in STOPS and surely and simple.before != "&&":
            return


class State:
    """What a script has said so far."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.exported: dict[str, str] = {}
        self.inside: list[str] = []
        self.folder: str | None = ""
        self.last = ""

    def within(self, words: Sequence[str]) -> list[str]:
        """The words without those that open, divide or close a branch, a loop or a function."""
        left = list(words)
        while left and (left[0] in AGAIN or left[0] in OPENING or left[0] == "function"):
            word = left.pop(0)
            if word in OPENING:
                self.inside.append(OPENING[word])
            elif word == "function" and left[-1:] == ["{"]:
                self.inside.append("}")
                return []
        if left and left[0] in OPENING.values():
            while left[0] in self.inside and self.inside.pop() != left[0]:
                pass
            return []
        return left

    def changed(self, words: Sequence[str], surely: bool, opened: bool) -> bool:
        """Takes in a command that assigns, exports or changes the folder; False for any other."""
        match words:
            case ["export" | "declare" | "local", *rest]:
                self.assign(rest, surely)
                if words[0] == "export":
                    names = [word.partition("=")[0] for word in rest]
                    self.exported |= {name: self.variables[name] for name in names if name in self.variables}
            case ["cd" | "pushd", target] if not opened:
                known = surely and self.folder is not None and UNKNOWN not in target
                self.folder = os.path.join(self.folder or "", target) if known else None
            case ["cd" | "pushd" | "popd", *_]:
                self.folder = self.folder if opened else None
            case ["set", options, *_] if options[:1] in {"-", "+"} and options != "--":
                pass
            case ["source" | ".", file, *_] if file.endswith(HARMLESS):
                pass
            case [name, *_] if name in CHANGING:
                self.variables.update(dict.fromkeys(self.variables, UNKNOWN))
            case _ if all(ASSIGNMENT.match(word) for word in words):
                self.assign(words, surely)
            case _:
                return False
        return True

    def assign(self, words: Sequence[str], surely: bool) -> None:
        """Takes in ``NAME=value``s; the value of one that may not run is not known."""
        for word in words:
            name, given, value = word.partition("=")
            if given:
                self.variables[name] = value if surely else UNKNOWN


UNKNOWN = "\0"
"""Stands in a word for what is not known."""


def _simple_commands(text: str, variables: Mapping[str, str], rest: Sequence[str]) -> Iterator[_Simple]:
    """The simple commands of a text; stops at what cannot be read."""
    words: list[str] = []
    ends: list[str] = []
    word: str | None = None
    position, depth, skipped, before = 0, 0, False, ""
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            return
        kind, position = match.lastgroup, match.end()
        if kind in {"space", "comment", "operator", "redirect", "heredoc"} and word is not None:
            words += [] if skipped else [word]
            word, skipped = None, False
        match kind:
            case "operator":
                if words:
                    yield _Simple(tuple(words), before, depth > 0)
                # A pipe or a newline after `&&` goes on with it.
                before = match[0] if words or match[0] != "\n" else before
                words, skipped = [], False
                depth = max(0, depth + {"(": 1, ")": -1}.get(match[0], 0))
                if match[0] == "\n":
                    position, ends = _after_heredocs(text, position, ends), []
            case "redirect":
                skipped = True
            case "heredoc":
                ends.append(match["end"])
            case "space" | "comment":
                pass
            case "open":
                word, position = (word or "") + UNKNOWN, _after_substitution(text, match.start())
            case _ if word is None and (match["double"] or match[0]) in {"$@", "$*"}:
                words += rest
            case _:
                word = (word or "") + spelled(match, variables)
    if word is not None and not skipped:
        words.append(word)
    if words:
        yield _Simple(tuple(words), before, depth > 0)


def spelled(match: re.Match[str], variables: Mapping[str, str]) -> str:
    """What one piece of a word stands for."""
    if match["double"] is not None:
        return INSIDE.sub(lambda piece: _inner_piece(piece, variables), match["double"])
    if match["expansion"]:
        return expanded(match[0], variables)
    return match["single"] or match["escaped"] or match["plain"] or ""


def _inner_piece(piece: re.Match[str], variables: Mapping[str, str]) -> str:
    """What a piece within double quotes stands for."""
    if piece["expansion"]:
        return expanded(piece["expansion"], variables)
    return UNKNOWN if piece["open"] else piece["escaped"].replace("\n", "")


def expanded(said: str, variables: Mapping[str, str]) -> str:
    """``$NAME``, ``${NAME}`` or ``${NAME:-value}``."""
    match = NAMED.fullmatch(said)
    if match is None or match["name"] in {"@", "*"}:
        return UNKNOWN
    default = match["value"] if match["default"] else None
    value = variables.get(match["name"])
    return UNKNOWN if value is None and default is None else value or default or ""


def _after_substitution(text: str, start: int) -> int:
    """Where a ``$(...)`` or a pair of backticks ends; the end of the text if it does not."""
    if text[start] == "`":
        end = text.find("`", start + 1)
        return end + 1 if end >= 0 else len(text)
    if text[start + 1 : start + 2] != "(":
        return start + 1
    depth = 0
    for index in range(start + 1, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return len(text)


def _after_heredocs(text: str, position: int, ends: Sequence[str]) -> int:
    """Where the texts of heredocs end, which begin at ``position``."""
    for end in ends:
        while position < len(text):
            line_end = text.find("\n", position)
            line_end = len(text) if line_end < 0 else line_end
            line, position = text[position:line_end].strip(), line_end + 1
            if line == end:
                break
    return min(position, len(text))


def script_text(path: str) -> str | None:
    """The text of a shell script; None if the file is none, or cannot be read."""
    try:
        content = read_start(path, MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
    is_script = path.endswith((".sh", ".bash")) or SHEBANG.match(content)
    return content.decode(errors="replace") if is_script and len(content) <= MOST_BYTES else None
