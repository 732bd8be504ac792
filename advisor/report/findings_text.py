"""Findings on the screen: a line each with its place, those of one rule and remedy as one, few notes."""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile

from advisor.engine.answer import Option
from advisor.engine.answer_steps import title_of
from advisor.engine.clauses import STOPS, cause_of, remedy_of
from advisor.engine.finding import LEVELS, Finding, Report
from advisor.engine.headline import FOR_MASTERS, PADS, RATE
from advisor.record import record, replace
from advisor.report.style import Style
from advisor.report.wording import VERDICT_RULES, counted, edit_counts, edit_words, severity
from advisor.util import path_shown, printable, regex

MOST_NOTES = 3
"""Where there is neither error nor warning; next to those, notes are counted."""
MOST_LINES = 3
"""Where findings take more, warnings are said by the titles of their rules; ``-v`` has what to do."""
IN_HEADLINE: Mapping[str, tuple[str, ...]] = {
    "unknown-model": ("unknown-model",),
    "not-counted": ("memory-not-counted",),
    "no-gpus": ("unknown-hardware", "unknown-model"),
}
"""Where there is no verdict for this reason, the headline says what these rules say."""
BY_STEP: Mapping[str, str] = {
    "adapters-on-experts": "adapters-off-experts",
    "modules-to-save-embeddings": "embeddings-not-saved",
}
"""Findings without an edit of their own, and the step of the fit that does what they ask for."""
ASIDE = regex(r"(`[^`]*`)| \([^()`]*\)")
CAUSE = regex(r"(`[^`]*`)| by axolotl\b|(?:: |, since |, so |, and axolotl |, which (?:drops|stops|evaluates) ).*")
PACKS = "packing"
"""Told by the sentence on padded rows, which packing fills."""
OR = ("or ", "else ")
OBVIOUS = "; remove or correct it"
"""A remedy that goes without saying where there is no room for it."""
EACH = ("A key that ", "A key under ")
"""How the title of a rule begins that names what a key is."""
COUNTED = ("data-", "bf16-unsupported")
"""How rules are called whose messages count something, such as rows: a title would lose the count."""
NAME = regex(r"`[^`]*`")
SUBJECT = regex(r"^`[^`]*`")
LEVEL_WORDS = {"error": "error", "warning": "warn", "note": "note"}


@record(eq=False)
class Said:
    """Findings of one rule and one remedy: the first, the lines of the others, and how many they are."""

    first: Finding
    lines: frozenset[int] = frozenset()
    count: int = 1
    others: tuple["Said", ...] = ()
    """Of the same rule with remedies of their own, where one line names the keys alone."""


def spoken(report: Report) -> list[Finding]:
    """What is neither a step nor the verdict, most severe first."""
    plain = [f for f in report.findings if f.step is None and f.sequence is None and f.rule not in VERDICT_RULES]
    return sorted(plain, key=severity)


