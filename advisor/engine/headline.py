"""The answer in two sentences: does it fit, and what to do about it."""

from collections.abc import Sequence

from advisor.engine.answer import AnswerStep, Option, Reason
from advisor.engine.answer_steps import stop_of
from advisor.engine.blocking import verdict_words
from advisor.engine.clauses import cause_of, remedy_of
from advisor.engine.corrections import corrections
from advisor.engine.finding import PLANNED, Finding, Report
from advisor.engine.model_hints import as_its_base, likeliest_hint, unknown_model
from advisor.engine.pace import NO_PACE, Pace, more_time
from advisor.engine.what_changes import leaves_emulation, much_faster, much_slower, what_changes
from advisor.memory.ledger import Estimate
from advisor.record import record, replace
from advisor.run import Run
from advisor.util import GIB, as_typed, capital, counted, number, regex

OLD_KEY = "deprecated-key"
INSTALLED = regex(r'pip install "?(axolotl\[[\w-]+\]|[\w-]+)')
RATE = "learning-rate-unusual"
"""A note that is told next to warnings too: what it speaks of decides whether the run is worth its time."""
PADS = "pads-every-row"
FOR_MASTERS = "pure-bf16-low-rate"
"""The note that asks for fp32 masters."""
TOLD = frozenset({RATE, PADS})
"""Notes after which nobody should read that nothing needs to change."""
OTHER = "changes training"
"""The title of a way that has no better one."""
NOTHING, NO_EDIT = "Nothing needs to change.", "No edit is needed to fit."
SAY_GPUS = 'Say which GPUs you have: --gpus "1x rtx-4090", or --gpus 24GB'


@record(eq=False)
class Facts:
    """What the sentences are made of: the run, what was found, the errors that stop it, how fast it is as written."""

    run: Run
    report: Report
    stops: Sequence[Finding] = ()
    pace: Pace = NO_PACE


def headline(facts: Facts, reason: Reason | None, needs: int | None, *, ends: bool = False) -> str:
    """``Does not fit: needs 349.5 GiB on each of 2x A100-80GB SXM, which have 78.0.``

    ``ends``: the action says what memory it takes once it is repaired.
    """
    run, found = facts.run, facts.report.estimate
    if facts.stops:
        return f"Does not start: {_stopped_by(facts.stops)}.{'' if ends else _memory_of(facts)}"
    match reason.where if reason else "":
        case "no-gpus":
            return f"No GPUs stated{_nor_model(run)}." if needs is None else f"Needs {number(needs)} GiB on one GPU."
        case "unknown-model":
            return f"No verdict, no error: {unknown_model(run)}.{as_its_base(run)}"
        case "not-counted":
            return _uncounted(run, found)
        case _:
            return "No verdict." if found is None else f"{_verdict(run, found)}{_warnings_in(facts.report)}"


def _warnings_in(report: Report) -> str:
    """`` 3 warnings.``, of a run that goes through: what an answer of one line leaves out."""
    found = sum(each.level == "warning" and each.rule not in PLANNED.values() for each in report.findings)
    return f" {counted(found, 'warning')}." if found and report.verdict in {"fits", "tight"} else ""


def _memory_of(facts: Facts) -> str:
    """`` Would fit: 4.8 of 23.1 GiB.``, of a run that does not start; or why nobody knows."""
    report = facts.report
    if report.verdict == "unknown":
        return _not_estimated(facts)
    words = verdict_words(report)
    said = f"Would fit: {words.removeprefix('fits ')}" if report.verdict == "fits" else capital(words)
    return f" {said}."


def _not_estimated(facts: Facts) -> str:
    """`` No estimate: unknown model `acme/orca`.``, of a run that does not start, where that is why."""
    if facts.run.hardware is None or not facts.run.base_model:
        return ""
    if facts.run.model is None:
        return f" No estimate: {unknown_model(facts.run)}."
    return " No estimate without it." if facts.stops[0].rule == "missing-deepspeed-file" else ""


def _nor_model(run: Run) -> str:
    """``, and unknown model `acme/orca```, where that is so."""
    return f", and {unknown_model(run)}" if run.model is None and run.base_model else ""


def no_gpus_hint(facts: Facts) -> str:
    """How to say which GPUs there are; of an unknown model the likeliest way to make it known, too."""
    hint = likeliest_hint(facts.report) if facts.run.model is None else ""
    return f"{SAY_GPUS}. {hint}" if hint else SAY_GPUS


def _verdict(run: Run, found: Estimate) -> str:
    """What is needed of what is there."""
    if found.on_gpu == "fits" and found.verdict != "fits":
        return f"{_of_host(found)}{_gpus_fine(run, found)}"
    needed, usable, where = number(found.needed.high), number(found.usable), _on(run)
    match found.verdict:
        case "fits":
            room = " Little room is left." if found.has_little_room else f" {_free(found)}"
            return f"Fits{found.grounds}: needs {needed} of {usable} GiB {where}.{room}"
        case "tight":
            return f"Near the limit{found.grounds}: needs up to {needed} of {usable} GiB {where}. It may run out."
        case _:
            have = "have" if run.world_size > 1 else "has"
            host = f" {_host_too(found)}" if found.on_host == "does-not-fit" else ""
            needs = f"needs {needed} GiB{_phase(found)} {where}, which {have} {usable}"
            return f"Does not fit{found.grounds}: {needs}.{host}"


