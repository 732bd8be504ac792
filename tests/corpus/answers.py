"""Every option of every answer, made and checked afresh: ``python -m tests.corpus.answers [PART PARTS]``.

Of samples and strangers' configs on four kinds of node; it prints each figure that is not as it was promised.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from advisor.documents import read
from advisor.engine.answer import Answer, Option
from advisor.engine.answering import answer_of
from advisor.engine.check import check_run
from advisor.engine.finding import Report
from advisor.engine.options import Options
from advisor.errors import InputError
from advisor.opening import Context, LoadedRun, open_run

from ..promises import written
from .configs import copied_wild, folder
from .sweep import wild_files

NODES = ("1x rtx-4090", "4x a100-80gb", "8x h100-80gb", "2x rtx-3090 host=128GiB")
SAMPLES = Path(__file__).parents[2] / "sample_configs"


def answer(opened: LoadedRun, options: Options) -> Answer:
    """The answer of a run."""
    return answer_of(opened, options, check_run(opened, options))


def contents(option: Option) -> dict[str, bytes]:
    """The files as the option's edits leave them."""
    found: dict[str, bytes] = {}
    for edit in sorted(option.edits, key=lambda edit: (edit.file, -edit.start)):
        text = found.get(edit.file, b"" if edit.create else Path(edit.file).read_bytes())
        found[edit.file] = text[: edit.start] + edit.text.encode() + text[edit.end :]
    return found


def broken(file: Path, context: Context, options: Options) -> Iterator[str]:
    """Each option of a file that does not end as it says."""
    found = answer(open_run(read(str(file)), context), options)
    for option in found.options:
        if option.command is not None and option.letter != "C":
            with written(contents(option)):
                again = open_run(read(str(file)), context)
                report = check_run(again, options)
            yield from (
                f"{option.letter}: {words}" for words in differences(option, report, answer_of(again, options, report))
            )


def differences(option: Option, report: Report, again: Answer) -> Iterator[str]:
    """What a fresh check says otherwise: verdict, bytes of GPU and host, seconds, whether it starts."""
    fresh, end = report.estimate, option.end
    if (end is None) != (fresh is None) or option.starts != again.starts:
        yield f"starts {option.starts} -> {again.starts}, counted {end is not None} -> {fresh is not None}"
    elif end is not None and fresh is not None:
        told = (end.verdict, end.needed, end.host_peak, option.seconds)
        seen = (fresh.verdict, fresh.needed, fresh.host_peak, again.seconds)
        if told != seen:
            yield f"{told} -> {seen}"


def cases(root: Path) -> Iterator[tuple[Path, Context]]:
    """Samples where they state their GPUs, and strangers' configs on every node."""
    for file in sorted(SAMPLES.glob("*.yaml")):
        yield file, Context(working_directory=str(SAMPLES.parent))
    if folder() is not None:
        for file in wild_files(copied_wild(root)):
            for gpus in NODES:
                yield file, Context(working_directory=str(file.parent), gpus=gpus)


def faults(file: Path, context: Context) -> list[str]:
    """The same, of one case; a config that cannot be read promises nothing."""
    try:
        return list(broken(file, context, Options()))
    except InputError:
        return []


def main(part: int = 0, parts: int = 1) -> None:
    """One part of all cases."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as root:
        os.chdir(SAMPLES.parent)
        for file, context in list(cases(Path(root)))[part::parts]:
            counts["cases"] += 1
            for fault in faults(file, context):
                counts["not as promised"] += 1
                print(f"{file.name} on {context.gpus}: {fault}")
    print(dict(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
