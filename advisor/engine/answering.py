"""Run, Report -> Answer: what each option writes, where it ends, and which one to take."""

from collections.abc import Iterator, Sequence

from advisor.engine.answer import Answer, AnswerStep, Letter, NotTaken, Option, Reason, Training
from advisor.engine.check import Options, finding_of, fit_rules, lint_hits, planner, replayed
from advisor.engine.finding import OF_HOST, PLANNED, Finding, Report
from advisor.engine.fix import Fixed, fixed
from advisor.engine.flowchart_status import rungs_of
from advisor.engine.headline import Facts, action, headline, is_of_little_room, unknown_model_hints
from advisor.engine.plan_findings import step_edits, step_findings
from advisor.engine.states import Plan, State
from advisor.hardware import Hardware
from advisor.memory.ledger import Estimate
from advisor.opening import LoadedRun
from advisor.record import record, replace
from advisor.run import Run
from advisor.speed import StepTime, step_time

UNREADABLE = "unreadable-value"
OF_MEMORY = frozenset({*PLANNED.values(), OF_HOST})
"""The rules that say the verdict; any other error stops the run."""


@record(eq=False)
class _Asked:
    """What options are made from."""

    opened: LoadedRun
    options: Options
    report: Report

    @property
    def run(self) -> Run:
        """As written."""
        return self.opened.run


def answered(opened: LoadedRun, options: Options, report: Report) -> Report:
    """The report with its answer, where that is shown."""
    if not options.answers or opened.run.is_json_alone:
        return report
    return replace(report, answer=answer_of(opened, options, report))


def answer_of(opened: LoadedRun, options: Options, report: Report) -> Answer:
    """Does it fit, what can be done, what does it cost."""
    asked = _Asked(opened, options, report)
    stops = _stops_in(report.findings)
    facts = Facts(opened.run, report, stops, _seconds_of(opened.run))
    reason = _reason_of(opened.run, report, stops)
    ways = tuple(_recommended(_options_of(asked, stops)))
    chosen = next((way for way in ways if way.recommended), None)
    needs = _needs_of(opened.run) if opened.run.hardware is None else None
    return Answer(
        report.verdict,
        not stops,
        reason,
        headline(facts, reason, needs),
        action(facts, ways, hint=_hint(facts, reason)),
        little_room=report.estimate is not None and is_of_little_room(report.estimate),
        needs=needs,
        assumed=opened.run.hardware.assumed if opened.run.hardware is not None else "",
        options=ways,
        rungs=chosen.rungs if chosen is not None and chosen.rungs else report.rungs,
        not_taken=tuple(_not_taken(asked, chosen)),
        seconds=facts.seconds,
        tokens_per_second=_tokens_per_second(opened.run),
    )


def _stops_in(findings: Sequence[Finding]) -> list[Finding]:
    """The errors that stop the run: a value that cannot be read before what follows from it, then by line."""
    found = [each for each in findings if each.level == "error" and each.rule not in OF_MEMORY]
    return sorted(found, key=lambda each: (each.rule != UNREADABLE, each.place.line))


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
    where = {"load": "load", "evaluation": "evaluation"}.get(found.peak_phase, "gpu")
    return Reason("load" if where == "load" else "evaluation" if where == "evaluation" else "gpu", found.peak_phase)


def _hint(facts: Facts, reason: Reason | None) -> str:
    """What to say where no verdict can be given."""
    match reason.where if reason else "":
        case "no-gpus":
            return 'Say which GPUs you have: --gpus "1x rtx-4090", or --gpus 24GB'
        case "unknown-model":
            return unknown_model_hints(facts)
        case _:
            return ""


def _needs_of(run: Run) -> int | None:
    """Bytes on one GPU, whatever card it is: the high end; None where the model is not known."""
    from advisor.engine.hardware_that_fits import on_any_gpu
    from advisor.memory import estimate

    found = estimate(on_any_gpu(run)) if run.model is not None else None
    return None if found is None else found.needed.high


