"""What passes a check whose message says so in short: "TP=EP=1", "topk=1", "TP <= KV heads; got TP=16, KV heads=8", "expected
'page_first'" of an option that it does not name, "SGLANG_X does not support this".

Read in the message of SGLang's own exception only. Options and variables that it names as the command line does are read in
``printed.options``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from mtpdoctor.case import Case
from mtpdoctor.diagnose.kinds.said import as_the_message_says, worded
from mtpdoctor.diagnose.named_options import is_word, number
from mtpdoctor.diagnose.workable import can_work
from mtpdoctor.facts import UNKNOWN
from mtpdoctor.kb.types import EditTemplate, Remedy, Safety
from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import FlagSpec, FlagTable, flag_table
from mtpdoctor.sglang.options import same_option
from mtpdoctor.sglang.releases import release_facts

MOST = 2
_SHORT = {
    "tp": "tp_size", "attn_tp_size": "tp_size", "tensor": "tp_size",
    "pp": "pp_size", "pipeline": "pp_size",
    "dp": "dp_size", "data": "dp_size",
    "ep": "ep_size", "expert": "ep_size", "moe_ep_size": "ep_size",
    "cp": "attn_cp_size", "cp_size": "attn_cp_size", "context": "attn_cp_size", "dcp": "dcp_size",
    "topk": "speculative_eagle_topk", "eagle_topk": "speculative_eagle_topk",
    "num_steps": "speculative_num_steps", "num_draft_tokens": "speculative_num_draft_tokens",
}  # fmt: skip
_NAME = r"(?<![\w-])(?:--)?[A-Za-z][\w-]*(?: size)?"
_ASKS = lazy(
    r"(?i)\b(?:requires?|required|needs?|only|must|expects?|expected|limited to|has to|supports? only|please set)\b"
)
_SHOWS = lazy(r"(?i)\b(?:got|but|found|received|given|currently|current|here|is set to|resolved)\b")
_CLAUSE = lazy(r"[;.]\s")
_EQUAL = lazy(rf"(?P<names>{_NAME}(?:\s*==?\s*{_NAME}){{0,4}})\s*(?:==?|(?:must|should|to) be(?: exactly)?)\s*(?P<value>\d+)\b(?!\.\d)")  # fmt: skip
_SUM = lazy(rf"(?P<name>{_NAME})\s*==\s*(?P<other>{_NAME})(?:\s*\+\s*(?P<more>\d+))?")
_BOUND = lazy(
    rf"(?P<name>{_NAME})\s*(?P<sign><=|>=)\s*(?:(?P<number>\d+)\b|(?P<other>[A-Za-z][\w ]*?)\s*(?:\((?P<shown>\d+)\)|[;,.)]))"
)
_ONE_GPU = lazy(r"(?i)\bsingle[- ]GPU\b")
_WITHOUT = lazy(
    r"(?i)(?:\bnot\b|n't\b|\bcannot\b)[^.;]{0,60}?\b(?P<kind>tensor|pipeline|context|data|expert)[ -]?parallel(?!\w* attention)"
)
_WITHOUT_SHORT = lazy(
    r"(?:\bnot\b|n't\b)[^.;]{0,40}?(?:(?:with|under|for|when) (?P<kind>TP|PP|CP|DCP|EP)\b(?!\d)|\b(?P<aware>TP|PP|CP|DCP|EP)-aware)"
)
_LISTS = lazy(
    r"(?i)\b(?:only|one of|expected|choose|allowed|requires?|needs?|must|use|valid|available)\b|(?<!not )(?<!yet )\bsupport(?:ed|s)\b(?! only if)"
)
_VALUE = lazy(r"[A-Za-z]\w*(?:-\w+)*")
_LIST = lazy(
    r"(?i)\b(?:valid|available|supported|allowed|expected|registered|known|choose from)\b[^\[:]{0,40}(?::| are| is)?\s*[\[({](?P<items>[^\])}]+)[\])}]"
)
_ITEM = lazy(r"'([^']+)'|\"([^\"]+)\"|([^\s,'\"]+)")
_VARIABLE = lazy(r"(?<![\w/.$])(?P<name>SGLANG_[A-Z0-9_]+|SGL_[A-Z0-9_]+)(?:=(?P<value>\w+))?")
# Behind a variable that is on.
_SPOKEN_AGAINST = lazy(
    r"(?i)^[`'\"]?:? ?(?:only (?:supports?|works?)|supports? only|(?:does|do|is|can)(?: not|n't)\b(?! (?:set|given|defined|found|specified|exist|point|contain|name|an? |the |one of|in )\b)|"
    r"cannot\b|is (?:incompatible|unsupported|enabled,? but|set,? but)|conflicts)"
)
_TO_BE_OFF = lazy(
    r"(?i)\b(?:unset|disable|turn off|switch off|without|remove)\s+(?:the )?(?:environment variable )?[`'\"]?$"
)
_TO_BE_SET = lazy(
    r"(?i)\b(?:(?:re-?run|run|launch|start|restart) with|set|setting|use|export|try|or)\s+[`'\"]?$"
)
_OFF = frozenset({"0", "false", "off", "no"})


def passing(text: str, case: Case) -> tuple[Remedy, ...]:
    """At most ``MOST`` remedies, what the message says of numbers first."""
    text = " ".join(text.split())[:2000]
    table = flag_table(case.release)
    out: list[Remedy] = []
    both = _both_sides(text, case, table)
    edits = tuple(_numbers(text, case, table)) if both is None else ()
    if both is not None:
        out.append(both)
    elif edits:
        out.append(_as_said(edits))
    else:
        out += _chosen(text, case, table)
    out += _variables(text, case)
    return tuple(out[:MOST])


def _as_said(edits: tuple[EditTemplate, ...]) -> Remedy:
    return as_the_message_says(edits, "the message says what passes its check")


# -- numbers -------------------------------------------------------------------------------------------
def _numbers(text: str, case: Case, table: FlagTable) -> Iterator[EditTemplate]:
    wanted: dict[str, tuple[FlagSpec, int]] = {}
    for clause in _CLAUSE.split(text):
        asks = _ASKS.search(clause)
        if asks is None:
            continue
        shows = _SHOWS.search(clause, asks.end())
        end = shows.start() if shows is not None else len(clause)
        for name, value in _equalities(clause[:end], case, table):
            wanted.setdefault(name.dest, (name, value))
        for spec, value in _bounds(clause[:end], text, case, table):
            wanted.setdefault(spec.dest, (spec, value))
        tp = table.by_dest("tp_size")
        if tp is not None and _ONE_GPU.search(clause, asks.end()):
            wanted.setdefault(tp.dest, (tp, 1))
    topk = wanted.get("speculative_eagle_topk")
    steps, tokens = _here("speculative_num_steps", case), table.by_dest("speculative_num_draft_tokens")
    if topk is not None and topk[1] == 1 and steps is not None and tokens is not None:
        wanted.setdefault(
            tokens.dest, (tokens, int(steps) + 1)
        )  # a chain has one token for each step, and the first
    made = False
    for spec, value in wanted.values():
        now = _here(spec.dest, case)
        if now is not None and now != value:
            made = True
            yield EditTemplate("set", spec.name, str(value))
    if not made:
        yield from _without_parallel(text, case, table)


def _without_parallel(text: str, case: Case, table: FlagTable) -> Iterator[EditTemplate]:
    for pattern in (_WITHOUT, _WITHOUT_SHORT):
        for found in pattern.finditer(text):
            kind = found["kind"] or found["aware"]
            spec = _spec(kind.lower(), table)
            now = _here(spec.dest, case) if spec is not None else None
            if spec is not None and now is not None and now > 1:
                if spec.dest == "tp_size":
                    yield EditTemplate("set", spec.name, "1")
                else:
                    yield EditTemplate("remove", spec.name)
                return


def _equalities(clause: str, case: Case, table: FlagTable) -> Iterator[tuple[FlagSpec, int]]:
    for found in _SUM.finditer(clause):
        one, other = _spec(found["name"], table), _spec(found["other"], table)
        right = _here(other.dest, case) if other is not None else None
        if one is not None and right is not None:
            yield one, int(right) + int(found["more"] or 0)
            return
    for found in _EQUAL.finditer(clause):
        specs = [_spec(name.strip(), table) for name in found["names"].replace("==", "=").split("=")]
        for spec in specs:
            if spec is not None and spec.type == "int":
                yield spec, int(found["value"])


def _bounds(clause: str, text: str, case: Case, table: FlagTable) -> Iterator[tuple[FlagSpec, int]]:
    for found in _BOUND.finditer(f"{clause};"):
        spec = _spec(found["name"], table)
        if spec is None or spec.type != "int":
            continue
        limit = found["number"] or found["shown"]
        if limit is None:
            words = found["other"].strip().removeprefix("the ")
            other = _spec(words, table)
            shown = re.search(rf"(?i)\b{re.escape(words)}\s*[=:(]\s*(\d+)", text)
            known = _here(other.dest, case) if other is not None else None
            limit = shown[1] if shown else (str(int(known)) if known is not None else None)
        now = _here(spec.dest, case)
        if limit is None or now is None:
            continue
        if (found["sign"] == "<=" and now > int(limit)) or (found["sign"] == ">=" and now < int(limit)):
            yield spec, int(limit)


def _spec(name: str, table: FlagTable) -> FlagSpec | None:
    plain = name.removeprefix("--").replace("-", "_").lower().removesuffix(" size").strip()
    for dest in (plain, _SHORT.get(plain, "")):
        for other in same_option(dest) if dest else ():
            spec = table.by_dest(other)
            if spec is not None and spec.refused is None:
                return spec
    return None


def _here(dest: str, case: Case) -> float | None:
    for other in same_option(dest):
        value = number(case.facts.look(f"arg.{other}"))
        if value is not None:
            return value
    return None


# -- two servers ---------------------------------------------------------------------------------------
_SIDES = lazy(
    r"(?i)\b(?:prefill|src)\b[\w ]{0,20}=\s*(?P<prefill>\d+)\W{1,3}(?:decode|dst)\b[\w ]{0,20}=\s*(?P<decode>\d+)"
)
_SIZES = lazy(
    r"(?i)\bdecode (?P<what>\w+) size \((?P<decode>\d+)\)[\w ]*? equal to (?:prefill \w+ size \((?P<prefill>\d+)\)|(?P<only>\d+))"
)
_SPLITS = lazy(r"(?i)\b(?:attn[_ ]|attention )?(?P<what>dcp|tp|cp|pp|ep)(?:\b|_)|\bpage[_ ]size\b")


def _both_sides(text: str, case: Case, table: FlagTable) -> Remedy | None:
    """Of a prefill and a decode server that differ: the option, and the value that makes them alike."""
    found = _SIZES.search(text) or _SIDES.search(text)
    split = _SPLITS.search(text)
    if found is None or split is None:
        return None
    spec = _spec((found.groupdict().get("what") or split["what"] or "page_size").lower(), table)
    if spec is None or found["prefill"] == found["decode"]:
        return None
    values = {"prefill": found["prefill"] or found.groupdict().get("only"), "decode": found["decode"]}
    mode = case.facts.look("flag.disaggregation_mode")
    own = str(mode) if mode in values else ""
    wanted = values["prefill" if own == "decode" else "decode"] or ""
    here = _here(spec.dest, case)
    # what takes no more GPUs than there are; the other way round it is the other server's turn
    fits = own != "" and here is not None and str(int(here)) == values[own] and int(wanted) < here
    return Remedy(
        title=f"Start both servers with the same {spec.name}: it is {values['prefill']} for the prefill server "
        f"and {values['decode']} for the decode server",
        safety=Safety.RISKY if fits else Safety.MANUAL,
        why="the message holds the two servers against each other",
        edits=(EditTemplate("set", spec.name, wanted),) if fits else (),
        risk="fewer ranks have less memory" if fits else None,
        run=() if fits else ('grep -ho "server_args=.*" PREFILL_LOG DECODE_LOG',),
    )


# -- values --------------------------------------------------------------------------------------------
def _chosen(text: str, case: Case, table: FlagTable) -> Iterator[Remedy]:
    """Another value of an option whose own value the message shows; of those that it lists, the first that can work."""
    if _LISTS.search(text) is None:
        return
    words = [m[0] for m in _VALUE.finditer(text)]
    spoken = {spec.dest for spec in worded(text, table) if spec.choices}
    for spec, now in _valued(case, table, spoken):
        if now not in words or (spoken and spec.dest not in spoken) or _is_listed(now, text):
            continue  # the message is about another option, or lets this one have its value
        others = [
            w for w in words if w != now and w in {str(c) for c in spec.choices or ()} and not _plain(w)
        ]
        value = next((w for w in others if can_work(spec.dest, w, case.facts, case.release)), None)
        if value is not None:
            yield _as_said((EditTemplate("set", spec.name, value),))
            return
    listed = _LIST.search(text)
    if listed is None:
        return
    items = ["".join(m.groups("")) for m in _ITEM.finditer(listed["items"])]
    before = text[: listed.start()]
    for spec, now in _valued(case, table, set()):
        if now in _VALUE.findall(before) and now not in items and len(now) > 2 and items:
            value = next(iter(get_close_matches(now, items, n=1)), items[0])
            yield _as_said((EditTemplate("set", spec.name, value),))
            return


def _is_listed(value: str, text: str) -> bool:
    """Does it stand in a list wherever it stands, as what is allowed does?"""
    places = re.finditer(rf"(?<![\w-]){re.escape(value)}(?![\w-])", text)
    return all(
        re.match(r"[`'\"]?(?:,| or | and |\s?/)", text[m.end() :])
        or re.search(r"(?:,|\bor|\band|/) ?[`'\"]?$", text[: m.start()])
        for m in places
    )


def _valued(case: Case, table: FlagTable, spoken: set[str]) -> Iterator[tuple[FlagSpec, str]]:
    """Options with a word for a value: those that were typed, then those that are ``spoken`` of."""
    for kind in ("flag", "arg"):
        for name in case.facts:
            value: Any = case.facts[name] if name.startswith(f"{kind}.") else None
            spec = table.by_dest(name.partition(".")[2]) if isinstance(value, str) else None
            if spec is None or spec.dest in _ROLES or spec.arity != "one" or _plain(value):
                continue
            if kind == "flag" or spec.dest in spoken:
                yield spec, value


def _plain(word: str) -> bool:
    return len(word) < 3 or is_word(word) or word.lower() in _NO_VALUE


_NO_VALUE = frozenset(
    ["auto", "none", "true", "false", "default", "native", "normal", "full", "all", "page", "cpu", "cuda", "gpu", "model",
     "mode", "info", "error", "prefill", "decode", "null"]
)  # fmt: skip
_ROLES = frozenset({"disaggregation_mode", "device", "model_path", "served_model_name", "log_level"})


# -- variables -----------------------------------------------------------------------------------------
def _variables(text: str, case: Case) -> Iterator[Remedy]:
    """A variable of SGLang that the message speaks against: unset where the command sets it, switched off where the
    release knows it as a switch; else where to look for it."""
    known = release_facts(case.release).env
    seen: set[str] = set()
    for found in _VARIABLE.finditer(text):
        name = found["name"]
        off = (found["value"] or "").lower() in _OFF and _TO_BE_SET.search(text[: found.start()]) is not None
        against = _SPOKEN_AGAINST.match(text[found.end() :]) or text[found.end() :].startswith(": no ")
        if name in seen or not (off or against or _TO_BE_OFF.search(text[: found.start()])):
            continue
        seen.add(name)
        spec = known.get(name)
        typed = case.facts.look(f"env.{name}") not in (UNKNOWN, None)
        if typed and not off:
            yield _as_said((EditTemplate("unset", name),))
        elif off or (spec is not None and spec.type == "bool"):
            yield _as_said((EditTemplate("env", name, found["value"] if off else "0"),))
        else:
            yield Remedy(
                title=f"Take {name} out where it is set: the shell, the image, the service or its compose file",
                safety=Safety.MANUAL,
                why="the message shows that it is set, and the command does not set it",
                run=(f"unset {name}",),
            )
