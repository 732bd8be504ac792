"""Request -> everything that is the same for full, LoRA and QLoRA: model, GPUs, rows, their length and how often."""

from advisor.errors import InputError
from advisor.hardware import Hardware, parse_hardware
from advisor.learning import Chat, chat_of
from advisor.models import Architecture
from advisor.new.model import architecture_of, is_chat
from advisor.new.request import Request, Seen
from advisor.new.rows import seen_in
from advisor.new.usual import epochs_for, held_back, length_for
from advisor.opening import detected
from advisor.record import record, replace
from advisor.session import Session, session_for

NO_GPUS = 'say which GPUs it will have: --gpus "1x rtx-4090", or --gpus 24GB'


@record(eq=False, kw_only=True)
class Start:
    """What is known before the ways are looked for."""

    request: Request
    session: Session
    model: Architecture
    hardware: Hardware
    seen: Seen
    chats: bool
    chat: Chat | None
    sequence_len: int
    epochs: int

    @property
    def tokens(self) -> float | None:
        """Trained in all epochs together; None where neither data nor the request says it."""
        if self.request.tokens is not None:
            return self.request.tokens
        found = self.seen.tokens
        return None if found is None else found * self.epochs * (1 - self.held_back)

    @property
    def held_back(self) -> float:
        """The share of the rows that is evaluated."""
        return held_back(self.seen.rows)


def start_of(request: Request, session: Session | None = None) -> Start:
    """All of it. ``InputError`` where something must be stated, with the option that states it."""
    session = session_for([request.file], request.options, detects=False) if session is None else session
    model = architecture_of(request.model, session)
    hardware = hardware_of(session)
    told = is_chat(request.model) if request.chats is None else request.chats
    chat = chat_of(model.model_type, request.model)
    seen = seen_in(request, chat, chats=bool(told))
    _check(request, seen)
    epochs = epochs_for(seen.rows, paired=seen.paired)
    tokens = request.tokens or (seen.tokens and seen.tokens * epochs)
    most = model.max_position_embeddings
    length = request.sequence_len or length_for(seen.longest, tokens, most, packs=not seen.paired)
    return Start(
        request=request,
        session=session,
        model=model,
        hardware=hardware,
        seen=seen,
        chats=bool(told),
        chat=chat,
        sequence_len=length,
        epochs=epochs,
    )


def hardware_of(session: Session) -> Hardware:
    """The GPUs of the call, of the settings, or of this machine."""
    context = session.context
    if context.gpus:
        return replace(parse_hardware(context.gpus, own=context.own), source="--gpus")
    if context.default_gpus:
        return parse_hardware(context.default_gpus, own=context.own)
    found = detected() if context.detects else None
    if found is None:
        raise InputError("which GPUs will it train on?", remedy=NO_GPUS)
    return found


def _check(request: Request, seen: Seen) -> None:
    """What contradicts itself."""
    if request.method == "dpo" and not seen.paired:
        raise InputError(f"--method dpo needs pairs: {seen.why}", request.data or "", remedy="state --method lora")
    if request.hours is not None and request.tokens is None and seen.tokens is None:
        raise InputError("--hours needs the length of the run", remedy="add --tokens 20M, or name the data")
