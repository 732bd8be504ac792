"""An archive of Python files as bytecode, which loads faster. Pyodide runs this: bytecode is of one version."""

import io
import marshal
import zipfile
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash

UNCHECKED = (1).to_bytes(4, "little")
"""The flags of bytecode that is believed without a look at its source (PEP 552)."""
FOUND_BY_FILE = "advisor/rules/"


def compiled(archive: bytes) -> bytes:
    """The same archive with ``x.pyc`` in the place of each ``x.py``, without docstrings."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            for member, content in members(name, old.read(name)):
                new.writestr(member, content)
    return result.getvalue()


def members(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """What stands for one file: of a rule, which is found by its ``.py``, also that."""
    is_rule = name.startswith(FOUND_BY_FILE)
    if is_rule or not name.endswith(".py"):
        yield name, content
    if name.endswith(".py"):
        yield (cache_from_source(name) if is_rule else f"{name}c"), bytecode(name, content)


def bytecode(name: str, source: bytes) -> bytes:
    """A ``.pyc``."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=2)
    return MAGIC_NUMBER + UNCHECKED + source_hash(source) + marshal.dumps(code)
