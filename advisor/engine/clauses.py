"""The two halves of a message: the cause, and the remedy."""

from advisor.engine.finding import Finding
from advisor.util import regex

STOPS = regex(
    r"(?:: |, and )(?:axolotl(?: [\d.]+)?|PEFT|the run) (?:refuses the config|stops)"
    r"(?: \([^)]*\))?(?:(?!, since |: ).)*"
)
"""What a message says of who stops at its cause."""
LONGEST_CAUSE = 110
"""Of a headline: a line and a half of a terminal."""
COLON = regex(r"^((?:[^`:]|`[^`]*`|:(?! ))*): ")
STOPS_AT_IT = regex(r"^(?:axolotl(?: [\d.]+)?|PEFT|the run) stops at it; ")
LAST = regex(r": ((?:[^`:]|`[^`]*`)*)$")


def cause_of(message: str) -> str:
    """A message up to its remedy, without that something stops at it: this is said before; a long one to its colon."""
    cause = STOPS.sub("", message.split("; ")[0]).rstrip(".")
    first = COLON.match(cause) if len(cause) > LONGEST_CAUSE else None
    return first[1] if first else cause


def remedy_of(finding: Finding) -> str:
    """What comes after the cause in a message, or after its last colon, else its title."""
    _, mark, rest = finding.message.partition("; ")
    last = None if mark else LAST.search(finding.message)
    return (
        (STOPS_AT_IT.sub("", rest) if mark else last[1] if last else finding.title)
        .removesuffix(".")
        .removesuffix(", ..")
    )
