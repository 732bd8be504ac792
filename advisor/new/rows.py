"""The rows of the data as ``new`` needs them; without data a place for it, and the three shapes that it may have."""

from collections.abc import Iterator

from advisor.new.request import Question, Request, Seen

PLACE = "./data.jsonl"
"""Where the data will be, if nobody says."""


def open_in(request: Request) -> Iterator[Question]:
    """What the rows leave open."""
    yield from ()


def seen_in(request: Request, chats: bool | None) -> Seen:
    """What the data holds, and how axolotl reads it."""
    paired = request.method == "dpo"
    if paired:
        entry = {"type": "chat_template.default", "field_messages": "messages"}
        entry |= {"field_chosen": "chosen", "field_rejected": "rejected"}
    else:
        entry = {"type": "chat_template", "field_messages": "messages"}
    return Seen(
        entry={"path": PLACE, **entry},
        root={"rl": "dpo"} if paired else {},
        paired=paired,
        templated=True,
        plain_text=False,
        why="there is no data yet",
    )