def _phase(found: Estimate) -> str:
    """Of a run whose evaluation needs most: that it does, and what the run needs without."""
    if found.peak_phase != "evaluation":
        return ""
    return f" in evaluation, {number(found.needed_in_training)} without,"


def _host_too(found: Estimate) -> str:
    """That the host is short as well as the GPU."""
    return f"The host is short, too: {number(found.host_peak)} of {number(found.host_usable or 0)} GiB a node."


def _of_host(found: Estimate) -> str:
    """The same of the host, where it is what is short."""
    if found.verdict == "tight":
        needed = f"{number(found.host_peak)} of {number(found.host_usable or 0)}"
        return f"Near the limit: needs up to {needed} GiB of host memory. It may run out."
    return f"Does not fit: {_host_needs(found)}."


def _host_needs(found: Estimate) -> str:
    """``needs 592.5 GiB of host memory a node, which has 480.0``."""
    return f"needs {number(found.host_peak)} GiB of host memory a node, which has {number(found.host_usable or 0)}"


def _gpus_fine(run: Run, found: Estimate) -> str:
    """`` The GPUs are fine (33.1 of 78.0).``"""
    subject = "GPUs are" if run.world_size > 1 else "GPU is"
    return f" The {subject} fine ({number(found.needed.high)} of {number(found.usable)})."


def _free(found: Estimate) -> str:
    """The room that is left."""
    return f"{number(found.usable - found.needed.high)} GiB are free."


def _on(run: Run) -> str:
    """``on each of 2x RTX 4090``, ``on 1x RTX 4090``."""
    assert run.hardware is not None, "a verdict has hardware"
    return f"on each of {run.hardware.title}" if run.world_size > 1 else f"on {run.hardware.title}"


def _uncounted(run: Run, found: Estimate | None) -> str:
    """What is known without the keys that nobody counts."""
    if found is None:
        return "No verdict."
    keys = ", ".join(f"`{each.key}`" for each in found.uncounted)
    known = found.filled
    return f"No verdict, no error: {keys} is not counted; without it the run needs {known} {_on(run)}."


def _stopped_by(stops: Sequence[Finding]) -> str:
    """The first error with its line, and how many more there are."""
    more = f", and {counted(len(stops) - 1, 'more error')}" if len(stops) > 1 else ""
    cause = cause_of(stops[0].message).removesuffix(f": {remedy_of(stops[0])}")
    return f"{cause}{_line_of(stops[0])}{more}"


def with_line(finding: Finding) -> str:
    """Its message, the line after the key that it begins with."""
    return finding.message.replace("` ", f"`{_line_of(finding)} ", 1)


def _line_of(finding: Finding) -> str:
    """`` (line 9)``."""
    return f" ({finding.place.words})" if finding.place.line else ""


def action(facts: Facts, options: Sequence[Option], *, hint: str = "") -> str:
    """``4 edits bring it down to 72.9 GiB, same training, +6.1 s a step: add --fix``, or what else helps."""
    chosen = next((option for option in options if option.recommended), None)
    if chosen is not None and chosen.letter == "C":
        edits = f", with {counted(chosen.changes, 'edit')}" if chosen.changes else ""
        price = f": {chosen.price}" if chosen.price else ""
        return f"No edits make it fit. {chosen.hardware} would do{edits}{price}."
    if chosen is not None:
        near = _near_the_limit(facts, options) if chosen.letter == "B" else ""
        other = much_faster(chosen, options) or much_slower(chosen, options)
        said = f"{_of_option(facts, chosen)}{near}"
        return f"{said.removesuffix('.')}. {other}" if other else said
    if hint:
        return hint
    if facts.stops:
        return corrections(list(map(stop_of, facts.stops)), options)
    if facts.report.verdict == "fits" and not options:
        is_well = not _warnings_in(facts.report) and all(each.rule not in TOLD for each in facts.report.findings)
        return NOTHING if is_well else NO_EDIT
    if facts.report.verdict in {"fits", "unknown"} or not options:
        return ""
    found = facts.report.estimate
    least = min((option.end.needed.high for option in options if option.end is not None), default=None)
    is_less = least is not None and found is not None and number(least) != number(found.needed.high)
    reached = f" They reach {number(least or 0)} GiB." if is_less else ""
    if facts.report.verdict != "does-not-fit":
        return "No edit gives it more room."
    return (
        f"No edits make it fit.{reached} GPUs that would do: `{as_typed('advisor', 'hardware', facts.run.config.file)}`"
    )


def _near_the_limit(facts: Facts, options: Sequence[Option]) -> str:
    """The same training that ends near the limit, next to the way that fits."""
    near = next((option for option in options if option.letter == "A" and option.command is not None), None)
    if near is None or near.end is None or near.verdict != "tight" or near.end.is_far_from_sure:
        return ""
    return f". Or {_lowered(_of_option(facts, near))}"


