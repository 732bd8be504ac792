"""The whole ledger: every term of every phase and of the host, with bytes, arithmetic and source."""

from advisor.memory.ledger import PARTS, Estimate, HostTerm, Phase, Term
from advisor.report.style import Style
from advisor.util import gib


def ledger_blocks(estimate: Estimate, style: Style) -> list[list[str]]:
    """One block a phase, and one for the host where it holds anything."""
    blocks = [_phase_block(phase, phase is estimate.peak, style) for phase in estimate.phases]
    return [*blocks, _host_block(estimate, style)] if estimate.host else blocks


def _phase_block(phase: Phase, is_peak: bool, style: Style) -> list[str]:
    """The terms of a phase by part, the largest of each part first."""
    title = f"{phase.name}: {phase.bytes:,} bytes, {gib(phase.bytes)}" + (", the peak" if is_peak else "")
    terms = sorted(phase.terms, key=lambda term: (PARTS.index(term.part), -term.bytes))
    return [
        style.paint(title, "strong"),
        *(line for term in terms for line in term_lines(term, term.part, style)),
    ]


def _host_block(estimate: Estimate, style: Style) -> list[str]:
    """The terms of one node's host, the largest first."""
    title = f"host memory of each node: {estimate.host_peak:,} bytes, {gib(estimate.host_peak)}"
    lines = [style.paint(title, "strong")]
    for term in sorted(estimate.host, key=lambda term: -term.bytes):
        lines += term_lines(term, "pinned" if term.pinned else "pageable", style)
    return lines


def term_lines(term: Term | HostTerm, kind: str, style: Style) -> list[str]:
    """Bytes, name and part; below them the arithmetic and the source."""
    margin = " " * 21
    name = term.name if term.name == kind else f"{term.name} ({kind})"
    lines = style.prose(name, f"{term.bytes:>19,}  ", "strong")
    lines += style.prose(term.formula, margin + "= ") if term.formula else []
    return lines + (style.prose(term.source, margin, indent=len(margin) + 2) if term.source else [])
