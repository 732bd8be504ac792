"""Run -> Report: what the rules find, what the flowchart plans, what could be given back."""

from typing import TYPE_CHECKING

from advisor.engine.about_run import summary, texts
from advisor.engine.advice import with_advice
from advisor.engine.finding import LEVELS, OF_HOST, PLANNED, Finding, Report, WholePlan
from advisor.engine.flowchart_status import rungs_of
from advisor.engine.lint import lint_findings
from advisor.engine.options import Options, fit_rules, planner, room_rules, tiers_of
from advisor.engine.plan_findings import step_finding, step_findings, whole_plan
from advisor.engine.regression import stopped_by
from advisor.engine.skipped import Skipped
from advisor.engine.skipped_steps import skipped_steps
from advisor.engine.speedups import offers
from advisor.engine.states import Plan, State
from advisor.engine.suppression import quiet_in, suppressed
from advisor.memory import Estimate, estimate
from advisor.opening import LoadedRun
from advisor.record import replace
from advisor.run import Run

if TYPE_CHECKING:
    from advisor.memory.basis import Basis
    from advisor.memory.shorter_rows import ShorterRows
    from advisor.speed import StepTime, Unpriced

UNTRAINABLE = "quantized-checkpoint-untrainable"


def check_run(opened: LoadedRun, options: Options) -> Report:
    """All that is said of one run."""
    run, start = opened.run, State(opened.run)
    found = replayed(run, options)
    findings = lint_findings(run, options)
    plan = planned(run, found, options)
    if plan is not None:
        plans = planner(options)
        findings = [with_advice(run, finding, plan, plans) for finding in findings]
        # Where the texts have no place for them, the errors stand alone.
        steps = step_findings(plan.steps, safe_only=options.safe_only) or []
        plan = plan if steps else None
        findings += steps
    room: WholePlan | None = None
    if found is not None and found.verdict == "fits" and options.speed:
        room, notes = _room_of(start, options)
        findings += notes
    kept = suppressed(run, findings, options.consults)
    return Report(
        file=run.config.file,
        hardware=run.hardware.title if run.hardware else None,
        verdict=found.verdict if found else "unknown",
        estimate=found,
        findings=tuple(sorted(kept, key=lambda finding: (LEVELS.index(finding.level), finding.step or 0))),
        skipped=_skipped(start, plan, options),
        summary=summary(run),
        texts=texts(run),
        planned=plan.end.estimate if plan else None,
        plan=whole_plan(start, plan) if plan and found else None,
        room=room,
        rungs=rungs_of(start, plan, fit_rules(options)) if plan else (),
        time=time_of(run) if options.details else None,
        basis=basis_of(run, found) if options.details and found else None,
        second=_second_of(run, options),
    )


def _skipped(start: State, plan: Plan | None, options: Options) -> tuple[Skipped, ...]:
    """The steps that a plan does without, and why."""
    if plan is None:
        return ()
    safe_only = options.safe_only or start.verdict == "tight"
    return tuple(skipped_steps(start, plan, tiers_of(options), safe_only=safe_only))


def _second_of(run: Run, options: Options) -> "ShorterRows | None":
    """The estimate for rows of another length, where it is asked for."""
    if options.row_length is None:
        return None
    from advisor.memory.shorter_rows import second_estimate

    return second_estimate(run, options.row_length, lambda shorter: replayed(shorter, options))


def replayed(run: Run, options: Options) -> Estimate | None:
    """The estimate; near the limit, and where the reserved range is shown, with what a replay says of it."""
    found, shows = estimate(run), options.details and options.reserved
    if found is None or not options.replays or (found.verdict != "tight" and not shows):
        return found
    from advisor.allocations.refine import settled, with_reserved
    from advisor.memory.rows import as_counted

    try:
        run = as_counted(run)
        found = settled(run, found)
        return with_reserved(run, found) if shows else found
    except Exception:  # nothing that a tape lacks keeps an answer back: the published range holds
        return found


def time_of(run: Run) -> "StepTime | Unpriced":
    """The time of a step, as it may be shown."""
    from advisor.speed import step_time

    return step_time(run)


def basis_of(run: Run, found: Estimate) -> "Basis | None":
    """How well an estimate is founded."""
    from advisor.memory import basis

    return basis.basis_of(run, run.model, found) if run.model is not None else None


def planned(run: Run, found: Estimate | None, options: Options) -> Plan | None:
    """The flowchart's plan, for a run that does not fit, and for a tight one that safe steps make fit.

    None where no end of it could be said to fit.
    """
    if found is None or found.verdict not in PLANNED or found.uncounted or not options.plans or _is_untrainable(run):
        return None
    flowchart = tiers_of(options)
    # A selection of other rules wants no plan.
    is_wanted = options.wants(OF_HOST if found.lacks_host else PLANNED[found.verdict])
    is_tight = found.verdict == "tight"
    if not is_wanted and (is_tight or not flowchart):
        return None
    if is_tight and any(rule == PLANNED["tight"] for rule, _ in quiet_in(run.config)):
        return None
    plan = options.memo.written(run, flowchart, safe_only=options.safe_only or is_tight, fastest=options.faster)
    return plan if not is_tight or (plan.steps and plan.verdict == "fits") else None


def _is_untrainable(run: Run) -> bool:
    """Whether the weights are stored as nothing trains them: figures of those say nothing of the run once repaired."""
    return stopped_by(UNTRAINABLE, run)


def _room_of(start: State, options: Options) -> tuple[WholePlan | None, list[Finding]]:
    """What the room is good for: a sequence that is faster, then what else could be given back."""
    rules = room_rules(options)
    steps = options.memo.speedup(start.run, rules)
    placed = step_findings(steps, numbered=False) or []
    whole = whole_plan(start, Plan(steps, steps[-1].after)) if placed else None
    others = (step_finding(step) for step in offers(start, rules.values()))
    found = [replace(finding, sequence="room") for finding in placed]
    return whole, [*found, *(finding for finding in others if finding is not None)]
