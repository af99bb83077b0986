"""The option of the command that carries the value which a failure names.

A message says ``No such file: '/data/map.pt'`` or ``No module named 'hooks'`` and not where the name came from. Where it
stands in the value of one option of the launch, or of a variable that it sets, that is what to look at, whatever the
code that failed on it and whatever rule knows the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.unknown import root_traceback
from mtpdoctor.diagnose.written import left_out, required, said_by, written_values
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import flag_table

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.launch.types import FlagUse

# Options whose values stand in many messages and say nothing of the cause, or have rules of their own.
_NOT_MEANT = frozenset(
    {
        "model_path",
        "tokenizer_path",
        "served_model_name",
        "host",
        "port",
        "dist_init_addr",
        "tp_size",
        "api_key",
        "device",
        "speculative_draft_model_path",
    }
)
_PIECE = lazy(r"[\w./:@~+-]{3,}")
_PATH = lazy(r"[~/.]?[\w.@+-]*/[\w./@+-]+")
_SOURCE = lazy(r"[A-Za-z_]\w*(?:\.\w+)*:\w+")  # package.module:name
_DOTTED = lazy(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MODULE = lazy(r"No module named '([\w.]+)'")
_PARSER = ("unknown-flag", "ambiguous-flag", "bad-choice")  # the message lists what was typed
_IMPORT = lazy(r"ImportError|ModuleNotFoundError|not installed")
_COMMAND = lazy(r"(?:launch_server|sglang serve)\b.* --\w")  # printed behind the failure: the next launch
_WORDS = frozenset(
    {"true", "false", "null", "none", "auto", "name", "type", "config", "path", "model", "backend"}
)


@dataclass(frozen=True, slots=True)
class _Carried:
    name: str  # of the option, or of the environment variable
    piece: str
    use: FlagUse | None  # None: a variable


def with_carried(fixes: tuple[Fix, ...], cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    """``fixes``, behind those for the option whose value the failure names, where none of them speaks of that option."""
    parsers = cause.match.rule.remedies if cause.match is not None else ()
    if case.document is None or any(r.generate in _PARSER for r in parsers):
        return fixes
    said = said_by(root_traceback(cause), cause.root)
    text = "\n".join(line for line in said.split("\n") if not _COMMAND.search(line))
    found = _carried(text, case)
    if found is not None:
        if any(_speaks_of(found.name, fix) for fix in fixes):
            return fixes
        remedies = _of_value(found, case)
        if _is_choice(found, case) and _IMPORT.search(text) is not None:
            # the name is right, what it stands for is not installed: nothing in it to correct
            remedies = (r for r in remedies if r.edits)
    else:
        module = _MODULE.search(text)
        if module is None:
            return fixes
        remedies = _for_feature(module[1].partition(".")[0], case)
    new = [fix for remedy in remedies if (fix := fix_of(remedy, case, knowledge)) is not None]
    fixes = tuple(fix for fix in fixes if all(fix.title != n.title for n in new))
    if found is not None and _IMPORT.search(text):  # the value is right, what it needs is not there
        installs = tuple(fix for fix in fixes if any(_installs(found.piece, line) for line in fix.run))
        return (*installs, *new, *(fix for fix in fixes if fix not in installs))
    return (*new, *fixes)


def _installs(name: str, line: str) -> bool:
    return "pip install" in line and name.replace("_", "-") in line.replace("_", "-")


def _speaks_of(name: str, fix: Fix) -> bool:
    return (
        name in fix.title or any(e.name == name for e in fix.edits) or any(name in line for line in fix.run)
    )


def _carried(text: str, case: Case) -> _Carried | None:
    """The option or variable whose value, or the longest part of it, stands in the message as a word of its own."""
    module = _MODULE.search(text)
    model = str(case.facts.look("arg.model_path") or "")
    best: _Carried | None = None
    imports = module is not None or _IMPORT.search(text) is not None
    for name, value, use in _values(case, choices=imports):
        for piece in _pieces(value):
            if module is not None and (_SOURCE.fullmatch(piece) or _DOTTED.fullmatch(piece)):
                named = module[1] == piece.partition(":")[0] or piece.startswith(module[1] + ".")
            else:
                named = _telling(piece) and piece not in model and _named(piece, text)
            if named and (best is None or len(piece) > len(best.piece)):
                best = _Carried(name, piece, use)
    return best


def _values(case: Case, *, choices: bool) -> Iterator[tuple[str, str, FlagUse | None]]:
    table = flag_table(case.release)
    for use, value in written_values(case):
        spec = table.resolve(use.name)
        if not choices and spec is not None and value in map(str, spec.choices or ()):
            continue  # one of a few: the message speaks of what was chosen, and does not fail on its name
        if use.dest not in _NOT_MEANT:
            yield use.name, value, use
    if case.document is not None:
        for name, value in case.document.command.env.items():
            if _PATH.fullmatch(value) or _DOTTED.fullmatch(value):
                yield name, value, None


def _is_choice(found: _Carried, case: Case) -> bool:
    spec = flag_table(case.release).resolve(found.name) if found.use is not None else None
    return spec is not None and found.piece in map(str, spec.choices or ())


def _named(piece: str, text: str) -> bool:
    """In the message as a word; or the folder of a file, in quotes of its own (code that looks the folder up), or
    the folder in which a file is looked for."""
    return _stands_in(piece, text) or (
        piece.count("/") > 1
        and (
            f"'{piece.rpartition('/')[0]}'" in text or (piece[0] == "/" and f"'{piece.rstrip('/')}/" in text)
        )
    )


def _pieces(value: str) -> Iterator[str]:
    yield value
    for found in _PIECE.finditer(value):
        yield found[0].rstrip(".:")
    yield from value.replace("=", " ").split()


def _telling(piece: str) -> bool:
    """Is it a path or a name that no message would hold by chance?"""
    if _PATH.fullmatch(piece):
        return len(piece) > 4
    return (
        len(piece) > 3
        and piece.lower() not in _WORDS
        and not piece.replace(".", "").isdigit()
        and (not piece.isalpha() or len(piece) > 5)
    )


def _stands_in(piece: str, text: str) -> bool:
    at = text.find(piece)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(piece) : at + len(piece) + 1]
        begins = piece.startswith("/") or not (before.isalnum() or before in ("_", "/", "-", "."))
        if begins and not (after.isalnum() or after in ("_", "-", "/")):
            return True
        at = text.find(piece, at + 1)
    return False


def _of_value(found: _Carried, case: Case) -> Iterator[Remedy]:
    name, piece = found.name, found.piece
    path = _PATH.fullmatch(piece) is not None
    look = f"ls -l '{piece}'" if path and "'" not in piece else ""
    if not look and found.use is not None:
        look = f"python -m sglang.launch_server --help | grep -A4 -- {name}"
    yield Remedy(
        title=f"Correct {name}: the failure names {piece}, which comes from its value",
        safety=Safety.MANUAL,
        why="it must be there where the server runs (inside the container), and be what the setting takes"
        if path
        else "nothing else in the command holds that name",
        run=(look,) if look else (),
    )
    if found.use is None:
        yield Remedy(
            title=f"Leave {name} out",
            safety=Safety.RISKY,
            why="what failed is its value; without it the default is taken",
            edits=(EditTemplate("unset", name),),
            risk="the default folder must have room and be writable",
        )
    elif not required(found.use, case):
        yield left_out(found.use)


def _for_feature(module: str, case: Case) -> Iterator[Remedy]:
    """A module that only a feature needs: it stands in the name of an option that was typed."""
    if len(module) < 4 or case.document is None:
        return
    from mtpdoctor.diagnose.kinds.package import install_remedy, usable_name
    from mtpdoctor.sglang.packages import package_of

    if not usable_name(module):
        return
    for use in case.document.command.flags:
        if module.lower() in use.name.replace("-", "_") and use.dest not in _NOT_MEANT:
            yield install_remedy(module, package_of(module).distributions[-1], case)
            if not required(use, case):
                yield left_out(use)
            return
