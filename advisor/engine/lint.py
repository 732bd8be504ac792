"""Run -> what the lint rules find: hits, and each as a finding at its place with its edits."""

from collections.abc import Iterator, Sequence

from advisor.documents import Change, Edit, PatchError
from advisor.engine.finding import Finding, Fix
from advisor.engine.locations import document_named, place_of
from advisor.engine.newer import hits_of
from advisor.engine.options import Options, rules_of
from advisor.engine.placeholders import certain_hits, without_echoes
from advisor.engine.plan_memo import Hits
from advisor.engine.rule import Hit, Rule
from advisor.run import Run
from advisor.run.build import prefixed


def lint_hits(run: Run, options: Options) -> Hits:
    """What the lint rules find, as far as it is certain."""
    key = (run, options.select, options.ignore, id(options.extra_rules))
    return options.memo.found(
        key, lambda: tuple(without_echoes(certain_hits(run, lambda run: _all_hits(run, options))))
    )


def _all_hits(run: Run, options: Options) -> Iterator[tuple[Rule, Hit]]:
    """What the lint rules find."""
    rules = rules_of("lint", options)
    for rule in rules.values():
        if options.wants(rule.id) and (rule.alone or not run.is_json_alone):
            for hit in hits_of(rule, run):
                yield rule, hit


def lint_findings(run: Run, options: Options) -> list[Finding]:
    """All that the lint rules find, each at its place."""
    return [finding_of(run, rule, hit) for rule, hit in lint_hits(run, options)]


def finding_of(run: Run, rule: Rule, hit: Hit) -> Finding:
    """A lint rule's hit, at its place."""
    edits = _hit_edits(run, hit)
    return Finding(
        rule=rule.id,
        level=hit.level or rule.level,
        message=_message_of(run, rule, hit),
        place=place_of(run, hit),
        title=rule.title,
        cost=hit.cost or rule.cost,
        why=rule.why,
        source=rule.source,
        fix=Fix(safe=rule.is_safe(run), edits=edits, by_choice=rule.offer) if edits else None,
    )


def _message_of(run: Run, rule: Rule, hit: Hit) -> str:
    """What a hit says; of a DeepSpeed JSON outside the repository only the key, for the rest might be a secret."""
    if not run.has_foreign_json or not (hit.document == "deepspeed" or quotes(rule)):
        return hit.message
    key = f"`{hit.at}` in" if hit.at else "in"
    return f"{key} a file outside the repository, of which nothing more is shown: {rule.title}"


def quotes(rule: Rule) -> bool:
    """Whether a rule passes on what DeepSpeed itself says, values included."""
    return rule.id == "deepspeed-says"


def _hit_edits(run: Run, hit: Hit) -> tuple[Edit, ...]:
    """A hit's changes as byte edits of its documents; of all of them, or none."""
    made = [_edits_of(run, name, changes) for name, changes in hit.changes]
    return tuple(edit for edits in made for edit in edits) if all(made) else ()


def _edits_of(run: Run, name: str, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """Changes to one document; nothing where they cannot be made."""
    document = document_named(run, name)
    if document is None or document.is_new or (name == "deepspeed" and run.has_foreign_json):
        return ()
    inside = run.deepspeed.prefix if name == "deepspeed" and run.deepspeed else ()
    try:
        return document.changed(*(prefixed(change, inside) for change in changes)).edits()
    except PatchError:  # a key that is written in a way that the edit cannot keep: the finding stands without it
        return ()
