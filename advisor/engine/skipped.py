"""What a plan says of a step that it does not take."""

from advisor.record import record


@record
class Skipped:
    """A step of the flowchart that was skipped, and why, in numbers."""

    rule: str
    reason: str
