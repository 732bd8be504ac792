"""Answers that a trainer has made while it trains."""

from typing import Literal

from advisor.record import record

FULL_HOST = 8
"""GPUs of a host in which there is seldom room for more."""


@record(eq=False)
class Rollouts:
    """How GRPO gets its answers: from the model itself, from vLLM on the same GPU, or from a server elsewhere.

    ``share`` of the card's memory that vLLM takes; ``sleeps``: gives it back while the model is trained. ``rows`` are
    answered at once on one GPU, with up to ``completion`` tokens each.
    """

    engine: Literal["model", "vllm", "server"]
    rows: int
    completion: int
    share: float = 0.0
    sleeps: bool = False
    iterations: int = 1
    """Optimizer steps that are made with the same answers."""
    server_gpus: int = 0
    """GPUs of the server, none of which may train."""
    server_host: str = ""

    @property
    def server_here(self) -> bool:
        """Whether the server is asked for on the host that trains."""
        return self.server_host in {"", "0.0.0.0", "127.0.0.1", "::1", "localhost"}

    def left_to_train(self, gpus_per_node: int) -> int | None:
        """How many GPUs of a host train if its server takes the others; None where it takes none of them.

        Of a full host, or of one whose odd number of GPUs nobody trains on alone.
        """
        left = gpus_per_node - self.server_gpus
        whole = gpus_per_node == FULL_HOST or gpus_per_node % 2 == 1
        here = self.engine == "server" and self.server_here and whole
        return left if here and 0 < left < gpus_per_node else None


@record(eq=False)
class Ebft:
    """What EBFT compares answers by: hidden states of ``features`` layers of a frozen network.

    With a ``stride`` it makes no whole answers, but ``answer`` tokens at each ``stride``-th place of a document from
    ``context`` on, of ``samples`` copies, and appends them to it (axolotl/core/trainers/ebft/strided.py@0.19.0).
    """

    features: int
    samples: int = 1
    stride: int = 0
    context: int = 0
    answer: int = 0
    trains_documents: bool = False
    """Whether the tokens of the document itself are in the loss, too."""

    def places(self, length: int) -> int:
        """How many answers a document of ``length`` tokens gets (strided.py, compute_loss@0.19.0)."""
        return max(0, (length - self.answer - self.context) // self.stride + 1) if self.stride else 0

    def answers(self, length: int) -> int:
        """Tokens that are appended to a document of ``length`` tokens."""
        return self.places(length) * self.answer
