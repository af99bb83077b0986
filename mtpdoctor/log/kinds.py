"""The transports known: what each puts in front of a line, and how sure one may be of it.

Sources of the forms: docker/compose and kubectl output, the CRI log format, ``journalctl -o``
short/short-iso/short-precise/short-unix/with-unit, RFC 3164 and 5424, ``srun --label``, Ray's
worker prefixes, ``torchrun --tee``, torch's ``[rank0]:`` exception hook, ``mpirun --tag-output``,
``ts`` of moreutils, pdsh, stern, the borders of terminal panes (tmux, k9s), and programs that log
the lines of a program they run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from mtpdoctor.compiled import compile_kept
from mtpdoctor.records import dataclass

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_SPACED = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"
_SYSLOG = rf"(?:{'|'.join(_MONTHS)}) [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
_LEVEL = r"(?:DEBUG|INFO|SUCCESS|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)"
# no program is named like the hour of a second time stamp
_PROGRAM = r"(?!\d+:)(?P<stream>[^\s\[\]:|]+(?:\[\d+\])?): ?(?P<rest>.*)"
_REST = r"(?:[ \t]|$)(?P<rest>.*)"


class Peeled(NamedTuple):
    """One prefix taken off. ``partial``: the program's line goes on in the next record."""

    stream: str
    time: str | None
    rest: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One transport.

    ``share``: of the lines of a sample that must carry it before it is believed; ``least``: how many
    lines; ``alone``: fewer will do when all lines have it. ``strong``: nothing else looks like it,
    so it is taken off wherever it stands. ``few``: believed only where few streams share the lines
    (words at the beginning of prose are many). ``might``: a cheap look that spares most lines the regex.
    """

    name: str
    might: Callable[[str], bool]
    peel: Callable[[str], Peeled | None]
    share: float
    least: int
    strong: bool = False
    alone: bool = False
    few: bool = False


def _pattern(*patterns: str) -> Callable[[str], Peeled | None]:
    compiled: list[re.Pattern[str]] = []

    def peel(text: str) -> Peeled | None:
        if not compiled:  # at first use: a plain log never pays for most of them
            compiled.extend(compile_kept(p, re.S) for p in patterns)
        for p in compiled:
            m = p.match(text)
            if m:
                g = m.groupdict()
                return Peeled(g.get("stream") or "", g.get("time"), g["rest"], g.get("flag") == "P")
        return None

    return peel


def _json(shape: str) -> Callable[[str], Peeled | None]:
    def peel(text: str) -> Peeled | None:
        from mtpdoctor.log.jsonlines import peel_json

        return peel_json(text, shape)

    return peel


def _braced(text: str) -> bool:
    return text[:1] == "{"


def _iso(text: str) -> bool:
    return text[10:11] == "T" and text[4:5] == "-"


def _journal(text: str) -> bool:
    return text[:3] in _MONTHS or text[:3] in _DAYS or text[:1] == "<" or _iso(text) or text[10:11] == "."


def _clock(text: str) -> bool:
    return text[:3] in _MONTHS or text[2:3] == ":" or text[4:5] == "-" or text[5:6] == "-"


def _numbered(text: str) -> bool:
    colon = text.find(":", 0, 12)
    return colon > 0 and text[colon - 1].isdigit()


def _host(text: str) -> bool:
    colon = text.find(":", 0, 80)
    return colon > 0 and text[colon - 1].isdigit() and text[0].islower()


def _pod(text: str) -> bool:
    return "-" in text[:60] and text[0].isalnum() and text.find(" ", 0, 80) > 0


_BOX = frozenset("│┃║")


def _boxed(text: str) -> bool:
    return text[:1] == "|" or text[:1] in _BOX or text.rstrip()[-1:] in _BOX


def _borders(text: str) -> Peeled | None:
    """A line copied out of a terminal's pane: its border on both sides, or on the right alone."""
    text = text.rstrip()
    left, right = text[:1], text[-1:]
    if len(text) < 2 or not (right in _BOX or left == right == "|"):
        return None
    if left in _BOX or left == "|":
        text = text[1:]
        text = text[1:] if text[:1] == " " else text
    return Peeled("", None, text[:-1].rstrip())


def _mpi(text: str) -> bool:
    return text[:1] == "[" and "]<std" in text[:40]


_MPI = r"\[(?:[^\]\s@]+@)?(?P<stream>\d+,\d+)\]<std(?:out|err)>:"
_STERN = r"(?P<stream>[a-z0-9][\w.]*-[\w.-]+ [a-z0-9][\w.-]*)"
_WEAK_SERVICE = r"\[?(?P<stream>[A-Za-z][\w.@-]*)\]? *\|" + _REST
_SERVICE = (
    r"(?:(?P<time>\d\d:\d\d:\d\d) )?(?P<stream>[A-Za-z0-9][\w.@-]*[-_.]\d+(?:\.\w+@[\w.-]+)?) *\|" + _REST
)

