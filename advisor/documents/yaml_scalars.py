"""YAML 1.1 scalars, as PyYAML's safe loader types them: text -> value."""

from collections.abc import Callable
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

TAG = "tag:yaml.org,2002:"
STR, MERGE, VALUE = TAG + "str", TAG + "merge", TAG + "value"
_resolvers: dict[str | None, list[tuple[str, Any]]] = Resolver.yaml_implicit_resolvers
_constructor: Any = SafeConstructor()
_constructors: dict[str, Callable[[Any], Any]] = {
    TAG + name: getattr(_constructor, f"construct_yaml_{name}")
    for name in ("null", "bool", "int", "float", "binary", "timestamp", "str")
}


def implicit_tag(text: str) -> str:
    """The tag of a plain scalar."""
    for tag, pattern in _resolvers.get(text[:1], ()):
        if pattern.match(text):
            return tag
    return STR


def knows(tag: str) -> bool:
    """Whether a scalar may have this tag."""
    return tag in _constructors


def constructed(tag: str, text: str) -> Any:
    """The value of a scalar. ``ValueError`` or ``yaml.YAMLError`` where the text does not fit its tag."""
    try:
        return _constructors[tag](yaml.ScalarNode(tag, text))
    except (KeyError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"not a {tag.removeprefix(TAG)}") from error
