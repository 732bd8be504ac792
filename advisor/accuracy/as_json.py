"""The report as JSON."""

import json
from dataclasses import asdict

from advisor.accuracy.fitted import FITTED, MISSING
from advisor.accuracy.report import Accuracy


def as_json(report: Accuracy) -> str:
    """All figures; shares of one, sizes in bytes where no unit is named."""
    known = {"fitted": [asdict(one) for one in FITTED], "missing": list(MISSING)} if report.published else {}
    return json.dumps({"version": 1, **asdict(report), **known}, indent=2)
