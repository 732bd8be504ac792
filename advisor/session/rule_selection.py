"""Which rules a call is about: the organisation's own, and those that options and settings name."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence

from advisor.engine.registry import STAGES, built_in_rules, organisation_rules
from advisor.engine.rule import Rule
from advisor.errors import InputError
from advisor.record import record
from advisor.run.history import history
from advisor.settings import Settings
from advisor.streams import tell as on_stderr
from advisor.util import path_shown

ON_DATA = (
    "data-shape-differs",
    "data-fields-missing",
    "data-roles-not-trained",
    "data-rows-not-trained",
    "data-rows-too-long",
    "data-answers-trimmed",
    "data-pairs-equal",
    "data-labels-uneven",
    "data-axolotl-trains",
)
# Known by name without a rule file: the suppressions' own, and those of `--validate` and `--data`.
WITHOUT_A_FILE = ("unused-ignore", "axolotl-says", "deepspeed-says", *ON_DATA)


Tell = Callable[[str], None]
"""Says one line to whoever called."""


@record(eq=False)
class Own:
    """The rules that are not the advisor's own. ``lacks``: whether settings may speak of some that are not here."""

    rules: Mapping[str, Rule]
    lacks: bool = False


def own_rules(settings: Settings, asked: Sequence[str] = (), tell: Tell = on_stderr) -> Own:
    """The rules of the folders that a call, the environment or trusted settings name; what does not run is told."""
    if not (asked or settings.named_rules or settings.rules):
        return Own({}, lacks="rules" in settings.unused)
    from advisor.settings.trust import permitted

    found = permitted(settings, asked)
    if found.left_out:
        tell(found.left_out)
    return Own(organisation_rules(found.packs), found.lacks)


def tell_unused(settings: Settings, tell: Tell = on_stderr) -> None:
    """A line for each setting that its file may not choose."""
    for words in settings.unused.values():
        tell(path_shown(words))


def tell_skipped(tell: Tell = on_stderr) -> None:
    """A line where the file of this machine's measured runs holds a line that is none."""
    if not history().skipped:
        return
    from advisor.run.history_schema import first_skipped

    if wrong := first_skipped():
        tell(path_shown(str(wrong)))


def validating() -> Mapping[str, Rule]:
    """The rules that ask the real libraries."""
    from advisor.schemas.validate import rules_that_ask

    return rules_that_ask()


def of_data(path: str) -> Mapping[str, Rule]:
    """The rules about the rows of a file."""
    from advisor.schemas.data import rules_on

    return rules_on(path)


def pages_without_a_file() -> Mapping[str, Rule]:
    """The pages of rules that are there only where an option asks for them."""
    from advisor.schemas.data import pages

    return {**validating(), **pages()}


def names(given: Sequence[str], extra: Mapping[str, Rule], file: str = "", line: int = 0) -> tuple[str, ...]:
    """Rule ids, checked against the rules there are."""
    wanted = tuple(part.strip() for name in given for part in name.split(",") if part.strip())
    if wanted:
        known = {rule for stage in STAGES for rule in built_in_rules(stage)} | {*extra, *WITHOUT_A_FILE}
        for name in wanted:
            if name not in known:
                raise InputError(f"unknown rule `{name}`", file, line, remedy=near(name, known))
    return wanted


def names_in(settings: Settings, key: str, given: Sequence[str], own: Own) -> tuple[str, ...]:
    """Rule ids of the settings; one that is not known is an error at its line there, unless their rules did not run."""
    if own.lacks:
        return tuple(part.strip() for name in given for part in name.split(",") if part.strip())
    return names(given, own.rules, *settings.origins.get(key, ("", 0)))


def ignores_by_file(settings: Settings, own: Own) -> Mapping[str, tuple[str, ...]]:
    """The rules to leave out by pattern. A pattern is from the folder of the settings on."""
    folder = os.path.dirname(os.path.realpath(settings.file or ""))
    ignores = settings.per_file_ignores.items()
    return {
        os.path.join(folder, pattern): names_in(settings, "per_file_ignores", rules, own) for pattern, rules in ignores
    }


def near(name: str, known: Collection[str]) -> str:
    """What may have been meant."""
    import difflib

    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"did you mean `{close[0]}`?" if close else "`advisor rule` lists them"