def merged(findings: Sequence[Finding]) -> list[Said]:
    """Those of one rule and remedy as one."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in findings:
        key = finding.level, finding.rule, finding.place.file, "" if finding.level == "note" else remedy(finding)
        groups.setdefault(key, []).append(finding)
    return [Said(first, _lines(rest) - {first.place.line}, 1 + len(rest)) for first, *rest in groups.values()]


def _by_rule(found: Sequence[Said]) -> list[Said]:
    """Warnings of one rule, each about a key, as one that names the keys."""
    groups: dict[tuple[str, str], list[Said]] = {}
    for said in found:
        first = said.first
        named = first.level == "warning" and first.title.startswith(EACH) and SUBJECT.match(first.message)
        key = first.rule, first.place.file if named else f"{len(groups)}"
        groups.setdefault(key, []).append(said)
    return [replace(first, others=tuple(others)) for first, *others in groups.values()]


def remedy(finding: Finding) -> str:
    """What to do; of a message that ends in its cause, all but the key that it begins with."""
    cause, mark, last = finding.message.rpartition("; ")
    return last if mark else SUBJECT.sub("", cause or last)


def _lines(findings: Sequence[Finding]) -> frozenset[int]:
    """Where they stand."""
    return frozenset(finding.place.line for finding in findings) - {0}


def finding_lines(report: Report, style: Style, *, alone: bool = False) -> list[str]:
    """Every error and warning, the first few notes, and how many more there are.

    Next to the steps of the option to take, and to a line that counts all findings, only what is left is told: what
    the steps fix is named by its rule.
    """
    rest, fixed = list[Finding](), list[Finding]()
    for finding in _unsaid(report):
        (fixed if alone and finding.level != "note" and _is_fixed(finding, report) else rest).append(finding)
    found = merged(rest)
    loud = [said for said in found if said.first.level != "note"]
    notes = [said for said in found if said.first.level == "note"]
    unanswered = [said for said in notes if not _is_answered(said, report)]
    shown = [said for said in unanswered if said.first.rule == RATE] if loud else unanswered[:MOST_NOTES]
    width = max((len(str(said.first.place.line)) for said in (*loud, *shown)), default=1)
    lines = [line for said in (*loud, *shown) for line in _lines_of(said, report, width, style)]
    if len(lines) > MOST_LINES:
        some = (*_by_rule(loud), *shown)
        lines = [line for said in some for line in _lines_of(said, report, width, style, short=True)]
    lines += _fixes_lines(fixed, report, style)
    left = sum(said.count for said in notes) - sum(said.count for said in shown)
    return [*lines, f"{counted(left, 'more note' if shown else 'note')} (-v)"] if left and not alone else lines


def _fixes_lines(fixed: Sequence[Finding], report: Report, style: Style) -> list[str]:
    """``A fixes line 9 [lora-kernels-refused], lines 4, 7 [unknown-key]``."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in fixed:
        by_rule.setdefault(finding.rule, []).append(finding)
    said = [f"{_places(found)}[{rule}]" for rule, found in by_rule.items()]
    chosen = _chosen(report)
    return style.prose(", ".join(said), f"{chosen.letter} fixes ", indent=2) if chosen is not None and said else []


def _places(findings: Sequence[Finding]) -> str:
    """``line 9 ``; ``lines 12, 13 of zero2.json ``, where all are there."""
    places = [finding.place for finding in findings if finding.place.line]
    if not places:
        return ""
    of = places[0].words.removeprefix(f"line {places[0].line}")
    return f"{_at(_lines(findings))}{of if all(place.words.endswith(of) for place in places) else ''} "


def _is_answered(said: Said, report: Report) -> bool:
    """Whether the option to take does what a note asks for: one of its steps says so, or it has the masters."""
    chosen = _chosen(report)
    if chosen is not None and said.first.rule == FOR_MASTERS:
        return chosen.has_masters
    return _is_fixed(said.first, report)


def _is_fixed(finding: Finding, report: Report) -> bool:
    """Whether the option to take has the finding's edit among its steps, or a step of the fit that does the same.

    Of a run that starts with it, every error: the edit of one may be written after that of another.
    """
    chosen = _chosen(report)
    if finding.level == "error" and chosen is not None and chosen.steps and chosen.starts:
        return True
    steps = chosen.steps if chosen is not None else ()
    by_step = any(step.rule == BY_STEP.get(finding.rule) for step in steps)
    return by_step or (finding.rule, title_of(finding)) in {(step.rule, step.title) for step in steps}


def _chosen(report: Report) -> Option | None:
    """The option to take."""
    return report.answer.recommended if report.answer is not None else None


def _unsaid(report: Report) -> list[Finding]:
    """What neither the headline says nor a sentence after it."""
    answer = report.answer
    if answer is None:
        return spoken(report)
    said = IN_HEADLINE.get(answer.reason.where, ()) if answer.reason is not None else ()
    hints = ((RATE, answer.rate), (PADS, answer.padding), (PACKS, answer.padding), (FOR_MASTERS, answer.masters))
    hinted = [rule for rule, hint in hints if hint]
    silent = {*said, *hinted}
    return [finding for finding in spoken(report) if finding.rule not in silent and finding.message != answer.assumed]


def _lines_of(said: Said, report: Report, width: int, style: Style, *, short: bool = False) -> list[str]:
    """``warn   9  `key` does nothing; remove it [rule]``; a note in a line, by its title where its text is longer."""
    finding, word = said.first, LEVEL_WORDS[said.first.level]
    place = str(finding.place.line) if finding.place.line else "-"
    lead = f"{word:<5} {place:>{width}}  "
    elsewhere = f"{path_shown(finding.place.file)}: " if finding.place.file != report.file else ""
    more = also(said)

    def told(text: str) -> list[str]:
        words = f"{elsewhere}{printable(text)}{'' if said.others else more} [{finding.rule}]"
        return style.prose(words, lead, finding.level, indent=len(lead))

    counted = finding.rule.startswith(COUNTED)
    if finding.level == "note" and finding.title and not counted and finding.rule != RATE:
        texts = told(finding.message), told(brief(finding.message))
        return next((lines for lines in texts if len(lines) == 1), None) or told(finding.title)
    if said.others:
        return min(map(told, (f"{_keys(said)}: each {_lowered(finding.title)}", _keys(said))), key=len)
    plain = brief(finding.message)
    texts = [finding.message, plain, plain.removesuffix(OBVIOUS)]
    if short and finding.level == "warning" and finding.title and not counted:
        texts += _entitled(finding)
    if _is_above(finding, report):
        texts.append("said above")
    return min(map(told, texts), key=len)


