"""A run that is blocked, with the ways out, and what is said of it."""

from collections.abc import Iterator

from advisor.cli.question.own_files import are_own
from advisor.documents import Change, Set
from advisor.engine.answer import Answer, Option
from advisor.engine.answering import answered
from advisor.engine.blocking import verdict_words
from advisor.engine.corrections import corrections
from advisor.engine.finding import Finding, Report
from advisor.engine.fix import Fixed, fixed
from advisor.engine.headline import end_words, repairs
from advisor.engine.options import Options
from advisor.engine.pace import Pace, more_time
from advisor.hardware import Hardware
from advisor.opening import Context
from advisor.record import record, replace
from advisor.run.stack import installed_stack, read_stack
from advisor.session import CheckedRun
from advisor.util import counted, is_list, is_mapping, number


@record(eq=False)
class Blocked:
    """A checked run with what speaks against it, its answer, and what ``--fix`` would write."""

    checked: CheckedRun
    against: tuple[Finding, ...]
    report: Report
    answer: Answer
    made: Fixed

    @property
    def way(self) -> Option | None:
        """The option that ``y`` writes: the same training, and nothing then blocks the run."""
        same = self.answer.option("A")
        ends_badly = same is None or same.command is None or same.verdict == "does-not-fit"
        return None if ends_badly or self.said_elsewhere else same

    @property
    def said_elsewhere(self) -> tuple[str, ...]:
        """The keys that the edits change and the command line gives, so that to write them would not be enough."""
        config = self.made.run.config
        paths = (change.path for change in config.pending[config.given :])
        keys = (path if isinstance(path, str) else ".".join(map(str, path)) for path in paths if config.is_given(path))
        return tuple(dict.fromkeys(keys))

    @property
    def context(self) -> Context:
        """Where the config lies."""
        found = self.checked.opened.context
        assert found is not None, "a run that was read from a file"
        return found

    @property
    def is_own(self) -> bool:
        """Whether all that would be written is the user's."""
        return are_own(self.made.files()) if self.way is not None else True

    @property
    def reproducible(self) -> bool:
        """Whether ``advisor check`` of the file says the same: no keys come from elsewhere."""
        config = self.checked.run.config
        return not (config.given or config.is_new)


def blocked_by(checked: CheckedRun, against: tuple[Finding, ...], *, here: bool) -> Blocked:
    """With the options, which a run that is not blocked has no use for. ``here``: with what is installed."""
    given = given_again(checked.options, checked.run.hardware, here=here)
    options = replace(checked.options, answers=True, others=True, given=given)
    report = answered(checked.opened, options, checked.report)
    assert report.answer is not None, "options ask for it"
    made = fixed(checked.opened, options, unsafe=False)
    return Blocked(replace(checked, options=options), against, report, report.answer, made)


def given_again(options: Options, hardware: Hardware | None, *, here: bool) -> tuple[str, ...]:
    """The words with which ``advisor check`` means the same hardware and libraries, wherever it is typed."""
    words = options.given
    if "--gpus" not in words and hardware is not None:
        words = ("--gpus", hardware.spec, *words)
    if here and "--stack" not in words and read_stack(installed_stack()) != read_stack({}):
        words = (*words, "--stack", "installed")
    return words


def blocked_lines(checked: CheckedRun, against: tuple[Finding, ...], anyway: str, *, here: bool) -> list[str]:
    """What is said of a run that is blocked, whatever goes wrong as the ways out are looked for."""
    try:
        blocked = blocked_by(checked, against, here=here)
        lines = [headline_of(blocked), *_ways(blocked)]
    except Exception as error:
        lines = [verdict_words(checked.report), f"no ways out: {type(error).__name__}: {error}"]
    rules = ", ".join(dict.fromkeys(finding.rule for finding in against))
    return [*lines, f"{anyway}, or `# advisor: file-ignore[{rules}] reason` at the top of {checked.report.file}"]


def headline_of(blocked: Blocked) -> str:
    """``does not fit: 55.0 of 23.1 GiB``; before that, which error stops the run, if one does."""
    said = blocked.answer.headline
    return verdict_words(blocked.report) if blocked.answer.starts else f"{said[:1].lower()}{said[1:-1]}"


def action_of(blocked: Blocked) -> str:
    """``2 edits, same training: 21.2 GiB, +0.1 s a step``, or that there is no such way."""
    answer, same = blocked.answer, blocked.answer.option("A")
    pace = Pace(answer.seconds, answer.tokens_per_second)
    if same is None or same.command is None:
        reached = same.best_of(blocked.report.estimate) if same is not None else None
        if not answer.starts:
            return answer.action.rstrip(".")
        at_best = f": {number(reached)} GiB at best" if reached else ""
        return f"No edits make it fit with the same training{at_best}"
    if not answer.starts and same.starts:
        return repairs(same, pace)
    assert same.end is not None, "a way out of a lack of memory ends somewhere"
    near = ", near the limit" if same.verdict == "tight" else ""
    keys = blocked.said_elsewhere
    given = f"; {', '.join(f'`{key}`' for key in keys)}: change on the command line" if keys else ""
    end = f"{end_words(same.end, blocked.report.estimate)}{near}{more_time(same, pace)}"
    first = "" if answer.starts else f"{corrections(same.left, ())} Then "
    return f"{first}{counted(same.changes, 'edit')}, same training: {end}{given}"


def _ways(blocked: Blocked) -> Iterator[str]:
    """What to do, what else could be done, and where all of it is told."""
    same, others = blocked.answer.option("A"), [way for way in blocked.answer.options if way.letter != "A"]
    command = same.command if same is not None and blocked.reproducible else None
    action = action_of(blocked)
    yield f"{action[:1].lower()}{action[1:]}" + (f": {command}" if command else "")
    if ways := "; ".join(_in_words(way, blocked) for way in others if way.command):
        yield f"other ways: {ways}"
    yield f"all of it: {_whole_report(blocked)}"


def _whole_report(blocked: Blocked) -> str:
    """What to type for the whole report; keys of the command line go with axolotl's own command."""
    from shlex import join

    config, words = blocked.checked.run.config, blocked.checked.options.given
    if not config.given:
        return join(["advisor", "check", *words, blocked.report.file])
    keys = [word for change in config.pending[: config.given] for word in _as_option(change)]
    gpus = words[words.index("--gpus") :][:2] if "--gpus" in words else ()
    return join(["axolotl", "advise", blocked.report.file, *gpus, *keys])


def _as_option(change: Change) -> Iterator[str]:
    """``--micro_batch_size=8``; none for what no command line gave, as a mapping."""
    value = change.value if isinstance(change, Set) else "null"
    path = change.path if isinstance(change.path, str) else ".".join(map(str, change.path))
    if not (is_mapping(value) or is_list(value)):
        yield f"--{path}={value}"


def _in_words(way: Option, blocked: Blocked) -> str:
    """``on 2x RTX 4090: 21.2 GiB``."""
    end = f": {end_words(way.end, blocked.report.estimate)}" if way.end is not None else ""
    is_said = way.training == "same" or way.title == "changes training"
    trains = "" if is_said else ", which changes training"
    flags = f" ({way.flags})" if blocked.reproducible else ""
    return f"{way.title}{trains}{end}{flags}"
