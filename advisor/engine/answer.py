"""The answer to "does it fit, what can I do, what does it cost?": every front end prints it, and none works it out."""

from typing import TYPE_CHECKING, Literal

from advisor.record import record

if TYPE_CHECKING:
    from advisor.documents import Edit
    from advisor.engine.states import Step
    from advisor.memory.ledger import Estimate, PhaseName, Range, Verdict

Where = Literal["gpu", "host", "load", "evaluation", "refused", "not-counted", "no-gpus", "unknown-model"]
Letter = Literal["A", "B", "C", "F"]
Training = Literal["same", "changes"]
NO_MASTERS = "no fp32 masters"
"""The title of a way whose only price is that weights lose theirs."""


@record
class Rung:
    """A rung of the user's flowchart, what became of it in a word, and the figure or reason behind that."""

    name: str
    word: Literal[
        "done", "taken", "taken back", "not needed", "slower here", "would change training", "impossible", "ignored"
    ]
    detail: str = ""


@record
class Reason:
    """Where a run does not fit, or why that is not known; ``phase`` is the one that needs most."""

    where: Where
    phase: "PhaseName | None" = None


@record(eq=False)
class AnswerStep:
    """One edit of an option: a step of the flowchart, or the fix of a finding.

    ``memory`` is what one GPU needs before and after, the high end, ``host`` the same of a node, in bytes; ``seconds``
    are of an optimizer step. None where they are not known.
    """

    rule: str
    title: str
    because: str
    cost: str
    safe: bool
    requires: tuple[str, ...] = ()
    memory: tuple[int, int] | None = None
    host: tuple[int, int] | None = None
    seconds: tuple[float, float] | None = None
    why: str = ""
    whole_cost: str = ""
    """All that is said of what it costs, this run's figures among it."""
    source: str = ""
    diff: str = ""
    help: tuple[str, ...] = ()
    heading: str = ""
    """The title of its rule: what several fixes of it stand under."""
    tidies: bool = False
    """The fix of a finding that is no error."""


@record
class Stop:
    """An error that stops the run: where (``line 9``, or the file), and what to do about it."""

    rule: str
    message: str
    place: str
    remedy: str


@record(eq=False)
class Option:
    """One way out. A: the same training. B: changes what is trained. C: other hardware. F: faster, where it fits."""

    letter: Letter
    training: Training
    title: str
    steps: tuple[AnswerStep, ...] = ()
    edits: "tuple[Edit, ...]" = ()
    """All of them against the files as they are: what ``command`` writes."""
    diff: str = ""
    command: str | None = None
    """What to type; None where the option is no way out."""
    flags: str = ""
    """What to add to the call that showed it."""
    hardware: str | None = None
    """Other hardware than the run's."""
    price: str = ""
    """What that costs, where the shipped table knows."""
    end: "Estimate | None" = None
    """Where it ends; of an option that is no way out, the smallest end that was found."""
    seconds: float | None = None
    tokens_per_second: float | None = None
    """Of all GPUs."""
    recommended: bool = False
    starts: bool = True
    """Whether no error stops the run once its edits are made."""
    left: tuple[Stop, ...] = ()
    """The errors that stop it even so."""
    has_masters: bool = False
    """Whether it ends with weights in more than half precision, which small updates need."""
    taken: "tuple[Step, ...]" = ()
    """The steps of the plan behind it, each with the runs before and after; where that is asked for."""
    written: int = 0
    """How many edits its command writes, where it is no way out all the same."""
    rungs: tuple[Rung, ...] = ()
    """The user's flowchart next to its plan; empty where it has none."""
    more_room: str = ""
    """What else makes room where it ends with little; where that is asked for."""

    @property
    def verdict(self) -> "Verdict":
        """How it ends."""
        return self.end.verdict if self.end is not None else "unknown"

    def best_of(self, now: "Estimate | None") -> int | None:
        """Bytes of a GPU at the smallest end of what is no way out, where that is less than what is needed now."""
        least = self.end.needed.high if self.end is not None and self.command is None else None
        return None if least is None or (now is not None and least >= now.needed.high) else least

    @property
    def fits(self) -> bool:
        """Whether it ends in a run that fits."""
        return self.command is not None and self.starts and self.verdict == "fits"

    @property
    def changes(self) -> int:
        """How many edits it has, in the unit that the prompt asks about."""
        return len(self.steps)


@record(eq=False)
class NotTaken:
    """A way, or a step, that is not taken, and why; bytes and seconds of its end where it has one.

    ``keeps_more``: of what is trained, than the way that is taken. ``edits``: how many it takes.
    """

    title: str
    because: str
    memory: int | None = None
    seconds: float | None = None
    keeps_more: bool = False
    edits: int | None = None


@record
class Room:
    """The largest micro batch with which a run fits, all else as it is; ``needed``: bytes of one GPU with it."""

    micro_batch_size: int
    global_batch_size: int
    needed: "Range"
    text: str


@record(eq=False)
class Answer:
    """What a person asks of one run. ``verdict`` is about memory alone; ``starts``: no error stops the run."""

    verdict: "Verdict"
    starts: bool
    reason: Reason | None
    headline: str
    action: str
    little_room: bool = False
    needs: int | None = None
    """Bytes on one GPU, where no GPUs are stated."""
    assumed: str = ""
    """What the name of the hardware left open, and how it was read."""
    options: tuple[Option, ...] = ()
    rungs: tuple[Rung, ...] = ()
    """The user's flowchart next to the option that is recommended, or to the plan that does not reach."""
    not_taken: tuple[NotTaken, ...] = ()
    seconds: float | None = None
    tokens_per_second: float | None = None
    """As written, of all GPUs."""
    room: "Room | None" = None
    """The larger micro batch that fits, where that is asked for (``Options.outlook``)."""
    more_room: str = ""
    """What makes room where the run, or the option to take, fits with little; where that is asked for."""
    network: str = ""
    """What the links take of the step, where that is most of it, and what helps; where that is asked for."""
    rate: str = ""
    """That the learning rate is far from what is usual, which no speed makes good; where that is asked for."""
    padding: str = ""
    """That short rows take the time of full ones, where they are padded to that; where that is asked for."""
    few_bits: str = ""
    """That adapters fit on the base as released, and take less time there; where that is asked for."""
    masters: str = ""
    """What fp32 masters would take, where the rate wants them and they are not there; where that is asked for."""
    vllm: str = ""
    """What vLLM takes where the model itself makes GRPO's answers, and waits for them; where that is asked for."""
    smaller_model: str = ""
    """The smaller model that fits as written, where no edit makes this one; where that is asked for."""

    @property
    def hints(self) -> "tuple[str, ...]":
        """What is said after the two sentences and ``room``, as far as there is something to say."""
        runs = (self.vllm, self.masters, self.few_bits, self.smaller_model)
        told = (self.padding, self.more_room, *runs, self.network)
        return tuple(filter(None, told))

    @property
    def advises(self) -> bool:
        """Whether a hint asks for something else than is written."""
        return any((self.padding, self.vllm, self.masters, self.few_bits))

    @property
    def recommended(self) -> Option | None:
        """The option to take first."""
        return next((option for option in self.options if option.recommended), None)

    def option(self, letter: Letter) -> Option | None:
        """The option of a letter."""
        return next((option for option in self.options if option.letter == letter), None)
