"""axolotl's plugin: checks a run before any model or dataset is touched, and measures it while it trains.

Named in the YAML: ``plugins: [advisor.plugins.axolotl.AdvisorPlugin]``, and configured under ``advisor:``.
"""

import importlib
import inspect
import logging
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import PurePath
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from advisor.session import CheckedRun

    from .callback import Peaks
    from .verifying import Verification

Base: Any = importlib.import_module("axolotl.integrations.base").BasePlugin
LOG = logging.getLogger("axolotl.advisor")
VERIFY = "ADVISOR_VERIFY"
"""As ``advisor/cli/verifying/request.py`` has it, which no other training needs to load."""
TRAIN = ("axolotl", "cli", "train")
"""The module whose ``do_cli`` trains: axolotl/cli/train.py:92-131@0.19.0. Under Ray the driver runs it, no worker."""


class AdvisorPlugin(Base):
    """Hooks of axolotl/integrations/base.py:54-310@0.19.0. What goes wrong in here never stops a training."""

    checked: "CheckedRun | None" = None
    peaks: "Peaks | None" = None
    verification: "Verification | None" = None
    record = False

    def register(self, cfg: Mapping[str, Any]) -> None:
        """The values of the YAML and the command line, not yet validated. ``SystemExit`` if the run is blocked."""
        if not (_named_by_command() or _called_from(inspect.currentframe())):
            return
        if os.environ.get(VERIFY):
            self.verify(cfg)
            return
        refusal = _safely("not checked", lambda: self.refusal(cfg))
        if refusal:
            # Python prints what it leaves with to descriptor 2 where that was closed, and may be any file by now.
            raise SystemExit(1 if sys.stderr is None else refusal)

    def verify(self, cfg: Mapping[str, Any]) -> None:
        """The config becomes that of a few steps, which are measured."""
        from advisor.cli.verifying.request import requested

        from .verifying import Verification

        request = requested()
        if request is not None:
            self.verification = Verification(request)
            self.verification.change(cast("MutableMapping[str, Any]", cfg))

    def load_datasets(self, cfg: Any, preprocess: bool = False) -> None:
        """Where a run is verified, rows of the longest length take the place of its own."""
        if self.verification is not None and not preprocess:
            self.verification.rows(cfg)

    def pre_model_load(self, cfg: Any) -> None:  # noqa: ARG002
        """Nothing is on the GPU yet."""
        if self.verification is not None:
            self.verification.begin()

    def post_trainer_create(self, cfg: Any, trainer: Any) -> None:  # noqa: ARG002
        """The trainer is there."""
        if self.verification is not None:
            self.verification.attach(trainer)

    def post_train(self, cfg: Any, model: Any) -> None:  # noqa: ARG002
        """All steps are done, and nothing is saved yet."""
        if self.verification is not None:
            self.verification.end()

    def refusal(self, cfg: Mapping[str, Any]) -> str | None:
        """Why this rank must not go on, if so; the verdict is said in any case."""
        from .settings import AdvisorArgs

        said = cfg.get("advisor")
        settings = AdvisorArgs.model_validate({"advisor": {} if said is None else said}).advisor
        if settings is None or settings.mode == "off":
            return None
        from advisor.streams import hushed

        from .before_training import checked

        self.record = settings.record
        with hushed(by=not is_first()):
            self.checked = checked(cfg, settings, whole=is_first())
        from advisor.engine.blocking import NO_BLOCK
        from advisor.session.disk import shortage

        from .messages import refusal, verdict

        blocks = settings.mode == "block" and not os.environ.get(NO_BLOCK)
        against = self.checked.against if blocks else ()
        if against:
            return refusal(self.checked, against, whole=is_first())
        if is_first():
            LOG.info(verdict(self.checked))
            if lacking := shortage(self.checked.run):
                LOG.warning(f"advisor: {lacking}")
        return None

    def get_input_args(self) -> str:
        """The model of the key ``advisor``."""
        return "advisor.plugins.axolotl.settings.AdvisorArgs"

    def post_model_build(self, cfg: Any, model: Any) -> None:  # noqa: ARG002
        """The weights are on the GPU."""
        self.sample()

    def post_model_load(self, cfg: Any, model: Any) -> None:  # noqa: ARG002
        """The adapters too."""
        self.sample()
        if self.verification is not None:
            self.verification.loaded(model)

    def sample(self) -> None:
        """Reads torch's peaks before axolotl resets them."""
        _safely("not measured", lambda: self.watched().sample() if self.checked else None)

    def watched(self) -> "Peaks":
        """The peaks of this process."""
        from .callback import Peaks

        self.peaks = self.peaks or Peaks()
        return self.peaks

    def add_callbacks_pre_trainer(self, cfg: Any, model: Any) -> list[Any]:  # noqa: ARG002
        """The callback that measures, where there is an estimate to compare with."""
        if self.verification is not None:
            return self.verification.callbacks()
        return _safely("not measured", self.callbacks) or []

    def callbacks(self) -> list[Any]:
        """One callback, or none."""
        from .callback import Watch

        if self.checked is None or self.checked.report.estimate is None:
            return []
        return [Watch(self.checked.run, self.checked.report.estimate, self.watched(), record=self.record)]


def is_first() -> bool:
    """Whether this is the node's first rank."""
    rank = os.environ.get("LOCAL_RANK", "")
    return not rank.isdecimal() or int(rank) == 0


def _safely(missed: str, act: "Callable[[], Any]") -> Any:
    """The result of ``act``; what goes wrong is a line in the log of the first rank."""
    try:
        return act()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: nothing in here ends a training
        reason = " ".join(str(error).split())
        LOG.log(logging.WARNING if is_first() else logging.DEBUG, "%s: %s: %s", missed, type(error).__name__, reason)
        return None


def _named_by_command() -> bool:
    """Whether this process was started as ``axolotl train`` or ``python -m axolotl.cli.train``."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == ".".join(TRAIN):
        return True
    program = PurePath(sys.argv[0] if sys.argv else "")
    is_axolotl = program.stem == "axolotl" or program.parts[-3:] == ("axolotl", "cli", "main.py")
    return is_axolotl and next((word for word in sys.argv[1:] if not word.startswith("-")), "") == TRAIN[-1]


def _called_from(frame: FrameType | None) -> bool:
    """Whether axolotl's training is what loads the config, in a process that was started in some other way."""
    while frame is not None:
        parts = PurePath(frame.f_code.co_filename).with_suffix("").parts
        if parts[-3:] == TRAIN and frame.f_code.co_name == "do_cli":
            return True
        frame = frame.f_back
    return False
