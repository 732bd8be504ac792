"""The answer as markup for the page: verdict, what to do, cost; options and cards, with buttons."""

import shlex
from collections.abc import Iterator

from advisor.engine.answer import Answer, Option
from advisor.engine.finding import PLANNED, Report
from advisor.hardware import Hardware, parse_hardware
from advisor.hardware.prices import Prices
from advisor.report.cards import (
    COST,
    GPUS,
    HOST,
    HOURS,
    MEMORY,
    NAMED,
    SPEED,
    STEPS,
    Offers,
    caption_of,
    entries,
    money,
    notes_of,
)
from advisor.report.html_answer import step
from advisor.report.html_markup import diff, folded, listed, plain, prose, scrolling, table, tag
from advisor.report.time import steps_of
from advisor.report.ways_text import amount, price_words, time_words
from advisor.report.wording import SAFETY, counted, number
from advisor.run import Run
from advisor.session import CheckedRun
from advisor.util import GIB, capital

COLUMNS = (COST, MEMORY, HOURS, SPEED, STEPS, HOST, NAMED)
"""Of the table of cards: a phone shows the first ones."""
LOOKS = "Looking for a way ..."
BELOW = "No edits make it fit. See the cards below."
CONFIG_BELOW = "Get its `config.json` from Hugging Face, or paste it: see below."


def banner(found: CheckedRun, tokens: float, *, looks: bool = False) -> str:
    """Does it fit, what to do, what does it cost; ``looks``: the ways are still being looked for."""
    answer = answer_of(found)
    words = (action(found, looks=looks), answer.assumed, cost(found, tokens))
    said = [tag("p", tag("b", prose(answer.headline))), *(tag("p", prose(each)) for each in words if each)]
    return tag("div", "".join(said) + _main_button(answer), f"verdict {role(found)}")


def answer_of(found: CheckedRun) -> Answer:
    """The answer that every question of the page asks for."""
    assert found.report.answer is not None, "the page asks for answers"
    return found.report.answer


def about_run(report: Report) -> str:
    """What is trained, on what."""
    return "; ".join(filter(None, (report.summary, report.hardware)))


def role(found: CheckedRun) -> str:
    """The verdict as a class of the style."""
    return found.report.verdict if answer_of(found).starts else "does-not-fit"


def action(found: CheckedRun, *, looks: bool = False) -> str:
    """What to do: what a terminal gets by an option is a button here."""
    answer, words = answer_of(found), answer_of(found).action
    if answer.reason is not None and answer.reason.where == "unknown-model":
        return CONFIG_BELOW
    if looks and found.report.verdict in PLANNED and answer.starts:
        return LOOKS
    for option in sorted(answer.options, key=lambda option: -len(option.flags)):
        words = words.replace(f": add {option.flags}", "") if option.flags else words
        words = words.replace(option.flags, option.letter) if option.flags else words
    return BELOW if words.startswith("No edits make it fit") and answer.recommended is None else words


def _main_button(answer: Answer) -> str:
    """The button of the option to take."""
    for key, option in keyed(answer):
        if option.recommended:
            return _button(key, f"Apply {option.letter}" if option.letter != "C" else f"Use {option.hardware}")
    return ""


def _button(key: str, words: str) -> str:
    return f'<button type="button" class="main" data-way="{key}">{plain(words)}</button>'


def keyed(answer: Answer) -> Iterator[tuple[str, Option]]:
    """The ways out by a name for each: ``A``, ``B``, ``C1``, ``C2``."""
    others = 0
    for option in answer.options:
        if option.command is not None:
            others += option.letter == "C"
            yield f"C{others}" if option.letter == "C" else option.letter, option


def hardware_of(option: Option, run: Run) -> Hardware | None:
    """The GPUs of an option: its own, or the run's."""
    return parse_hardware(spec_of(option)) if option.letter == "C" else run.hardware


def spec_of(option: Option) -> str:
    """What states the GPUs of C."""
    return shlex.split(option.flags)[1]


def cost(found: CheckedRun, tokens: float) -> str:
    """``100M tokens: 12.7 h, $6.62``: of the option to take where the run needs one, else as written."""
    answer = answer_of(found)
    if answer.verdict == "unknown" or not answer.starts or found.run.hardware is None:
        return ""
    option = answer.recommended if answer.verdict in PLANNED else None
    if answer.verdict in PLANNED and option is None:
        return ""
    after = f" after {option.letter}" if option is not None else ""
    hardware = hardware_of(option, found.run) if option is not None else found.run.hardware
    whole = option if option is not None else answer
    spent = _spent(found.run, hardware, whole.seconds, whole.tokens_per_second, tokens)
    return f"{_much(found.run, tokens)}{after}: {', '.join(spent)}" if spent else ""


def _much(run: Run, tokens: float) -> str:
    """Of what hours and cost are."""
    steps = steps_of(run, None)
    return f"{steps:,.0f} steps" if steps is not None else f"{amount(tokens)} tokens"


