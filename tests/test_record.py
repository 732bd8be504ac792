"""``@record`` against ``dataclasses`` itself: the same class, made by both, does the same."""

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from advisor.record import MANY, record, replace


class Fields:
    """A field of each kind."""

    name: str
    count: int = 2
    notes: list[str] = field(default_factory=list[str])
    hidden: int = field(default=1, repr=False, compare=False)
    last: int = field(default=0, kw_only=True)


def both(**options: Any) -> list[Any]:
    """The class as ``dataclasses`` makes it, and as it is made here."""
    makers: list[Callable[..., Any]] = [dataclass(frozen=True, **options), record(**options)]
    return [make(type("Made", (Fields,), {**vars(Fields), "__qualname__": "Made"})) for make in makers]


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error)


CALLS: dict[str, Callable[[Any], object]] = {
    "shown": lambda made: repr(made("a", 3, last=5)),
    "by name": lambda made: repr(made(count=1, name="a")),
    "own default": lambda made: made("a").notes is made("a").notes,
    "too few": lambda made: made(),
    "too many": lambda made: made("a", 1, [], 1, 0),
    "unknown": lambda made: made("a", other=1),
    "equal": lambda made: made("a") == made("a", hidden=2),
    "different": lambda made: made("a") == made("b"),
    "another class": lambda made: made("a") == "a",
    "unhashable": lambda made: hash(made("a")) is None,
    "hashed": lambda made: len({made("a", notes=()), made("a", notes=())}),
    "set": lambda made: setattr(made("a"), "name", "b"),
    "set anew": lambda made: setattr(made("a"), "other", "b"),
    "deleted": lambda made: delattr(made("a"), "name"),
    "replaced": lambda made: repr(dataclasses.replace(made("a"), count=7)),
    "as a dictionary": lambda made: dataclasses.asdict(made("a")),
    "matched": lambda made: made.__match_args__,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("options", [{}, {"eq": False}, {"kw_only": True}], ids=str)
def test_does_what_a_dataclass_does(call: Callable[[Any], object], options: dict[str, Any]) -> None:
    theirs, ours = both(**options)
    assert outcome(lambda: call(ours)) == outcome(lambda: call(theirs))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("options", [{}, {"eq": False}, {"kw_only": True}], ids=str)
def test_does_the_same_after_many_instances(call: Callable[[Any], object], options: dict[str, Any]) -> None:
    theirs, ours = both(**options)
    first = ours.__init__
    for _ in range(MANY):
        ours(name="a")
    assert ours.__init__ is not first
    assert outcome(lambda: call(ours)) == outcome(lambda: call(theirs))


@record
class Point:
    """At the top of a module, so that it can be pickled."""

    x: int
    y: int = 0

    @cached_property
    def total(self) -> int:
        return self.x + self.y

    def __repr__(self) -> str:
        return f"({self.x}, {self.y})"


@record
class Empty:
    """Without a field."""


def test_methods_of_the_class_itself_stay() -> None:
    assert repr(Point(1, 2)) == "(1, 2)"


def test_cached_properties_are_kept_and_not_compared() -> None:
    point = Point(1, 2)
    assert point.total == 3
    assert "total" in vars(point)
    assert point == Point(1, 2)


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)


def test_without_fields() -> None:
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())


def test_a_subclass_has_its_fields_and_its_parents() -> None:
    @record
    class Space(Point):
        z: int = 0

    assert (Point(1).x, Space(1, 2, 3).z, Space(1, 2, 3).y) == (1, 3, 2)
    assert Space(1, 2) != Point(1, 2)


def test_a_subclass_whose_parent_has_many_instances_takes_its_own_fields() -> None:
    @record
    class Base:
        x: int

    for number in range(MANY):
        Base(number)

    @record
    class Wider(Base):
        y: int = 0

    assert (Wider(1, 2).x, Wider(1, 2).y, Wider(1) == Wider(1, 0)) == (1, 2, True)


def test_replace_takes_fields_and_leaves_what_was_cached() -> None:
    point = Point(1, 2)
    assert point.total == 3
    assert vars(replace(point, y=5)) == {"x": 1, "y": 5}
    with pytest.raises(TypeError, match="unknown: total"):
        replace(point, total=4)


def test_fields_can_be_set_where_a_class_is_not_frozen() -> None:
    @record(frozen=False)
    class Open:
        x: int

    one = Open(1)
    one.x = 2
    assert one.x == 2


def test_class_variables_are_no_fields() -> None:
    @record
    class Counted:
        kinds: ClassVar[int] = 3
        x: int

    assert [one.name for one in dataclasses.fields(Counted)] == ["x"]
    assert vars(Counted(1)) == {"x": 1}
