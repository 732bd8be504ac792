"""One file: asks about each edit until nothing is left, and plans again after each answer."""

import sys
from collections.abc import Sequence

import click

from advisor.cli.prompt.editing import edited
from advisor.cli.prompt.proposal import Proposal, Review, proposal_for
from advisor.cli.prompt.screen import file_lines, help_lines, letters, plan_lines, proposal_lines, question
from advisor.engine.finding import Finding
from advisor.engine.lint import lint_findings
from advisor.errors import InputError
from advisor.opening import Context
from advisor.record import record, replace
from advisor.report.style import Style

Steps = tuple[str, ...]


@record(eq=False)
class Prompt:
    """The terminal, and where the configs lie."""

    style: Style
    context: Context

    def show(self, lines: Sequence[str]) -> None:
        """A block of lines."""
        click.echo("\n".join(lines), color=self.style.color)

    def read(self, words: str) -> str:
        """One answer; the end of the input quits, as in git."""
        click.echo(words, nl=False, color=self.style.color)
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            return "not a letter"
        if not line:
            click.echo()
            return "q"
        return line.strip().lower()


def reviewed(review: Review, prompt: Prompt) -> tuple[Review, bool]:
    """What was accepted of one file, and whether to go on with the next."""
    ahead: Steps | None = None
    proposal = proposal_for(review)
    if proposal is not None:
        prompt.show(["", *file_lines(review.run, prompt.style)])
    while proposal is not None:
        ahead = _introduce(proposal, ahead, prompt)
        if review.taking and proposal.one_of_many:
            answer = "y"
            prompt.show([prompt.style.paint("   applied (`a`)", "frame")])
        else:
            answer, proposal = asked(review, proposal, prompt)
        match answer:
            case "y" | "a":
                review = replace(review.accepted(proposal), taking=review.taking or answer == "a")
            case "n":
                review = review.without(proposal)
            case _:
                return review, answer == "d"
        proposal = proposal_for(review)
    return review, True


def _introduce(proposal: Proposal, ahead: Steps | None, prompt: Prompt) -> Steps | None:
    """Shows an edit, after the plan where that is another than it was; the steps that are then ahead."""
    lines = [""]
    if (plan := proposal.plan) is not None:
        steps = plan.names
        if steps != ahead:
            lines += [*plan_lines(plan, prompt.style, fresh=ahead is not None), ""]
        ahead = steps[1:]
    prompt.show([*lines, *proposal_lines(proposal, prompt.style)])
    return ahead


def asked(review: Review, proposal: Proposal, prompt: Prompt) -> tuple[str, Proposal]:
    """An answer that decides, and what it is about: with ``e``, the user's own value."""
    while True:
        answer = prompt.read(question(proposal, prompt.style))
        match answer:
            case "":
                pass
            case "?":
                prompt.show(help_lines(proposal, prompt.style))
            case "e":
                proposal = _by_hand(review, proposal, prompt)
            case _ if answer in letters(proposal):
                return answer, proposal
            case "a":
                prompt.show(["`a` takes only what --fix would write; y takes this edit"])
            case _:
                prompt.show(["one letter is expected; ? explains them"])


def _by_hand(review: Review, proposal: Proposal, prompt: Prompt) -> Proposal:
    """The proposal as the user wants it, shown with what is then wrong; as it was where that cannot be."""
    from advisor.report import render_error

    style = prompt.style
    try:
        own = edited(proposal, prompt.context)
        trouble = new_errors(review, own) if own is not None else []
    except InputError as error:
        prompt.show([render_error(error, color=style.color, width=style.width), "the edit is as it was"])
        return proposal
    if own is None:
        prompt.show(["nothing was changed; the edit is as it was"])
        return proposal
    errors = [line for found in trouble for line in style.prose(found.message, f"error[{found.rule}]: ", "error")]
    prompt.show(["", *proposal_lines(own, style), *errors])
    return own


def new_errors(review: Review, proposal: Proposal) -> list[Finding]:
    """The errors that the file has with an edit, and not without it."""
    before, after = (lint_findings(run, review.options) for run in (proposal.before, proposal.after))
    known = {found.rule for found in before if found.level == "error"}
    return [found for found in after if found.level == "error" and found.rule not in known]