def _options_of(asked: _Asked, stops: Sequence[Finding]) -> list[Option]:
    """The options of a run, as far as it needs one: A and B where it does not do, F where it fits, then C."""
    if asked.report.verdict == "fits" and not stops:
        return _faster_option(asked)
    if not stops and (asked.report.verdict not in PLANNED or not _is_wanted(asked)):
        return []
    if not asked.options.plans:
        return []
    same = fixed(asked.opened, asked.options, unsafe=False)
    ways = [_option(asked, same, "A", stops)]
    other = fixed(asked.opened, asked.options, unsafe=True)
    if other.files() != same.files():
        ways.append(_option(asked, other, "B", stops))
    if asked.options.others and not stops:
        ways += _on_other_hardware(asked)
    return ways


def _is_wanted(asked: _Asked) -> bool:
    """Whether the verdict's rule is among those that are asked for: a selection of others wants no plan."""
    found = asked.report.estimate
    rule = OF_HOST if found is not None and found.lacks_host else PLANNED[asked.report.verdict]
    return asked.options.wants(rule)


def _faster_option(asked: _Asked) -> list[Option]:
    """F, where the room that is left is good for something."""
    if asked.report.room is None or not asked.options.speed:
        return []
    made = fixed(asked.opened, replace(asked.options, faster=True), unsafe=False)
    found = _option(asked, made, "F", ())
    before = _seconds_of(asked.run)
    is_faster = before is not None and found.seconds is not None and found.seconds < before
    return [found] if found.steps and is_faster else []


DEEPSPEED = ("zero-1", "zero-2", "zero-3")
"""The steps that bring DeepSpeed, and its fp32 masters with it."""
FLAGS: dict[Letter, tuple[str, ...]] = {
    "A": ("--fix",),
    "B": ("--fix", "--unsafe-fixes"),
    "F": ("--fix", "--faster"),
}


def _option(asked: _Asked, made: Fixed, letter: Letter, stops: Sequence[Finding]) -> Option:
    """An option from what its command writes; without a command where that is no way out."""
    end = replayed(made.run, asked.options) if made.done else None
    ends_well = end is not None and end.verdict in {"fits", "tight"}
    starts = not stops or (bool(made.done) and not _still_stops(made, asked.options))
    is_way = ends_well and asked.report.verdict != "fits" if not (stops and starts) else True
    training: Training = "changes" if letter == "B" else "same"
    if not (made.done and (is_way or letter == "F")):
        least = None if stops else _smallest(asked, safe_only=letter != "B")
        return Option(letter, training, _no_way_title(letter), end=least, starts=not stops)
    steps = tuple(step_of(finding) for finding in made.done)
    rungs = rungs_of(State(made.before), made.plan, fit_rules(asked.options)) if made.plan is not None else ()
    edits, diff = step_edits(made.before, made.run, shown=True)
    return Option(
        letter,
        training,
        _title(letter, steps),
        steps,
        edits,
        diff,
        command=_command(asked, FLAGS[letter]),
        flags=" ".join(FLAGS[letter]),
        end=end,
        seconds=_seconds_of(made.run),
        tokens_per_second=_tokens_per_second(made.run),
        starts=starts,
        rungs=rungs,
    )


def _still_stops(made: Fixed, options: Options) -> bool:
    """Whether an error that stops the run is left after the edits."""
    return bool(_stops_in([finding_of(made.run, rule, hit) for rule, hit in lint_hits(made.run, options)]))


def _smallest(asked: _Asked, *, safe_only: bool) -> Estimate | None:
    """The smallest end that a plan reaches where none fits."""
    found = asked.report.estimate
    if found is None or found.verdict not in PLANNED or found.uncounted:
        return None
    return planner(asked.options)(asked.run, safe_only).end.estimate


def _title(letter: Letter, steps: Sequence[AnswerStep]) -> str:
    """``same training``; of B what it makes of the training: ``LoRA, rank 16``."""
    if letter == "A":
        return "same training"
    if letter == "F":
        return "faster, same training"
    return " and ".join(dict.fromkeys(step.title for step in steps if not step.safe)) or "changes training"


def _no_way_title(letter: Letter) -> str:
    """The same where there is no way."""
    return "same training" if letter == "A" else "changes training"


