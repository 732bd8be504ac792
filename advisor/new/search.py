"""One kind of training: the fastest config that fits, by the flowchart's steps that leave the method as it is."""

from collections.abc import Iterator

from advisor.documents import parse
from advisor.documents.patching import fresh_text
from advisor.engine.fix import Fixed, fixed
from advisor.engine.lint import lint_hits
from advisor.engine.options import Options
from advisor.engine.registry import built_in_rules
from advisor.engine.search import EQUAL, LOW_RATE, WITHOUT_MASTERS
from advisor.engine.states import State
from advisor.engine.steps import alternatives, run_after
from advisor.learning import Training
from advisor.new.draft import draft, rate_for
from advisor.new.start import Start
from advisor.opening import LoadedRun, open_run
from advisor.record import replace
from advisor.run import Run
from advisor.run.axolotl.attention import without_scores
from advisor.run.build import edited

HELD = ("lora", "qlora", "quantize-as-asked", "shorter-sequences", "half-precision-offload", "packing")
"""Steps that would make it another method, or cut rows."""
MOVED = "adapters-on-experts"
WORDS = {"flash_attention_2": "flash", "flex_attention": "flex", "sdpa": "sdpa", "eager": "eager"}


SHARDINGS = ("zero-2", "zero-3")
"""Other engines to start from where the plain run fits: what they free may be worth more time than they take."""


def searched(start: Start, training: Training) -> Fixed:
    """The run with the steps made that it needs, then those that make it faster.

    All weights at a low rate keep fp32 masters, DeepSpeed's, whatever is faster, unless nothing fits so.
    """
    first = first_run(start, training)
    options = replace(start.session.options, ignore=(*start.session.options.ignore, *HELD), faster=True)
    if not needs_masters(start, training, first.run):
        return _fastest(first, options)
    found = _fastest(with_masters(first), options.without(tuple(WITHOUT_MASTERS)))
    if fits(found):
        return found
    other = _fastest(first, options)
    return other if fits(other) else found


def _fastest(first: LoadedRun, options: Options) -> Fixed:
    """Of the run and the same sharded further, each made to fit and made faster: about the fastest, plain before it."""
    plain = fixed(first, options, unsafe=True)
    if not fits(plain):
        return plain
    others = [fixed(each, options, unsafe=True) for each in _sharded(first)]
    found = [plain, *(each for each in others if fits(each) and not refused(each.run, options))]
    least = min(seconds_of(each) for each in found)
    return next(each for each in found if seconds_of(each) <= EQUAL * least)


def _sharded(first: LoadedRun) -> Iterator[LoadedRun]:
    """The run under each engine that it may have."""
    rules = built_in_rules("fit")
    for rule in (rules[name] for name in SHARDINGS):
        if first.run.hardware is not None and rule.when(first.run):
            made = run_after(first.run, alternatives(rule, first.run)[0], rule)
            if made is not None:
                yield replace(first, run=made)


def refused(run: Run, options: Options) -> bool:
    """Whether an error, or a warning, speaks of it."""
    return any((hit.level or rule.level) != "note" for rule, hit in lint_hits(run, options))


def seconds_of(found: Fixed) -> float:
    """Of a step; endless where that is not modelled."""
    return State(found.run).seconds or float("inf")


def fits(found: Fixed) -> bool:
    """Whether what was found fits."""
    from advisor.memory import estimate

    known = estimate(found.run)
    return known is not None and known.verdict == "fits"


def first_run(start: Start, training: Training) -> LoadedRun:
    """The draft as a run: with the kernel that its card and model have, packed where that keeps samples apart.

    Adapters are attention's alone where PEFT would move those of other layers to every expert.
    """
    packs = not start.seen.paired
    opened = _opened(start, training, packs=packs)
    if packs and not may_pack(opened.run, start.session.options):
        packs, opened = False, _opened(start, training, packs=False)
    if any(rule.id == MOVED for rule, _ in lint_hits(opened.run, start.session.options)):
        return _opened(start, training, packs=packs, attention=True)
    return opened


def may_pack(run: Run, options: Options) -> bool:
    """Whether a kernel without scores keeps packed samples apart, and no rule has a word against it."""
    if run.attention in {"eager", "sdpa"}:
        return False
    return not any(rule.id.startswith("packing-") and rule.level != "note" for rule, _ in lint_hits(run, options))


def _opened(start: Start, training: Training, *, packs: bool, attention: bool = False) -> LoadedRun:
    text = fresh_text("yaml", draft(start, training, packs=packs, attention=attention))
    context = replace(start.session.context, hardware=start.hardware)
    opened = open_run(parse(text.encode(), start.request.file, "yaml"), context)
    kernel = {"attention": WORDS[without_scores(opened.run)]}
    return replace(opened, run=edited(opened.run, kernel, "new"))


def needs_masters(start: Start, training: Training, run: Run) -> bool:
    """Whether updates are so small that bf16 weights would lose them, and DeepSpeed can keep copies in fp32."""
    return training == "full" and rate_for(start, training).default < LOW_RATE and run.takes_deepspeed


def with_masters(opened: LoadedRun) -> LoadedRun:
    """The run under ZeRO-1, on one GPU too: it keeps fp32 copies of bf16 weights."""
    return replace(opened, run=edited(opened.run, {"zero_stage": 1}, "new"))
