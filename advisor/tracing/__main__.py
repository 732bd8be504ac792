"""``python -m advisor.tracing``: a request on standard input, the traced model on standard output, both as JSON."""

import json
import sys
from contextlib import redirect_stdout
from typing import Any

from advisor.tracing.serialize import encoded, facts


def main() -> None:
    """Answers one request; what goes wrong is an answer too."""
    request = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        answer = answered(request)
    json.dump(answer, sys.stdout)


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """The architecture, or why there is none."""
    from advisor.tracing.measure import measured
    from advisor.tracing.modules import UntraceableError

    try:
        found = measured(request["config"], facts(request["facts"]), tuple(request["windows"]))
        return {"model": encoded(found)}
    except UntraceableError as error:
        return {"reason": str(error)}
    except Exception as error:  # whatever a model's own code throws is only a reason
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        return {"reason": f"it cannot be traced ({type(error).__name__}: {first[:200]})"}


if __name__ == "__main__":
    main()
