"""``@record``: a dataclass whose instances cannot be changed, made quickly.

In Python 3.11 ``dataclass(frozen=True)`` compiles six methods for each class whenever a process starts: about 40 ms,
18 % of a cold ``advisor check`` (``make bench``). Here none is compiled. Everything else of ``dataclasses``
(``replace``, ``fields``, ``asdict``) works as ever.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
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
        methods = {"__init__": filled(cls), "__repr__": shown, **(compared(cls) if eq else {})}
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


def filled(cls: Any) -> Callable[..., None]:
    """An ``__init__`` that takes what the one of ``dataclasses`` takes."""
    places = [one.name for one in fields(cls) if not one.kw_only]
    names = frozenset(one.name for one in fields(cls))
    values = {one.name: one.default for one in fields(cls) if one.default is not MISSING}
    makers = [(one.name, one.default_factory) for one in fields(cls) if one.default_factory is not MISSING]
    count = len(names)

    def init(self: Any, *given: Any, **named: Any) -> None:
        facts = self.__dict__
        if len(given) < count:
            facts.update(values)
        facts.update(zip(places, given, strict=False))
        if named:
            facts.update(named)
        for name, make in makers:
            if name not in facts:
                facts[name] = make()
        twice = given and named and not named.keys().isdisjoint(places[: len(given)])
        if len(facts) != count or len(given) > len(places) or twice or (named and not names.issuperset(named)):
            wrong = (set(facts) ^ names) or set(named) or {"more values than fields"}
            raise TypeError(f"{cls.__name__}: unknown, missing or given twice: {', '.join(sorted(wrong))}")

    return init
