"""A server whose tools refuse what they do not take, and whose schemas are small."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

from pydantic import ValidationError

from advisor.util import is_list, is_mapping

ToolError: type[Exception] = import_module("mcp.server.mcpserver.exceptions").ToolError


def strict(server: type[Any]) -> type[Any]:
    """A server whose tools refuse arguments that they do not have, where the SDK's own drop them."""

    class Strict(server):
        async def list_tools(self) -> list[Any]:
            """The tools, whose schemas say so too."""
            parent: Any = super()
            tools: list[Any] = await parent.list_tools()
            for tool in tools:
                tool.input_schema = small(tool.input_schema) | {"additionalProperties": False}
                tool.output_schema = small(tool.output_schema)
            return tools

        async def call_tool(self, name: str, arguments: dict[str, Any], *rest: Any, **more: Any) -> Any:
            """One call. ``ToolError`` for an argument that the tool does not have, lacks, or cannot take."""
            tools = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
            for argument in arguments:
                if name in tools and argument not in tools[name]:
                    raise ToolError(unknown(argument, list(tools[name])))
            parent: Any = super()
            try:
                return await parent.call_tool(name, arguments, *rest, **more)
            except ToolError as error:
                if isinstance(error.__cause__, ValidationError):
                    raise ToolError(wrong(error.__cause__)) from error
                raise

    return Strict


def unknown(argument: str, known: list[str]) -> str:
    """The message about an argument that no tool has, with the nearest one."""
    close = get_close_matches(argument, known, 1)
    return f"unknown argument `{argument}`; " + (
        f"did you mean `{close[0]}`?" if close else f"known: {', '.join(f'`{name}`' for name in known)}"
    )


def wrong(error: ValidationError) -> str:
    """The first argument that is missing, or is no such value."""
    first = error.errors(include_url=False)[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"missing argument `{name}`"
    return f"`{name}` is {repr(first['input'])[:80]}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def small(schema: Any) -> Any:
    """A schema without titles, and where what is left out is not also null."""
    if is_list(schema):
        return [small(each) for each in schema]
    if not is_mapping(schema):
        return schema
    found = {key: small(value) for key, value in schema.items() if not _is_idle(key, value)}
    kinds = [kind for kind in cast("list[Any]", found.get("anyOf", [])) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del found["anyOf"]
        return {**kinds[0], **found}
    return found


def _is_idle(key: str, value: object) -> bool:
    """Whether a keyword tells a reader nothing; a property may have its name."""
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)
