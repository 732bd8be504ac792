"""What a hook prints: a verdict line for each file that has something to say, and one line of remedy at the end."""

from collections import Counter
from collections.abc import Iterator, Sequence

from advisor.engine.answer import Option
from advisor.engine.finding import LEVELS, Finding, Report
from advisor.record import record
from advisor.report.findings_text import LEVEL_WORDS, Said, also, brief, merged, spoken
from advisor.report.fixed_text import fixed_line
from advisor.report.style import Style
from advisor.report.wording import VERBS, VERDICT_RULES, State, counted, is_offer, number, state
from advisor.util import path_shown, printable

MOST_FINDINGS = 2
WIDEST = 40
"""Of places, which stand in a column; a longer one shifts its line alone."""
GAP = 2
Told = tuple[str, str, str, str]
"""A place, the word after it with the colour that it has, and what is said."""
FLAGS = ("--fix", "--fix --unsafe-fixes")
"""What writes edits: those that leave the training as it is come first."""


@record
class _Heard:
    """What the hook says of a report, which is then let go."""

    told: tuple[Told, ...]
    fixed: tuple[str, ...]
    failed: State | None
    """``stops`` or ``does-not-fit``, where it counts."""
    levels: Counter[str]
    flags: str
    """What writes the edits."""


def render(reports: Sequence[Report], style: Style) -> str:
    """Nothing where all is well."""
    heard = [_heard(report, style) for report in reports]
    places = [len(place) for each in heard for place, *_ in each.told if len(place) <= WIDEST]
    width = max(places, default=0) + GAP
    said = [line for each in heard for told in each.told for line in _lines(told, width, style)]
    fixed = [line for each in heard for line in each.fixed]
    if fixed:
        fixed.append("Look at it with git diff, then git add and commit again.")
    return "\n".join([*said, *(style.prose(_closing(heard)) if said else []), *fixed])


def _heard(report: Report, style: Style) -> _Heard:
    """One report, taken in."""
    stops, short = state(report) == "stops", state(report) == "does-not-fit" and _speaks(report)
    return _Heard(
        tuple(_told(report)),
        tuple(fixed_line(report, style)) if report.fixed else (),
        "stops" if stops else "does-not-fit" if short else None,
        Counter(finding.level for finding in _listed(report)),
        _flags(report),
    )


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
        return f"{number(found.host_peak)} of {number(found.host_usable)} GiB of host memory"
    return f"{found.filled} on {report.hardware}"


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


def _closing(heard: Sequence[_Heard]) -> str:
    """``1 of 3 configs does not fit. To write the edits: advisor check --fix FILE``."""
    configs = counted(len(heard), "config")
    failed = Counter(each.failed for each in heard)
    said = [
        f"{count} of {configs} {one if count == 1 else many}."
        for name, (one, many) in VERBS.items()
        if name in {"stops", "does-not-fit"} and (count := failed[name])
    ]
    if not said:
        levels = sum((each.levels for each in heard), Counter[str]())
        said = [f"{configs}: {', '.join(counted(levels[level], level) for level in LEVELS if levels[level])}."]
    flags = {each.flags for each in heard}
    option = next((flag for flag in FLAGS if flag in flags), "")
    return " ".join([*said, *([f"To write the edits: advisor check {option} FILE"] if option else [])])


def _listed(report: Report) -> list[Finding]:
    """What counts as found: the verdict too."""
    verdict = [finding for finding in report.findings if finding.rule in VERDICT_RULES]
    return [*verdict, *(finding for finding in spoken(report) if not is_offer(finding))]


def _flags(report: Report) -> str:
    """What writes the edits, where there are any."""
    chosen = report.answer.recommended if report.answer else None
    way = chosen.flags if chosen is not None and chosen.letter in {"A", "B"} else ""
    edits = [each.fix for each in _listed(report) if each.fix and not each.fix.by_choice]
    if way == "--fix" or any(fix.safe for fix in edits):
        return "--fix"
    return "--fix --unsafe-fixes" if way or edits else ""
