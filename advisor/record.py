"""``@record``: a dataclass whose instances cannot be changed, made quickly.

In Python 3.11 ``dataclass(frozen=True)`` compiles six methods for each class whenever a process starts, about 40 ms,
and describes each field, about 15 ms: together 18 % of a cold ``advisor check`` (``make bench``). Here nothing is
compiled before a class has many instances, and fields are described once somebody asks; ``replace`` copies without
asking. Everything else of ``dataclasses`` (``fields``, ``asdict``) works as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_origin, overload

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Only type checkers read it; typing has it from Python 3.11 on."""
        return lambda function: function


T = TypeVar("T")
MANY = 64
"""Instances after which a class gets a compiled ``__init__``: compiling it takes as long as it saves on so many."""


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, eq: bool = True, kw_only: bool = False, frozen: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, eq: bool = True, kw_only: bool = False, frozen: bool = True) -> Any:
    """Make a class a frozen dataclass, compared by its fields, or with ``eq=False`` by identity."""

    def made(cls: Any) -> Any:
        if hasattr(cls, "__post_init__"):
            raise TypeError(f"{cls.__name__}: __post_init__ is not supported")
        given = declared(cls)
        cls.__dataclass_fields__ = Described(cls, given, kw_only=kw_only)
        cls.__record__ = of = Fields(cls, given, kw_only=kw_only)
        methods = {"__init__": filled(cls, of), "__repr__": shown, **(compared(of) if eq else {})}
        for name, method in {"__match_args__": of.places, **methods}.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        if frozen:
            cls.__setattr__ = cls.__delattr__ = refused
        return cls

    return made if cls is None else made(cls)


def declared(cls: Any) -> dict[str, Any]:
    """What a class says of each of its own fields: a default, ``field(...)`` or ``MISSING``; it keeps only defaults."""
    annotations: Mapping[str, Any] = cls.__annotations__
    names = [name for name, kind in annotations.items() if kind is not ClassVar and get_origin(kind) is not ClassVar]
    given: dict[str, Any] = {name: cls.__dict__.get(name, MISSING) for name in names}
    for name, told in given.items():
        if isinstance(told, Field):
            one = cast("Field[Any]", told)
            if not one.init:
                raise TypeError(f"{cls.__name__}: fields without init are not supported")
            if one.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, one.default)
    return given


class Fields:
    """The fields of a class and of its parents."""

    def __init__(self, cls: Any, given: Mapping[str, Any], *, kw_only: bool) -> None:
        self.names: dict[str, None] = {}
        self.values: dict[str, Any] = {}
        self.makers: dict[str, Callable[[], Any]] = {}
        self.by_name: dict[str, None] = {}
        self.uncompared: dict[str, None] = {}
        for parent in reversed(cls.__mro__[1:]):
            theirs: Fields | None = parent.__dict__.get("__record__")
            if theirs is not None:
                self.take(theirs)
        for name, default in given.items():
            self.put(name, default, kw_only=kw_only)
        self.places = tuple(name for name in self.names if name not in self.by_name)

    def take(self, parent: Fields) -> None:
        """All fields of a parent."""
        self.names |= parent.names
        self.values |= parent.values
        self.makers |= parent.makers
        self.by_name |= parent.by_name
        self.uncompared |= parent.uncompared

    def put(self, name: str, told: Any, *, kw_only: bool) -> None:
        """One more field."""
        self.names[name] = None
        if isinstance(told, Field):
            one = cast("Field[Any]", told)
            if one.default_factory is not MISSING:
                self.makers[name] = one.default_factory
            if not one.compare:
                self.uncompared[name] = None
            kw_only = kw_only if one.kw_only is MISSING else bool(one.kw_only)
            told = one.default
        if told is not MISSING:
            self.values[name] = told
        if kw_only:
            self.by_name[name] = None


