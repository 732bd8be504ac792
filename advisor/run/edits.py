"""Edits in terms of a run: what rules ask for, and what the writers of axolotl and DeepSpeed configs carry out."""

from collections.abc import Mapping

RunEdits = Mapping[str, object]
"""``{"zero_stage": 2}``. The keys are those of ``EDITS`` in ``advisor.run.axolotl`` and ``advisor.run.deepspeed``."""
