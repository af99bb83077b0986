"""Edits and texts with placeholders, filled from the facts of a launch.

``{fact}`` or ``{fact|filter:argument|...}`` (docs/knowledge-format.md, "Edits"). What a log says is
untrusted: a value that goes into an edit must be one plain word, a value in a command to type is
shell-quoted, and control characters go nowhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from mtpdoctor.facts import UNKNOWN, Facts
from mtpdoctor.kb.conditions import look
from mtpdoctor.kb.fact_names import check_fact_name
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.launch.types import Edit, EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass

_PLACEHOLDER = lazy(r"\{([A-Za-z_][\w.\-]*)((?:\|[^{}|]+)*)\}")
_FLAG = lazy(r"--?[A-Za-z][\w.-]*\Z")
_TYPED = lazy(r"(?:(?<=\s)|^)(--?[A-Za-z][\w-]*)")
_VARIABLE = lazy(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CONTROL = lazy(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MAX_TEXT = 300
_MAX_ITEMS = 8  # of a list that are shown

_NAMELESS = {EditOp.SHM_SIZE, EditOp.IPC, EditOp.GPUS, EditOp.IMAGE_TAG}


class TemplateError(ValueError):
    """An edit or a placeholder that is not in the format."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One ``{name|filter:argument}``: ``name`` is a capture when it is no fact's name."""

    name: str
    filters: tuple[tuple[str, str], ...] = ()

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts (or captures) that it reads."""
        used = [argument[1:] for _, argument in self.filters if argument.startswith("$")]
        return (self.name, *used)


@dataclass(frozen=True, slots=True)
class ResolvedRemedy:
    """A remedy over one case. With ``missing`` facts its edits still hold ``<name>`` placeholders:
    they may be shown, never applied, and ``safety`` is manual."""

    edits: tuple[Edit, ...]
    missing: tuple[str, ...]
    title: str
    why: str
    risk: str | None
    run: tuple[str, ...]
    safety: Safety


# --- reading templates ------------------------------------------------------------------------------


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """The placeholders of a template in order. Raises TemplateError for an unknown or malformed filter."""
    return tuple(_placeholder(m) for m in _PLACEHOLDER.finditer(_hide_escapes(text)))


def parse_edit(text: str) -> EditTemplate:
    """``set --flag value``, ``env NAME=value``, ... Raises TemplateError in words."""
    op_text, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    try:
        op = EditOp(op_text)
    except ValueError:
        from mtpdoctor.kb.yaml_source import nearest

        known = [o.value for o in EditOp]
        raise TemplateError(
            f"unknown edit {op_text!r}{nearest(op_text, known)}; edits are {', '.join(known)}"
        ) from None
    placeholders(rest)
    if op in _NAMELESS:
        if not rest:
            raise TemplateError(f"`{op.value}` needs a value")
        return EditTemplate(op.value, "", _unquoted(rest))
    if op is EditOp.ENV:
        name, sep, value = rest.partition("=")
        if not sep or not _VARIABLE.match(name):
            raise TemplateError(f"write `env NAME=value`, not {text!r}")
        return EditTemplate(op.value, name, _unquoted(value))
    name, _, value = rest.partition(" ")
    value = value.strip()
    if op is EditOp.UNSET:
        if not _VARIABLE.match(name) or value:
            raise TemplateError(f"write `unset NAME`, not {text!r}")
        return EditTemplate(op.value, name)
    if not (_FLAG.match(_PLACEHOLDER.sub("x", name)) or _PLACEHOLDER.fullmatch(name)):
        raise TemplateError(f"a flag such as --tp-size is needed after `{op.value}`, not {name!r}")
    if op is EditOp.SET:
        if not value:
            raise TemplateError(f"`set {name}` needs a value (`add {name}` for a switch)")
        return EditTemplate(op.value, name, _unquoted(value))
    if value:
        raise TemplateError(
            f"`{op.value} {name}` takes no value" + (" (use `set`)" if op is EditOp.ADD else "")
        )
    return EditTemplate(op.value, name)


def _unquoted(value: str) -> str:
    """A value written as one quoted shell word, without its quotes."""
    if value[:1] in ("'", '"'):
        import shlex

        try:
            words = shlex.split(value)
        except ValueError:
            return value
        if len(words) == 1:
            return words[0]
    return value


def _placeholder(match: re.Match[str]) -> Placeholder:
    filters = []
    for part in match[2].split("|")[1:]:
        name, _, argument = part.partition(":")
        name, argument = name.strip(), argument.strip()
        if name not in FILTERS:
            from mtpdoctor.kb.yaml_source import nearest

            raise TemplateError(f"unknown filter {name!r} in {match[0]}{nearest(name, FILTERS)}")
        wanted = _ARGUMENT[name]
        if wanted is None and argument:
            raise TemplateError(f"filter {name!r} takes no argument ({match[0]})")
        if wanted is not None and not argument:
            raise TemplateError(f"filter {name!r} needs an argument ({match[0]})")
        if argument.startswith("$") and name != "default":
            problem = check_fact_name(argument[1:])
            if problem:
                raise TemplateError(problem)
        elif wanted is float and _as_number(argument) is None:
            raise TemplateError(f"filter {name!r} needs a number, not {argument!r} ({match[0]})")
        filters.append((name, argument))
    return Placeholder(match[1], tuple(filters))


# --- filters ----------------------------------------------------------------------------------------


def _as_number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return None
    try:
        return value if isinstance(value, (int, float)) and math.isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None


def _largest_divisor_le(value: float, limit: float) -> float | None:
    whole, most = int(value), int(limit)
    if whole != value or whole < 1 or most < 1:
        return None
    if most >= whole:
        return whole
    best = 1
    for small in range(1, math.isqrt(whole) + 1):
        if whole % small == 0:
            best = max([best, *(d for d in (small, whole // small) if d <= most)])
    return best


def _tidy(number: float) -> float:
    """Without the noise of binary floats: 0.88 - 0.06 is 0.82."""
    return round(number, 10)


_NUMERIC: dict[str, Callable[[float, float], float | None]] = {
    "plus": lambda v, n: _tidy(v + n),
    "minus": lambda v, n: _tidy(v - n),
    "times": lambda v, n: _tidy(v * n),
    "div": lambda v, n: _tidy(v / n) if n else None,
    "min": min,
    "max": max,
    "round": lambda v, n: round(v, int(n)) if n > 0 else int(round(v, int(n))),
    "int": lambda v, _: int(v),
    "floor_multiple": lambda v, n: int(v // n * n) if n > 0 else None,
    "largest_divisor_le": _largest_divisor_le,
}
FILTERS = frozenset(_NUMERIC) | {"default", "lower", "flags"}
_ARGUMENT: dict[str, type | None] = dict.fromkeys(_NUMERIC, float) | {
    "int": None,
    "lower": None,
    "flags": None,
    "default": str,
}


def _value(placeholder: Placeholder, facts: Facts, captures: Mapping[str, str] | None) -> tuple[Any, str]:
    """The filtered value, or UNKNOWN and the name of the fact that is missing.

    A fact known to be absent has no value to put in: it counts as unknown here.
    """
    value = _named(placeholder.name, facts, captures)
    missing = placeholder.name if value is UNKNOWN else ""
    for name, argument in placeholder.filters:
        if name == "default":
            if value is UNKNOWN:
                value, missing = argument, ""
            continue
        if value is UNKNOWN:
            continue
        if name == "lower":
            value = str(value).lower()
            continue
        if name == "flags":  # of arguments as they were typed, without their values
            value = ", ".join(dict.fromkeys(_TYPED.findall(str(value)))) or value
            continue
        number: Any = _as_number(value)
        operand: Any = argument if argument else 0
        if argument.startswith("$"):
            operand = _named(argument[1:], facts, captures)
        by = _as_number(operand)
        if by is None:
            value, missing = UNKNOWN, argument.lstrip("$")
            continue
        result = None if number is None else _NUMERIC[name](number, by)
        value, missing = (UNKNOWN, placeholder.name) if result is None else (result, "")
    return value, missing


def computed(text: str, facts: Facts) -> Any:
    """The value of a text that is one placeholder, not turned into text; UNKNOWN when a fact is missing.

    Raises TemplateError when the text is anything else."""
    match = _PLACEHOLDER.fullmatch(text)
    if match is None:
        raise TemplateError(f"one {{fact|filter}} is needed, not {text!r}")
    return _value(_placeholder(match), facts, None)[0]


def _named(name: str, facts: Facts, captures: Mapping[str, str] | None) -> Any:
    if captures is not None and name in captures:
        value: Any = captures[name]
    else:
        value = look(name, facts, captures)
    return UNKNOWN if value is None else value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(_shown(v) for v in value)
    return str(value)


def _stand_in(name: str) -> str:
    """``<tp-size>`` for flag.tp_size: what to put there, for a person."""
    return "<" + name.rpartition(".")[2].replace("_", "-") + ">"


def literal(text: str) -> str:
    """The text as a template that says just this, whatever braces are in it."""
    return text.replace("{", "{{").replace("}", "}}") if "{" in text else text


def _hide_escapes(text: str) -> str:
    return text.replace("{{", "\0").replace("}}", "\1") if "{{" in text else text


def _show_escapes(text: str) -> str:
    return text.replace("\0", "{").replace("\1", "}")


def _fill(
    text: str,
    facts: Facts,
    captures: Mapping[str, str] | None,
    accept: Callable[[Any, str], str | None],
) -> tuple[str, tuple[str, ...]]:
    """The text, and the names of what could not be filled in. ``accept`` turns a value, and the text before it, into
    text or refuses it with None."""
    missing: list[str] = []
    hidden = _hide_escapes(text)

    def put(match: re.Match[str]) -> str:
        placeholder = _placeholder(match)
        value, lacking = _value(placeholder, facts, captures)
        shown = None if value is UNKNOWN else accept(value, hidden[: match.start()])
        if shown is None:
            missing.append(lacking or placeholder.name)
            return _stand_in(placeholder.name)
        return shown

    return _show_escapes(_PLACEHOLDER.sub(put, hidden)), tuple(dict.fromkeys(missing))


# --- filling ----------------------------------------------------------------------------------------


def fill(text: str, facts: Facts, captures: Mapping[str, str] | None = None) -> str:
    """A sentence with its placeholders filled; what is unknown stands as ``<name>``.

    Control characters of untrusted values become spaces, and long values are cut.
    """
    return _fill(text, facts, captures, _for_reading)[0]


def _for_reading(value: Any, before: str = "") -> str:
    if isinstance(value, (list, tuple)):
        shown = [_for_reading(v) for v in value[:_MAX_ITEMS]]
        more = len(value) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")
    shown_one = _CONTROL.sub(" ", _shown(value))
    return shown_one if len(shown_one) <= _MAX_TEXT else shown_one[: _MAX_TEXT - 3] + "..."


def _for_edit(value: Any, before: str = "") -> str | None:
    """One word that cannot be taken for a flag of its own; None refuses it."""
    shown = _shown(value)
    if not shown or (shown.startswith("-") and _as_number(shown) is None):
        return None
    return None if _CONTROL.search(shown) or any(c.isspace() for c in shown) or len(shown) > 4096 else shown


def _for_typing(value: Any, before: str) -> str | None:
    """Shell-quoted as the place asks for; a list as several words."""
    from mtpdoctor.kb.shell_words import open_quote, quoted  # only what is to be typed needs it

    shown = [_shown(v) for v in value] if isinstance(value, (list, tuple)) else [_shown(value)]
    if not shown or any(_CONTROL.search(s) or len(s) > 4096 for s in shown):
        return None
    return quoted(shown, open_quote(before))


def resolve_edit(
    template: EditTemplate, facts: Facts, captures: Mapping[str, str] | None = None
) -> tuple[Edit, tuple[str, ...]]:
    """The edit, and the facts that its value lacks."""
    op = EditOp(template.op)
    whole = _PLACEHOLDER.fullmatch(template.name) is not None
    name, missing = _fill(template.name, facts, captures, _for_flag if whole else _for_part_of_flag)
    value: str | None = None
    more: tuple[str, ...] = ()
    if template.value is not None:
        value, more = _fill(template.value, facts, captures, _for_edit)
    return Edit(op, name, value), (*missing, *more)


def _for_flag(value: Any, before: str = "") -> str | None:
    shown = _shown(value)
    return shown if _FLAG.match(shown) else None


def _for_part_of_flag(value: Any, before: str = "") -> str | None:
    shown = _shown(value)
    return shown if _FLAG.match("--x" + shown) else None


def resolve_remedy(remedy: Remedy, facts: Facts, captures: Mapping[str, str] | None = None) -> ResolvedRemedy:
    """The remedy with every placeholder filled that can be."""
    edits: list[Edit] = []
    missing: list[str] = []
    for template in remedy.edits:
        edit, lacking = resolve_edit(template, facts, captures)
        edits.append(edit)
        missing.extend(lacking)
    return ResolvedRemedy(
        edits=tuple(edits),
        missing=tuple(dict.fromkeys(missing)),
        title=fill(remedy.title, facts, captures),
        why=fill(remedy.why, facts, captures),
        risk=None if remedy.risk is None else fill(remedy.risk, facts, captures),
        run=tuple(_fill(command, facts, captures, _for_typing)[0] for command in remedy.run),
        safety=Safety.MANUAL if missing else remedy.safety,
    )
