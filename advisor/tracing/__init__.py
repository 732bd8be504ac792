"""Architectures that the formulas do not know: traced once from the real transformers, and kept in a cache."""

from collections.abc import Callable, Mapping

from advisor.models import Architecture, Unknown
from advisor.record import replace
from advisor.run import Run

Model = Architecture | Unknown
Built = Callable[[Architecture | None], Run]
"""The run with a model, or with none."""


def by_trace(model: Model, config: Mapping[str, object], built: Built, *, allowed: bool) -> Model:
    """``model`` with what was traced of its config, from the cache or, where ``allowed``, by asking transformers.

    A trace that fails leaves a known architecture as it is, and says why of an unknown one. ``InputError`` where
    transformers would have to be asked and is not installed.
    """
    from advisor.tracing import cache
    from advisor.tracing.joining import joined

    found = cache.kept(config)
    if allowed:
        return asked_for(model, config, built, found)
    return joined(found, model, config) if found else model


def asked_for(model: Model, config: Mapping[str, object], built: Built, found: list[Architecture]) -> Model:
    """Likewise, with a trace under the run's own facts, made where none is kept."""
    from advisor.memory.activations import facts_of
    from advisor.tracing import cache
    from advisor.tracing.asking import asked, installed_version
    from advisor.tracing.joining import joined, traceable_facts, traced_under
    from advisor.tracing.lengths import windows_of

    windows, version, known = windows_of(config), installed_version(), model
    found = [one for one in found if version in (None, one.trace and one.trace.version)]
    for _ in range(2):  # some facts of a run depend on the model, which the first trace finds
        known = joined(found, model, config) if found else model
        run = built(known if isinstance(known, Architecture) else None)
        facts = traceable_facts(facts_of(run, windows))
        if any(traced_under(one, facts) for one in found):
            break
        answer = asked(config, facts, windows, version)
        if isinstance(answer, str):
            return with_reason(known, answer)
        cache.write(cache.path_for(config, facts, str(version)), answer)
        found = [answer, *found]
    return joined(found, model, config)


def with_reason(model: Model, reason: str) -> Model:
    """What is known without the trace that failed, and why it failed."""
    if isinstance(model, Unknown):
        return Unknown(model.name, f"{model.reason}; {reason}", (), "trace-failed")
    return replace(model, extra=(*model.extra, f"not traced: {reason}"))
