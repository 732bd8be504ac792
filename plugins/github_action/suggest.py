"""``suggest.py REVIEW.json < bodies``: the review less the suggestions that a push before has made; 3 for none left."""

import json
import re
import sys
from pathlib import Path

MARK = re.compile(r"<!-- axolotl-advisor \w+ -->")
MOST = 30
"""More comments than anybody reads in one review."""


def main(file: str) -> int:
    """Prints what is left to send."""
    review = json.loads(Path(file).read_text(encoding="utf-8"))
    made = set(MARK.findall(sys.stdin.read()))
    review["comments"] = [each for each in review["comments"] if not made & set(MARK.findall(each["body"]))][:MOST]
    if not review["comments"]:
        return 3
    print(json.dumps(review))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
