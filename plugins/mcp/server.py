"""The tools, each a line for the agent to read and a call of what the command line calls too."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any

import advisor
from advisor.engine.registry import STAGES, built_in_rules
from advisor.errors import InputError
from advisor.record import replace
from advisor.report import agent, rule_page_json
from advisor.session import RunOptions
from advisor.session.amounts import checked_price, parse_tokens
from advisor.session.rule_selection import Tell, near
from advisor.util import confined

from . import answers, arguments, blank_page, limits, results
from .asked import asked, text_of
from .strict import ToolError, strict

INSTRUCTIONS = """\
Checks axolotl YAMLs and their DeepSpeed JSONs before a launch: does the run fit the GPUs, what is wrong, what to edit.
Call `check` after each edit of a config, and before you rent or launch. Give the YAML as `config` (text) or `path`.
Then `plan` with the id of one of its options gives the diff. GiB are of one GPU.
`training: same` keeps parameters, objective, data, global batch and optimizer; ask before an edit that `changes` it."""
TYPES: Any = import_module("mcp.types")
READS = TYPES.ToolAnnotations(read_only_hint=True, open_world_hint=False)
Result = TYPES.CallToolResult
PAGE = ("rule", "stage", "level", "title", "why", "cost", "applicability", "source")


def server_of(root: str, options: RunOptions) -> Any:
    """The server for files below ``root``, and for texts; ``options`` where a call says nothing else."""
    server: Any = strict(import_module("mcp.server").MCPServer)(
        "axolotl-advisor", instructions=INSTRUCTIONS, version=advisor.__version__, log_level="WARNING"
    )

    def given(gpus: str | None, model: str | None = None, *, answers: bool = False) -> RunOptions:
        return replace(options, gpus=gpus or options.gpus, model_config=model, answers=answers)

    def told(answer: Callable[[Tell], answers.Answer]) -> Any:
        with confined(root):
            return said_of(answer)

    @server.tool(annotations=READS)
    def check(
        config: arguments.Config = None,
        path: arguments.Path = None,
        gpus: arguments.Gpus = None,
        files: arguments.Files = None,
        model: arguments.Model = None,
    ) -> Annotated[Result, results.Checked]:
        """Does it fit, what is wrong at which line, and the options: where each ends, and its steps."""
        said = given(gpus, model, answers=True)
        return told(lambda tell: agent.checked(asked(root, config, path, files, said, tell).checked_run().report))

    @server.tool(annotations=READS)
    def plan(
        config: arguments.Config = None,
        path: arguments.Path = None,
        gpus: arguments.Gpus = None,
        files: arguments.Files = None,
        model: arguments.Model = None,
        option: arguments.Choice = "A",
        text: arguments.Text = False,
    ) -> Annotated[Result, results.Planned]:
        """The edits of an option of `check`, and the fixes of its findings, as one diff. Nothing is written."""
        said = given(gpus, model, answers=option == "F")
        return told(lambda tell: answers.planned(asked(root, config, path, files, said, tell), option, text=text))

    @server.tool(annotations=READS)
    def estimate(
        config: arguments.Config = None,
        path: arguments.Path = None,
        gpus: arguments.Gpus = None,
        files: arguments.Files = None,
        model: arguments.Model = None,
        ledger: arguments.Ledger = False,
    ) -> Annotated[Result, results.Estimated]:
        """Memory by phase and part, and the time of a step."""
        said = given(gpus, model)

        def answer(tell: Tell) -> answers.Answer:
            return answers.estimated(
                asked(root, config, path, files, said, tell).checked_run(speed=False), ledger=ledger
            )

        return told(answer)

    @server.tool(name="max", annotations=READS)
    def largest(
        key: arguments.Key,
        config: arguments.Config = None,
        path: arguments.Path = None,
        gpus: arguments.Gpus = None,
        files: arguments.Files = None,
        model: arguments.Model = None,
    ) -> Annotated[Result, results.Largest]:
        """The largest micro batch, or the longest rows, that fit: as written, and with the steps that make room."""
        said = given(gpus, model)
        return told(lambda tell: limits.largest_of(asked(root, config, path, files, said, tell), key))

    @server.tool(annotations=READS)
    def oom(
        log: arguments.Log = None,
        log_path: arguments.LogPath = None,
        config: arguments.Config = None,
        path: arguments.Path = None,
        gpus: arguments.Gpus = None,
        files: arguments.Files = None,
        model: arguments.Model = None,
    ) -> Annotated[Result, results.Died]:
        """After a run died of memory: why, in which phase, what helps; with its config the options that suffice."""
        said = given(gpus, model, answers=True)

        def answer(tell: Tell) -> answers.Answer:
            text, name = text_of(root, log, log_path)
            has_config = config is not None or path is not None
            one = asked(root, config, path, files, said, tell) if has_config else None
            return limits.died(text, name, one, stated=said.gpus is not None)

        return told(answer)

    @server.tool(annotations=READS)
    def hardware(
        config: arguments.Config = None,
        path: arguments.Path = None,
        gpus: arguments.Gpus = None,
        files: arguments.Files = None,
        model: arguments.Model = None,
        tokens: arguments.Tokens = None,
        price: arguments.Price = None,
        cards: arguments.Cards = None,
    ) -> Annotated[Result, results.Cards]:
        """Which GPUs would do and what the run costs on each, cheapest first; `best` names the anchors."""
        said = given(gpus, model)

        def answer(tell: Tell) -> answers.Answer:
            amount = parse_tokens(tokens) if tokens else None
            return answers.cards(asked(root, config, path, files, said, tell), amount, checked_price(price), cards)

        return told(answer)

    @server.tool(annotations=READS)
    def new(
        model: arguments.BaseModel,
        data: arguments.Data = None,
        gpus: arguments.Gpus = None,
        method: arguments.Method = "auto",
        rows_as: arguments.RowsAs = None,
        sequence_len: arguments.Length = None,
        tokens: arguments.TokensInAll = None,
        hours: arguments.Hours = None,
    ) -> Annotated[Result, results.Written]:
        """A complete config from a blank page: full fine-tune, LoRA and QLoRA, which to take, and its files."""
        said = given(gpus)

        def answer(tell: Tell) -> answers.Answer:
            request = blank_page.request_for(root, model, data, method, tokens, hours, said)
            return blank_page.answer_for(request, rows_as, sequence_len, tell)

        return told(answer)

    @server.tool(annotations=READS)
    def explain(rule: arguments.RuleName) -> Annotated[Result, results.Page]:
        """Why a rule says what it says, what its edit costs, and its source."""
        return told(lambda _: page(rule))

    return server


def said_of(answer: Callable[[Tell], answers.Answer]) -> Any:
    """An answer with what it told on the way; what goes wrong is an error with its reason."""
    notes: list[str] = []
    try:
        said = answer(notes.append)
    except InputError as error:
        raise ToolError(str(error)) from error
    except Exception as error:
        raise ToolError(f"{type(error).__name__}: {error}") from error
    said |= {"notes": notes} if notes else {}
    return Result(content=[TYPES.TextContent(type="text", text=agent.compact(said))], structured_content=said)


def page(name: str) -> answers.Answer:
    """The page of a rule, less its examples."""
    rules = {rule: found for stage in STAGES for rule, found in built_in_rules(stage).items()}
    if name not in rules:
        raise InputError(f"unknown rule `{name}`", remedy=near(name, rules))
    found: Mapping[str, Any] = rule_page_json(rules[name])
    return {key: found[key] for key in PAGE if found[key]}
