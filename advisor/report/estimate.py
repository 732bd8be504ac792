"""The memory screen: the parts of the peak as bars against the card, range, phases, host, options."""

from collections.abc import Mapping, Sequence

from advisor.engine.finding import Report
from advisor.memory.basis import Basis
from advisor.memory.disk import checkpoints
from advisor.memory.ledger import PARTS, Estimate, HostTerm, Part, Phase, Verdict
from advisor.report.style import Style
from advisor.report.time import Training, time_blocks, time_ledger
from advisor.report.wording import VERDICTS, StepRow, number, second, span
from advisor.run import Run
from advisor.util import gib, path_shown

BAR_COLUMNS = 20
EIGHTHS = " ▏▎▍▌▋▊▉"
BASES = {"exact": "formulas checked against the real model's modules", "traced": "measured on the model's own modules"}
ANSWERS: Mapping[Verdict, str] = {"fits": "yes", "tight": "tight", "does-not-fit": "no", "unknown": "?"}


def render(report: Report, rows: Sequence[StepRow], style: Style, *, ledger: bool, training: Training) -> str:
    """The screen of one run, in blocks with blank lines between."""
    blocks = [header(report, style)]
    if report.estimate is None:
        blocks.append(unknown(report, style))
    else:
        blocks += _estimate_blocks(report.estimate, style)
        if said := second(report):
            blocks.append(style.prose(said, "  "))
        blocks.append(_basis_lines(report.basis, style))
        if training.run is not None and report.time is not None:
            blocks.append(_disk_lines(training.run, style))
            blocks += time_blocks(report.time, training.run, training, style)
        if rows:
            blocks.append(_step_table(rows, style))
        if ledger:
            from advisor.report.ledger import ledger_blocks

            blocks += [*ledger_blocks(report.estimate, style), *time_ledger(report.time, style)]
        assumed = [finding.message for finding in report.findings if finding.rule == "hardware-assumed"]
        if notes := (*assumed, *report.estimate.notes):
            blocks.append([line for note in notes for line in style.prose(note, "  note: ", "note")])
        blocks.append(style.prose(report.seen, "  ") if report.seen else [])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def header(report: Report, style: Style) -> list[str]:
    """The file, the run in one line, the hardware."""
    lines = style.prose(report.summary, f"{path_shown(report.file)}   ", "strong", indent=2)
    return [*lines, *style.prose(report.hardware)] if report.hardware else lines


def unknown(report: Report, style: Style) -> list[str]:
    """Why there are no numbers, as the findings say it."""
    lines = ["  memory unknown"]
    for finding in report.findings:
        lines += style.prose(finding.message, "  note: ", "note")
        for advice in finding.help:
            lines += style.prose(advice, "  help: ", "help")
    return lines


def _basis_lines(basis: Basis | None, style: Style) -> list[str]:
    """How well the numbers are founded, in a word; below it what is approximate."""
    if basis is None:
        return []
    lead = f"  basis {basis.kind}"
    lines = style.prose(f"{BASES[basis.kind]}", f"{lead}: ") if basis.kind in BASES else [f"{lead}:"]
    for part in basis.parts:
        lines += style.prose(f"{part.what}; {part.remedy}" if part.remedy else part.what, "    ", indent=6)
    return lines


def _estimate_blocks(estimate: Estimate, style: Style) -> list[list[str]]:
    """Parts with the peak below them, the range, the phases, the host."""
    bars = [_part_line(part, estimate, style) for part in PARTS]
    rule = " " * 15 + ("─" if style.unicode else "-") * 10
    return [
        [*bars, rule, *_peak_lines(estimate, style)],
        _range_lines(estimate, style),
        _phase_lines(estimate, style),
        host_lines(estimate, style),
    ]


def _disk_lines(run: Run, style: Style) -> list[str]:
    """What checkpoints take on disk."""
    found = checkpoints(run)
    return style.prose(found.words, "  ") if found is not None else []


def _part_line(part: Part, estimate: Estimate, style: Style) -> str:
    """One part of the peak: its GiB, its bar, and the arithmetic of its largest terms."""
    bytes_ = estimate.parts[part]
    line = f"  {part:<12}{gib(bytes_):>11}  {bar(bytes_, estimate.usable, style):<{BAR_COLUMNS}}  "
    return (line + arithmetic(part, estimate.peak, style, style.width - len(line))).rstrip()


