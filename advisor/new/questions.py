"""What a request leaves open, and what each answer makes of it. At most six; each has a default."""

from collections.abc import Iterator

from advisor.new.model import is_chat
from advisor.new.request import Choice, Question, Request
from advisor.new.rows import open_in
from advisor.new.ways import Ways
from advisor.opening import detected
from advisor.record import replace
from advisor.session import Session

CARD = "1x rtx-4090"
"""The card that is offered where none is found."""
KINDS = (
    Choice(word="full", title="all weights"),
    Choice(word="lora", title="an adapter"),
    Choice(word="qlora", title="an adapter of a base in 4 bits"),
)


def questions(request: Request, session: Session) -> Iterator[Question]:
    """Before the ways are looked for: data, GPUs, what the model is, what the rows are. Ask one, then ask again."""
    if request.data is None:
        yield Question(field="data", option="DATA", text="A file of rows (none: say later)", choices=(), default="")
    context = session.context
    here = context.detects and detected() is not None
    if not (request.options.gpus or context.default_gpus or here):
        yield Question(field="gpus", option="--gpus", text="Which GPUs", choices=(), default=CARD)
    if request.chats is None and is_chat(request.model) is None:
        choices = (
            Choice(word="base", title="trained on text alone, or nobody knows"),
            Choice(word="chat", title="trained to answer"),
        )
        yield Question(field="chats", option="--base/--chat", text="The model is", choices=choices, default="base")
    yield from open_in(request)


def which_way(found: Ways) -> Question | None:
    """Which of the ways to write, where there are several and none was asked for."""
    fitting = [way.training for way in found.ways if way.fits]
    if found.start.request.wanted is not None or len(fitting) < 2 or found.chosen is None:
        return None
    choices = tuple(choice for choice in KINDS if choice.word in fitting)
    return Question(
        field="training", option="--method", text="Write which", choices=choices, default=found.chosen.training
    )


def answered(request: Request, question: Question, answer: str) -> Request:
    """The request with an answer in its place."""
    match question.field:
        case "data":
            return replace(request, data=answer or "")
        case "gpus":
            return replace(request, options=replace(request.options, gpus=answer))
        case "chats":
            return replace(request, chats=answer == "chat")
        case name:
            return replace(request, **{name: answer})