def step_of(finding: Finding) -> AnswerStep:
    """A step of the plan, or a lint fix, as a person reads it."""
    fix = finding.fix
    assert fix is not None, "what was done has a fix"
    return AnswerStep(
        finding.rule,
        finding.label or finding.title or finding.message,
        finding.because or _first_sentence(finding.why),
        finding.price or _first_sentence(finding.cost),
        fix.safe,
        memory=fix.needed,
        host=fix.host,
        seconds=fix.seconds,
        why=finding.why,
        whole_cost=finding.cost,
        source=finding.source,
        diff=fix.diff,
        help=finding.help,
    )


def _first_sentence(text: str) -> str:
    """Up to the first period that ends one."""
    first, mark, _ = " ".join(text.split()).partition(". ")
    return first + "." if mark else first


def _command(asked: _Asked, flags: Sequence[str]) -> str:
    """A whole command, as it may be pasted."""
    from shlex import join

    return join(["advisor", "check", *asked.options.given, *flags, asked.run.config.file])


def _recommended(options: Sequence[Option]) -> list[Option]:
    """The options, the first that fits marked as the one to take; else the first that is near the limit."""
    ways = [option for option in options if option.command is not None]
    chosen = next((option for option in ways if option.verdict == "fits"), next(iter(ways), None))
    return [replace(option, recommended=True) if option is chosen else option for option in options]


def _not_taken(asked: _Asked, chosen: Option | None) -> Iterator[NotTaken]:
    """FSDP2 where DeepSpeed came in its place, with its figures; then the steps that are no help."""
    if asked.options.details and chosen is not None and chosen.letter == "A":
        brought = [step.rule for step in chosen.steps if step.rule in DEEPSPEED]
        if brought and asked.run.sharding is None:
            yield from _without_masters(asked, brought)
    for skipped in asked.report.skipped:
        yield NotTaken(skipped.rule, skipped.reason)


def _without_masters(asked: _Asked, brought: Sequence[str]) -> Iterator[NotTaken]:
    """The plan that FSDP2 makes, where it takes less time or fewer edits than DeepSpeed's."""
    plan = planner(asked.options.without(DEEPSPEED))(asked.run, True)
    if "fsdp-2" in plan.names and plan.verdict == "fits":
        edits = f"{len(plan.steps)} edit" + ("s" if len(plan.steps) > 1 else "")
        yield NotTaken(
            f"FSDP2 in place of {', '.join(brought)}, {edits}",
            "its weights have no fp32 masters, so small updates are lost; `--flowchart pytorch` prefers it",
            plan.end.estimate.needed.high,
            plan.end.shown_seconds,
        )


def _on_other_hardware(asked: _Asked) -> list[Option]:
    """C: more of the same cards, and a larger one, on which the run does as it is or with its plan."""
    from advisor.engine.hardware_that_fits import other_hardware

    plan = planner(asked.options)
    return [_on(asked, found, hardware) for found, hardware in other_hardware(asked.run, lambda run: plan(run, True))]


def _on(asked: _Asked, plan: Plan, hardware: Hardware) -> Option:
    """C on one kind of hardware; its command checks the file there, and writes nothing."""
    there = replace(asked, options=replace(asked.options, given=_without_gpus(asked.options.given)))
    flags = ("--gpus", hardware.spec)
    steps = tuple(map(step_of, step_findings(plan.steps) or ()))
    return Option(
        "C",
        "same",
        f"on {hardware.title}",
        steps,
        command=_command(there, flags),
        flags=f'--gpus "{hardware.spec}"',
        hardware=hardware.title,
        end=plan.end.estimate,
        seconds=_seconds_of(plan.end.run),
        tokens_per_second=_tokens_per_second(plan.end.run),
    )


def _without_gpus(given: Sequence[str]) -> tuple[str, ...]:
    """The words of a call without those that say the hardware."""
    at = given.index("--gpus") if "--gpus" in given else len(given)
    return (*given[:at], *given[at + 2 :])


def _seconds_of(run: Run) -> float | None:
    """Of one optimizer step, where that is priced."""
    found = step_time(run)
    return found.expected if isinstance(found, StepTime) else None


def _tokens_per_second(run: Run) -> float | None:
    """Of all GPUs."""
    found = step_time(run)
    return found.tokens * run.world_size / found.expected if isinstance(found, StepTime) else None
