"""Memory as pictures: the phases against the card, and the ledger below them."""

from collections.abc import Iterator

from advisor.memory.ledger import PARTS, Estimate, HostTerm, Phase, Term
from advisor.report.estimate import on_monitor
from advisor.report.html_markup import Piece, bar, folded, legend, plain, scrolling, table, tag
from advisor.report.wording import number, span
from advisor.util import GIB, gib


def memory(estimate: Estimate) -> str:
    """Phases as bars against the card's line, what they rest on, and the host."""
    words = f"Needs {span(estimate.needed)} GiB, {number(estimate.usable)} usable on each GPU; {on_monitor(estimate)}."
    notes = "".join(tag("p", plain(note), "small") for note in estimate.notes)
    return (
        phases(estimate) + tag("p", words) + host(estimate) + notes + folded("Phases and parts in GiB", parts(estimate))
    )


def phases(estimate: Estimate) -> str:
    """One bar a phase."""
    most = max(estimate.usable, *(phase.bytes for phase in estimate.phases)) * 1.02
    rows = [
        (_phase_name(phase, estimate), bar(pieces(phase), most, estimate.usable), number(phase.bytes))
        for phase in estimate.phases
    ]
    roles = [*((part, part) for part in PARTS if any(p.parts()[part] for p in estimate.phases))]
    line = ("limit", f"usable: {number(estimate.usable)}")
    caption = "Memory by phase, GiB on the GPU that needs most"
    return table(caption, ("Phase", "Parts", "GiB"), rows, "chart") + legend([*roles, line])


def _phase_name(phase: Phase, estimate: Estimate) -> str:
    """The peak in bold."""
    return tag("b", f"{phase.name} (peak)") if phase is estimate.peak else phase.name


def pieces(phase: Phase) -> Iterator[Piece]:
    """The parts of a phase, one after the other."""
    end = 0
    for part, bytes_ in phase.parts().items():
        start, end = end, end + bytes_
        yield Piece(part, start, end)


def parts(estimate: Estimate) -> str:
    """The numbers of the picture."""
    rows = [
        (_phase_name(phase, estimate), *(number(bytes_) for bytes_ in phase.parts().values()), number(phase.bytes))
        for phase in estimate.phases
    ]
    return scrolling(table("Phases and parts, GiB", ("Phase", *PARTS, "sum"), rows))


def host(estimate: Estimate) -> str:
    """What one node's host holds."""
    if not estimate.host:
        return ""
    return tag(
        "p", f"Host memory of each node: {gib(estimate.host_peak)}, {number(estimate.host_pinned)} of it pinned."
    )


def ledger(estimate: Estimate) -> str:
    """Every term of the peak with its arithmetic, folded; of the other phases, folded once more; and of the host."""
    peak = estimate.peak
    others = [phase for phase in estimate.phases if phase is not peak]
    held = folded("Host", terms("host memory of each node", estimate.host)) if estimate.host else ""
    more = "".join(folded(f"{phase.name}: {gib(phase.bytes)}", terms(phase.name, phase.terms)) for phase in others)
    content = terms(f"{peak.name}, the peak", peak.terms) + more + held
    return folded("Ledger: every term with its arithmetic and source", content)


def terms(name: str, found: tuple[Term, ...] | tuple[HostTerm, ...]) -> str:
    """The terms of one phase, the largest first."""
    rows = [
        (plain(term.name), f"{term.bytes / GIB:.2f}", f"{plain(term.formula)} <small>{plain(term.source)}</small>")
        for term in sorted(found, key=lambda term: -term.bytes)
    ]
    return table(f"Terms of {name}", ("Term", "GiB", "Arithmetic and source"), rows, "terms")
