"""What a key does to this run: memory and time with other values of it, the longest or largest that fits."""

from collections.abc import Sequence

from advisor.engine.answer_steps import tokens_per_second
from advisor.engine.cancellation import end_if_cancelled
from advisor.engine.max_value import KEYS, max_value, with_value
from advisor.errors import InputError
from advisor.memory import Estimate, estimate
from advisor.opening import LoadedRun
from advisor.record import record
from advisor.report.markdown_text import escaped
from advisor.report.wording import VERDICTS, number
from advisor.run import Run

VALUES: dict[str, tuple[object, ...]] = {
    "micro_batch_size": (1, 2, 4, 8, 16),
    "optimizer": (
        "adamw_torch_fused",
        "adamw_torch_8bit",
        "adamw_bnb_8bit",
        "paged_adamw_8bit",
        "lion_8bit",
        "adafactor",
        "muon",
        "sgd",
    ),
    "adapter": ("lora", "qlora"),
}
MOST_TIMES = 4
SHORTEST = 256


@record(eq=False)
class Row:
    """A value with what it needs."""

    value: object
    estimate: Estimate
    tokens: float | None
    """A second, of all GPUs."""


def table(opened: LoadedRun, key: str) -> str:
    """Markdown; empty where the key changes neither memory nor time, or nothing is known."""
    rows = [row for value in values_of(key, opened.run.config.get(key)) if (row := tried(opened, key, value))]
    if len({(row.estimate.needed.high, row.tokens and round(row.tokens)) for row in rows}) < 2:
        return ""
    now = opened.run.config.get(key)
    lines = [f"| `{key}` | GiB of {number(rows[0].estimate.usable)} | | tokens/s |", "| --- | ---: | --- | ---: |"]
    lines += [line(row, written=row.value == now) for row in rows]
    return "\n".join(lines) + longest(opened, key)


def line(row: Row, *, written: bool) -> str:
    """One value; that of the file in bold."""
    mark = "**" if written else ""
    tokens = f"{row.tokens:,.0f}" if row.tokens is not None else ""
    needed, verdict = number(row.estimate.needed.high), VERDICTS[row.estimate.verdict]
    return f"| {mark}{cell(_shown_value(row.value))}{mark} | {needed} | {verdict} | {tokens} |"


def longest(opened: LoadedRun, key: str) -> str:
    """The largest value that fits, of the keys that have one."""
    if key not in KEYS:
        return ""
    found = max_value(opened, key)
    if found.value is None:
        return "\n\nNot even the smallest fits."
    return f"\n\nThe largest that fits: **{found.value:,}** ({number(found.high)} GiB)."


def values_of(key: str, value: object) -> Sequence[object]:
    """Other values worth a look, the written one among them: those of the table, both of a switch, half and double."""
    match value:
        case bool():
            return (True, False)
        case int() if key not in VALUES and value > 1:
            return tuple(dict.fromkeys(max(1, value * 2**power // 4) for power in range(MOST_TIMES)))
        case _:
            known = VALUES.get(key, ())
            return (*known, *([value] if known and value is not None and value not in known else []))


def tried(opened: LoadedRun, key: str, value: object) -> Row | None:
    """The run with another value; None where that cannot be read or counted."""
    end_if_cancelled()
    try:
        run: Run = with_value(opened, key, value)
    except (InputError, ValueError):
        return None
    found = estimate(run)
    if found is None or run.unreadable:
        return None
    return Row(value, found, tokens_per_second(run))


def cell(text: str) -> str:
    """A value or some words in a table."""
    return escaped(text).replace("|", "\\|")


def _shown_value(value: object) -> str:
    """As YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
