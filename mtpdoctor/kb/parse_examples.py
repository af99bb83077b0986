"""The examples of a rule from YAML nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpdoctor.kb.yaml_source import Node
from mtpdoctor.patterns import lazy
from mtpdoctor.release import parse_release

if TYPE_CHECKING:
    from mtpdoctor.kb.parse import RuleParser

EXAMPLE_KEYS = ("bad", "ok", "command", "bad_host", "ok_host")
BAD_KEYS = ("log", "root", "command", "release", "gpu", "also", "said", "fix")
OK_KEYS = ("log", "command", "release", "gpu")
COMMAND_KEYS = ("before", "after", "release", "gpu", "remedy")
BAD_HOST_KEYS = ("host", "command", "release", "also", "said", "fix")
OK_HOST_KEYS = ("host", "command", "release")
_KINDS = (
    ("bad", BAD_KEYS, ("log",)),
    ("ok", OK_KEYS, ("log",)),
    ("command", COMMAND_KEYS, ("before", "after")),
    ("bad_host", BAD_HOST_KEYS, ()),
    ("ok_host", OK_HOST_KEYS, ()),
)

_GPU = lazy(r"(?:[0-9]+x)?(?:sm[0-9]{2,3}|[a-z]+)(?:@[0-9.]+)?$")


def read_examples(parser: RuleParser, node: Node) -> dict[str, Any]:
    """``examples:`` of a rule as plain data, each with its line; problems go to the parser."""
    examples = node.value.get("examples")
    if examples is None or examples.value is None:
        return {}
    if not examples.is_map:
        parser.error(examples.line, f"`examples` is a mapping with bad, ok, command, not {examples.kind}")
        return {}
    parser.keys(examples, EXAMPLE_KEYS, "examples")
    out: dict[str, Any] = {}
    for kind, allowed, needed in _KINDS:
        read = (_example(parser, i, kind, allowed, needed) for i in parser.list(examples, kind))
        out[kind] = [example for example in read if example]
    return out


def _example(
    parser: RuleParser,
    node: Node,
    kind: str,
    allowed: tuple[str, ...],
    needed: tuple[str, ...],
) -> dict[str, Any]:
    if not node.is_map:
        parser.error(node.line, f"an example of `{kind}` is a mapping, not {node.kind}")
        return {}
    parser.keys(node, allowed, f"an example of `{kind}`")
    for key in needed:
        if not parser.text(node, key).strip():
            parser.error(node.line, f"an example of `{kind}` needs `{key}`")
    out: dict[str, Any] = {"line": node.line}
    if kind.endswith("_host") and not ("host" in node.value and node.value["host"].is_map):
        parser.error(node.line, f"an example of `{kind}` needs `host:`, a mapping of a saved host's fields")
    for key, value in node.items():
        if key == "also":
            out[key] = list(parser.texts(node, key))
        elif key == "host":
            out[key] = value.plain()
        elif key == "remedy":
            if not isinstance(value.value, int) or isinstance(value.value, bool) or value.value < 0:
                parser.error(value.line, "`remedy` is the number of a remedy, from 0")
            out[key] = value.value
        else:
            out[key] = parser.text(node, key)
    if "release" in out:
        try:
            parse_release(out["release"])
        except ValueError as error:
            parser.error(node.line_of("release"), f"release: {error}")
    if "gpu" in out and not _GPU.match(out["gpu"]):
        parser.error(node.line_of("gpu"), f"gpu: {out['gpu']!r} is not like 4xsm120@95")
    return out
