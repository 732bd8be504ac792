"""Writes the page for axolotl's docs as a patch against its repository: the page, and its topic."""

from pathlib import Path

FOLDER = Path(__file__).parents[3] / "plugins" / "agents"
PATCH = FOLDER / "axolotl-docs.patch"
PAGE = "docs/agents/memory.md"
TOPICS = "src/axolotl/cli/agent_docs/__init__.py"
LAST_TOPIC = 23
"""Line of the last of ``TOPICS``: axolotl/cli/agent_docs/__init__.py@0.19.0."""
TOPIC = f'    "memory": "{PAGE}",'


def patch() -> str:
    """What ``git apply --unidiff-zero`` takes in axolotl's repository: no line of it but what is added."""
    lines = (FOLDER / "axolotl-docs.md").read_text(encoding="utf-8").splitlines()
    return "\n".join(
        [
            f"diff --git a/{PAGE} b/{PAGE}",
            "new file mode 100644",
            "--- /dev/null",
            f"+++ b/{PAGE}",
            f"@@ -0,0 +1,{len(lines)} @@",
            *(f"+{line}" for line in lines),
            f"diff --git a/{TOPICS} b/{TOPICS}",
            f"--- a/{TOPICS}",
            f"+++ b/{TOPICS}",
            f"@@ -{LAST_TOPIC},0 +{LAST_TOPIC + 1} @@",
            f"+{TOPIC}",
            "",
        ]
    )


if __name__ == "__main__":
    PATCH.write_text(patch(), encoding="utf-8")
    print(f"wrote {PATCH}")
