"""The options of a run: what each command writes, where that ends, and on which other hardware the run would do."""

from collections.abc import Mapping, Sequence

from advisor.documents import PatchError
from advisor.engine.answer import NO_MASTERS, AnswerStep, Letter, Option, Stop, Training
from advisor.engine.answer_steps import seconds_of, step_of, steps_of, stop_of, stops_in, tokens_per_second
from advisor.engine.check import replayed
from advisor.engine.finding import OF_HOST, PLANNED, Finding, Report
from advisor.engine.fix import Fixed, fixed
from advisor.engine.flowchart_status import rungs_of
from advisor.engine.lint import lint_findings
from advisor.engine.options import Options, fit_rules, planner, room_rules
from advisor.engine.plan_findings import step_edits, step_findings
from advisor.engine.speedups import GAIN, rows_are_full
from advisor.engine.states import Plan, State, Step, loses_masters
from advisor.hardware import Hardware
from advisor.memory.ledger import Estimate
from advisor.opening import LoadedRun
from advisor.record import record, replace
from advisor.run import Run

FASTER = "--faster"
FLAGS: dict[Letter, tuple[str, ...]] = {
    "A": ("--fix",),
    "B": ("--fix", "--unsafe-fixes"),
    "F": ("--fix", FASTER),
}

ADAPTERS = (("qlora", "QLoRA"), ("lora", "LoRA"))
"""The steps of the flowchart that bring adapters, what they are called by."""


@record(eq=False)
class Asked:
    """What options are made from."""

    opened: LoadedRun
    options: Options
    report: Report

    @property
    def run(self) -> Run:
        """As written."""
        return self.opened.run


def options_of(asked: Asked, stops: Sequence[Finding]) -> list[Option]:
    """The options of a run, as far as it needs one: A and B where it does not do, F where it then fits, then C."""
    if asked.report.verdict == "fits" and not stops:
        return _faster_option(asked, asked.run) if asked.report.room is not None else []
    if not stops and (asked.report.verdict not in PLANNED or not _is_wanted(asked)):
        return []
    if not asked.options.plans:
        return []
    same, other = (_made(asked, unsafe=unsafe) for unsafe in (False, True))
    ways = [_option(asked, same, "A", stops)]
    if (other.files if other else {}) != (same.files if same else {}) and not _is_no_other(other, ways[0]):
        ways.append(_option(asked, other, "B", stops))
    if ways[0].fits and (asked.report.room is not None or asked.report.verdict != "fits"):
        ways += _faster_option(asked, same.of.run if same is not None else asked.run)
    elif ways[-1].letter == "B" and ways[-1].fits and other is not None:
        ways += [_after_other(asked, way) for way in _faster_option(asked, other.of.run, unsafe=True)]
    if asked.options.others and not stops:
        ways += _on_other_hardware(asked)
    return ways


def _is_no_other(other: "_Made | None", same: Option) -> bool:
    """Whether all that B has over an A that does is what lint rules find, and that makes it no faster."""
    plan = other.of.plan if other is not None else None
    if other is None or not (same.fits and same.starts) or not (plan is None or plan.safe):
        return False
    return same.seconds is None or (seconds_of(other.of.run) or same.seconds) > GAIN * same.seconds


@record(eq=False)
class _Made:
    """What a command makes of a run, and the files that it writes."""

    of: Fixed
    files: Mapping[str, bytes]


def _made(asked: Asked, *, unsafe: bool, faster: bool = False) -> _Made | None:
    """What a command writes; None where the texts have no place for it, and it is refused in one piece."""
    made = fixed(asked.opened, replace(asked.options, faster=faster), unsafe=unsafe)
    try:
        return _Made(made, made.files())
    except PatchError:
        return None


def _is_wanted(asked: Asked) -> bool:
    """Whether the verdict's rule is among those that are asked for: a selection of others wants no plan."""
    found = asked.report.estimate
    rule = OF_HOST if found is not None and found.lacks_host else PLANNED[asked.report.verdict]
    return asked.options.wants(rule)


def _after_other(asked: Asked, way: Option) -> Option:
    """F after B, which changes the training as that does."""
    flags = (*FLAGS["B"], FASTER)
    title, command = "faster", _command(asked, flags)
    return replace(way, training="changes", title=title, command=command, flags=" ".join(flags))


def _faster_option(asked: Asked, before: Run, *, unsafe: bool = False) -> list[Option]:
    """F, where the room that is left is good for something: a twentieth off the time of the run ``before``."""
    if not asked.options.speed:
        return []
    made = _made(asked, unsafe=unsafe, faster=True)
    found = _option(asked, made, "F", ())
    old, new = seconds_of(before), found.seconds
    is_faster = old is not None and new is not None and new <= GAIN * old
    gambles = made is not None and not rows_are_full(before) and made.of.run.micro_batch_size < before.micro_batch_size
    return [found] if found.steps and is_faster and not gambles else []