class Described:
    """``__dataclass_fields__`` of a class: what ``dataclasses`` makes of a twin of the class, once somebody asks."""

    def __init__(self, cls: Any, given: Mapping[str, Any], *, kw_only: bool) -> None:
        self.cls, self.given, self.kw_only = cls, given, kw_only

    def __get__(self, _instance: object, _owner: object = None) -> dict[str, Any]:
        cls = self.cls
        # A text of its own spares it one that `inspect` makes, which takes as long as ten modules.
        own = {name: default for name, default in self.given.items() if default is not MISSING}
        body = {"__doc__": "-", "__module__": cls.__module__, "__annotations__": cls.__annotations__, **own}
        twin: Any = type(cls)(cls.__name__, cls.__bases__, body)
        dataclass(init=False, repr=False, eq=False, kw_only=self.kw_only)(twin)
        cls.__dataclass_params__, cls.__dataclass_fields__ = twin.__dataclass_params__, twin.__dataclass_fields__
        return twin.__dataclass_fields__


def replace(instance: T, /, **changes: Any) -> T:
    """A copy of a record with other values in some fields; nothing that was cached goes along."""
    made: Any = type(instance)
    of: Fields = made.__record__
    if not changes.keys() <= of.names.keys():
        raise TypeError(f"{made.__name__}: unknown: {', '.join(sorted(changes.keys() - of.names.keys()))}")
    copy, facts = object.__new__(made), vars(instance)
    copy.__dict__.update({name: facts[name] for name in of.names}, **changes)
    return copy


def refused(self: object, name: str, *_: object) -> None:
    """For ``__setattr__`` and ``__delattr__``."""
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def shown(self: Any) -> str:
    """For ``__repr__``."""
    given = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({given})"


def compared(of: Fields) -> dict[str, Callable[..., Any]]:
    """``__eq__`` and ``__hash__`` over the fields."""
    names = [name for name in of.names if name not in of.uncompared]
    key: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(key(self))

    return {"__eq__": equal, "__hash__": hashed}


def filled(cls: Any, of: Fields) -> Callable[..., None]:
    """An ``__init__`` that takes what the one of ``dataclasses`` takes, until there are ``MANY`` instances."""
    places, values, makers, names = of.places, of.values, of.makers.items(), of.names.keys()
    instances = 0

    def init(self: Any, *given: Any, **named: Any) -> None:
        nonlocal instances
        instances += 1
        if instances == MANY and vars(cls)["__init__"] is init:
            cls.__init__ = compiled(of)
        facts = self.__dict__
        facts.update(values)
        if given:
            facts.update(zip(places, given, strict=False))
        facts.update(named)
        for name, make in makers:
            if name not in facts:
                facts[name] = make()
        twice = given and named and not named.keys().isdisjoint(places[: len(given)])
        if facts.keys() != names or len(given) > len(places) or twice:
            wrong = (facts.keys() ^ names) or set(named) or {"more values than fields"}
            raise TypeError(f"{cls.__name__}: unknown, missing or given twice: {', '.join(sorted(wrong))}")

    return init


def compiled(of: Fields) -> Callable[..., None]:
    """The same as a function with the fields as its parameters."""
    known: dict[str, Any] = {"_missing": MISSING}
    known |= {f"_{name}": value for name, value in (*of.values.items(), *of.makers.items())}

    def parameter(name: str) -> str:
        return f"{name}=_missing" if name in of.makers else f"{name}=_{name}" if name in of.values else name

    def stored(name: str) -> str:
        made = f"_{name}() if {name} is _missing else " if name in of.makers else ""
        return f" _facts[{name!r}] = {made}{name}"

    by_name = ["*", *map(parameter, of.by_name)] if of.by_name else []
    parameters = ", ".join(["_self", *map(parameter, of.places), *by_name])
    exec("\n".join([f"def __init__({parameters}):", " _facts = _self.__dict__", *map(stored, of.names)]), known)
    return known["__init__"]