def bar(bytes_: int, usable: int, style: Style) -> str:
    """``bytes_`` of the card's usable memory, in eighths of a column; more than all of it ends in ``>``."""
    eighths = round(8 * BAR_COLUMNS * bytes_ / usable) if usable > 0 else 8 * BAR_COLUMNS + 1
    block = "█" if style.unicode else "#"
    if eighths > 8 * BAR_COLUMNS:
        return block * (BAR_COLUMNS - 1) + ">"
    if not style.unicode:
        return block * round(eighths / 8)
    return block * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def arithmetic(part: Part, phase: Phase, style: Style, room: int) -> str:
    """The formulas of a part's terms, largest first, as many as have room; the first is cut to fit."""
    terms = sorted((term for term in phase.terms if term.part == part and term.bytes), key=lambda term: -term.bytes)
    if not terms:
        return ""
    first, *rest = terms
    said = first.formula
    for term in rest:
        longer = f"{said} + {term.formula}"
        if len(longer) > room:
            break
        said = longer
    return style.clip(said, room)


def _peak_lines(estimate: Estimate, style: Style) -> list[str]:
    """``peak  90.7 GiB of 78.2 usable on each GPU: does not fit (+12.5 GiB)``."""
    verdict = estimate.verdict
    lead = f"  {'peak':<12}{gib(estimate.allocated_peak):>11}  "
    return style.prose(
        f"of {number(estimate.usable)} usable on each GPU: {VERDICTS[verdict]}{estimate.grounds} ({margin(estimate)})",
        lead,
        verdict,
    )


def margin(estimate: Estimate) -> str:
    """How much is missing at the least, or left at the least."""
    if estimate.verdict == "unknown":
        return "not all of it is counted"
    if estimate.lacks_host:
        return f"+{gib(estimate.host_needed.low - (estimate.host_usable or 0))} on the host"
    if estimate.verdict == "does-not-fit":
        return f"+{gib(max(estimate.allocated_peak, estimate.needed.low) - estimate.usable)}"
    left = estimate.usable - estimate.needed.high
    return f"{gib(left)} to spare" if left >= 0 else f"may lack {gib(-left)}"


def _range_lines(estimate: Estimate, style: Style) -> list[str]:
    """The ranges, which mean different things: what is needed, and what people will see reserved."""
    return style.prose(f"needs {span(estimate.needed)} GiB; {on_monitor(estimate)}", "  ")


def on_monitor(estimate: Estimate) -> str:
    """``nvidia-smi will show up to about 34.1 GiB``: what torch reserves, and what CUDA and NCCL hold."""
    shown = f"up to about {gib(estimate.reserved_peak.high + estimate.outside_torch)}"
    if estimate.verdict == "does-not-fit":
        return f"on a large enough card nvidia-smi would show {shown}"
    return f"nvidia-smi will show {shown}"


def _phase_lines(estimate: Estimate, style: Style) -> list[str]:
    """Each phase with what it needs; an arrow at the largest."""
    lines = [f"  {'phase':<18}{'GiB':>7}"]
    for phase in estimate.phases:
        mark = style.paint("  <- peak", estimate.verdict) if phase is estimate.peak else ""
        lines.append(f"  {phase.name:<18}{number(phase.bytes):>7}{mark}")
    return lines


def host_lines(estimate: Estimate, style: Style) -> list[str]:
    """What one node's host holds, pinned and pageable."""
    if not estimate.host:
        return []
    pageable = estimate.host_peak - estimate.host_pinned
    words = f"{gib(estimate.host_peak)} ({number(estimate.host_pinned)} pinned, {number(pageable)} pageable)"
    return [
        *style.prose(words, "  host memory of each node: "),
        *(_host_line(term, style) for term in estimate.host),
    ]


def _host_line(term: HostTerm, style: Style) -> str:
    """One term of the host's memory with its arithmetic."""
    kind = "pinned" if term.pinned else "pageable"
    line = f"    {term.name:<20} {gib(term.bytes):>10}  {kind:<8}  {term.formula}"
    return style.clip(line).rstrip()


def _step_table(rows: Sequence[StepRow], style: Style) -> list[str]:
    """The table of steps, each row on top of those above it; a line where the training begins to change."""
    names = max(len("as written"), *(len(row.step) + 2 for row in rows))
    lines = [f"  {'step':<{names}}  {'per GPU':>9}  {'fits':<5}  cost"]
    line_drawn = False
    for place, row in enumerate(rows):
        if not row.safe and not line_drawn:
            line_drawn = True
            words = " below: changes what is trained"
            lines.append("  " + "-" * max(3, min(names + 18, style.width - 2 - len(words))) + words)
        step = f"+ {row.step}" if place else row.step
        lead = f"  {step:<{names}}  {gib(row.bytes):>9}  "
        word = ANSWERS[row.verdict]
        answer = style.paint(word, row.verdict) + " " * (5 - len(word))
        first, *rest = style.prose(row.cost, " " * (len(lead) + 7))
        lines += [(lead + answer + "  " + first.strip()).rstrip(), *rest]
    return lines
