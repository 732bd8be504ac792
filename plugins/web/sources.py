"""The Python that the page runs: files of the advisor, and of what it imports in Python alone."""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("advisor", "advisor.rules", "advisor.plugins", "yaml", "click")
SUFFIXES = (".py", ".json", ".jsonl", ".csv", ".toml", ".css")
PLUGINS = (
    "advisor/plugins/__init__.py",
    "advisor/plugins/web/__init__.py",
    *(f"advisor/plugins/web/{name}.py" for name in ("answering", "asking", "showing", "writing")),
)
"""All that the page runs of the plugins, by their place in the archive; of the rest it takes what is not ``UNUSED``."""
UNUSED = (
    "*/__pycache__/*",
    "advisor/__main__.py",
    "advisor/accuracy/*",
    "advisor/api.py",
    "advisor/cli/check.py",
    "advisor/cli/crash_log/*",
    "advisor/cli/launch.py",
    "advisor/cli/launchers/*",
    "advisor/cli/main.py",
    "advisor/cli/of_*.py",
    "advisor/cli/own_command.py",
    "advisor/cli/run_options.py",
    "advisor/cli/oom.py",
    "advisor/cli/prompt/*",
    "advisor/report/git*.py",
    "advisor/report/sarif*.py",
    "advisor/report/schema*",
    "advisor/sample_configs/*",
    "advisor/schemas/validate/ask_*.py",
    "advisor/tracing/__main__.py",
    "advisor/tracing/cuda_emulation.py",
    "advisor/tracing/kernels.py",
    "advisor/tracing/state_spaces.py",
    "click/_winconsole.py",
    "click/testing.py",
)


def sources() -> Iterator[tuple[Path, str]]:
    """Each file once, with its place in the archive."""
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None and spec.submodule_search_locations
        root = Path(next(iter(spec.submodule_search_locations)))
        within = package.replace(".", "/")
        for path in files_in(root):
            name = f"{within}/{path.relative_to(root).as_posix()}"
            if owner(name) == within and wanted(name):
                yield path, name


def owner(name: str) -> str:
    """The innermost of ``PACKAGES`` that a file lies in: in a wheel the advisor holds its rules and plugins."""
    places = (package.replace(".", "/") for package in PACKAGES)
    return max((place for place in places if name.startswith(f"{place}/")), key=len)


def wanted(name: str) -> bool:
    """Whether the browser reads a file."""
    if not name.endswith(SUFFIXES) or any(fnmatchcase(name, pattern) for pattern in UNUSED):
        return False
    return name in PLUGINS or not name.startswith("advisor/plugins/")


def files_in(root: Path) -> Iterator[Path]:
    """All files below a folder, in order."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names))
