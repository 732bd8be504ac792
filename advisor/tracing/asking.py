"""Asks the real transformers, in a process of its own, so that the advisor's never loads torch."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import advisor
from advisor.errors import InputError
from advisor.models.architecture import Architecture
from advisor.models.traced import Facts
from advisor.progress import doing
from advisor.tracing.serialize import decoded

SECONDS = 300
NEEDED = ("torch", "transformers")
QUIET = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}


def installed_version() -> str | None:
    """The version of the transformers that can be asked; None where it or torch is not installed."""
    try:
        return [version(package) for package in NEEDED][-1]
    except PackageNotFoundError:
        return None


def asked(
    config: Mapping[str, object], facts: Facts, windows: Sequence[int], installed: str | None
) -> Architecture | str:
    """The traced model, or why there is none. ``InputError`` where there is nobody to ask."""
    if installed is None:
        raise InputError(
            "--trace needs torch and transformers, which are not installed",
            remedy="pip install 'axolotl-advisor[trace]'",
        )
    request = {"config": config, "facts": asdict(facts), "windows": list(windows)}
    try:
        with doing(f"tracing with transformers {installed}, once"):
            done = subprocess.run(
                [sys.executable, "-m", "advisor.tracing"],
                input=json.dumps(request, default=str),
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=SECONDS,
                check=False,
                # Not the user's folder, whose files could be taken for modules.
                cwd=Path(advisor.__file__).parents[1],
                env=os.environ | QUIET,
            )
        answer: Any = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return f"tracing took more than {SECONDS} seconds"
    except (OSError, ValueError):
        return "the tracing process ended without an answer"
    return str(answer["reason"]) if "reason" in answer else decoded(answer["model"])
