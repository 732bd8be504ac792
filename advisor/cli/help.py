"""The words of ``--help``: commands in the order of their use, options in groups, examples; no word is cut."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

import click

ORDER = ("new", "check", "estimate", "hardware", "launch", "verify", "oom", "rule", "accuracy", "test", "trust")
"""Of the commands; what plugins add comes after them."""
GROUPS: Mapping[str, Sequence[str]] = {
    "What runs and where": (
        "gpus",
        "config",
        "model_config",
        "offline",
        "trace",
        "stack",
        "images",
        "row_length",
    ),
    "What is trained": ("method", "sequence_len", "rows_as", "chats"),
    "Launch": ("no_block",),
    "Steps": ("steps", "cpu"),
    "Which cards": ("cards", "all_"),
    "Time and cost": ("tokens", "hours", "price", "prices", "within", "under"),
    "Fix": ("fix", "unsafe_fixes", "faster", "diff", "patch", "output_dir"),
    "What is shown": ("ledger", "largest", "timeline"),
    "Output": ("quiet", "verbose", "formats", "format_", "output", "yes", "force", "fail_on", "exit_zero"),
    "Which rules": ("select", "ignore", "flowchart", "rules", "validate", "data", "isolated"),
    "Git and folders": ("changed_since", "against", "exclude"),
}
"""The parameters of each group, most asked for first."""
REST = "Other"
FEW = 5
"""Options that need no groups."""
EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "new": (
        ("advisor new Qwen/Qwen3-8B rows.jsonl --gpus 24GB", "The fastest of full, LoRA and QLoRA that fits."),
        ("advisor new Qwen/Qwen3-8B --gpus 24GB --tokens 20M -y", "Without data yet, and without a question."),
        ("advisor new Qwen/Qwen3-8B rows.jsonl --method full", "All weights."),
        ("advisor new Qwen/Qwen3-8B pairs.jsonl --method dpo", "From pairs of answers."),
    ),
    "check": (
        ('advisor check --gpus "1x rtx-4090" run.yaml', "Does it fit, and which edits make it fit?"),
        ("advisor check --fix run.yaml", "Write the edits that leave the training as it is."),
        ("advisor check --diff --unsafe-fixes run.yaml", "Show what changes the training too, and write nothing."),
        ("advisor check -p run.yaml", "Answer for each edit."),
        ("advisor check --data rows.jsonl run.yaml", "Do the rows fit the config?"),
        ("advisor check --changed-since origin/main .", "In CI: only what a branch changes."),
    ),
    "estimate": (
        ('advisor estimate --gpus "8x a100-80gb" run.yaml', "Where does the memory go, and how long is a step?"),
        ("advisor estimate --ledger run.yaml", "Every term, with its arithmetic and source."),
        ("advisor estimate --max sequence_len run.yaml", "How long may rows be?"),
        ("advisor estimate --tokens 200M --price 0.40 run.yaml", "Hours and cost of an epoch."),
    ),
    "hardware": (
        ("advisor hardware run.yaml", "Which cards would work?"),
        ("advisor hardware --cards rtx-4090,h100 run.yaml", "Compare the cards that you can have."),
        ("advisor hardware --tokens 200M --within 6h run.yaml", "Which of them take no more than six hours?"),
    ),
    "launch": (
        ("advisor launch -- axolotl train run.yaml", "Train if it fits."),
        ("advisor launch -- srun axolotl train run.yaml", "With any launcher."),
        ("advisor launch -- bash train.sh", "With a script that names one."),
        ("advisor launch --no-block -- axolotl train run.yaml", "Say what is wrong, and train all the same."),
    ),
    "verify": (
        ("advisor verify run.yaml", "Is the estimate right on your machine?"),
        ("advisor verify run.yaml -- axolotl train", "The same, with the command written out."),
        ("advisor verify run.yaml -- srun axolotl train", "With any launcher."),
        ("advisor verify --steps 10 run.yaml", "With more steps, for the time of one."),
    ),
    "oom": (
        ("advisor oom train.log", "What ran out, where, and what usually helps."),
        ("advisor oom train.log --config run.yaml", "Which edits suffice for this run."),
    ),
}
"""The command, and what it is good for."""
WIDEST_NAME = 26
"""Columns of options; what is longer has a line of its own."""


def ordered(names: Iterable[str]) -> list[str]:
    """The names of commands in the order of their use."""
    place = {name: number for number, name in enumerate(ORDER)}
    return sorted(names, key=lambda name: (place.get(name, len(ORDER)), name))


def write_commands(commands: Mapping[str, click.Command], formatter: click.HelpFormatter) -> None:
    """Every command with the first sentence of its help."""
    rows = [(name, command.get_short_help_str(1000)) for name, command in commands.items() if not command.hidden]
    _write_section("Commands", rows, formatter)


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The options of a command, by what they are about; a few in one list."""
    rows = option_rows(command, ctx)
    few = [("Options", list(rows.values()))]
    for title, found in few if len(rows) <= FEW else grouped_options(command, ctx):
        _write_section(title, found, formatter)


def option_rows(command: click.Command, ctx: click.Context) -> dict[str, tuple[str, str]]:
    """What is said of each option, in the order in which they are declared."""
    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    return {option.name or "": row for option in options if (row := option.get_help_record(ctx))}


def grouped_options(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The groups that a command has options of, each with what is said of them."""
    rows = option_rows(command, ctx)
    for title, names in GROUPS.items():
        if found := [rows.pop(name) for name in names if name in rows]:
            yield title, found
    if rows:
        yield REST, list(rows.values())


def write_examples(name: str, formatter: click.HelpFormatter) -> None:
    """What a command is used for."""
    if name in EXAMPLES:
        formatter.write("\nExamples:\n")
        for line, purpose in EXAMPLES[name]:
            formatter.write(f"  {line}\n")
            formatter.write("".join(f"{part}\n" for part in _wrapped(purpose, formatter.width, " " * 6)))


def _write_section(title: str, rows: Sequence[tuple[str, str]], formatter: click.HelpFormatter) -> None:
    """A title, and below it two columns."""
    if not rows:
        return
    column = 2 + min(WIDEST_NAME, max(len(name) for name, _ in rows)) + 2
    formatter.write(f"\n{title}:\n")
    for name, said in rows:
        first, *rest = _wrapped(said, formatter.width, " " * column) or [""]
        lead = f"  {name}"
        fits = len(lead) <= column - 2
        lines = [lead.ljust(column) + first[column:], *rest] if fits else [lead, first, *rest]
        formatter.write("".join(f"{line.rstrip()}\n" for line in lines))


def _wrapped(text: str, columns: int, indent: str) -> list[str]:
    """Lines in which words stay whole."""
    return wrap(
        text,
        columns,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
