"""What a call is about: a config as text, or a file below the root, with what the call says of it."""

import os
from collections.abc import Mapping

from advisor.cli.crash_log.log import log_text
from advisor.documents import Document, parse, read
from advisor.documents.repository import lies_in
from advisor.errors import InputError
from advisor.record import record
from advisor.session import CheckedRun, RunOptions, Session
from advisor.session.rule_selection import Tell
from advisor.session.text import check_config_text, text_session

UNSAVED, UNNAMED_LOG = "config.yaml", "log"
"""What a text without a name is called."""


@record(eq=False)
class Asked:
    """One config as a session sees it."""

    text: str
    file: str
    session: Session

    @property
    def document(self) -> Document:
        """The YAML. ``InputError`` where it cannot be read."""
        return parse(self.text.encode(), self.file, "yaml")

    def checked_run(self, *, speed: bool = True) -> CheckedRun:
        """Everything that is found of it. ``InputError`` where it cannot be read."""
        return check_config_text(self.text, self.file, self.session, speed=speed)


def asked(
    root: str,
    config: str | None,
    path: str | None,
    files: Mapping[str, str] | None,
    options: RunOptions,
    tell: Tell,
) -> Asked:
    """The config that a call means; ``tell`` hears what of the settings does not count.

    ``InputError`` for none, for two, and for a file outside of ``root``.
    """
    if (config is None) == (path is None):
        raise InputError("give `config`, the text of a YAML, or `path`, a file", remedy="give one of the two")
    if options.model_config is not None and os.path.exists(options.model_config):
        inside(root, options.model_config)
    for name in files or {}:
        inside(root, name)
    file = inside(root, path) if path is not None else UNSAVED
    text = read(file).text if config is None else config
    return Asked(text, file, text_session(file, options, files=files, settings=True, tell=tell))


def text_of(root: str, log: str | None, log_path: str | None) -> tuple[str, str]:
    """A log and its name. ``InputError`` for none, for two, and for a file outside of ``root``."""
    if (log is None) == (log_path is None):
        raise InputError("give `log`, the text, or `log_path`, a file", remedy="give one of the two")
    if log_path is None:
        return log or "", UNNAMED_LOG
    file = inside(root, log_path)
    return log_text(file), file


def inside(root: str, path: str) -> str:
    """A path relative to ``root``, where links too lead to a place below it. ``InputError`` otherwise."""
    place = os.path.join(root, path)
    if "\0" in path:
        raise InputError("is no path: it holds a NUL", path.replace("\0", "\ufffd"), remedy="name a file")
    if not lies_in(root, place):
        raise InputError(f"is not below {root}", path, remedy="start `advisor mcp --root DIR` with a folder above it")
    return os.path.relpath(place, root)
