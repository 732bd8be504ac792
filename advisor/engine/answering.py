"""Run, Report -> Answer: does it fit, what can be done, and which of it to take."""

from collections.abc import Callable, Sequence

from advisor.engine.answer import Answer, Option, Reason
from advisor.engine.answer_steps import seconds_of, stops_in, tokens_per_second
from advisor.engine.corrections import by_hand_first
from advisor.engine.finding import Finding, Report
from advisor.engine.headline import (
    FOR_MASTERS,
    NO_EDIT,
    NOTHING,
    PADS,
    RATE,
    Facts,
    action,
    headline,
    no_gpus_hint,
    with_line,
)
from advisor.engine.model_hints import unknown_model_hints
from advisor.engine.not_taken import not_taken
from advisor.engine.options import Options, planner, room_rules
from advisor.engine.pace import Pace, unstated_network
from advisor.engine.ways_out import Asked, options_of
from advisor.engine.what_changes import is_out_of_emulation
from advisor.opening import LoadedRun
from advisor.record import replace
from advisor.run import Run
from advisor.util import as_typed


def answered(opened: LoadedRun, options: Options, report: Report) -> Report:
    """The report with its answer, where that is shown."""
    if not options.answers or opened.run.is_json_alone:
        return report
    answer = answer_of(opened, options, report)
    if options.outlook:
        answer = _with_found(report, _with_outlook(opened.run, options, answer, is_low=_is_low(report)))
    return replace(report, answer=answer)


def answer_of(opened: LoadedRun, options: Options, report: Report) -> Answer:
    """Does it fit, what can be done, what does it cost."""
    asked = Asked(opened, options, report)
    stops = stops_in(report.findings)
    ways = tuple(_recommended(options_of(asked, stops)))
    facts = Facts(
        opened.run, report, by_hand_first(stops, ways), Pace(seconds_of(opened.run), tokens_per_second(opened.run))
    )
    reason = _reason_of(opened.run, report, stops)
    chosen = next((way for way in ways if way.recommended), None)
    needs = _needs_of(opened.run) if opened.run.hardware is None else None
    return Answer(
        report.verdict,
        not stops,
        reason,
        headline(facts, reason, needs, ends=chosen is not None and chosen.starts and chosen.verdict != "unknown"),
        action(facts, ways, hint=_hint(facts, reason)),
        little_room=report.estimate is not None and report.estimate.has_little_room,
        needs=needs,
        assumed=opened.run.hardware.assumed if opened.run.hardware is not None else "",
        options=ways,
        rungs=chosen.rungs if chosen is not None and chosen.rungs else report.rungs,
        not_taken=tuple(not_taken(asked, chosen)),
        seconds=facts.pace.seconds,
        tokens_per_second=facts.pace.tokens,
        more_room=chosen.more_room if chosen is not None else "",
    )


def _is_low(report: Report) -> bool:
    """Whether the rate is found to be too low for weights without fp32 masters."""
    return any(each.rule == FOR_MASTERS for each in report.findings)


def _with_outlook(run: Run, options: Options, answer: Answer, *, is_low: bool) -> Answer:
    """The same with what a run that goes through has room for, and with what its links take.

    ``is_low``: its learning rate wants fp32 masters.
    """
    answer = replace(answer, network=unstated_network(run))
    if not answer.starts or answer.verdict not in {"fits", "tight"}:
        return _with_smaller_model(run, options, answer)
    from advisor.engine.network import Links, as_example, network_words
    from advisor.engine.room import more_room, room_for

    way = answer.option("F")
    room = room_for(run, instead=way is not None) if answer.verdict == "fits" else None
    taken = tuple(step.rule for step in way.steps) if way is not None else ()
    larger = room.micro_batch_size if room else None
    links = Links(run, room_rules(options), taken, way.seconds if way else None, larger)
    more = more_room(run, room_rules(options)) if way is None else ""
    network = network_words(links if not answer.network else as_example(links))
    network = " ".join(filter(None, (answer.network, network)))
    answer = replace(answer, room=room, more_room=more or answer.more_room, network=network)
    if answer.verdict != "fits":
        return answer
    from advisor.engine.other_runs import with_masters, with_vllm, without_few_bits, without_few_bits_of_states

    masters = with_masters(run, room_rules(options)) if is_low else ""
    few_bits = without_few_bits(run) or without_few_bits_of_states(run)
    return replace(answer, few_bits=few_bits, masters=masters, vllm=with_vllm(run))


