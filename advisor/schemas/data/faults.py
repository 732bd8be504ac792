"""What is found of an entry in its rows; one function a rule."""

from collections import Counter
from collections.abc import Callable, Iterator

from advisor.datasets import Row, around, fitting, tokens_in, turns_in
from advisor.engine.rule import Hit
from advisor.run import Run
from advisor.schemas.data.entry import Entry
from advisor.schemas.data.trims import trims

WORDS = {"turns": "chats", "pairs": "pairs", "labels": "labelled answers", "instructions": "prompts with answers"}
TO_THIRD = 1.33
"""trl/trainer/kto_trainer.py:1120-1128@1.9.0 asks for 1 to 1.33, desirable to undesirable, each by its weight."""


def of_another_shape(_run: Run, entry: Entry) -> Iterator[Hit]:
    """A type that reads none of the columns, and rows that are something else."""
    shape = fitting(entry.rows.first[0])
    if shape is None or not entry.columns or not _none_there(entry):
        return
    read = " and ".join(f"`{column}`" for column in entry.columns.values())
    rows = f"the rows of {entry.rows.path} are {WORDS.get(shape['word'], shape['word'])}: {shape['why']}"
    yield Hit(entry.place("type"), f"this entry reads {read}; {rows}")


def _none_there(entry: Entry) -> bool:
    return not any(column in row for row in entry.rows.first for column in entry.columns.values())


def missing_fields(run: Run, entry: Entry) -> Iterator[Hit]:
    """Columns that no row has, or not all."""
    if any(of_another_shape(run, entry)):
        return
    for key, column in entry.columns.items():
        lacking = [at for at, row in enumerate(entry.rows.first) if row.get(column) is None]
        if len(lacking) == len(entry.rows.first):
            columns = ", ".join(f"`{name}`" for name in list(entry.rows.first[0])[:8])
            message = f"`{column}` is in none of {entry.rows.seen} of {entry.rows.path}, which have {columns}"
            yield Hit(entry.place(key), message)
        elif lacking:
            yield Hit(entry.place(key), f"`{column}` is missing in {_share(entry, lacking)}")
    yield from _missing_in_turns(entry)


def _missing_in_turns(entry: Entry) -> Iterator[Hit]:
    role, _ = entry.keys_of_turns
    column = entry.named("field_messages", "messages")
    odd = [at for at, row in enumerate(entry.rows.first) if any(role not in turn for turn in turns_in(row.get(column)))]
    if entry.is_chat and odd:
        keys = ", ".join(f"`{key}`" for key in turns_in(entry.rows.first[odd[0]].get(column))[0])
        message = f"turns have no `{role}` in {_share(entry, odd)}; they have {keys}: map them"
        yield Hit(entry.place("message_property_mappings"), message)


def roles_not_trained(run: Run, entry: Entry) -> Iterator[Hit]:
    """Roles that axolotl does not know: their turns are read, and never trained."""
    if not _by_roles(run, entry):
        return
    known = {*entry.roles.values(), *entry.trained, "tool"}
    turns = Counter(own for row in entry.rows.first for own, role, _ in entry.turns(row) if role not in known)
    if turns:
        said = ", ".join(f"`{role}` ({count} turns)" for role, count in turns.most_common(4))
        message = (
            f"no role of axolotl's: {said} in {entry.rows.seen}; they are read, never trained: map them by `roles`"
        )
        yield Hit(entry.place("roles"), message)


def _by_roles(run: Run, entry: Entry) -> bool:
    flags = ("message_field_training", "message_field_training_detail")
    return entry.is_chat and not run.config.get("train_on_inputs") and not any(entry.values.get(key) for key in flags)


def rows_not_trained(run: Run, entry: Entry) -> Iterator[Hit]:
    """Rows in which nothing is trained."""
    if _none_there(entry):
        return
    if _by_roles(run, entry):
        empty = [at for at, row in enumerate(entry.rows.first) if not _has_answer(entry, row)]
        what = "no turn that is trained"
    elif "type.field_output" in entry.columns or entry.type.startswith("alpaca"):
        column = list(entry.columns.values())[-1] if entry.columns else "output"
        empty = [at for at, row in enumerate(entry.rows.first) if not str(row.get(column) or "").strip()]
        what = f"nothing in `{column}`"
    else:
        return
    if empty:
        yield Hit(entry.place("type"), f"{what}, in {_share(entry, empty)}: nothing is learnt from them")


