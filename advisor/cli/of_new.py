"""The words of the command about a run that is not there yet: ``new``."""

import sys
from typing import Any

import click

from advisor.cli.own_command import OwnCommand
from advisor.cli.run_options import Amount, run_options


@click.command(cls=OwnCommand)
@click.argument("model")
@click.argument("data", required=False)
@run_options
@click.option(
    "--method",
    metavar="METHOD",
    default="auto",
    help="auto, full, lora or qlora; dpo for pairs. By default the data and the GPUs decide.",
)
@click.option("--sequence-len", metavar="N", type=click.IntRange(min=64), help="Tokens of the longest row.")
@click.option("--tokens", metavar="N", help="Tokens that are trained in all epochs together (20M): adds hours.")
@click.option("--hours", metavar="H", type=Amount(min=0, min_open=True), help="Keep what ends within H hours.")
@click.option("--price", metavar="PRICE", type=Amount(min=0), help="Of a GPU-hour: adds the cost of the run.")
@click.option("--rows-as", metavar="WORD", help="What the rows are, where they leave it open.")
@click.option("--chat/--base", "chats", default=None, help="Whether the model was trained to chat.")
@click.option("-o", "--output", metavar="FILE", default="run.yaml", help="Write to this file (run.yaml).")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: take every default.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def new(model: str, data: str | None, tokens: str | None, method: str, output: str, **given: Any) -> None:
    """Write a complete config for a model, rows and GPUs.

    As full fine-tune, LoRA or QLoRA: the fastest that fits, with the reason for each line. DATA is a file of rows.
    """
    from advisor.cli.new import Writing, new_command, request_of

    writing = Writing(given.pop("yes"), given.pop("force"))
    sys.exit(new_command(request_of(model, data, tokens, method, output, given), writing))
