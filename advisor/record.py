"""``@record``: a dataclass whose instances cannot be changed, made quickly.

In Python 3.11 ``dataclass(frozen=True)`` compiles six methods for each class whenever a process starts: about 40 ms,
18 % of a cold ``advisor check`` (``make bench``). Here one is compiled, ``__init__``, and only for a class that is
used. Everything else of ``dataclasses`` (``replace``, ``fields``, ``asdict``) works as ever.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Only type checkers read it; typing has it from Python 3.11 on."""
        return lambda function: function


T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, eq: bool = True, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, eq: bool = True, kw_only: bool = False) -> Any:
    """Make a class a frozen dataclass, compared by its fields, or with ``eq=False`` by identity."""

    def made(cls: Any) -> Any:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        if hasattr(cls, "__post_init__") or not all(one.init for one in fields(cls)):
            raise TypeError(f"{cls.__name__}: __post_init__ and fields without init are not supported")
        methods = {"__init__": first_init(cls), "__repr__": shown, **(compared(cls) if eq else {})}
        for name, method in methods.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        cls.__setattr__ = cls.__delattr__ = refused
        return cls

    return made if cls is None else made(cls)


def refused(self: object, name: str, *_: object) -> None:
    """For ``__setattr__`` and ``__delattr__``."""
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def shown(self: Any) -> str:
    """For ``__repr__``."""
    given = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({given})"


def compared(cls: Any) -> dict[str, Callable[..., Any]]:
    """``__eq__`` and ``__hash__`` over the fields."""
    names = [one.name for one in fields(cls) if one.compare]
    key: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(key(self))

    return {"__eq__": equal, "__hash__": hashed}


def first_init(cls: Any) -> Callable[..., None]:
    """An ``__init__`` that puts the compiled one in its place."""

    def init(self: Any, *values: Any, **named: Any) -> None:
        cls.__init__ = compiled_init(cls)
        cls.__init__(self, *values, **named)

    return init


def compiled_init(cls: Any) -> Callable[..., None]:
    """As ``dataclasses`` writes it: a parameter for each field, assigned past ``__setattr__``."""
    names: dict[str, Any] = {"_put": object.__setattr__, "_MISSING": MISSING}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines: list[str] = []
    for one in fields(cls):
        parameters[one.kw_only is True].append(parameter(one, names))
        value = (
            one.name
            if one.default_factory is MISSING
            else f"_made_{one.name}() if {one.name} is _MISSING else {one.name}"
        )
        lines.append(f"  _put(self, {one.name!r}, {value})")
    keywords = ["*", *parameters[True]] if parameters[True] else []
    source = f"def __init__({', '.join(['self', *parameters[False], *keywords])}):\n" + "\n".join(lines or ["  pass"])
    exec(source, names)
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def parameter(one: "Field[Any]", names: dict[str, Any]) -> str:
    """A field as a parameter; its default goes into ``names``."""
    if one.default_factory is not MISSING:
        names[f"_made_{one.name}"] = one.default_factory
        return f"{one.name}=_MISSING"
    if one.default is not MISSING:
        names[f"_default_{one.name}"] = one.default
        return f"{one.name}=_default_{one.name}"
    return one.name
