"""An organisation's own flowcharts: under ``flowcharts`` in the settings, or in a file that ``--flowchart`` names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.engine.registry import Tiers, built_in_rules, flowcharts, tiers
from advisor.engine.rule import Rule
from advisor.errors import InputError
from advisor.record import record
from advisor.settings import Settings
from advisor.settings.settings import charts_of
from advisor.settings.toml import Source, parse_toml, read_text


@record
class Chosen:
    """The flowchart of a call by name, and those that are not the advisor's own."""

    name: str
    own: Mapping[str, Tiers]


def chosen(asked: str | None, settings: Settings, extra: Mapping[str, Rule], *, lacks: bool = False) -> Chosen:
    """The flowchart that the option, else the settings, ask for. ``InputError`` for what cannot be one.

    ``lacks``: whether steps of the settings' flowcharts may be rules that do not run; they go without those.
    """
    charts = {name: tiers(value) for name, value in settings.flowcharts.items()}
    charts = {name: _known_steps(chart, extra) for name, chart in charts.items()} if lacks else charts
    own = {name: checked(chart, name, settings.file or "", extra) for name, chart in charts.items()}
    for name in own:
        if name in flowcharts():
            message = f"the flowchart `{name}` has the name of one of the advisor's own"
            raise InputError(message, settings.file or "", remedy="rename it")
    if asked is not None and asked.endswith(".toml"):
        return Chosen(asked, {**own, asked: _in_file(asked, extra)})
    return Chosen(asked or settings.flowchart, own)


def _in_file(path: str, extra: Mapping[str, Rule]) -> Tiers:
    """The one flowchart of a TOML file, as ``rules/flowchart.toml`` has them."""
    remedy = "write one flowchart as in rules/flowchart.toml"
    table: dict[str, Any] = parse_toml(Source(path, Path(path).parent, read_text(Path(path)), ()), remedy)
    try:
        found = charts_of(table)
    except TypeError:
        message = "a flowchart is a list of steps, or of tables with `name` and `steps`"
        raise InputError(message, path, remedy=remedy) from None
    if len(found) != 1:
        raise InputError(f"holds {len(found)} flowcharts", path, remedy=remedy)
    (name,) = found
    return checked(tiers(found[name]), name, path, extra)


def _steps_known(extra: Mapping[str, Rule]) -> set[str]:
    """The ids that may be steps."""
    return {*built_in_rules("fit"), *built_in_rules("speed"), *extra}


def _known_steps(chart: Tiers, extra: Mapping[str, Rule]) -> Tiers:
    """The same without steps that are no rules; a tier that has no other is left out."""
    known = _steps_known(extra)
    kept = ((name, tuple(step for step in steps if step in known)) for name, steps in chart)
    return tuple((name, steps) for name, steps in kept if steps)


def checked(chart: Tiers, name: str, file: str, extra: Mapping[str, Rule]) -> Tiers:
    """The same if every step is a rule, and none stands there twice."""
    known = _steps_known(extra)
    steps = [step for _, ids in chart for step in ids]
    for step in steps:
        if step not in known:
            from difflib import get_close_matches

            near = get_close_matches(step, known, n=1)
            remedy = f"did you mean `{near[0]}`?" if near else "`advisor rule` lists the rules"
            raise InputError(f"the flowchart `{name}` has an unknown step `{step}`", file, remedy=remedy)
        if steps.count(step) > 1:
            raise InputError(f"the flowchart `{name}` has the step `{step}` twice", file, remedy="remove one of them")
    return chart
