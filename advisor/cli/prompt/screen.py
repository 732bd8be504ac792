"""What the prompt shows of an edit, and what it asks."""

from collections.abc import Sequence

from advisor.cli.prompt.proposal import Proposal
from advisor.engine.finding import Finding
from advisor.engine.states import Plan
from advisor.memory import estimate
from advisor.report.snippet import diff_lines
from advisor.report.style import Style
from advisor.report.wording import ON, SAFETY, change, counted
from advisor.run import Run
from advisor.util import printable

MEANINGS = {
    "y": "apply this edit",
    "n": "do not apply it; the plan for this file then skips that step",
    "a": "apply it and all later edits of this file that --fix would write; prompt for the others",
    "d": "apply neither this edit nor any later one of this file",
    "e": "edit the value in $EDITOR; it is checked, then you are prompted again",
    "q": "quit: neither this edit nor any later one, of any file; what was accepted is written",
    "?": "these lines, and why",
}
UNSAFE = "unsafe: changes what is trained; `a` never takes it"
CHOICE = "same training; a matter of choice, which `a` leaves alone"
OWN = "your own value: may change what is trained"
OF_THE_BATCH = frozenset({"micro_batch_size", "gradient_accumulation_steps", "batch_size", "eval_batch_size"})
ENDS = {
    "fits": "then it fits",
    "tight": "then it is near the limit",
    "does-not-fit": "and it still does not fit",
    "unknown": "not all of it counted",
}


def file_lines(run: Run, style: Style) -> list[str]:
    """Which run this is about, and its verdict as it is."""
    found = estimate(run)
    if run.hardware is None or found is None:
        return [style.paint(printable(run.config.file), "strong")]
    words = f"{ON[found.verdict]} {run.hardware.title}{found.grounds}: {found.filled}"
    first, *rest = style.prose(words, f"{printable(run.config.file)}: ", "strong", indent=2)
    return [first, *rest]


def plan_lines(plan: Plan, style: Style, *, fresh: bool) -> list[str]:
    """How many steps are ahead, and where they end."""
    lead = "new plan: " if fresh else "plan: "
    count = counted(len(plan.steps), "step")
    end = plan.end.estimate
    words = f"{count}, {ENDS[plan.verdict]}{end.condition} ({end.filled})"
    return style.prose(words, lead, "strong", indent=2)


def proposal_lines(proposal: Proposal, style: Style) -> list[str]:
    """Title, memory before and after, what it costs, and the diff."""
    finding, fix = proposal.finding, proposal.fix
    lines = _title_lines(finding, style)
    margin = "   "
    if words := change(fix):
        lines += style.prose(words, margin)
    if fix.safe and not proposal.own:
        lines += style.prose(CHOICE if fix.by_choice else SAFETY[True], margin)
    else:
        said = style.prose(_own_words(proposal) if proposal.own else UNSAFE, margin)
        lines += [margin + style.paint(line.strip(), "warning") for line in said]
    lines += style.prose(finding.because, margin) if finding.because else []
    if cost := finding.price or finding.cost:
        lines += style.prose(cost, f"{margin}cost: ")
    return [*lines, *diff_lines(fix.diff, style, margin)]


def _own_words(proposal: Proposal) -> str:
    """What a value of the user's does to the training, as far as it is known: what it does to the global batch."""
    before, after = proposal.before, proposal.after
    old, new = before.global_batch_size, after.global_batch_size
    keys = before.config.keys() | after.config.keys()
    changed = {key for key in keys if before.config.get(key) != after.config.get(key)}
    if before.unreadable or after.unreadable or (old == new and not changed <= OF_THE_BATCH):
        return OWN
    if old == new:
        return f"your own value: the same training, global batch {new} as before"
    known = f"your own value: it changes what is trained, global batch {old} -> {new}"
    return known if changed <= OF_THE_BATCH else f"{known}; the rest may change it too"


def _title_lines(finding: Finding, style: Style) -> list[str]:
    """The step with its number, or what was found and where."""
    if finding.step is not None:
        lead = f"{finding.step}. {finding.rule}: "
        return style.prose(finding.label or finding.title or finding.message, lead, "strong", indent=3)
    lines = style.prose(finding.message, f"{finding.level}[{finding.rule}]: ", finding.level, indent=3)
    place = finding.place
    where = f"{place.file}:{place.line}:{place.column}" if place.line else place.file
    return [*lines, f"   {style.paint('-->', 'frame')} {printable(where)}"]


def letters(proposal: Proposal) -> Sequence[str]:
    """The answers that there are."""
    return [letter for letter in MEANINGS if letter != "a" or proposal.one_of_many]


def question(proposal: Proposal, style: Style) -> str:
    """The question, with a blank behind it."""
    return style.paint(f"Apply this edit [{','.join(letters(proposal))}]?", "frame") + " "


def help_lines(proposal: Proposal, style: Style) -> list[str]:
    """What the answers mean, then why the edit is proposed and who says so."""
    lines = [line for letter in letters(proposal) for line in style.prose(MEANINGS[letter], f"{letter} - ", "strong")]
    finding = proposal.finding
    for lead, text in (("why: ", finding.why), ("cost: ", finding.cost), ("source: ", finding.source)):
        if text:
            lines += style.prose(text, lead)
    return lines
