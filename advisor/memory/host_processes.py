"""Host memory of a node that is there in any run: of its processes, and of what runs next to them."""

from collections.abc import Iterable, Sequence

from advisor.memory.ledger import HostTerm
from advisor.util import GIB

NAME = "processes and system"
LEAST_OF_A_RANK = 3 * GIB // 10
"""Anonymous memory (`/proc/self/smaps_rollup`) once torch 2.13.0, transformers, peft and DeepSpeed are imported."""
MOST_OF_A_RANK = 2 * GIB
SYSTEM = 2 * GIB
SOURCE = (
    "0.3 GiB a rank once the libraries are imported, measured; "
    "https://github.com/pytorch/pytorch/issues/12873: 1.9 GB resident after the first kernel; 2 GiB for the system: "
    "a judgement"
)


def without_processes(terms: Iterable[HostTerm]) -> list[HostTerm]:
    """What is on a host but for its processes."""
    return [term for term in terms if term.name != NAME]


def with_processes(terms: Sequence[HostTerm], local: int) -> tuple[HostTerm, ...]:
    """What is offloaded to a host, and what the node's ``local`` ranks and its system take there as well.

    Nothing where nothing is offloaded, or only what CUDA moves there under pressure: such a run leaves hosts idle.
    """
    if all(term.paged for term in terms):
        return tuple(terms)
    most, least = SYSTEM + local * MOST_OF_A_RANK, local * LEAST_OF_A_RANK
    text = f"0.3 to 2 GiB x {local} rank{'s' if local > 1 else ''}, up to 2 GiB of the system"
    return (*terms, HostTerm(NAME, most, False, text, SOURCE, unrounded=least))