def _has_answer(entry: Entry, row: Row) -> bool:
    return any(role in entry.trained and said for _, role, said in entry.turns(row))


def rows_too_long(run: Run, entry: Entry) -> Iterator[Hit]:
    """Rows that are surely longer than ``sequence_len``, by more than the doubt about their tokens."""
    length = run.sequence_len
    if entry.type in {"completion", "pretrain"} or not length:
        return
    rows = [around(_longest(entry, row)) for row in entry.rows.first]
    least, most = (sum(getattr(row, end) > length for row in rows) for end in ("low", "high"))
    if least:
        low, high = (f"{100 * count / len(rows):.0f}" for count in (least, most))
        share = f"{low} %" if low == high else f"{low} to {high} %"
        longest = max(rows, key=lambda row: row.high)
        cut = "cut off" if run.config.get("excess_length_strategy") == "truncate" else "dropped"
        message = (
            f"{share} of {entry.rows.seen} are longer than `sequence_len: {length}`, and {cut}; "
            f"the longest has {longest} tokens"
        )
        yield Hit(entry.at, message)


def _longest(entry: Entry, row: Row) -> float:
    columns = [*entry.columns.values()] or list(row)
    if not entry.is_paired:
        return tokens_in(row, columns)
    before = [column for column in columns if column not in {columns[-1], columns[-2]}]
    return tokens_in(row, before) + max(tokens_in(row, [column]) for column in columns[-2:])


def answers_trimmed(run: Run, entry: Entry) -> Iterator[Hit]:
    """Answers with blanks at an end, which the template takes off, so that axolotl does not find them again."""
    if entry.rl not in {"dpo", "ipo", "simpo"} or not entry.type.startswith("chat_template") or not trims(run):
        return
    both = [entry.answers(row) for row in entry.rows.first]
    odd = [at for at, pair in enumerate(both) if any(answer != answer.strip() for answer in pair)]
    if odd:
        message = f"an answer begins or ends with blanks in {_share(entry, odd)}: the template strips them, and axolotl"
        yield Hit(entry.at, f"{message} then trains on the last character alone; strip them in the file")


def equal_pairs(_run: Run, entry: Entry) -> Iterator[Hit]:
    """Pairs of one answer."""
    if not entry.is_paired:
        return
    both = [entry.answers(row) for row in entry.rows.first]
    equal = [at for at, (chosen, rejected) in enumerate(both) if chosen and chosen == rejected]
    if equal:
        yield Hit(entry.at, f"the chosen and the rejected answer are the same in {_share(entry, equal)}: remove them")


def uneven_labels(run: Run, entry: Entry) -> Iterator[Hit]:
    """Good and bad answers of KTO, each by its weight."""
    labels = [row["label"] for row in entry.rows.first if isinstance(row.get("label"), bool)]
    if entry.rl != "kto" or not labels:
        return
    good, bad = sum(labels), len(labels) - sum(labels)
    weights = [float(run.config.get(f"kto_{name}_weight") or 1.0) for name in ("desirable", "undesirable")]
    ratio = good * weights[0] / (bad * weights[1]) if bad else 0.0
    if round(ratio, 2) < 1 or round(ratio, 2) > TO_THIRD:
        counted = f"{good} labels are true and {bad} false in {entry.rows.seen}"
        remedy = f": set `kto_undesirable_weight: {good * weights[0] / bad:.2g}`" if bad and good else ""
        yield Hit(entry.at, f"{counted}; by their weights TRL wants 1 to {TO_THIRD} true ones for a false{remedy}")


def _share(entry: Entry, odd: list[int]) -> str:
    """How many of the rows, and where the first is."""
    line = entry.rows.lines[odd[0]]
    first = f"the first on line {line}" if line else f"the first is row {odd[0] + 1}"
    return f"{len(odd)} of {entry.rows.seen} ({first} of {entry.rows.path})"


FAULTS: dict[str, Callable[[Run, Entry], Iterator[Hit]]] = {
    "data-shape-differs": of_another_shape,
    "data-fields-missing": missing_fields,
    "data-roles-not-trained": roles_not_trained,
    "data-rows-not-trained": rows_not_trained,
    "data-rows-too-long": rows_too_long,
    "data-answers-trimmed": answers_trimmed,
    "data-pairs-equal": equal_pairs,
    "data-labels-uneven": uneven_labels,
}
