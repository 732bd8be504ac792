"""The tools, each a line for the agent to read and a call of what the command line calls too."""

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import advisor
from advisor.engine.registry import STAGES, built_in_rules
from advisor.errors import InputError
from advisor.record import replace
from advisor.report import render_rule
from advisor.session import CheckedRun, RunOptions
from advisor.session.amounts import checked_price, parse_tokens
from advisor.session.rule_selection import Tell, near
from advisor.util import confined

from . import answers, blank_page
from .asked import Asked, asked

INSTRUCTIONS = """\
Checks axolotl YAMLs and their DeepSpeed JSONs before a launch: does the run fit the GPUs, what is wrong, what to edit.
Call `check` after each edit of a config, and before you rent or launch. Give the YAML as `config` (text) or `path`.
`gpus`: "8x a100-80gb", "2n8x h100-80gb host=1TiB", "2x rtx-4090 link=pcie". GiB are of one GPU.
`training: same` keeps parameters, objective, data, global batch and optimizer; ask before an edit that `changes` it."""
ToolError: type[Exception] = import_module("mcp.server.mcpserver.exceptions").ToolError
READS = import_module("mcp.types").ToolAnnotations(read_only_hint=True, open_world_hint=False)
WIDTH = 100


def server_of(root: str, options: RunOptions) -> Any:
    """The server for files below ``root``, and for texts; ``options`` where a call says nothing else."""
    server: Any = strict(import_module("mcp.server").MCPServer)(
        "axolotl-advisor", instructions=INSTRUCTIONS, version=advisor.__version__, log_level="WARNING"
    )

    def about(
        config: str | None,
        path: str | None,
        on: str | None,
        files: Mapping[str, str] | None,
        model: str | None,
        tell: Tell,
    ) -> Asked:
        said = replace(options, gpus=on or options.gpus, model_config=model)
        return asked(root, config, path, files, said, tell)

    def told(answer: Callable[[Tell], answers.Answer | str]) -> str:
        with confined(root):
            return said_of(answer)

    @server.tool(annotations=READS, structured_output=False)
    def check(
        config: str | None = None,
        path: str | None = None,
        gpus: str | None = None,
        files: dict[str, str] | None = None,
        model: str | None = None,
    ) -> str:
        """Verdict, findings with their lines, and the steps that make the run fit. `files`: unsaved JSONs by name."""
        return told(lambda tell: answers.checked(answering(about(config, path, gpus, files, model, tell)).report))

    @server.tool(annotations=READS, structured_output=False)
    def estimate(
        config: str | None = None,
        path: str | None = None,
        gpus: str | None = None,
        files: dict[str, str] | None = None,
        model: str | None = None,
        ledger: bool = False,
    ) -> str:
        """Memory by phase and part, and the time of a step. `ledger`: each term with arithmetic and source."""
        return told(
            lambda tell: answers.estimated(
                about(config, path, gpus, files, model, tell).checked_run(speed=False), ledger=ledger
            )
        )

    @server.tool(annotations=READS, structured_output=False)
    def plan(
        config: str | None = None,
        path: str | None = None,
        gpus: str | None = None,
        files: dict[str, str] | None = None,
        model: str | None = None,
        change_training: bool = False,
        text: bool = False,
    ) -> str:
        """The edits that fix the config and make it fit, as one diff; nothing is written. `text`: the files too."""
        return told(
            lambda tell: answers.planned(
                about(config, path, gpus, files, model, tell), unsafe=change_training, text=text
            )
        )

    @server.tool(annotations=READS, structured_output=False)
    def hardware(
        config: str | None = None,
        path: str | None = None,
        gpus: str | None = None,
        files: dict[str, str] | None = None,
        model: str | None = None,
        tokens: str | None = None,
        price: float | None = None,
    ) -> str:
        """Which GPUs would do, cheapest first. `tokens`: of an epoch ("200M"). `price`: of a GPU-hour."""
        return told(
            lambda tell: answers.cards(
                about(config, path, gpus, files, model, tell),
                parse_tokens(tokens) if tokens else None,
                checked_price(price),
            )
        )

    @server.tool(annotations=READS, structured_output=False)
    def new(
        model: str,
        data: str | None = None,
        gpus: str | None = None,
        method: str = "auto",
        rows_as: str | None = None,
        sequence_len: int | None = None,
        tokens: str | None = None,
        hours: float | None = None,
    ) -> str:
        """A complete config from a blank page: full, LoRA, QLoRA; `data`: a .jsonl of rows; `method`: dpo for pairs."""
        said = replace(options, gpus=gpus or options.gpus)
        return told(
            lambda tell: blank_page.answer_for(
                blank_page.request_for(root, model, data, method, tokens, hours, said), rows_as, sequence_len, tell
            )
        )

    @server.tool(annotations=READS, structured_output=False)
    def explain(rule: str) -> str:
        """The page of a rule: why, cost, whether it changes the training, examples, source."""
        return told(lambda _: page(rule))

    return server


def answering(one: Asked) -> CheckedRun:
    """The run with its answer."""
    return replace(one, session=replace(one.session, options=replace(one.session.options, answers=True))).checked_run()


def strict(server: type[Any]) -> type[Any]:
    """A server whose tools refuse arguments that they do not have, where the SDK's own drop them."""

    class Strict(server):
        async def list_tools(self) -> list[Any]:
            """The tools, whose schemas say so too."""
            parent: Any = super()
            tools: list[Any] = await parent.list_tools()
            for tool in tools:
                tool.input_schema["additionalProperties"] = False
            return tools

        async def call_tool(self, name: str, arguments: dict[str, Any], *rest: Any, **more: Any) -> Any:
            """One call. ``ToolError`` for an argument that the tool does not have."""
            tools = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
            for argument in arguments:
                if name in tools and argument not in tools[name]:
                    raise ToolError(unknown(argument, list(tools[name])))
            parent: Any = super()
            return await parent.call_tool(name, arguments, *rest, **more)

    return Strict


def unknown(argument: str, known: list[str]) -> str:
    """The message about an argument that no tool has, with the nearest one."""
    close = get_close_matches(argument, known, 1)
    return f"unknown argument `{argument}`; " + (
        f"did you mean `{close[0]}`?" if close else f"known: {', '.join(f'`{name}`' for name in known)}"
    )


def said_of(answer: Callable[[Tell], answers.Answer | str]) -> str:
    """An answer as text, with what it told on the way; what goes wrong is an error with its reason."""
    notes: list[str] = []
    try:
        said = answer(notes.append)
    except InputError as error:
        raise ToolError(str(error)) from error
    except Exception as error:
        raise ToolError(f"{type(error).__name__}: {error}") from error
    if isinstance(said, str):
        return said
    return json.dumps(said | ({"notes": notes} if notes else {}), ensure_ascii=False)


def page(name: str) -> str:
    """The page of a rule."""
    rules = {rule: found for stage in STAGES for rule, found in built_in_rules(stage).items()}
    if name not in rules:
        raise InputError(f"unknown rule `{name}`", remedy=near(name, rules))
    return render_rule(rules[name], width=WIDTH)
