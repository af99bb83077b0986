"""What a release's argparse would say to a command line, without that release.

Follows argparse's own order: words are options by exact name or unambiguous beginning, each option takes
the values its arity allows, a value is converted and held against the choices, what is left over is
unrecognized. The first error found is the one SGLang would print.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from mtpdoctor.patterns import lazy
from mtpdoctor.sglang.flags import FlagSpec, FlagTable

_NEGATIVE = lazy(r"^-\d+$|^-\d*\.\d+$")
_REFERENCE = lazy(r"\$[A-Za-z_{(]|`")
_SIZE = lazy(r"\d+(?:\.\d+)?(?:k|M|G|T)|\d+(?:Ki|Mi|Gi|Ti)")
_PHASES = ("decode", "prefill")  # of CUDA graphs
PROGRAM = "launch_server.py"


def parse_error(words: Sequence[str], table: FlagTable) -> str | None:
    """The line after which ``python -m sglang.launch_server WORDS`` ends with exit code 2; None when the
    words parse, or when only a value that a shell would fill in (``$MODEL``) could decide it."""
    extras: list[str] = []
    seen: set[str] = set()
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            extras += words[i + 1 :]
            break
        if not _is_option(word):
            extras.append(word)
            i += 1
            continue
        name, equals, inline = word.partition("=")
        found = _options(name if name not in table and equals else word.partition("=")[0], table)
        if len({table[option].name for option in found}) > 1:
            return _line(f"ambiguous option: {word} could match {', '.join(found)}")
        if not found:
            extras.append(word)
            i += 1
            continue
        spec = table[found[0]]
        values = [inline] if equals else _following(words, i + 1, spec)
        error = _take(spec, values, inline=bool(equals))
        if error:
            return _line(f"argument {'/'.join(spec.spellings)}: {error}")
        if spec.refused is not None:
            return _line(spec.refused)
        seen.add(spec.name)
        i += 1 if equals else 1 + len(values)
    missing = _missing(seen, table)
    if missing:
        return _line(f"the following arguments are required: {missing}")
    if extras and not any(_REFERENCE.search(w) for w in extras):
        return _line(f"unrecognized arguments: {' '.join(extras)}")
    return None


def _line(text: str) -> str:
    return f"{PROGRAM}: error: {text}"


def _is_option(word: str) -> bool:
    """argparse's reading: a dash first, but no negative number and nothing with a space in it (unless it
    is ``--name=...``)."""
    if not word.startswith("-") or word == "-" or _NEGATIVE.match(word):
        return False
    return " " not in word or (word.startswith("--") and "=" in word and " " not in word.partition("=")[0])


def _options(name: str, table: FlagTable) -> list[str]:
    """The spellings that ``name`` may stand for; one when it is exact."""
    if name in table:
        return [name]
    if not name.startswith("--"):
        return []
    return [option for option in table if option.startswith(name)]


def _following(words: Sequence[str], at: int, spec: FlagSpec) -> list[str]:
    limit = {"switch": 0, "one": 1, "optional": 1}.get(spec.arity, len(words))
    values: list[str] = []
    while len(values) < limit and at + len(values) < len(words):
        word = words[at + len(values)]
        if word == "--" or _is_option(word):
            break
        values.append(word)
    return values


def _take(spec: FlagSpec, values: Sequence[str], *, inline: bool) -> str | None:
    if spec.arity == "switch":
        return f"ignored explicit argument '{values[0]}'" if inline else None
    if spec.arity == "one" and not values:
        return "expected one argument"
    for value in values:
        if _REFERENCE.search(value):
            continue
        error = _converted(spec, value)
        if error:
            return error
    return None


def _converted(spec: FlagSpec, value: str) -> str | None:
    kind = spec.type
    comparable: object = value
    try:
        if kind == "int":
            comparable = int(value)
        elif kind == "float":
            comparable = float(value)
        elif kind == "json":
            json.loads(value)
    except (ValueError, RecursionError):
        return f"invalid {'loads' if kind == 'json' else kind} value: {value!r}"
    if kind == "parse_cuda_graph_config_arg":
        return _graph_config(value)
    if (
        kind == "parse_cuda_graph_backend_arg"
        and value == "tc_piecewise"
        and value not in (spec.choices or ())
    ):
        return "tc_piecewise was removed; select breakable, full, or disabled"
    if kind == "json_list_type":
        return _json_list(value)
    if kind == "human_readable_int" and not _SIZE.fullmatch(value.strip()):
        try:
            int(value)
        except ValueError:
            return f"Invalid integer value: '{value}'."
    if spec.choices and comparable not in spec.choices and value not in map(str, spec.choices):
        return f"invalid choice: {value!r} (choose from {', '.join(map(repr, spec.choices))})"
    return None


def _graph_config(value: str) -> str | None:
    """``--cuda-graph-config``: an object of one object a phase."""
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        return f"--cuda-graph-config must be JSON: {error}"
    if not isinstance(parsed, dict):
        return f"--cuda-graph-config must be a JSON object, got {type(parsed).__name__}"
    for phase, settings in parsed.items():
        if phase not in _PHASES:
            return f"--cuda-graph-config: unknown phase '{phase}', expected one of {_PHASES}"
        if not isinstance(settings, dict):
            return f"--cuda-graph-config['{phase}'] must be a JSON object, got {type(settings).__name__}"
    return None


def _json_list(value: str) -> str | None:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return f"Invalid JSON list: {value}. Please provide a valid JSON list."
    return None


def _missing(seen: set[str], table: FlagTable) -> str:
    """Required options that stand nowhere. A ``--config`` file may hold them."""
    if "--config" in seen:
        return ""
    specs = [s for s in table.specs if s.required and s.name not in seen]
    if any(s.dest in {table[n].dest for n in seen} for s in specs):
        specs = [s for s in specs if s.dest not in {table[n].dest for n in seen}]
    return ", ".join("/".join(s.spellings) for s in specs)
