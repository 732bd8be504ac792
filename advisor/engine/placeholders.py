"""What can be said of a run some of whose values are not known: nothing that depends on them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from advisor.documents import Document, PatchError, Remove
from advisor.engine.rule import Hit, Rule
from advisor.run import Run
from advisor.run.build import rebuilt
from advisor.run.deepspeed import Section
from advisor.run.unreadable import may_hold_placeholders, placeholders

UNREADABLE = "unreadable-value"
Hits = Iterator[tuple[Rule, Hit]]


def certain_hits(run: Run, hits_of: Callable[[Run], Hits]) -> Hits:
    """The hits that hold whatever is filled in for variables: those found with the variables and without their keys."""
    bare = _without_variables(run)
    if bare is run:
        yield from hits_of(run)
        return
    without = {(rule.id, hit.document, hit.at) for rule, hit in hits_of(bare)}
    for rule, hit in hits_of(run):
        if rule.id == UNREADABLE or (rule.id, hit.document, hit.at) in without:
            yield rule, hit


def _without_variables(run: Run) -> Run:
    """The run without the keys whose values are variables; the run itself where it has none."""
    config, section = _bared(run.config, run.config), run.deepspeed
    if section is not None and section.prefix:
        section = Section(config, section.prefix) if config.has(section.prefix) else None
    elif section is not None:
        document = _bared(section.document, section)
        section = section if document is section.document else Section(document)
    if config is run.config and section is run.deepspeed:
        return run
    return rebuilt(run, config, section)


def _bared(document: Document, values: Mapping[str, Any]) -> Document:
    """The document without its variables, those inside lists left where they are."""
    if not may_hold_placeholders(document):
        return document
    paths = [path for path, _ in placeholders(values) if all(isinstance(part, str) for part in path)]
    try:
        return document.changed(*(Remove(path) for path in paths)) if paths else document
    except PatchError:
        return document


def without_echoes(hits: Hits) -> list[tuple[Rule, Hit]]:
    """The hits, less the unreadable values that another error has its own words for."""
    found = list(hits)
    told = {place_of(hit) for rule, hit in found if (hit.level or rule.level) == "error" and rule.id != UNREADABLE}
    return [(rule, hit) for rule, hit in found if rule.id != UNREADABLE or place_of(hit) not in told]


def place_of(hit: Hit) -> tuple[str, str]:
    """The key that a hit speaks of."""
    return hit.document, hit.at