def _is_above(finding: Finding, report: Report) -> bool:
    """Whether the answer's first sentences have its cause and its remedy."""
    answer, what_to_do = report.answer, remedy_of(finding)
    if answer is None or answer.starts or not what_to_do:
        return False
    return cause_of(finding.message) in answer.headline and what_to_do in answer.action


def _entitled(finding: Finding) -> list[str]:
    """A finding by its title, after the key that it is about; or by that key alone."""
    if not finding.title.startswith(EACH):
        return [finding.title]
    return [f"{_key(finding)}: {_lowered(finding.title)}", _key(finding)]


def _lowered(title: str) -> str:
    """A title within a sentence."""
    return f"{title[:1].lower()}{title[1:]}"


def _keys(said: Said) -> str:
    """```epochs` -> `num_epochs`, `cutoff` (line 26)``."""
    rest = [f"{_key(each.first)} ({_at({each.first.place.line, *each.lines})})" for each in said.others]
    return ", ".join([f"{_key(said.first)}{also(said)}", *rest])


def _key(finding: Finding) -> str:
    """The key that a finding is about, and the one that stands in its remedy."""
    key, _, rest = finding.message.partition("` ")
    meant = NAME.search(rest.partition("; ")[2])
    return f"{key}` -> {meant[0]}" if meant else f"{key}`"


def also(said: Said) -> str:
    """Where else it stands: `` (also lines 4, 9)``."""
    return f" (also {_at(said.lines)})" if said.lines else ""


def _at(lines: Collection[int]) -> str:
    """``lines 4, 9``."""
    return f"{'lines' if len(lines) > 1 else 'line'} {', '.join(map(str, sorted(lines)))}"


def brief(message: str) -> str:
    """A message's key and remedy, without the cause between them; the whole where it has no remedy of its own."""
    cause, mark, rest = message.partition("; ")
    if not mark:
        return STOPS.sub("", message)
    first, *others = rest.split("; ")
    kept = [first, *takewhile(lambda remedy: remedy.startswith(OR), others)]
    plain = ASIDE.sub(lambda found: found[1] or "", STOPS.sub("", cause))
    return "; ".join([CAUSE.sub(lambda found: found[1] or "", plain), *kept])


def totals_of(report: Report, verdict: str, written: str, *, folded: bool) -> str:
    """``run.yaml: does not fit. 1 warning, 2 notes (-v). 3 edits with --fix. Nothing was written.``

    ``folded``: whether the screen has less than all notes.
    """
    silent = set(map(id, spoken(report))) - set(map(id, _unsaid(report)))
    found = [finding for finding in spoken(report) if finding.level != "note" or id(finding) not in silent]
    levels = [counted(n, level) for level in LEVELS if (n := sum(f.level == level for f in found))]
    if found and found[-1].level == "note" and folded:
        levels[-1] += " (-v)"
    said = (", ".join(levels), _fixed_words(report) or _edits_words(report, found))
    lead = f"{path_shown(report.file)}: {verdict}."
    return " ".join(part for part in (lead, *(f"{part}." for part in said if part), written) if part)


def _edits_words(report: Report, found: Sequence[Finding]) -> str:
    """How many edits there are, as the answer counts them, and what writes them."""
    answer, chosen = report.answer, _chosen(report)
    if chosen is not None:
        return f"{counted(chosen.changes, 'edit')} with {chosen.flags}" if chosen.letter != "C" else ""
    made = {
        option.letter: option.written for option in (answer.options if answer is not None else ()) if option.written
    }
    if not made:
        return edit_counts(found)
    safe = made.get("A", 0)
    return edit_words(safe, made.get("B", safe) - safe)


def _fixed_words(report: Report) -> str:
    """``2 fixed``; empty where nothing was."""
    return f"{report.fixed} fixed" if report.fixed else ""
