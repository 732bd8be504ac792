"""Which rules a call is about: the organisation's own, and those that options and settings name."""

import os
from collections.abc import Collection, Mapping, Sequence

from advisor.engine.registry import STAGES, built_in_rules, organisation_rules
from advisor.engine.rule import Rule
from advisor.errors import InputError
from advisor.run.history import history
from advisor.settings import RULES, Settings
from advisor.streams import tell
from advisor.util import path_shown

# Known by name without a rule file: the suppressions' own, and those of `--validate`.
WITHOUT_A_FILE = ("unused-ignore", "axolotl-says", "deepspeed-says")


def rules_of_settings(settings: Settings) -> Mapping[str, Rule]:
    """The organisation's own rules. A folder that is not there is an error of the settings.

    Rules are code: those of a repository that is merely looked at are not run, with a line on standard error.
    """
    file, line = settings.origins.get("rules", ("", 0))
    if rules_are_foreign(settings):
        where = path_shown(f"{file}:{line}" if line else file)
        tell(f"the rules that {where} names are not run: it is not at or above this folder")
        return {}
    for folder in settings.rules:
        if not os.path.isdir(folder):
            raise InputError(f"there is no folder of rules `{folder}`", file, line, remedy="correct `rules`")
    return organisation_rules(settings.rules)


def rules_are_foreign(settings: Settings) -> bool:
    """Whether the settings name rules and are not the user's own: of the working directory, or a folder above it.

    Where the file lies counts, not where a link leads from there.
    """
    if not settings.rules or settings.file is None or settings.origins["rules"] == (RULES, 0):
        return False
    folder = os.path.realpath(os.path.dirname(settings.file))
    here = os.path.realpath(".")
    return os.path.commonpath([folder, here]) != folder


def tell_unused(settings: Settings) -> None:
    """A line on standard error for each setting that its file may not choose."""
    for words in settings.unused.values():
        tell(path_shown(words))


def tell_skipped() -> None:
    """A line on standard error where the file of this machine's measured runs holds a line that is none."""
    if not history().skipped:
        return
    from advisor.run.history_schema import first_skipped

    if wrong := first_skipped():
        tell(path_shown(str(wrong)))


def validating() -> Mapping[str, Rule]:
    """The rules that ask the real libraries."""
    from advisor.schemas.validate import rules_that_ask

    return rules_that_ask()


def names(given: Sequence[str], extra: Mapping[str, Rule], file: str = "", line: int = 0) -> tuple[str, ...]:
    """Rule ids, checked against the rules there are."""
    wanted = tuple(part.strip() for name in given for part in name.split(",") if part.strip())
    if wanted:
        known = {rule for stage in STAGES for rule in built_in_rules(stage)} | {*extra, *WITHOUT_A_FILE}
        for name in wanted:
            if name not in known:
                raise InputError(f"unknown rule `{name}`", file, line, remedy=near(name, known))
    return wanted


def names_in(settings: Settings, key: str, given: Sequence[str], extra: Mapping[str, Rule]) -> tuple[str, ...]:
    """Rule ids of the settings; one that is not known is an error at its line there, unless its rules did not run."""
    if rules_are_foreign(settings) or "rules" in settings.unused:
        return tuple(part.strip() for name in given for part in name.split(",") if part.strip())
    return names(given, extra, *settings.origins.get(key, ("", 0)))


def ignores_by_file(settings: Settings, extra: Mapping[str, Rule]) -> Mapping[str, tuple[str, ...]]:
    """The rules to leave out by pattern. A pattern is from the folder of the settings on."""
    folder = os.path.dirname(os.path.realpath(settings.file or ""))
    ignores = settings.per_file_ignores.items()
    return {
        os.path.join(folder, pattern): names_in(settings, "per_file_ignores", rules, extra)
        for pattern, rules in ignores
    }


def near(name: str, known: Collection[str]) -> str:
    """What may have been meant."""
    import difflib

    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"did you mean `{close[0]}`?" if close else "`advisor rule` lists them"
