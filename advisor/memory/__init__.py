"""Run -> Estimate: phases of terms on the GPU, and what the host holds."""

from advisor.memory.estimate import estimate, exceeds, host_bytes, lacks_host, lower_bound
from advisor.memory.ledger import PARTS, Estimate, HostTerm, Part, Phase, PhaseName, Range, Term, Verdict

__all__ = [
    "PARTS",
    "Estimate",
    "HostTerm",
    "Part",
    "Phase",
    "PhaseName",
    "Range",
    "Term",
    "Verdict",
    "estimate",
    "exceeds",
    "host_bytes",
    "lacks_host",
    "lower_bound",
]
