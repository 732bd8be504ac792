"""``advisor launch``: what a launch command is about to train, and on how many processes."""

from advisor.cli.launchers.command import Command, read_command

__all__ = ["Command", "read_command"]
