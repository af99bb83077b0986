"""Where among the fixes those stand that the log prints: before advice, behind what a rule knows of this very failure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mtpdoctor.diagnose.printed import printed_fixes
from mtpdoctor.sglang.packages import module_named

if TYPE_CHECKING:
    from mtpdoctor.case import Case
    from mtpdoctor.diagnose.causality import Cause
    from mtpdoctor.diagnose.types import Fix
    from mtpdoctor.kb.load import Knowledge
    from mtpdoctor.kb.types import Rule

# What only shows something, as a command and as the title of a fix.
_ACTS = re.compile(
    r"\b(?:install|uninstall|docker (?:pull|run|update)|git |hf download|unset|export|mv|rm|cp|sed|chmod|chown|sysctl|ulimit|modprobe|mount|kill|"
    r"systemctl|ln -s|swapon|fallocate|tee|scontrol|setfacl|ip link)\b"
)
_LOOKS = re.compile(
    r"^(?:Look|Read|Choose (?:among|what)|Compare|Check|Search|See |Find out|Start once|To see|Try the address|Write the option out)"
)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
_INSTALLED = re.compile(r"(?:pip3?|apt(?:-get)?) install\s+([^\n;&|]+)")


def with_printed(fixes: tuple[Fix, ...], cause: Cause, case: Case, knowledge: Knowledge) -> tuple[Fix, ...]:
    """``fixes`` and those that the log prints and they lack."""
    rule = cause.match.rule if cause.match is not None else None
    specific = rule is not None and not rule.generic and rule.evidence != "symptom"
    printed = printed_fixes(cause, case, knowledge, around=not specific)
    new = [f for f in printed.fixes if not any(_covers(have, f, specific) for have in fixes)]
    if rule is not None and specific:
        new = [f for f in new if not _is_taken_for_it(f, rule)]
        return (*fixes, *new) if any(f.edits or _acts(f) for f in fixes) else (*new, *fixes)
    listed: list[Fix] = []
    if rule is None or rule.generic:
        listed = [f for f in printed.of_a_list if not any(_covers(have, f) for have in (*fixes, *new))]
    again = [f for f in printed.fixes if f not in new]
    said = [have for have in fixes if any(_covers(have, f) for f in again)]
    rest = [have for have in fixes if have not in said]
    looking = [f for f in rest if not f.edits and not _acts(f) and _LOOKS.match(f.title)]
    doing = [f for f in rest if f not in looking]
    return (*_in_order(printed.fixes, said, new), *doing, *listed, *looking)


def _is_taken_for_it(fix: Fix, rule: Rule) -> bool:
    """Does the rule say of the very option that the log would have raised or lowered that it is not the cause?"""
    option = _OPTION.search(fix.title) if not fix.edits else None
    return option is not None and option[0] in _OPTION.findall(rule.misleading or "")


def _acts(fix: Fix) -> bool:
    """Is there a command that changes something?"""
    return any(_ACTS.search(line) for line in fix.run)


def _in_order(printed: tuple[Fix, ...], said: list[Fix], new: list[Fix]) -> tuple[Fix, ...]:
    """In the order in which the log says them, in a rule's words where it has some."""
    out: list[Fix] = []
    for fix in printed:
        known = [fix] if fix in new else [have for have in said if _covers(have, fix)]
        out += [f for f in known if f not in out]
    return tuple(out)


def _covers(have: Fix, fix: Fix, in_part: bool = False) -> bool:
    """Does ``have`` do what ``fix`` says: the same settings (``in_part``: one of them), or the same package?"""
    if fix.edits:
        done = {(e.op, e.name, e.value) for e in have.edits}
        return (any if in_part else all)((e.op, e.name, e.value) in done for e in fix.edits)
    wanted = _packages(fix)
    if wanted:
        return wanted <= _packages(have)
    option = _OPTION.search(fix.title)  # one to raise or to lower, to no value that the log tells
    if option is None:
        return fix.title == have.title
    return option[0] in have.title or any(e.name == option[0] for e in have.edits)


def _packages(fix: Fix) -> set[str]:
    out = set()
    for line in fix.run:
        for found in _INSTALLED.finditer(line):
            for word in found[1].split():
                name = re.split(r"[=<>~!\[;]", word.strip("'\""))[0]
                if name and not name.startswith("-"):
                    out.add(module_named(name) or name.lower())
    return out
