"""What is found of the texts that are open: at once without a plan, and with it when typing pauses."""

import os

from advisor.documents import parse
from advisor.documents.discovery import is_config, is_deepspeed, may_be_deepspeed
from advisor.engine.finding import Report
from advisor.engine.fix import Fixed, fixed
from advisor.opening import LoadedRun, open_json, open_run
from advisor.record import record, replace
from advisor.session import CheckedRun, RunOptions, Session, check_loaded
from advisor.session.rule_selection import Tell, on_stderr
from advisor.session.text import text_session
from advisor.util import Buffers

MOST_TYPED = 64_000
"""Characters of a text that is checked at every key: about a fifth of a second; configs have a few thousand."""


def may_be_ours(text: str) -> bool:
    """Whether a text names what a config has, wherever it stands."""
    return "base_model" in text or may_be_deepspeed(text.encode(errors="replace"))


@record(eq=False)
class Checked:
    """One text, and what is found of it without a plan."""

    path: str
    text: str
    found: CheckedRun

    @property
    def report(self) -> Report:
        """Findings and verdict."""
        return self.found.report


class Checker:
    """The open texts of an editor. Sessions are kept until something is opened or saved: settings may change then."""

    def __init__(self, gpus: str | None = None, rules: tuple[str, ...] = (), tell: Tell = on_stderr) -> None:
        self.gpus, self.rules, self.tell = gpus, rules, tell
        self.buffers = Buffers()
        self.created = dict[str, str]()
        """Files that an action has made, which the editor has perhaps not saved: by absolute path."""
        self.sessions: dict[str, Session] = {}

    def refresh(self) -> None:
        """Settings are read again."""
        self.sessions.clear()

    def session(self, path: str) -> Session:
        """The session of a file, with the open texts in front of those on disk."""
        folder = os.path.dirname(path)
        if folder not in self.sessions:
            own = text_session(path, RunOptions(rules=self.rules), settings=True, tell=self.tell)
            default = self.gpus or own.context.default_gpus
            self.sessions[folder] = replace(own, context=replace(own.context, default_gpus=default))
        session = self.sessions[folder]
        return replace(session, context=replace(session.context, buffers=self.texts(), working_directory=os.getcwd()))

    def texts(self) -> Buffers:
        """The open texts, and those of files that were made and are empty as yet, or not there."""
        made = {file: text for file, text in self.created.items() if self._is_empty(file)}
        return Buffers({**self.buffers, **made}) if made else self.buffers

    def _is_empty(self, file: str) -> bool:
        """Whether neither the editor nor the disk has a text of a file: some make it first, and fill it later."""
        if file in self.buffers:
            return not self.buffers[file].strip()
        try:
            return not os.path.getsize(file)
        except OSError:
            return True

    def checked(self, path: str, text: str) -> Checked | None:
        """Findings at once; None where the text is no config. ``InputError`` where it cannot be read."""
        syntax = "json" if path.lower().endswith(".json") else "yaml"
        document = parse(text.encode(), path, syntax)
        session = self.session(path)
        if not (is_deepspeed(document) if syntax == "json" else is_config(document)):
            return None
        opened = (open_json if syntax == "json" else open_run)(document, session.context)
        return Checked(path, text, quick(opened, session))


def quick(opened: LoadedRun, session: Session) -> CheckedRun:
    """Everything but plan, offers and answer."""
    fast = replace(session, options=replace(session.options, plans=False))
    return check_loaded(opened, fast, speed=False)


def all_safe(checked: Checked) -> Fixed:
    """All findings fixed that can be without changing the training; no plan."""
    return fixed(checked.found.opened, checked.found.options, unsafe=False)
