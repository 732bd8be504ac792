"""``advisor rule`` and ``advisor test``."""

import json
import sys

import click

from advisor.engine.registry import built_in_rules, organisation_rules
from advisor.engine.rule import Rule
from advisor.errors import InputError
from advisor.report.terminal import colored, width
from advisor.session.rule_selection import WITHOUT_A_FILE, near, own_rules, pages_without_a_file
from advisor.settings import load_settings


def rule_command(name: str | None, format_: str, folders: tuple[str, ...] = ()) -> int:
    """``advisor rule``."""
    from advisor.report import render_rule, render_rules, rule_page_json

    rules: dict[str, Rule] = {}
    for stage in ("fit", "speed", "lint"):
        rules |= built_in_rules(stage)
    rules |= own_rules(load_settings("."), folders).rules
    if name in WITHOUT_A_FILE:
        rules |= pages_without_a_file()
    if name is not None and name not in rules:
        raise InputError(f"unknown rule `{name}`", remedy=near(name, rules))
    chosen = [rules[name]] if name else list(rules.values())
    if format_ == "json":
        pages = [rule_page_json(rule) for rule in chosen]
        click.echo(json.dumps(pages[0] if name else pages, indent=2))
    elif name:
        click.echo(render_rule(chosen[0], color=colored(sys.stdout), width=width()), color=True)
    else:
        click.echo(render_rules(chosen, color=colored(sys.stdout), width=width()), color=True)
    return 0


def test_command(folder: str | None) -> int:
    """``advisor test``: runs every example; 1 if one does not do as it says."""
    from advisor.engine.examples import failures_of
    from advisor.settings.trust import named

    stages = ("fit", "speed", "lint")
    rules = (
        list(organisation_rules([named(folder, "the folder")]).values())
        if folder
        else [r for s in stages for r in built_in_rules(s).values()]
    )
    if not rules:
        raise InputError("contains no rules", folder or "", remedy="put one rule a file into it, `my_rule.py`")
    failed = [f"{rule.id}: {failure}" for rule in rules for failure in failures_of(rule)]
    examples = sum(len(rule.given) for rule in rules)
    for line in failed:
        click.echo(line)
    counted = f"{len(rules)} rule{'s' * (len(rules) != 1)}, {examples} example{'s' * (examples != 1)}"
    click.echo(f"{counted}, {len(failed)} failed")
    return 1 if failed else 0
