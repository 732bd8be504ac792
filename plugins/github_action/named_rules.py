"""``named_rules.py PATH``: prints the folders of rules that the settings of a path name, one a line.

For events of those who may push, whose settings are the repository's own. Settings above the checkout are nobody's.
"""

import os
import sys

from advisor.documents.repository import lies_in
from advisor.errors import InputError
from advisor.session.session import folder_of
from advisor.settings import settings_in_file


def main(path: str) -> int:
    """0, also where there are no rules; 2 with one line where the settings cannot be read."""
    try:
        settings = settings_in_file(folder_of(path))
    except (InputError, OSError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    if settings.file is not None and lies_in(os.path.realpath("."), settings.file):
        print("\n".join(settings.rules))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