KINDS: tuple[Kind, ...] = (
    Kind("docker_json", _braced, _json("docker"), 0.2, 2, alone=True),
    Kind("journald_json", _braced, _json("journald"), 0.2, 2, alone=True),
    Kind("json", _braced, _json("any"), 0.6, 3, alone=True),
    Kind(
        "kubectl_prefix",
        lambda t: t.startswith(("[pod/", "[deploy", "[job", "[stateful")),
        _pattern(r"\[(?P<stream>(?:pod|deploy|job|statefulset)[\w.]*/[^\]\s/]+/[^\]\s]+)\] ?(?P<rest>.*)"),
        0.2,
        1,
        strong=True,
    ),
    Kind(
        "cri",
        _iso,
        _pattern(rf"(?P<time>{_ISO}) std(?:out|err) (?P<flag>[FP])(?::\w+)*(?: |$)(?P<rest>.*)"),
        0.2,
        1,
        strong=True,
    ),
    Kind(
        "journald",
        _journal,
        _pattern(
            rf"(?:<\d+>)?(?P<time>{_SYSLOG}) \S+ {_PROGRAM}",
            rf"(?:<\d+>)?(?P<time>{_ISO}) \S+ (?=\S+\[\d+\]: ?|kernel: ){_PROGRAM}",
            rf"(?P<time>\d{{10}}\.\d{{6}}) \S+ {_PROGRAM}",
            rf"(?P<time>(?:{'|'.join(_DAYS)}) {_SPACED} \S+) \S+ {_PROGRAM}",
            rf"<\d+>1 (?P<time>{_ISO}) \S+ (?P<stream>\S+) \S+ \S+ (?:-|\[[^\]]*\]) ?(?P<rest>.*)",
        ),
        0.2,
        2,
        alone=True,
    ),
    Kind(
        "ray",
        lambda t: t[:1] in ("(", "[") and ("pid=" in t[:160] or "(raylet" in t[:16]),
        _pattern(
            # "[36m" without its escape: a colour code that a copy through a web page left behind
            r"(?:\[\d+m)?\((?P<stream>(?:\S[^()]{0,80} )?pid=\d+(?:, ip=[^)\s]+)?|raylet(?:, ip=[^)\s]+)?)\)"
            r"(?:\[0m)?" + _REST
        ),
        0.02,
        1,
        strong=True,
    ),
    # some versions of mpirun put a blank behind the colon of every line
    Kind("mpi_blank", _mpi, _pattern(_MPI + _REST), 0.95, 2),
    Kind("mpi", _mpi, _pattern(_MPI + r"(?P<rest>.*)"), 0.2, 2, alone=True),
    Kind(
        "rank_prefix",
        lambda t: t.startswith(("[rank", "[default")),
        _pattern(
            r"\[(?P<stream>rank\d+)\]: ?(?P<rest>.*)",
            r"\[(?P<stream>default\d+)\]:(?P<rest>.*)",  # torchrun adds no blank
        ),
        0.02,
        1,
        strong=True,
    ),
    Kind(
        "logged_again",
        lambda t: " -" in t[:160],
        _pattern(
            rf"(?P<time>{_SPACED}) - \S+ - {_LEVEL} - ?(?P<rest>.*)",
            rf"(?P<time>{_SPACED}) \| {_LEVEL} *\| \S+ - ?(?P<rest>.*)",
            rf"\[(?P<time>\d{{4}}-\d\d-\d\d[T,] ?\d\d:\d\d:\d\d[^\]]*)\] \{{[^}}]*\}} {_LEVEL} - ?(?P<rest>.*)",
        ),
        0.9,
        3,
    ),
    Kind("iso_time", _iso, _pattern(rf"(?P<time>{_ISO}){_REST}"), 0.5, 2, alone=True),
    Kind(
        "compose",
        lambda t: "|" in t[:100] or " exited with code " in t[:120],
        _pattern(_SERVICE, r"(?P<rest>(?P<stream>[A-Za-z0-9][\w.@-]*[-_.]\d+) exited with code -?\d+.*)"),
        0.2,
        2,
        alone=True,
    ),
    Kind("borders", _boxed, _borders, 0.9, 5),
    Kind("compose_name", lambda t: "|" in t[:100], _pattern(_WEAK_SERVICE), 0.6, 3),
    Kind("slurm", _numbered, _pattern(rf" *(?P<stream>\d{{1,5}}):{_REST}"), 0.6, 3),
    Kind(
        "clock",
        _clock,
        _pattern(rf"(?P<time>{_SYSLOG}|{_SPACED}|\[{_ISO}\]|\d\d:\d\d:\d\d(?:\.\d+)?){_REST}"),
        0.9,
        3,
    ),
    Kind("host", _host, _pattern(r"(?P<stream>[a-z][\w.-]*\d):" + _REST), 0.95, 4, few=True),
    Kind("stern", _pod, _pattern(_STERN + _REST), 0.97, 5, few=True),
)


def constant(prefix: str) -> Kind:
    """A prefix of this file alone: an indentation, a quotation mark, a program's name."""

    def peel(text: str) -> Peeled | None:
        if text.startswith(prefix):
            return Peeled(prefix.strip(" \t:|>"), None, text[len(prefix) :])
        return Peeled("", None, "") if text and text == prefix.rstrip() else None

    return Kind("constant", lambda text: text[:1] == prefix[:1], peel, 1.0, 5)


STRONG: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind.strong)
JSON_KINDS = frozenset({"docker_json", "journald_json", "json"})
