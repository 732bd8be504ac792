"""``--data``: what the rows of a file say of the entry that names it."""

from advisor.schemas.data.rules import pages, rules_on

__all__ = ["pages", "rules_on"]
