"""A value that a message says to use without naming its option: "please use `triton` instead", "Set it to 'fa3'"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mtpdoctor.case import Case
from mtpdoctor.diagnose.workable import can_work
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import FlagSpec, FlagTable
from mtpdoctor.sglang.options import same_option

_USE = lazy(
    r"(?i)(?<![\w-])(?:(?:please |consider |try |and |or |, |; |\. |^)(?:use|using|try|switch(?:ing)? to|choose|select)"
    r"(?: the| an?(?:other| separate| different)? [\w ]{1,30}? such as)?"
    r"|(?:set|change|switch) (?:it|this|that) to|must be|should be|only supports?)\s+"
)
_LISTED = lazy(
    r"(?P<open>[`'\"]?)(?P<value>[A-Za-z]\w*(?:-\w+)*)[`'\"]?(?![\w.=(-])(?P<on>(?:\s*[,/]\s*(?:or\s+)?|\s+or\s+)(?=[`'\"]?[A-Za-z]))?"
)
_NO_CHOICE = frozenset(
    ["true", "false", "none", "auto", "default", "native", "normal", "full", "all", "page", "cpu", "cuda"]
)


def value_meant(
    text: str, spoken: Iterable[FlagSpec], table: FlagTable, case: Case
) -> tuple[FlagSpec, str] | None:
    """The option and the value: of those that the message speaks of, else the only one that has such a value. Of several
    values the first that can work here."""
    options = [spec for spec in spoken if spec.choices and spec.arity == "one"]
    for found in _USE.finditer(text):
        for value, quoted in _values(text, found.end()):
            for spec in options or _only(value, table):
                choice = _choice(spec, value, quoted)
                if choice is None or choice in _in_force(spec, case):
                    continue
                if can_work(spec.dest, choice, case.facts, case.release):
                    return spec, choice
    return None


def _values(text: str, at: int) -> Iterator[tuple[str, bool]]:
    """The words of a list ("a, b or c") that begins at ``at``, and whether each is quoted."""
    while (found := _LISTED.match(text, at)) is not None:
        if found["value"].lower() not in _NO_CHOICE:
            yield found["value"], found["open"] != ""
        if not found["on"]:
            return
        at = found.end()


def _only(value: str, table: FlagTable) -> list[FlagSpec]:
    """The option that alone has the value, where that is no common word."""
    if "_" not in value:
        return []
    having = [s for s in table.specs if s.refused is None and s.arity == "one" and _choice(s, value, True)]
    return having if len(having) == 1 else []


def _choice(spec: FlagSpec, value: str, quoted: bool) -> str | None:
    """Without quotes a word must be written as the value is: "FP8 block quantization" is none."""
    names = [str(c) for c in spec.choices or ()]
    if value in names:
        return value
    return next((name for name in names if name.lower() == value.lower()), None) if quoted else None


def _in_force(spec: FlagSpec, case: Case) -> set[str]:
    looked = (
        case.facts.look(f"{kind}.{dest}") for kind in ("flag", "arg") for dest in same_option(spec.dest)
    )
    return {str(value) for value in looked if value is not UNKNOWN}
