"""``python -m tests.release.action``: the action at the root, which has the steps of the one in ``plugins/``.

A composite action cannot call another one at its own revision: ``uses: ./...`` means the checkout of whoever uses it,
and a name with a tag in it would run that tag in place of the commit that was asked for.
"""

from pathlib import Path

FILE = Path(__file__).parents[2] / "action.yml"
SOURCE = FILE.parent / "plugins" / "github_action" / "action.yml"
HEAD = "# Written by `python -m tests.release.action`: plugins/github_action/action.yml, as an action of the whole repository.\n"


def text() -> str:
    """The file as it must lie on disk."""
    folder = SOURCE.parent.relative_to(FILE.parent).as_posix()
    return HEAD + SOURCE.read_text(encoding="utf-8").replace("$GITHUB_ACTION_PATH/", f"$GITHUB_ACTION_PATH/{folder}/")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
