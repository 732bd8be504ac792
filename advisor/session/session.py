"""Options and settings -> a session: what is the same for all configs of one call."""

import os
import sys
from collections.abc import Mapping, Sequence

from advisor.documents.excluding import Excluded, excluded
from advisor.engine.options import Options
from advisor.engine.rule import Level
from advisor.opening import Context, LoadedRun
from advisor.record import record, replace
from advisor.run.history import measured_here
from advisor.session.flowcharts import chosen
from advisor.session.images import read_images
from advisor.session.options import RunOptions, given_words
from advisor.session.rule_selection import (
    Tell,
    ignores_by_file,
    names,
    names_in,
    of_data,
    on_stderr,
    own_rules,
    tell_skipped,
    tell_unused,
    validating,
)
from advisor.session.stack import stack_for
from advisor.settings import Settings, load_settings
from advisor.streams import is_terminal

DETAILED = frozenset({"json", "agent", "html"})
"""Formats that also say the time of a step and the basis of the estimate."""
ANSWERING = frozenset({"full", "json", "agent", "html", "markdown", "pre-commit"})
"""Formats that show the options of a run."""


@record(eq=False)
class Session:
    """One call, its options and the settings folded together."""

    context: Context
    options: Options
    fail_on: Level
    per_file_ignores: Mapping[str, tuple[str, ...]]
    formats: tuple[str, ...]
    excluded: Excluded

    @property
    def verdict_alone(self) -> "Session":
        """The same without plan, time and basis, which the verdict and what blocks do not need."""
        return replace(self, options=replace(self.options, plans=False, details=False, answers=False))

    @property
    def answering(self) -> "Session":
        """The same with an answer in each report, where one of the formats shows it."""
        answers = self.options.answers or _any_of(self.formats, ANSWERING)
        return replace(self, options=replace(self.options, answers=answers))

    @property
    def without_answers(self) -> "Session":
        """The same without options, which a run that may start does not need."""
        return replace(self, options=replace(self.options, answers=False))

    @property
    def with_other_hardware(self) -> "Session":
        """The same with other hardware among the options of a run."""
        return replace(self, options=replace(self.options, others=self.options.answers))

    @property
    def with_outlook(self) -> "Session":
        """The same with what the answer says of room and links, where it has an answer."""
        return replace(self, options=replace(self.options, outlook=self.options.answers))

    @property
    def published_ranges(self) -> "Session":
        """The same with the published reserved range wherever the verdict needs no replay."""
        return replace(self, options=replace(self.options, reserved=False))

    def options_of(self, opened: LoadedRun) -> Options:
        """The options of one run, with the settings' ignores for its YAML and its DeepSpeed JSON."""
        from fnmatch import fnmatch

        section = opened.run.deepspeed
        named = (opened.run.config.file, *((section.file,) if section else ()))
        files = [os.path.realpath(file) for file in named]
        ignores = self.per_file_ignores.items()
        more = [rule for pattern, rules in ignores if any(fnmatch(file, pattern) for file in files) for rule in rules]
        return replace(self.options, ignore=(*self.options.ignore, *more))


def session_for(
    paths: Sequence[str],
    options: RunOptions,
    *,
    settings: Settings | None = None,
    detects: bool | None = None,
    here: bool = False,
    tell: Tell = on_stderr,
) -> Session:
    """The session of a call about ``paths``, under ``settings``, or those nearest to the first path.

    ``detects``: whether this machine's GPUs are asked where nothing else says; by default on a terminal outside CI.
    ``here``: the run will have the libraries that are installed. ``tell`` hears, a line each, what of the settings
    does not count.
    """
    settings = load_settings(folder_of(paths[0]), isolated=options.isolated) if settings is None else settings
    tell_unused(settings, tell)
    tell_skipped(tell)
    own = own_rules(settings, options.rules, tell)
    extra = {**own.rules, **(validating() if options.validate else {})}
    extra |= of_data(options.data) if options.data else {}
    own = replace(own, rules=extra)
    flowchart = chosen(options.flowchart, settings, extra, lacks=own.lacks)
    formats = options.formats or ((settings.output_format,) if settings.output_format else ("full",))
    return Session(
        context=_context_for(options, settings, on_a_terminal() if detects is None else detects, here),
        options=Options(
            flowchart=flowchart.name,
            flowcharts=flowchart.own,
            select=names(options.select, extra) or names_in(settings, "select", settings.select, own),
            ignore=(*names(options.ignore, extra), *names_in(settings, "ignore", settings.ignore, own)),
            extra_rules=extra,
            row_length=options.row_length,
            details=options.details or _any_of(formats, DETAILED),
            answers=options.answers,
            given=given_words(options),
        ),
        fail_on=options.fail_on or settings.fail_on,
        per_file_ignores=ignores_by_file(settings, own),
        formats=formats,
        excluded=excluded(options.exclude, settings.exclude, settings.file),
    )


def _any_of(formats: Sequence[str], some: frozenset[str]) -> bool:
    """Whether one of the formats, each perhaps with its file, is among some."""
    return any(each.partition("=")[0] in some for each in formats)


def folder_of(path: str) -> str:
    """Where settings are looked for; ``-`` is standard input, so the working directory."""
    first = path if path != "-" else "."
    return first if os.path.isdir(first) else os.path.dirname(first) or "."


def on_a_terminal() -> bool:
    """Whether a person looks on: not in CI, nor under pre-commit."""
    return is_terminal(sys.stdout) and not os.environ.get("CI") and not os.environ.get("PRE_COMMIT")


def _context_for(options: RunOptions, settings: Settings, detects: bool, here: bool) -> Context:
    """Where and with what the runs will be."""
    return Context(
        gpus=options.gpus,
        default_gpus=settings.gpus,
        own=settings.cards,
        owned=settings.owned,
        detects=detects,
        stack=stack_for(options.stack, settings.stack, here=here),
        model_config=options.model_config,
        models=settings.models,
        offline=options.offline,
        trace=options.trace,
        measured=measured_here(),
        images=None if options.images is None else read_images(options.images),
    )
