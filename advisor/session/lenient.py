"""The session of a launch, which no slip in the settings keeps from being checked."""

from collections.abc import Iterator, Sequence

from advisor.engine.options import tiers_of
from advisor.errors import InputError
from advisor.record import replace
from advisor.session.options import RunOptions
from advisor.session.rule_selection import Tell
from advisor.session.session import Session, folder_of, session_for
from advisor.settings import Settings, load_settings
from advisor.settings.settings import PARTS
from advisor.streams import hushed, tell


def lenient_session(
    paths: Sequence[str], options: RunOptions, *, detects: bool | None = None, here: bool = False, tell: Tell = tell
) -> Session:
    """As ``session_for``, but what the settings have that cannot be used is left out, with a line.

    ``InputError`` where the options are what is wrong.
    """

    def leave_out(error: InputError) -> None:
        tell(f"left out of the settings: {' '.join(str(error).split())}")

    settings = load_settings(folder_of(paths[0]), isolated=options.isolated, fault=leave_out)

    def session(settings: Settings, tell: Tell) -> Session:
        made = session_for(paths, options, settings=settings, detects=detects, here=here, tell=tell)
        if made.options.flowchart != "default":
            tiers_of(made.options)  # an unknown one is an error here, not once there is something to plan
        return made

    try:
        return session(settings, tell)
    except InputError as error:
        for fewer in _leaner(settings):
            try:
                with hushed():
                    made = session(fewer, lambda _: None)
            except InputError:
                continue
            leave_out(error)
            return made
        raise


def _leaner(settings: Settings) -> Iterator[Settings]:
    """The settings without one of those that were given, each in turn; then without any but the GPUs."""
    for name in settings.origins:
        yield without(settings, name)
    yield replace(Settings(), gpus=settings.gpus, cards=settings.cards)


def without(settings: Settings, name: str) -> Settings:
    """The settings without one of them. Without rules, other settings may go on naming some."""
    unused = {**settings.unused, **({name: "they are left out"} if name == "rules" else {})}
    parts = (name, *PARTS.get(name, ()))
    return replace(settings, unused=unused, **{part: getattr(Settings(), part) for part in parts})
