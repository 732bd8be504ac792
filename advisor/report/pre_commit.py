"""What a hook prints: a verdict line for each file that has something to say, and one line of remedy at the end."""

from collections import Counter
from collections.abc import Iterator, Sequence

from advisor.engine.answer import Option
from advisor.engine.finding import LEVELS, Finding, Report
from advisor.report.findings_text import LEVEL_WORDS, Said, also, brief, merged, spoken
from advisor.report.fixed_text import fixed_line
from advisor.report.style import Style
from advisor.report.wording import VERBS, VERDICT_RULES, counted, is_offer, number, state
from advisor.util import path_shown, printable

MOST_FINDINGS = 2
WIDEST = 40
"""Of places, which stand in a column; a longer one shifts its line alone."""
GAP = 2
Told = tuple[str, str, str, str]
"""A place, the word after it with the colour that it has, and what is said."""


def render(reports: Sequence[Report], style: Style) -> str:
    """Nothing where all is well."""
    told = [(report, list(_told(report))) for report in reports]
    places = [len(place) for _, lines in told for place, *_ in lines if len(place) <= WIDEST]
    width = max(places, default=0) + GAP
    said = [line for _, lines in told for each in lines for line in _lines(each, width, style)]
    fixed = [line for report, _ in told if report.fixed for line in fixed_line(report, style)]
    if any(report.fixed for report, _ in told):
        fixed.append("Look at it with git diff, then git add and commit again.")
    closing = _closing([report for report, _ in told]) if said else ""
    return "\n".join([*said, *(style.prose(closing) if closing else []), *fixed])


def _lines(told: Told, width: int, style: Style) -> list[str]:
    """``run.yaml  does not fit  44.8 of 23.1 GiB on 1x RTX 4090``, wrapped under the word."""
    place, word, role, text = told
    lead = f"{place:<{width}}" if len(place) <= WIDEST else place + " " * GAP
    first, *rest = style.prose(text, f"{lead}{word}  " if word else lead, indent=width)
    return [first.replace(lead + word, lead + style.paint(word, role), 1) if role else first, *rest]


def _told(report: Report) -> Iterator[Told]:
    """The verdict where it is not that the run fits, what to do, the first findings, and how many more there are."""
    file, answer = path_shown(report.file).removeprefix("./"), report.answer
    found = merged([finding for finding in spoken(report) if not is_offer(finding)])
    if state(report) == "stops":
        yield file, "does not start", "does-not-fit", _ways_words(answer.recommended if answer else None)
    elif report.verdict in {"tight", "does-not-fit"} and _speaks(report):
        word = "near the limit" if report.verdict == "tight" else "does not fit"
        yield file, word, report.verdict, _needs(report)
        if words := _ways_words(answer.recommended if answer else None) or (answer.action if answer else ""):
            yield "", "", "", words
    for said in found[:MOST_FINDINGS]:
        yield _finding(said)
    if left := Counter(said.first.level for said in found[MOST_FINDINGS:]):
        levels = ", ".join(counted(left[level], level) for level in LEVELS if left[level])
        yield file, "", "", f"{left.total()} more: {levels}"


def _speaks(report: Report) -> bool:
    """Whether the verdict counts: one that the file ignores, or that the base has, does not."""
    return any(finding.rule in VERDICT_RULES for finding in report.findings)


def _needs(report: Report) -> str:
    """``44.8 of 23.1 GiB on 1x RTX 4090``; of the host where that is what lacks."""
    found = report.estimate
    if found is None:
        return ""
    if found.lacks_host and found.host_usable is not None:
        return f"{number(found.host_needed.low)} of {number(found.host_usable)} GiB of host memory"
    return f"{number(found.needed.high)} of {number(found.usable)} GiB on {report.hardware}"


def _ways_words(option: Option | None) -> str:
    """``2 edits, same training: 21.2 GiB``."""
    if option is None or option.letter not in {"A", "B"}:
        return ""
    training = "same training" if option.training == "same" else "changes training"
    end = "" if option.end is None else f": {number(option.end.needed.high)} GiB{option.end.condition}"
    return f"{counted(option.changes, 'edit')}, {training}{end}"


def _finding(said: Said) -> Told:
    """A finding by its key and remedy; a note by its title."""
    finding = said.first
    line = f":{finding.place.line}" if finding.place.line else ""
    place = f"{path_shown(finding.place.file).removeprefix('./')}{line}"
    text = finding.title if finding.level == "note" and finding.title else brief(finding.message)
    return place, LEVEL_WORDS[finding.level], finding.level, f"{printable(text)}{also(said)} [{finding.rule}]"


def _closing(reports: Sequence[Report]) -> str:
    """``1 of 3 configs does not fit. To write the edits: advisor check --fix FILE``."""
    stops = [report for report in reports if state(report) == "stops"]
    short = [report for report in reports if state(report) == "does-not-fit" and _speaks(report)]
    counts = [(len(stops), VERBS["stops"]), (len(short), VERBS["does-not-fit"])]
    said = [f"{n} of {counted(len(reports), 'config')} {one if n == 1 else many}." for n, (one, many) in counts if n]
    if not said:
        levels = Counter(finding.level for report in reports for finding in _listed(report))
        found = ", ".join(counted(levels[level], level) for level in LEVELS if levels[level])
        said = [f"{counted(len(reports), 'config')}: {found}."]
    option = _flags(reports)
    return " ".join([*said, *([f"To write the edits: advisor check {option} FILE"] if option else [])])


def _listed(report: Report) -> list[Finding]:
    """What counts as found: the verdict too."""
    verdict = [finding for finding in report.findings if finding.rule in VERDICT_RULES]
    return [*verdict, *(finding for finding in spoken(report) if not is_offer(finding))]


def _flags(reports: Sequence[Report]) -> str:
    """What writes the edits: those that leave the training as it is come first."""
    chosen = [report.answer.recommended for report in reports if report.answer and report.answer.recommended]
    ways = [option.flags for option in chosen if option.letter in {"A", "B"}]
    edits = [each.fix for report in reports for each in _listed(report) if each.fix and not each.fix.by_choice]
    if "--fix" in ways or any(fix.safe for fix in edits):
        return "--fix"
    return "--fix --unsafe-fixes" if ways or edits else ""
