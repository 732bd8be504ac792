"""A DeepSpeed JSON that several YAMLs name is nobody's to edit, until the fixes of a call leave it to one of them."""

import os
from collections.abc import Sequence

from advisor.engine.fix import Fixed, fixed
from advisor.engine.options import Options
from advisor.opening import LoadedRun
from advisor.record import replace
from advisor.run import Run
from advisor.run.deepspeed.locate import is_own


def shared_out(results: Sequence[Fixed], options: Sequence[Options], *, unsafe: bool) -> list[Fixed]:
    """The results, each with the edits of its JSON that the others' leaving allows."""
    return [
        _fixed_further(result, option, unsafe=unsafe) if _is_left_to(result, results) else result
        for result, option in zip(results, options, strict=True)
    ]


def _is_left_to(result: Fixed, results: Sequence[Fixed]) -> bool:
    """Whether a JSON that was named by others too is this run's alone after the fixes."""
    section = result.run.deepspeed
    if section is None or section.prefix or section.document.is_new or result.run.deepspeed_editable:
        return False
    name = os.path.basename(section.file)
    left = sum(_name_in(other.before) == name != _name_in(other.run) for other in results)
    return left > 0 and _name_in(result.run) == name and is_own(result.run.config, section, left)


def _name_in(run: Run) -> str:
    """The name of the JSON that a YAML names."""
    return os.path.basename(run.deepspeed_named or "")


def _fixed_further(result: Fixed, options: Options, *, unsafe: bool) -> Fixed:
    """The fixes with those that may now land in the JSON."""
    opened = LoadedRun(replace(result.run, deepspeed_editable=True), context=result.context)
    more = fixed(opened, options, unsafe=unsafe)
    return replace(more, before=result.before, done=(*result.done, *more.done), plan=more.plan or result.plan)
