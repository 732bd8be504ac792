"""What becomes of the training by a way that changes it, in a few words."""

from collections.abc import Sequence

from advisor.engine.answer import Option
from advisor.util import counted, number, regex

MUCH = {"B": 2.0, "F": 1.25}
"""Times as fast, by option, from which it is worth naming next to A: another training, more edits."""
MUCH_AFTER_B = 1.5
"""The same of F next to B, whose sentence is longer."""
EMULATED = {"bf16-unsupported"}
OFFLOADS = ("offload-optimizer", "offload-params")
CLAUSE = regex(r"(?:[^`,;:]|`[^`]*`)+")


def what_changes(option: Option, first: str = "") -> str:
    """``. What changes: write `type: chat_template`, and 1 more such edit``; empty of the same training.

    ``first``: the rule to name.
    """
    named = _named(option, first) if option.training == "changes" else ""
    return f". What changes: {named}" if named else ""


def _changing(option: Option) -> set[str]:
    """The rules of an option that change the training."""
    return {step.rule for step in option.steps if not step.safe}


def leaves_emulation(option: Option) -> bool:
    """Whether an option takes fp16 in place of bf16 that the card emulates."""
    return _changing(option) >= EMULATED


def is_out_of_emulation(option: Option, same: Option) -> bool:
    """Whether an option leaves emulation, and is much faster than the same training for it.

    It changes nothing else of the training; or the same training needs the host, which is the last resort.
    """
    if same.letter != "A" or not (same.seconds and option.seconds) or not leaves_emulation(option):
        return False
    alone = _changing(option) == EMULATED
    on_host = any(step.rule in OFFLOADS for step in same.steps)
    return (alone or on_host) and same.seconds >= MUCH["B"] * option.seconds


def much_slower(chosen: Option, options: Sequence[Option]) -> str:
    """``--fix keeps bf16, emulated: 6.8 times as slow, 20.7 GiB``, of the same training next to the way to fp16."""
    same = next((option for option in options if option.fits and is_out_of_emulation(chosen, option)), None)
    if same is None or same.end is None or not (same.seconds and chosen.seconds):
        return ""
    times = f"{same.seconds / chosen.seconds:.1f} times as slow"
    return f"{same.flags} keeps bf16, emulated: {times}, {number(same.end.needed.high)} GiB"


def much_faster(chosen: Option, options: Sequence[Option]) -> str:
    """What next to the same training is so much faster, by its command.

    ``--fix --unsafe-fixes is 6.2 times as fast, with other training: LoRA``; ``--fix --faster is 3.1 times as fast,
    same training, and needs 45.0 GiB`` where the repaired run has room for that.
    """
    if chosen.letter not in {"A", "B"} or not chosen.seconds:
        return ""
    others = [option for option in options if option is not chosen and option.letter in MUCH]
    times = {option: chosen.seconds / option.seconds for option in others if option.seconds}
    worth = [option for option in times if option.fits and times[option] >= _least(option, chosen)]
    option = max(worth, key=lambda option: times[option] / MUCH[option.letter], default=None)
    if option is None:
        return ""
    said, end = f"{option.flags} is {times[option]:.1f} times as fast", option.end
    if option.letter == "F" and end is not None:
        trained = "same training" if option.training == "same" else "trained alike"
        return f"{said}, {trained}, and needs {number(end.needed.high)} GiB"
    return f"{said}, with other training: {_named(option)}"


def _least(option: Option, chosen: Option) -> float:
    """Times as fast as the option to take, from which another is worth naming."""
    return MUCH_AFTER_B if chosen.letter == "B" else MUCH[option.letter]


def _named(option: Option, first: str = "") -> str:
    """The first of its steps that change the training, up to its first clause, and how many more there are."""
    steps = sorted((step for step in option.steps if not step.safe), key=lambda step: step.rule != first)
    if not steps:
        return ""
    more = f", and {counted(len(steps) - 1, 'more such edit')}" if len(steps) > 1 else ""
    clause = CLAUSE.match(steps[0].title)
    return f"{clause[0] if clause is not None else steps[0].title}{more}"
