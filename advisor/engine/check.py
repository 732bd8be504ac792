"""Run -> Report: what the rules find, what the flowchart plans, what could be given back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from advisor.documents import Change, Edit, PatchError
from advisor.engine.advice import Planner, with_advice
from advisor.engine.bases import Tier
from advisor.engine.finding import LEVELS, OF_HOST, PLANNED, Finding, Fix, Report, WholePlan
from advisor.engine.flowchart_status import rungs_of
from advisor.engine.locations import document_named, place_of
from advisor.engine.newer import hits_of
from advisor.engine.placeholders import certain_hits, without_echoes
from advisor.engine.plan_findings import step_finding, step_findings, whole_plan
from advisor.engine.plan_memo import PlanMemo
from advisor.engine.registry import Tiers, built_in_rules, flowchart
from advisor.engine.regression import stopped_by
from advisor.engine.rule import Hit, Rule, Stage
from advisor.engine.speedups import offers
from advisor.engine.states import Plan, State
from advisor.engine.suppression import quiet_in, suppressed
from advisor.memory import Estimate, estimate
from advisor.opening import LoadedRun
from advisor.record import record, replace
from advisor.run import Fsdp, Run, Zero
from advisor.run.build import prefixed

if TYPE_CHECKING:
    from advisor.memory.basis import Basis
    from advisor.memory.shorter_rows import ShorterRows
    from advisor.speed import StepTime, Unpriced

UNTRAINABLE = "quantized-checkpoint-untrainable"


@record(eq=False)
class Options:
    """What the call asks of every check."""

    flowchart: str = "default"
    flowcharts: Mapping[str, Tiers] | None = None
    """Flowcharts that are not the advisor's own."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    safe_only: bool = False
    """Plan with safe steps alone: what ``--fix`` without ``--unsafe-fixes`` may write."""
    speed: bool = True
    faster: bool = False
    """Whether ``--fix`` also writes what the room that is left is good for."""
    row_length: int | None = None
    """Tokens of a row for a second estimate, which no verdict rests on."""
    plans: bool = True
    """Make a plan for a run that does not fit."""
    replays: bool = True
    """Whether a replay of the step decides about a tight run; it takes a second where an answer must come sooner."""
    details: bool = False
    """Also the time of a step and the basis of the estimate, which JSON and ``estimate`` show."""
    reserved: bool = True
    """Whether details have the reserved range of a replay, half a second a run, and not the published one."""
    extra_rules: Mapping[str, Rule] | None = None
    answers: bool = False
    """Whether the report has an answer, with its options."""
    others: bool = False
    """Whether other hardware is among them."""
    outlook: bool = False
    """Whether the answer also says how large a batch there is room for, and what helps where links take the time."""
    given: tuple[str, ...] = ()
    """The words of the call that say where and with what the run will be, as a command repeats them."""
    memo: PlanMemo = field(default_factory=PlanMemo)

    def wants(self, rule: str) -> bool:
        """Whether a rule is selected and not ignored."""
        return (not self.select or rule in self.select) and rule not in self.ignore

    def without(self, rules: Sequence[str]) -> "Options":
        """The same with more rules ignored."""
        return replace(self, ignore=(*self.ignore, *rules))

    def consults(self, rule: str) -> bool:
        """Whether a rule that is wanted is there: those of ``--validate`` are only with that option."""
        return self.wants(rule) and (not rule.endswith("-says") or rule in (self.extra_rules or {}))


def check_run(opened: LoadedRun, options: Options) -> Report:
    """All that is said of one run."""
    run, start = opened.run, State(opened.run)
    found = replayed(run, options)
    findings = [finding_of(run, rule, hit) for rule, hit in lint_hits(run, options)]
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
        skipped=plan.skipped if plan else (),
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


def rules_of(stage: Stage, options: Options) -> Mapping[str, Rule]:
    """The rules of one stage, the organisation's own included."""
    extra = {name: rule for name, rule in (options.extra_rules or {}).items() if rule.stage == stage}
    return {**built_in_rules(stage), **extra}


def lint_hits(run: Run, options: Options) -> Iterable[tuple[Rule, Hit]]:
    """What the lint rules find, as far as it is certain."""
    return without_echoes(certain_hits(run, lambda run: _all_hits(run, options)))


def _all_hits(run: Run, options: Options) -> Iterator[tuple[Rule, Hit]]:
    """What the lint rules find."""
    rules = rules_of("lint", options)
    for rule in rules.values():
        if options.wants(rule.id) and (rule.alone or not run.is_json_alone):
            for hit in hits_of(rule, run):
                yield rule, hit


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
    plan = options.memo.written(run, flowchart, safe_only=options.safe_only or is_tight)
    return plan if not is_tight or (plan.steps and plan.verdict == "fits") else None


def _is_untrainable(run: Run) -> bool:
    """Whether the weights are stored as nothing trains them: figures of those say nothing of the run once repaired."""
    return stopped_by(UNTRAINABLE, run)


