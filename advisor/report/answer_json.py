"""The answer as JSON: bytes and seconds, the words of headline and action as the screens have them."""

from typing import Any

from advisor.documents import Edit
from advisor.engine.answer import Answer, AnswerStep, NotTaken, Option, Room


def answer(value: Answer) -> dict[str, Any]:
    """One answer. Other hardware is a person's question, so ``C`` is no part of it."""
    reason = value.reason
    return {
        "starts": value.starts,
        "reason": {"where": reason.where, "phase": reason.phase} if reason else None,
        "headline": value.headline,
        "action": value.action,
        "little_room": value.little_room,
        "needs": value.needs,
        "room": _room(value.room) if value.room is not None else None,
        "more_room": value.more_room,
        "network": value.network,
        "rate": value.rate,
        "padding": value.padding,
        "few_bits": value.few_bits,
        "masters": value.masters,
        "vllm": value.vllm,
        "smaller_model": value.smaller_model,
        "options": [_option(each) for each in value.options if each.letter != "C"],
        "not_taken": [_not_taken(each) for each in value.not_taken],
    }


def _room(value: Room) -> dict[str, Any]:
    """The larger micro batch that fits."""
    return {
        "micro_batch_size": value.micro_batch_size,
        "global_batch_size": value.global_batch_size,
        "needed": {"low": value.needed.low, "high": value.needed.high},
    }


def _option(value: Option) -> dict[str, Any]:
    """One option, and where it ends; of one that is no way out, the smallest end."""
    end, tokens = value.end, value.tokens_per_second
    memory = end and {
        "needed": {"low": end.needed.low, "high": end.needed.high},
        "usable": end.usable,
        "host": end.host_peak,
    }
    return {
        "id": value.letter,
        "training": value.training,
        "title": value.title,
        "hardware": value.hardware,
        "fits": value.fits,
        "verdict": value.verdict,
        "recommended": value.recommended,
        "changes": value.changes,
        "steps": [_step(each) for each in value.steps],
        "edits": [edit(each) for each in value.edits],
        "command": value.command,
        "memory": memory,
        "time": None if value.seconds is None else {"seconds": value.seconds, "tokens_per_second": tokens},
    }


def _step(value: AnswerStep) -> dict[str, Any]:
    """One edit, the high end of what a GPU needs before and after."""
    return {
        "rule": value.rule,
        "title": value.title,
        "because": value.because,
        "cost": value.cost,
        "requires": list(value.requires),
        "memory": _change(value.memory),
        "host": _change(value.host),
        "time": _change(value.seconds),
    }


def _change(value: tuple[float, float] | None) -> dict[str, float] | None:
    """A figure before and after."""
    return None if value is None else {"before": value[0], "after": value[1]}


def _not_taken(value: NotTaken) -> dict[str, Any]:
    """What was not taken, and why."""
    return {"title": value.title, "because": value.because, "memory": value.memory, "seconds": value.seconds}


def edit(value: Edit) -> dict[str, Any]:
    """One replacement of bytes."""
    return {
        "file": value.file,
        "start": value.start,
        "end": value.end,
        "text": value.text,
        "create": value.create,
    }