def _option(asked: Asked, written: _Made | None, letter: Letter, stops: Sequence[Finding]) -> Option:
    """An option from what its command writes; without a command where that is no way out."""
    if written is None or not written.of.done:
        return _no_way(asked, letter, list(map(stop_of, stops)))
    made = written.of
    end = replayed(made.run, asked.options)
    left = tuple(_still_stops(made, asked.options)) if stops else ()
    ends_well = end is not None and end.verdict in {"fits", "tight"}
    is_good = ends_well and (asked.report.verdict != "fits" or letter == "F")
    if len(left) > 1 or not ((stops and not left) or is_good):
        return replace(_no_way(asked, letter, left), written=len(made.done), flags=" ".join(FLAGS[letter]))
    return replace(_way(asked, made, letter, end, starts=not left), left=left)


def _no_way(asked: Asked, letter: Letter, stops: Sequence[Stop]) -> Option:
    """The same where there is none: how far it gets."""
    least = None if stops else _smallest(asked, safe_only=letter != "B")
    title = "same training" if letter == "A" else "changes training"
    return Option(letter, _training_of(letter), title, end=least, starts=not stops, left=tuple(stops))


def _way(asked: Asked, made: Fixed, letter: Letter, end: Estimate | None, *, starts: bool) -> Option:
    """The same where there is one."""
    steps = steps_of(made.done)
    rungs = rungs_of(State(made.before), made.plan, fit_rules(asked.options)) if made.plan is not None else ()
    edits, diff = step_edits(made.before, made.run, shown=True)
    return Option(
        letter,
        _training_of(letter),
        _title(letter, steps, loses_masters(made.before, made.run)),
        steps,
        edits,
        diff,
        command=_command(asked, FLAGS[letter]),
        flags=" ".join(FLAGS[letter]),
        end=end,
        seconds=seconds_of(made.run),
        tokens_per_second=tokens_per_second(made.run),
        starts=starts,
        has_masters=made.run.has_masters,
        taken=_taken(asked, made, letter) if asked.options.steps else (),
        rungs=rungs,
        more_room=_more_room(asked, made.run, end),
    )


def _more_room(asked: Asked, run: Run, end: Estimate | None) -> str:
    """What else makes room, as the run is then."""
    if not asked.options.outlook or end is None or not end.is_full:
        return ""
    from advisor.engine.room import more_room

    return more_room(run, room_rules(asked.options), lead="Then more room")


def _taken(asked: Asked, made: Fixed, letter: Letter) -> tuple[Step, ...]:
    """The steps of the plan that was followed, or of the way to more speed."""
    if letter == "F":
        return asked.options.memo.speedup(made.before, room_rules(asked.options))
    return made.plan.steps if made.plan is not None else ()


def _still_stops(made: Fixed, options: Options) -> list[Stop]:
    """The errors that stop the run after the edits."""
    return [stop_of(each) for each in stops_in(lint_findings(made.run, options))]


def _smallest(asked: Asked, *, safe_only: bool) -> Estimate | None:
    """The smallest end that a plan reaches where none fits."""
    found = asked.report.estimate
    if found is None or found.verdict not in PLANNED or found.uncounted:
        return None
    return planner(asked.options)(asked.run, safe_only).end.estimate


def _title(letter: Letter, steps: Sequence[AnswerStep], without_masters: bool) -> str:
    """``same training``; of B the adapters that it brings, or what it takes: ``LoRA``, ``no fp32 masters``."""
    if letter == "A":
        return "same training"
    if letter == "F":
        return "faster, same training"
    taken = {step.rule for step in steps}
    usual = NO_MASTERS if without_masters else "changes training"
    return next((name for rule, name in ADAPTERS if rule in taken), usual)


def _training_of(letter: Letter) -> Training:
    """What becomes of the training."""
    return "changes" if letter == "B" else "same"


def _command(asked: Asked, flags: Sequence[str]) -> str:
    """A whole command, as it may be pasted."""
    from shlex import join

    return join(["advisor", "check", *asked.options.given, *flags, asked.run.config.file])


def _on_other_hardware(asked: Asked) -> list[Option]:
    """C: more of the same cards, and a larger one, on which the run does as it is or with its plan."""
    from advisor.engine.hardware_that_fits import other_hardware

    plan = planner(asked.options)
    return [_on(asked, found, hardware) for found, hardware in other_hardware(asked.run, lambda run: plan(run, True))]


def _on(asked: Asked, plan: Plan, hardware: Hardware) -> Option:
    """C on one kind of hardware; its command checks the file there, and writes nothing."""
    from advisor.hardware.prices import hourly_words

    there = replace(asked, options=replace(asked.options, given=without_gpus(asked.options.given)))
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
        price=hourly_words(hardware.gpu.id, hardware.world_size),
        end=plan.end.estimate,
        seconds=seconds_of(plan.end.run),
        tokens_per_second=tokens_per_second(plan.end.run),
    )


def without_gpus(given: Sequence[str]) -> tuple[str, ...]:
    """The words of a call without those that say the hardware."""
    at = given.index("--gpus") if "--gpus" in given else len(given)
    return (*given[:at], *given[at + 2 :])