def planner(options: Options) -> Planner:
    """Plans along the flowchart that is asked for."""
    flowchart = tiers_of(options)
    return lambda run, safe_only: options.memo.plan(run, flowchart, safe_only=safe_only or options.safe_only)


def tiers_of(options: Options) -> tuple[Tier, ...]:
    """The flowchart's tiers without ignored rules. A selection with a verdict has all of them."""
    rules = {**rules_of("speed", options), **rules_of("fit", options)}
    chosen = None if not set(PLANNED.values()).isdisjoint(options.select) else options.select

    def wanted(name: str) -> bool:
        return name in rules and name not in options.ignore and (not chosen or name in chosen)

    tiers = flowchart(options.flowchart, options.flowcharts)
    found = (Tier(name, tuple(rules[id_] for id_ in ids if wanted(id_))) for name, ids in tiers)
    return tuple(tier for tier in found if tier.rules)


def fit_rules(options: Options) -> Mapping[str, Rule]:
    """The rules of the flowchart that is asked for."""
    return {rule.id: rule for tier in tiers_of(options) for rule in tier.rules}


def finding_of(run: Run, rule: Rule, hit: Hit) -> Finding:
    """A lint rule's hit, at its place."""
    edits = _hit_edits(run, hit)
    return Finding(
        rule=rule.id,
        level=hit.level or rule.level,
        message=_message_of(run, rule, hit),
        place=place_of(run, hit),
        title=rule.title,
        cost=rule.cost,
        why=rule.why,
        source=rule.source,
        fix=Fix(safe=rule.is_safe(run), edits=edits, by_choice=rule.offer) if edits else None,
    )


def _message_of(run: Run, rule: Rule, hit: Hit) -> str:
    """What a hit says; of a DeepSpeed JSON outside the repository only the key, for the rest might be a secret."""
    if not run.has_foreign_json or not (hit.document == "deepspeed" or quotes(rule)):
        return hit.message
    key = f"`{hit.at}` in" if hit.at else "in"
    return f"{key} a file outside the repository, of which nothing more is shown: {rule.title}"


def quotes(rule: Rule) -> bool:
    """Whether a rule passes on what DeepSpeed itself says, values included."""
    return rule.id == "deepspeed-says"


def _hit_edits(run: Run, hit: Hit) -> tuple[Edit, ...]:
    """A hit's changes as byte edits of its documents; of all of them, or none."""
    made = [_edits_of(run, name, changes) for name, changes in hit.changes]
    return tuple(edit for edits in made for edit in edits) if all(made) else ()


def _edits_of(run: Run, name: str, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """Changes to one document; nothing where they cannot be made."""
    document = document_named(run, name)
    if document is None or document.is_new or (name == "deepspeed" and run.has_foreign_json):
        return ()
    inside = run.deepspeed.prefix if name == "deepspeed" and run.deepspeed else ()
    try:
        return document.changed(*(prefixed(change, inside) for change in changes)).edits()
    except PatchError:  # a key that is written in a way that the edit cannot keep: the finding stands without it
        return ()


def _room_of(start: State, options: Options) -> tuple[WholePlan | None, list[Finding]]:
    """What the room is good for: a sequence that is faster, then what else could be given back."""
    rules = room_rules(options)
    steps = options.memo.speedup(start.run, rules)
    placed = step_findings(steps, numbered=False) or []
    whole = whole_plan(start, Plan(steps, (), steps[-1].after)) if placed else None
    others = (step_finding(step) for step in offers(start, rules.values()))
    found = [replace(finding, sequence="room") for finding in placed]
    return whole, [*found, *(finding for finding in others if finding is not None)]


def room_rules(options: Options) -> Mapping[str, Rule]:
    """The rules that are asked for, of those that a way back may be made of."""
    rules = {**rules_of("fit", options), **rules_of("speed", options)}
    return {name: rule for name, rule in rules.items() if options.wants(name)}


def summary(run: Run) -> str:
    """The run in one line."""
    if run.is_json_alone:
        return "DeepSpeed config"
    method = {"lora": "LoRA", "qlora": "QLoRA"}.get(run.adapter or "", "full fine-tune")
    if run.rl:
        method = f"{run.rl.upper()}, {method}"
    match run.sharding:
        case Zero(stage=stage):
            sharding = f"ZeRO-{stage}"
        case Fsdp(version=version):
            sharding = f"FSDP{version}"
        case None:
            sharding = "DDP" if run.world_size > 1 else ""
    parts = [
        method,
        run.precision,
        sharding,
        f"seq {run.sequence_len}",
        f"micro batch {run.micro_batch_size}",
    ]
    return ", ".join(part for part in (*parts, f"global batch {run.global_batch_size}") if part)


def texts(run: Run) -> dict[str, str]:
    """The files that findings point into, with the byte order marks that the places of edits count."""
    documents = [run.config]
    if run.deepspeed is not None and not run.deepspeed.document.is_new and not run.has_foreign_json:
        documents.append(run.deepspeed.document)
    return {document.file: "\ufeff" * bool(document.source.text.bom) + document.text for document in documents}
