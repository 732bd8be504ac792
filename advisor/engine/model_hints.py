"""A model that nobody knows: what it is called, and how to make it known."""

from collections.abc import Sequence

from advisor.engine.finding import Report
from advisor.engine.states import State
from advisor.models import Architecture, resolve
from advisor.models.search import NOWHERE
from advisor.record import replace
from advisor.run import Run
from advisor.run.build import rebuilt
from advisor.util import capital, regex

CACHED = "put it in the Hugging Face cache"
"""A way for which there is no room where ``--online`` does the same."""
WOULD = {"fits": "would fit", "tight": "might run out", "does-not-fit": "would not fit"}
ASIDE = regex(r" \([^()]*\)")


def unknown_model(run: Run) -> str:
    """``unknown model `acme/orca```, with what is in its way where a config of it was found."""
    return f"unknown model `{run.base_model}`{run.model_reason.removesuffix(f' ({NOWHERE})')}"


def as_its_base(run: Run) -> str:
    """`` As meta-llama/Llama-3.1-8B it would not fit: 61.8 of 23.4 GiB.``, of a model that is called after another."""
    from advisor.models.fine_tunes import base_of

    base = base_of(run.base_model) if run.base_model and run.hardware is not None else None
    other = resolve(run.base_model, model_config=base) if base else None
    if not isinstance(other, Architecture):
        return ""
    after = State(rebuilt(replace(run, model=other), run.config, run.deepspeed))
    if after.verdict == "unknown":
        return ""
    return f" As {base} it {WOULD[after.verdict]}: {after.estimate.filled}."


def unknown_model_hints(report: Report) -> str:
    """The ways to make it known, in two sentences: the likeliest, then the others."""
    first, *others = [*_model_hints(report), ""]
    rest = [ASIDE.sub("", each) for each in others if each and not each.startswith(CACHED)]
    return " ".join(filter(None, (_sentence([first]), _sentence(["or " + ", or ".join(rest)] if rest else []))))


def likeliest_hint(report: Report) -> str:
    """The likeliest way to make an unknown model known."""
    return _sentence(_model_hints(report)[:1])


def _model_hints(report: Report) -> list[str]:
    """Each way to make a model known, as the finding has them."""
    said = next((each.message for each in report.findings if each.rule == "unknown-model"), "")
    _, mark, rest = said.partition("so its memory is not estimated; ")
    return rest.replace("? ", "?; ").split("; ") if mark else []


def _sentence(clauses: Sequence[str]) -> str:
    """Clauses as a sentence; empty without any."""
    words = "; ".join(filter(None, clauses))
    return f"{capital(words)}{'' if words.endswith('?') else '.'}" if words else ""
