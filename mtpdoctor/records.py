"""``dataclass``, ``field`` and ``replace`` as of the standard library, for classes with slots, made sooner.

The standard decorator writes and compiles the source of six methods for every class, used or not; for
the seventy classes of a small ``diagnose`` that is a fifth of the whole run, the import of ``inspect``
not counted. Here the methods that only need the names of the fields are written once, below, and
``__init__`` is compiled when a class turns out to have many objects. Type checkers see the standard decorator, and
``dataclasses.replace``, ``asdict`` and ``fields`` work on the objects. No inheritance of fields, no
ordering: a class that needs them uses the standard one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    class field:
        """Marks a default that is made anew for every object."""

        def __init__(self, *, default_factory: Any) -> None:
            self.default_factory = default_factory

    def dataclass(*, frozen: bool = False, slots: bool, eq: bool = True) -> Any:
        def decorate(cls: type) -> type:
            names = tuple(cls.__annotations__)
            space = dict(vars(cls))
            defaults = {name: space.pop(name) for name in names if name in space}
            space.pop("__dict__", None)
            space.pop("__weakref__", None)
            space |= {"__slots__": names, "__match_args__": names, "__dataclass_fields__": _Fields(defaults)}
            space |= {"__getstate__": _getstate, "__setstate__": _setstate}
            space.setdefault("__repr__", _repr)
            if frozen:
                space |= {"__setattr__": _refuse, "__delattr__": _refuse}
            if eq:
                space.setdefault("__eq__", _eq)
                space["__hash__"] = _hash if frozen else None

            def early_init(self: Any, *args: Any, **named: Any) -> None:
                nonlocal early
                early -= 1
                if not early or not _filled(self, defaults, args, named):
                    made.__init__ = _init(made, defaults)
                    made.__init__(self, *args, **named)

            early = _EARLY
            space["__init__"] = early_init
            made = type(cls)(cls.__name__, cls.__bases__, space)
            return made

        return decorate

    def replace(record: Any, /, **changes: Any) -> Any:
        """A copy with some fields changed."""
        values = {name: getattr(record, name) for name in record.__match_args__}
        return type(record)(**(values | changes))

    _set = object.__setattr__

    # Of most classes a run makes a few objects: compiling an ``__init__`` costs as much as some thirty of them.
    _EARLY = 24

    def _filled(self: Any, defaults: dict[str, Any], args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Sets the fields of an object; False where the arguments do not fit, which ``_init`` says in words."""
        names = self.__match_args__
        given = len(args)
        if given > len(names):
            return False
        for name, value in zip(names, args, strict=False):
            _set(self, name, value)
        used = 0
        for name in names[given:]:
            if name in named:
                value = named[name]
                used += 1
            elif name in defaults:
                value = defaults[name]
                if isinstance(value, field):
                    value = value.default_factory()
            else:
                return False
            _set(self, name, value)
        return used == len(named)

    def _init(cls: type, defaults: dict[str, Any]) -> Any:
        parameters, lines = ["self"], []
        for name in cls.__match_args__:
            value = name
            if name not in defaults:
                parameters.append(name)
            elif isinstance(defaults[name], field):
                parameters.append(f"{name}=defaults")
                value = f"defaults[{name!r}].default_factory() if {name} is defaults else {name}"
            else:
                parameters.append(f"{name}=defaults[{name!r}]")
            lines.append(f"    set(self, {name!r}, {value})")
        source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or ["    pass"])
        space = {"defaults": defaults, "set": _set}
        exec(source, space)  # made of names of the class body only, as the standard decorator does it
        init = space["__init__"]
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        return init

    def _values(self: Any) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def _eq(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return _values(self) == _values(other)

    def _hash(self: Any) -> int:
        return hash(_values(self))

    def _repr(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{self.__class__.__qualname__}({shown})"

    def _refuse(self: Any, name: str, *value: Any) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to or delete field {name!r}")

    def _getstate(self: Any) -> tuple[Any, ...]:
        return _values(self)

    def _setstate(self: Any, state: tuple[Any, ...]) -> None:
        for name, value in zip(self.__match_args__, state, strict=True):
            _set(self, name, value)

    class _Fields:
        """``__dataclass_fields__`` for the functions of ``dataclasses``, made when one of them asks."""

        def __init__(self, defaults: dict[str, Any]) -> None:
            self.defaults = defaults

        def __get__(self, record: Any, cls: type) -> dict[str, Any]:
            import dataclasses as standard

            def of(name: str) -> tuple[Any, ...]:
                default = self.defaults.get(name, standard.MISSING)
                if isinstance(default, field):
                    return name, Any, standard.field(default_factory=default.default_factory)
                return name, Any, standard.field(default=default)

            made = standard.make_dataclass(cls.__name__, [of(name) for name in cls.__match_args__])
            return {f.name: f for f in standard.fields(made)}
