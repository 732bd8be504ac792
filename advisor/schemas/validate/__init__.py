"""``--validate``: the real axolotl schema and DeepSpeed config class, asked in processes of their own."""

from advisor.schemas.validate.rules import rules_that_ask

__all__ = ["rules_that_ask"]