def _spent(
    run: Run, hardware: Hardware | None, seconds: float | None, speed: float | None, tokens: float
) -> Iterator[str] | list[str]:
    """Time and cost of the whole run, as far as they are known."""
    steps = steps_of(run, None)
    if seconds is None or not speed or hardware is None:
        return []
    hours = (steps * seconds if steps is not None else tokens / speed) / 3600
    price = Prices().of(hardware.gpu.id)
    paid = money(price, hours * hardware.world_size * price.amount) if price is not None else ""
    return [each for each in (time_words(hours), paid) if each]


def prices_said(run: Run) -> str:
    """Whence the cost is."""
    price = Prices().of(run.hardware.gpu.id) if run.hardware is not None else None
    return tag("p", plain(price_words(price)), "small") if price is not None else ""


def options(found: CheckedRun, tokens: float) -> str:
    """Each option with its figures, its button, its steps."""
    answer = answer_of(found)
    keys = {id(option): key for key, option in keyed(answer)}
    shown = "".join(_option(found, option, keys.get(id(option), ""), tokens) for option in answer.options)
    return tag("h2", "Options") + shown + prices_said(found.run) if shown else ""


def _option(found: CheckedRun, option: Option, key: str, tokens: float) -> str:
    """One of them."""
    name = f"{tag('b', option.letter)} {plain(capital(option.title))}"
    if not key:
        assert found.report.estimate is not None or not option.starts, "only a run that is refused has no estimate"
        best = option.best_of(found.report.estimate)
        return tag("div", tag("p", f"{name}: no way{f', {number(best)} GiB at best' if best else ''}"), "option none")
    words = "Apply" if option.letter != "C" else "Use these"
    head = tag("p", f"{name} {_badges(option)}") + tag("p", plain(" · ".join(_figures(found, option, tokens))))
    steps = tag("p", plain("; ".join(each.title for each in option.steps)), "small") if option.steps else ""
    details = tag("ol", "".join(map(step, option.steps))) + (diff(option.diff) if option.diff else "")
    more = folded("Why, and what it writes" if option.diff else "Why", details) if option.steps else ""
    kind = "option recommended" if option.recommended else "option"
    return tag("div", tag("div", head + steps, "says") + _button(key, words) + more, kind)


def _badges(option: Option) -> str:
    """What becomes of the training, and whether it is the one to take."""
    words = SAFETY[option.training == "same"]
    training = "" if words in option.title else tag("span", words, f"badge {option.training}")
    return training + (tag("span", "recommended", "badge note") if option.recommended else "")


def _figures(found: CheckedRun, option: Option, tokens: float) -> Iterator[str]:
    """Edits, memory, speed, time, cost."""
    if option.changes:
        yield counted(option.changes, "edit")
    if option.end is not None:
        yield f"{number(option.end.needed.high)} of {number(option.end.usable)} GiB"
        if option.end.host_peak >= GIB:
            yield f"{number(option.end.host_peak)} GiB of host memory"
    if option.tokens_per_second is not None:
        yield f"{option.tokens_per_second:,.0f} tokens/s"
    hardware = hardware_of(option, found.run)
    yield from _spent(found.run, hardware, option.seconds, option.tokens_per_second, tokens)


def picture(found: CheckedRun, tokens: float) -> dict[str, object]:
    """What the picture of the verdict says."""
    answer, estimate, chosen = answer_of(found), found.report.estimate, answer_of(found).recommended
    after = chosen.end.needed.high / GIB if chosen is not None and chosen.end is not None else None
    words = action(found)
    return {
        "role": role(found),
        "headline": answer.headline.replace("`", ""),
        "action": "\n".join(filter(None, (words, cost(found, tokens)))).replace("`", ""),
        "about": about_run(found.report),
        "needed": estimate.needed.high / GIB if estimate is not None else None,
        "usable": estimate.usable / GIB if estimate is not None else None,
        "after": after if chosen is not None and chosen.letter != "C" else None,
    }


def cards_table(offers: Offers, tokens: float) -> str:
    """The cards that would do side by side, by cost, each with a button."""
    heads, *others = entries(offers)
    if not others:
        return ""
    shown = [place for place in COLUMNS if any(cells[place] for cells in others)]
    rows = [
        (
            f'<button type="button" data-card="{at}">{plain(cells[GPUS])}</button>',
            *(plain(cells[place]) for place in shown),
        )
        for at, cells in enumerate(others)
    ]
    body = table("By cost; a click takes the card", ["GPUs", *(heads[place] for place in shown)], rows)
    said = tag("p", prose(": ".join(filter(None, (f"Of {amount(tokens)} tokens", caption_of(offers))))), "small")
    # What names an option of the command line is no help here.
    notes = [note for note in notes_of(offers) if "--" not in note]
    return tag("h2", "Cards that would do") + said + scrolling(body) + listed(map(prose, notes), "small")