def _lowered(words: str) -> str:
    """As it stands within a sentence."""
    return f"{words[:1].lower()}{words[1:]}"


def _of_option(facts: Facts, option: Option, *, rest: bool = False) -> str:
    """What an option does, and what to add to the command; ``rest``: it repairs errors, too."""
    edits = counted(option.changes, "edit")
    assert option.end is not None or facts.stops, "only a run that is refused has an option without an end"
    if option.letter == "F":
        return f"{_faster(option, facts)}: add {option.flags}"
    if facts.stops and not option.starts:
        return (
            f"{corrections(option.left, ())} {_of_option(replace(facts, stops=()), option, rest=len(facts.stops) > 1)}"
        )
    if facts.stops:
        return f"{repairs(option, facts.pace, by=option.flags, first=facts.stops[0].rule)}."
    assert option.end is not None
    end = f"{end_words(option.end, facts.report.estimate)}{room_words(option.end)}"
    if leaves_emulation(option):
        also = f" and {option.title}" if option.title != OTHER else ""
        way = f"{edits} bring{_s(option)} it down to {end}, with fp16 in place of emulated bf16{also}"
    elif option.letter == "B":
        title = f"{option.title}, " if option.title != OTHER else ""
        way = f"Only by changing the training: {title}{edits}, {end}"
    else:
        does = f"repair{_s(option)} the rest and bring{_s(option)}" if rest else f"bring{_s(option)}"
        way = f"{edits} {does} it down to {end}, same training"
    return f"{way}{more_time(option, facts.pace)}{_packages(option)}: add {option.flags}"


def _packages(option: Option) -> str:
    """``, with `ring-flash-attn` to install``, where steps need what axolotl does not bring."""
    needed = [INSTALLED.match(command) for step in option.steps for command in step.requires]
    names = dict.fromkeys(f"`{found[1]}`" for found in needed if found is not None)
    return f", with {' and '.join(names)} to install" if names else ""


def room_words(end: Estimate) -> str:
    """`` (near the limit)`` of what may run out, `` (little room)`` of what just fits."""
    return " (near the limit)" if end.verdict == "tight" else " (little room)" if end.has_little_room else ""


def repairs(option: Option, before: Pace, *, by: str = "", first: str = "") -> str:
    """``2 edits repair it, same training, +11% time; it then fits, 24.5 of 78.0 GiB``; else that it only starts.

    ``by``: the options that write them, which come first; ``first``: the rule whose edit is named, if one is to be.
    """
    edits, end, s = counted(option.changes, "edit"), option.end, "s" if by else _s(option)
    training = "same training" if option.training == "same" else f"and change{s} what is trained"
    changed = what_changes(option, first)
    who, how = (by, f" in {edits}") if by else (edits, "")
    repaired, started = f"{who} repair{s} it{how}", f"{who} make{s} it start{how}"
    if end is None or option.verdict == "unknown":
        return f"{repaired}, {training}{changed}"
    training += more_time(option, before)
    filled = end.filled
    match option.verdict:
        case "fits":
            return f"{repaired}, {training}; it then fits, {filled}{room_words(end)}{changed}"
        case "tight":
            return f"{repaired}, {training}; it is then near the limit, {filled}{changed}"
        case _:
            lacks = _host_needs(end) if end.lacks_host else f"needs {filled}"
            return f"No edits make it fit. {started}, {training}; it then {lacks}{changed}"


def _s(option: Option) -> str:
    """The ending of a verb whose subject is the edits."""
    return "s" if option.changes == 1 else ""


def end_words(end: Estimate, now: Estimate | None = None) -> str:
    """``21.2 GiB``, with the host's memory where more of that is needed than now."""
    grows = end.host_peak >= GIB and (now is None or number(end.host_peak) != number(min(end.host_peak, now.host_peak)))
    host = f" and {number(end.host_peak)} GiB of host memory" if grows else ""
    return f"{number(end.needed.high)} GiB{host}"


def _faster(option: Option, facts: Facts) -> str:
    """``1 edit takes 24% off the time, same training; it then needs 30.1 GiB; 8 more only rename keys``."""
    tidy = [step for step in option.steps if step.tidies]
    count = option.changes - len(tidy)
    does = f"{counted(count, 'edit')} take{'s' if count == 1 else ''}"
    before, after = facts.pace.seconds, option.seconds
    assert before is not None, "what is faster has a time"
    assert after is not None, "both have"
    end = f"; it then needs {end_words(option.end, facts.report.estimate)}" if option.end is not None else ""
    return f"{does} {1 - after / before:.0%} off the time, same training{end}{_more(tidy)}"


def _more(tidy: Sequence[AnswerStep]) -> str:
    """``; 8 more only rename keys``."""
    one, many = ("only renames a key", "only rename keys")
    if any(step.rule != OLD_KEY for step in tidy):
        one, many = ("corrects another key", "correct other keys")
    return f"; {len(tidy)} more {one if len(tidy) == 1 else many}" if tidy else ""
