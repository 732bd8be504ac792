"""What is about to be tried: the command, its config, and what is foreseen of it."""

import os
import shutil
from collections.abc import Sequence

from advisor.cli.launchers import Command, read_command
from advisor.cli.launchers.placement import config_of, hardware_of, session_of
from advisor.cli.verifying.request import Request
from advisor.documents import Document
from advisor.documents.discovery import is_config, no_config
from advisor.errors import InputError
from advisor.hardware import Hardware, detect, parse_hardware
from advisor.memory import Estimate
from advisor.record import record, replace
from advisor.run import Run
from advisor.session import CheckedRun, RunOptions, Session, check_config
from advisor.streams import tell

TRAIN = ("axolotl", "train")
ON_A_CPU = "1x rtx-4090"
"""The card that is foreseen for where a run is tried on a CPU and nobody says another one."""
OWN_ROWS = ("processor_type", "streaming", "pretraining_dataset", "reward_model", "process_reward_model")
"""Keys of runs whose rows are more than tokens and answers."""
ANSWERS = frozenset(["grpo", "gdpo", "ebft"])
PACKED = 4
"""Rows in a bin."""
INSTALL = "install axolotl where you train, and axolotl-advisor next to it: `pip install axolotl`"


@record
class VerifyOptions:
    """What ``advisor verify`` alone was asked."""

    steps: int = 3
    cpu: bool = False
    verbose: bool = False


@record(eq=False)
class Trial:
    """A run that is about to be tried."""

    tokens: tuple[str, ...]
    command: Command
    config: Document
    found: CheckedRun

    @property
    def run(self) -> Run:
        """The run."""
        return self.found.run

    @property
    def estimate(self) -> Estimate:
        """What is foreseen; without it there is no trial."""
        assert self.found.report.estimate is not None, "what has no estimate is refused"
        return self.found.report.estimate


def planned(path: str, tokens: Sequence[str], options: RunOptions, asked: VerifyOptions) -> Trial:
    """The command and the estimate of its run. ``InputError`` for what cannot be tried here."""
    words = _with_config(tuple(tokens) or TRAIN, path)
    command = read_command(words)
    _check_command(command, words[0], path)
    session = session_of(command, replace(options, details=True))
    session = replace(session, options=replace(session.options, plans=False))
    config = config_of(command, None)
    if not is_config(config):
        raise no_config(config.file)
    found = check_config(config, session, hardware=_hardware_of(command, config, session, asked), speed=False)
    if found.report.estimate is None:
        message = f"nothing is foreseen of this run: its model or a value is unknown{found.run.model_reason}"
        raise InputError(message, path, remedy=f"`advisor check {path}` says more")
    if found.run.hardware is not None and found.run.hardware.nodes > 1:
        tell("several nodes: set TMPDIR to a folder that all of them see, for what they take is read from there")
    return Trial(words, command, config, found)


def _with_config(words: tuple[str, ...], path: str) -> tuple[str, ...]:
    """The command with the config, where it names none."""
    if read_command(words).config is not None:
        return words
    end = words.index("--") if "--" in words else len(words)
    return (*words[:end], path, *words[end:])


def _check_command(command: Command, program: str, path: str) -> None:
    """Refuses what trains something else, elsewhere, or not at all."""
    if not os.path.isfile(path):
        raise InputError("is no file" if os.path.exists(path) else "there is no such file", path)
    if command.config is None:
        raise InputError(f"nothing to verify: {command.reason}", remedy="write `advisor verify run.yaml`")
    if os.path.realpath(command.config) != os.path.realpath(path):
        raise InputError(f"the command trains {command.config}", path, remedy="name one config")
    if command.cloud is not None:
        raise InputError("a cloud trains this, and nothing is seen from here", command.cloud, remedy="drop --cloud")
    if shutil.which(program) is None:
        lacking = "axolotl is not installed" if program == "axolotl" else "the command cannot be started"
        raise InputError(f"{lacking}: there is no `{program}` on the PATH", remedy=INSTALL)


def _hardware_of(command: Command, config: Document, session: Session, asked: VerifyOptions) -> Hardware | None:
    """What the run is foreseen for: the GPUs that are here, or that are stated."""
    if not asked.cpu and detect() is None:
        raise InputError("there is no GPU here", remedy="run it where you train, or try a tiny model with `--cpu`")
    found = hardware_of(command, config, session, None)
    return replace(found or parse_hardware(ON_A_CPU), gpus_per_node=1, nodes=1) if asked.cpu else found


def request_of(trial: Trial, folder: str, asked: VerifyOptions) -> Request:
    """What is asked of the training."""
    run = trial.run
    own = run.rl in ANSWERS or any(trial.config.get(key) for key in OWN_ROWS)
    length, each = _row_of(run, run.sequence_len, packs=run.sample_packing)
    eval_length, eval_each = _row_of(run, run.eval_sequence_len, packs=run.packs_evaluation)
    return Request(
        folder=folder,
        steps=asked.steps,
        evaluates=run.evaluates,
        cpu=asked.cpu,
        rows="own" if own else "packed" if run.sample_packing else "synthetic",
        length=length,
        each=each,
        eval_length=eval_length,
        eval_each=eval_each,
    )


def _row_of(run: Run, longest: int, *, packs: bool) -> tuple[int, int]:
    """The tokens of a row, and how many go into a row of a batch.

    One token is missing to the longest, so that it is padded, and has a mask; bins hold several rows, as they do.
    """
    if run.rl is not None:
        return longest, 1
    return (max(1, longest // PACKED), PACKED) if packs else (max(1, longest - 1), 1)
