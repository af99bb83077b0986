"""``mtpdoctor.records`` behaves as the standard ``dataclasses`` does, for what the doctor uses of it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpdoctor import records


class Fields:
    a: int
    b: str = "b"
    c: tuple[int, ...] = ()
    d: dict[str, int]

    def __str__(self) -> str:
        return f"{self.a}{self.b}"


def _made(module: Any, **options: Any) -> Any:
    space = {k: v for k, v in vars(Fields).items() if k not in ("__dict__", "__weakref__")}
    space["d"] = module.field(default_factory=dict)
    return module.dataclass(slots=True, **options)(type("Fields", (), space))


@records.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    more: list[int] = records.field(default_factory=list)


arguments = st.tuples(
    st.lists(st.integers(0, 2), max_size=5),
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 2), max_size=4),
)


def _outcome(make: Any) -> Any:
    try:
        return make()
    except (TypeError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("options", [{"frozen": True}, {}, {"frozen": True, "eq": False}])
@given(first=arguments, second=arguments, changes=st.dictionaries(st.sampled_from("abz"), st.integers(0, 2)))
def test_the_same_as_the_standard_decorator(options: Any, first: Any, second: Any, changes: Any) -> None:
    def seen(module: Any) -> list[Any]:
        cls = _made(module, **options)
        made = [_outcome(lambda a=a, n=n: cls(*a, **n)) for a, n in (first, second)]
        x, y = made
        out: list[Any] = [type(m) if isinstance(m, type) else (repr(m), str(m)) for m in made]
        if isinstance(x, type) or isinstance(y, type):
            return out
        out += [x == y, x != y, x == x, x == 1, cls.__match_args__]
        out += [_outcome(lambda: repr(module.replace(x, **changes)))]
        out += [_outcome(lambda: repr(dataclasses.replace(x, **changes))), dataclasses.asdict(x)]
        out += [_outcome(lambda: setattr(x, "a", 7)), x.a, _outcome(lambda: x.new), hasattr(x, "__dict__")]
        if options.get("eq", True):
            out += [_outcome(lambda: hash(x) == hash(y))]
        return out

    assert seen(records) == seen(dataclasses)


def test_a_factory_makes_every_object_its_own() -> None:
    one, two = Kept(1), Kept(2)
    one.more.append(5)
    assert two.more == [] and Kept(1, [5]) == one
    assert [f.name for f in dataclasses.fields(Kept)] == ["a", "more"]


def test_copies_and_pickles() -> None:
    one = Kept(1, [2])
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one and other is not one
