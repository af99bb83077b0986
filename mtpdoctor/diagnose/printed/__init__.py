"""Remedies that the log itself prints: in the message of the root exception, and on the lines directly around it.

``add --x``, ``use --x V instead``, ``set NAME=V``, ``pip install X``, ``requires X>=V``, ``Did you mean 'Y'?``. Each is an
edit that is tried like any other, or a command with nothing but names and versions in it. They are risky or manual: whoever
wrote the message did not know this launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain as chain_of
from typing import TYPE_CHECKING

from mtpdoctor.case import Case
from mtpdoctor.diagnose.failures import PEER_ENDED, chain
from mtpdoctor.diagnose.kinds.module import remedy_of_row
from mtpdoctor.diagnose.kinds.said import in_short
from mtpdoctor.diagnose.printed.installs import named_packages, pip_commands, required_versions
from mtpdoctor.diagnose.printed.options import Told, told
from mtpdoctor.diagnose.printed.passing import passing
from mtpdoctor.diagnose.printed.sentences import SOLUTIONS, is_other_text, sentences
from mtpdoctor.diagnose.remedies import fix_of
from mtpdoctor.diagnose.unknown import is_own, root_traceback
from mtpdoctor.kb.types import Remedy, Safety
from mtpdoctor.log.tracelines import is_record
from mtpdoctor.log.types import EventKind, Line
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.packages import module_named, package_of
from mtpdoctor.sglang.releases import release_facts

if TYPE_CHECKING:
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge

MOST = 3  # remedies of one failure
AROUND = 4  # lines before the traceback and behind it
_SHOWN = 150  # characters of a sentence in a reason
_MEANT = lazy(r"unexpected keyword argument '(?P<was>\w+)'\W+Did you mean:? '(?P<meant>\w+)'")
_TROUBLE = lazy(
    r"(?i)\b(?:fail(?:ed|ure|s)?|error|cannot|could not|unable|fatal|work ?around|not installed)\b"
)
_LISTED = lazy(r"\s*\d+\. (?:set|disable|try|use|reduce|lower) ")  # below SOLUTIONS
_OUTDATED = lazy(r"\b(?:Future|(?:Pending)?Deprecation)Warning\b")  # of what works still
_MEMORY = lazy(r"(?i)out of memory|not enough memory|OutOfMemory|\bOOM\b|memory capacity")
_MEMORY_OPTIONS = frozenset({"--mem-fraction-static", "--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"})


@dataclass(frozen=True, slots=True)
class Printed:
    """Fixes that the root exception or the lines around it say, and those of a list that stands below any failure
    of its kind."""

    fixes: tuple[Fix, ...]
    of_a_list: tuple[Fix, ...]


_BROKEN = lazy(
    r"undefined symbol|cannot open shared object file|version `(?:GLIBC|GLIBCXX|CXXABI)_|file too short|invalid ELF header|wrong ELF class|static TLS"
)


def printed_fixes(cause: Cause, case: Case, knowledge: Knowledge, *, around: bool) -> Printed:
    """At most ``MOST`` of each, the root's own message first; ``around``: the lines beside it too."""
    own, listed = _texts(cause, case, around)
    if PEER_ENDED.search(own[0] if own else ""):
        listed = []  # a list of what mostly helps at this stage
    remedies = chain_of(
        passing(own[0], case) if around and own and _is_own(cause) else (), _remedies(own, case)
    )
    return Printed(_fixes(remedies, case, knowledge), _fixes(_of_list(listed, own, case), case, knowledge))


def _is_own(cause: Cause) -> bool:
    """Is it SGLang's own code that raised, as far as the log shows?"""
    root = root_traceback(cause)
    return root is None or not root.frames or is_own(root.frames[-1].path)