def _with_smaller_model(run: Run, options: Options, answer: Answer) -> Answer:
    """The same with the largest smaller model that fits, where no edit makes this one fit as it is trained."""
    same = answer.option("A")
    is_open = same is not None and (same.command is not None or not same.starts)
    if answer.verdict != "does-not-fit" or is_open:
        return answer
    from advisor.engine.smaller_model import smaller_model

    plan = planner(options)
    return replace(answer, smaller_model=smaller_model(run, lambda other: plan(other, True)))


def _with_found(report: Report, answer: Answer) -> Answer:
    """The same with a rate that is far off, and with what padded rows take, where that is found and not ignored."""
    rows = next((each for each in report.findings if each.rule == PADS), None)
    rate = next((each for each in report.findings if each.rule == RATE and each.level == "warning"), None)
    padding = f"{rows.message}." if rows is not None else ""
    answer = replace(answer, padding=padding, rate=f"{with_line(rate)}." if rate is not None else "")
    return replace(answer, action=NO_EDIT) if answer.action == NOTHING and answer.advises else answer


def _reason_of(run: Run, report: Report, stops: Sequence[Finding]) -> Reason | None:
    """Where it does not fit, or why nobody knows."""
    found = report.estimate
    if stops:
        return Reason("refused")
    if found is None:
        if run.is_json_alone or run.unreadable:
            return None
        return Reason("no-gpus") if run.hardware is None else Reason("unknown-model")
    if found.verdict == "unknown":
        return Reason("not-counted")
    if found.verdict == "fits":
        return None
    if found.on_gpu == "fits":
        return Reason("host")
    phase = found.peak_phase
    return Reason(phase if phase == "load" or phase == "evaluation" else "gpu", phase)


def _hint(facts: Facts, reason: Reason | None) -> str:
    """What to say where no verdict can be given."""
    match reason.where if reason else "":
        case "no-gpus":
            return no_gpus_hint(facts)
        case "unknown-model":
            return unknown_model_hints(facts.report)
        case "not-counted":
            return f"To measure it, a few steps: `{as_typed('advisor', 'verify', facts.run.config.file)}`"
        case _:
            return ""


def _needs_of(run: Run) -> int | None:
    """Bytes on one GPU, whatever card it is: the high end; None where the model is not known."""
    from advisor.engine.hardware_that_fits import on_any_gpu
    from advisor.memory import estimate

    found = estimate(on_any_gpu(run)) if run.model is not None else None
    return None if found is None else found.needed.high


def _recommended(options: Sequence[Option]) -> list[Option]:
    """The options, the first that fits marked as the one to take; else the first that is any way at all.

    Of emulated bf16 the way to fp16 comes first: the same training is there to be had, several times as slow.
    """
    ways = [option for option in options if option.command is not None]
    fitting = [option for option in ways if option.verdict == "fits"]
    chosen = next(iter((*filter(_holds(options), fitting), *fitting, *ways)), None)
    chosen = next((option for option in fitting if chosen is not None and is_out_of_emulation(option, chosen)), chosen)
    return [replace(option, recommended=True) if option is chosen else option for option in options]


def _holds(options: Sequence[Option]) -> Callable[[Option], bool]:
    """Whether a way that does not start is the same once another has repaired what stops it, and does more than that.

    One that only corrects more is to be taken itself: the correction must be made in any case.
    """
    repaired = [option.steps for option in options if option.command and option.starts]

    def holds(option: Option) -> bool:
        if option.starts or not repaired:
            return True
        own, other = {step.rule for step in option.steps}, {step.rule for step in repaired[0]}
        only_corrects = all(step.memory is None for step in repaired[0] if step.rule not in own)
        return own <= other and not only_corrects

    return holds
