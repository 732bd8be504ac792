"""The protocol as pygls has it, but that every request gets an answer."""

from importlib import import_module
from typing import Any

pygls: Any = import_module("pygls.protocol")
Base: Any = pygls.LanguageServerProtocol
Unreadable: Any = import_module("pygls.exceptions").JsonRpcException


class Protocol(Base):
    """pygls logs a request that it cannot read, such as one at line -1, and leaves the editor waiting for it."""

    def structure_message(self, data: Any) -> Any:
        """A message; a request that cannot be read comes without parameters."""
        pygls_own: Any = super()
        try:
            return pygls_own.structure_message(data)
        except Unreadable:
            if not isinstance(data.get("id"), (int, str)) or not isinstance(data.get("method"), str):
                raise
            return pygls.JsonRPCRequestMessage(data["id"], data["method"], self.VERSION, None)