def _fixes(remedies: Iterator[Remedy], case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    out: list[Fix] = []
    for remedy in remedies:
        fix = fix_of(remedy, case, knowledge)
        if fix is None or (remedy.edits and not fix.edits):
            continue
        if all(f.title != fix.title and (not fix.edits or f.edits != fix.edits) for f in out):
            out.append(fix)
        if len(out) == MOST:
            break
    return tuple(out)


def _texts(cause: Cause, case: Case, around: bool) -> tuple[list[str], list[str]]:
    """What may say what to do, and the lists of solutions among it."""
    event = cause.failure.event
    if event is not None and event.kind is EventKind.ARGPARSE:
        return [], []
    root = root_traceback(cause)
    messages = [root.message if root is not None and root.message else cause.root.body]
    if event is not None and event.traceback is not None:
        members = chain(event.traceback)
        at = next((i for i, m in enumerate(members) if m is root), len(members))
        messages += [m.message for m in members[at + 1 :]]
    own: list[str] = []
    listed: list[str] = []
    for line in _around(cause, case) if around else ():
        # the list stands apart where the message above it has empty lines
        (listed if _LISTED.match(line.body) else messages).append(line.body)
    for message in messages:
        text, _, solutions = message.partition(SOLUTIONS)
        own.append(text)
        if solutions:
            listed.append(solutions)
    return list(dict.fromkeys(own)), list(dict.fromkeys(listed))


def _around(cause: Cause, case: Case) -> list[Line]:
    """The lines before and behind the failure that the same process wrote, records only where they tell of trouble:
    a start goes on after many a record that recommends something."""
    if case.reading is None or case.attempt is None:
        return []
    event, root = cause.failure.event, cause.root
    lines = event.traceback.lines if event is not None and event.traceback is not None else ()
    first, last = (lines[0].number, lines[-1].number) if lines else (root.number, root.number)
    rank = event.rank if event is not None else root.rank
    near = case.reading.hits.window(root.file, first - AROUND, first - 1)
    near += case.reading.hits.window(root.file, last + 1, last + AROUND)
    return [
        line
        for line in near
        if case.attempt.holds(line)
        and line.stream == root.stream
        and line.rank in (None, rank)
        and not is_other_text(line.body)
        and not _OUTDATED.search(line.body)
        and (not is_record(line) or _TROUBLE.search(line.body))
    ]


def _remedies(texts: list[str], case: Case) -> Iterator[Remedy]:
    table, known = flag_table(case.release), release_facts(case.release).env
    # A package that is there and cannot be loaded: whoever asks to install it had only seen that the import failed.
    broken = bool(texts) and _BROKEN.search(texts[0]) is not None
    for text in texts:
        if meant := _MEANT.search(text):
            yield _keyword(meant["was"], meant["meant"])
        for sentence in sentences(text):
            for way in told(sentence, table, case.facts, known):
                yield _of_way(way)
            for remedy in _installs(sentence, case):
                if not broken or text == texts[0] or any(line.startswith("apt-get") for line in remedy.run):
                    yield remedy


def _of_list(texts: list[str], own: list[str], case: Case) -> Iterator[Remedy]:
    """What SGLang lists below any failed capture; its advice on memory only where memory was short."""
    table = flag_table(case.release)
    short = any(_MEMORY.search(text) for text in own)
    for text in texts:
        for sentence in sentences(text):
            for way in told(sentence, table, case.facts, {}):
                if way.edits and (short or not any(e.name in _MEMORY_OPTIONS for e in way.edits)):
                    yield _of_way(way)


def _of_way(way: Told) -> Remedy:
    if not way.edits:
        return Remedy(way.look, Safety.MANUAL, _said(way.sentence))
    return Remedy(
        title=f"Do as the log says: {', '.join(map(in_short, way.edits))}",
        safety=Safety.RISKY,
        why=_said(way.sentence),
        edits=way.edits,
        risk="a message can ask for what does not fit this model or GPU, or take away what another option was for",
    )


def _installs(sentence: str, case: Case) -> Iterator[Remedy]:
    why = _said(sentence)
    risk = "pip may change what else depends on it; look at pip check afterwards"
    for command in pip_commands(sentence):
        yield Remedy(f"Do as the log says: {command}", Safety.MANUAL, why, run=(command,), risk=risk)
    for name, version in required_versions(sentence):
        module = module_named(name)
        if module is not None:
            plain = name.lower().replace(
                "_", "-"
            )  # a version belongs to the name it stands by (triton comes with torch)
            told = plain if plain in package_of(module).distributions else _distribution(module, case)
            command = f"pip install '{told}{version}'"
            yield Remedy(f"Do as the log says: {command}", Safety.MANUAL, why, run=(command,), risk=risk)
    for name in named_packages(sentence):
        module = module_named(name)
        if module is None:
            continue
        missing = package_of(module).missing
        if missing is not None and missing.holds(case.release):
            yield remedy_of_row(missing, release_facts(case.release), case)
        else:
            command = f"pip install {_distribution(module, case)}"
            yield Remedy(f"Do as the log says: {command}", Safety.MANUAL, why, run=(command,), risk=risk)


def _distribution(module: str, case: Case) -> str:
    names, pins = package_of(module).distributions, release_facts(case.release).pins
    return next((n for n in names if n in pins), names[-1])


def _keyword(was: str, meant: str) -> Remedy:
    return Remedy(
        title=f"Write {meant} instead of {was}",
        safety=Safety.MANUAL,
        why="Python names it as the keyword nearest to what was passed; SGLang renames fields of ServerArgs from release to release",
    )


def _said(sentence: str) -> str:
    text = sentence if len(sentence) <= _SHOWN else sentence[: _SHOWN - 4].rstrip() + " ..."
    return f'the log says: "{text}"'
