"""A rule's examples: one in full, then variations that say which keys are otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from textwrap import dedent

from advisor.record import record


@record(eq=False)
class Example:
    """A config for which the rule fires (``after`` given, or ``fires``) or stays silent (neither).

    ``memory`` is what the edit does to the peak on one GPU: ``"42.1 -> 29.0 GiB"``.
    """

    before: str
    gpus: str = "1x a100-80gb"
    after: str | None = None
    memory: str | None = None
    deepspeed: str | None = None
    after_deepspeed: str | None = None
    stack: Mapping[str, object] = field(default_factory=dict[str, object])
    fires: bool = False

    @property
    def expects_finding(self) -> bool:
        """Whether the rule must speak up about this example."""
        return self.fires or self.after is not None or self.after_deepspeed is not None


@record(eq=False)
class Variation:
    """What an example has otherwise than the last full one before it that fires; ``but`` and ``without`` make them.

    What is None is as there. It promises nothing of the edit: it stays silent, or with ``fires`` it speaks up; with
    ``kept`` it speaks up and edits nothing.
    """

    lines: tuple[str, ...] = ()
    """As they are written in the rule: only who looks at examples needs them as text."""
    dropped: tuple[str, ...] = ()
    gpus: str | None = None
    deepspeed: str | None = None
    stack: Mapping[str, object] | None = None
    fires: bool = False
    fixed: bool = False
    """Whether it starts from the files as the edit of the full example leaves them."""
    kept: bool = False

    def of(self, full: Example) -> Example:
        """The example in full."""
        before, deepspeed = full.before, full.deepspeed
        if self.fixed:
            before, deepspeed = full.after or before, full.after_deepspeed or deepspeed
        varied = _varied(text_of(before), "".join(map(text_of, self.lines)), self.dropped)
        return Example(
            before=varied,
            after=varied if self.kept else None,
            gpus=full.gpus if self.gpus is None else self.gpus,
            deepspeed=(deepspeed if self.deepspeed is None else self.deepspeed) or None,
            stack=full.stack if self.stack is None else self.stack,
            fires=self.fires,
        )


def but(
    *lines: str,
    without: Sequence[str] = (),
    gpus: str | None = None,
    deepspeed: str | None = None,
    stack: Mapping[str, object] | None = None,
    fires: bool = False,
    fixed: bool = False,
    kept: bool = False,
) -> Variation:
    """The last full example that fires, with other lines: a key that is there keeps its place, a new one is the last.

    ``without``: keys that it lacks. ``deepspeed=""``: no DeepSpeed JSON. ``fixed``: as the edit leaves it.
    ``kept``: a finding without an edit.
    """
    return Variation(lines, tuple(without), gpus, deepspeed, stack, fires, fixed, kept)


def only(
    *lines: str,
    gpus: str = "1x a100-80gb",
    deepspeed: str | None = None,
    stack: Mapping[str, object] | None = None,
    fires: bool = False,
) -> Example:
    """A whole config of a few lines."""
    return Example("\n".join(lines), gpus, deepspeed=deepspeed, stack=stack or {}, fires=fires)


def without(*keys: str, fires: bool = False) -> Variation:
    """The last full example that fires, without these keys."""
    return Variation(dropped=keys, fires=fires)


def _varied(text: str, lines: str, dropped: Sequence[str]) -> str:
    """A YAML text without some of its top-level keys, and with the blocks of other lines."""
    blocks = {key: block for key, block in _blocks_of(text).items() if key not in dropped}
    return "".join((blocks | _blocks_of(lines)).values())


def _blocks_of(text: str) -> dict[str, str]:
    """The top-level keys of a YAML text, each with all of its lines."""
    blocks: dict[str, str] = {}
    key = ""
    for line in text.splitlines(keepends=True):
        if line[0] not in " -#\n":
            key = line.partition(":")[0]
        blocks[key] = blocks.get(key, "") + line
    return blocks


def text_of(block: str) -> str:
    """A text block without its indentation, with one newline at its end."""
    return dedent(block).strip("\n") + "\n"
