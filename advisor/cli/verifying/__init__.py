"""``advisor verify``: what it asks of axolotl's own training, and what came of it."""
