"""Options that several commands have: what a run is, and where it will be."""

import math
from collections.abc import Callable
from typing import Any

import click

from advisor.cli.group import GPUS_HELP, rules_option


class Amount(click.FloatRange):
    """A number from 0 on that ends: neither ``inf`` nor ``nan``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no amount.", param, ctx)
        return found


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say what a run is and where it will be."""
    for option in (
        click.option("--gpus", metavar="SPEC", help=GPUS_HELP),
        click.option(
            "--model-config",
            metavar="PATH|NAME",
            help="For an unknown model: its config.json, or the published model that it is a fine-tune of.",
        ),
        click.option(
            "--trace",
            is_flag=True,
            help="For an architecture without formulas: trace it once with transformers and cache the result.",
        ),
        click.option(
            "--stack",
            "stack",
            metavar="KEY=VALUE,...",
            help="Versions and conditions: torch=2.9.0,trainer=trl-sft; or `installed`.",
        ),
        click.option(
            "--flowchart",
            metavar="NAME|FILE",
            help="default, safe-first, huggingface or pytorch; or a TOML file of your own.",
        ),
        click.option(
            "--images",
            metavar="NxWxH",
            help="Images of a row, for runs with a processor: 2x1024x768 (default: one, of `image_size` or 1024x1024).",
        ),
        click.option("--isolated", is_flag=True, help="Read no settings file."),
        rules_option,
        click.option(
            "--offline/--online",
            default=True,
            help="Whether to fetch an unknown model's config from the hub (needs transformers).",
        ),
    ):
        command = option(command)
    return command


row_length = click.option(
    "--row-length",
    metavar="N",
    type=click.IntRange(min=1),
    help="Tokens of a row: a second estimate where rows are neither packed nor padded. The verdict stays.",
)
