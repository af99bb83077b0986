"""SGLang's own ``--config`` file: a flat YAML mapping whose keys are options without the dashes.

As SGLang turns it into arguments (utils/server_args_config_parser.py): true of a switch is the option alone,
false of a switch nothing, a list the option with several values, a mapping JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from mtpdoctor.launch.flags import FlagTable, flag_dest
from mtpdoctor.launch.forms.errors import no_server
from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.words import Site, Word
from mtpdoctor.launch.yamltext import edit
from mtpdoctor.launch.yamltext.nodes import Node, parse_yaml
from mtpdoctor.launch.yamltext.scalars import write_scalar

_SCALAR_TAGS = ("str", "int", "float")
_KNOWN = ("model_path", "tp_size", "model")


def read_config(text: str, name: str, table: FlagTable) -> list[Site]:
    """Raises UserError."""
    root = Layer(text)
    documents = [d for d in parse_yaml(text, name) if not d.is_null]
    if not documents:
        raise no_server(name, "it is empty")
    if len(documents) > 1 or documents[0].kind != "map":
        raise no_server(name, "found YAML, but no mapping of options")
    mapping = documents[0]
    keys = [k.value for k, _ in mapping.all_pairs()]
    known = [k for k in keys if table.resolve("--" + k) or k.replace("-", "_") in _KNOWN]
    if not known:
        raise no_server(name, f"found YAML with the keys {', '.join(keys[:6])}")
    host = ConfigHost(root, mapping, table)

    def no_env(name: str, value: str) -> list[Splice]:
        raise ValueError("a --config file sets no environment variables; set it where the server is started")

    program = ("python3", "-m", "sglang.launch_server")
    return [Site((), tuple(host.words()), (), no_env, program, append=host.append)]


class ConfigHost:
    """Options as pairs of a mapping. A word for the option owns the words of its values."""

    owns_values = True

    def __init__(self, root: Layer, mapping: Node, table: FlagTable) -> None:
        self.root, self.mapping, self.table, self.layer = root, mapping, table, root

    def words(self) -> list[Word]:
        out: list[Word] = []
        for key, value in self.mapping.all_pairs():
            head = Word("--" + key.value, self, key.start, key.end, False, (key, value))
            values = self._values(key.value, value)
            if values is None:
                continue
            out.append(head)
            out += [Word(v, self, value.start, value.end, False, (key, value)) for v in values]
        return out

    def _values(self, key: str, node: Node) -> list[str] | None:
        """The words after the option; None where nothing is passed at all."""
        if node.kind == "map":
            return [json.dumps(_plain(node))]
        if node.kind == "seq":
            return [_text(i) for i in node.items] or None
        loaded = _scalar(node)
        if isinstance(loaded, bool):
            spec = self.table.resolve("--" + key)
            if spec is not None and spec.arity != "switch":
                return [str(loaded).lower()]
            return [] if loaded else None
        return [str(loaded)]

    def replace(self, word: Word, value: str) -> list[Splice]:
        key = word.source[0]
        if word.start == key.start:
            return edit.set_scalar(self.root, key, value.lstrip("-"))
        return self.set_values(word, [value])

    def set_values(self, word: Word, values: Sequence[str]) -> list[Splice]:
        """Write the values of the option that ``word`` belongs to."""
        _, node = word.source
        flow = self.mapping.flow
        if len(values) == 1 and node.kind == "scalar":
            return edit.set_scalar(self.root, node, values[0], tags=_SCALAR_TAGS)
        if not values:
            return edit.set_scalar(self.root, node, "true", tags=("bool",))
        if node.kind == "seq" and not node.flow and node.items and node.home is None:
            host = edit.SeqHost(self.root, node)
            indent = host.dash(node.items[0])
            newline = edit.newline_of(self.root.text)
            lines = (newline + indent).join(
                f"- {write_scalar(v, '', flow, tags=_SCALAR_TAGS)}" for v in values
            )
            return [Splice(self.root, node.start, edit.content_end(self.root, node), (lines,))]
        written = ", ".join(write_scalar(v, "", True, tags=_SCALAR_TAGS) for v in values)
        if len(values) > 1 or node.kind == "seq":
            written = f"[{written}]"
        return [Splice(self.root, node.start, edit.content_end(self.root, node), (written,))]

    def append(self, groups: Sequence[Sequence[str]]) -> list[Splice]:
        out: list[Splice] = []
        for name, *values in groups:
            dest = flag_dest(name, self.table)
            hidden = next(
                (
                    (k, v)
                    for k, v in self.mapping.all_pairs()
                    if flag_dest("--" + k.value, self.table) == dest
                ),
                None,
            )
            if hidden is not None:
                out += self.set_values(Word("", self, hidden[1].start, hidden[1].end, False, hidden), values)
                continue
            flow = self.mapping.flow
            written = [write_scalar(v, "", flow or len(values) > 1, tags=_SCALAR_TAGS) for v in values]
            text = f"[{', '.join(written)}]" if len(written) > 1 else written[0] if written else "true"
            out += edit.add_pair(self.root, self.mapping, name.lstrip("-"), text)
        return out

    def insert_after(
        self, word: Word, groups: Sequence[Sequence[str]], like: Word | None = None
    ) -> list[Splice]:
        return self.append(groups)

    def remove(self, words: Sequence[Word]) -> list[Splice]:
        return edit.cut_pair(self.root, self.mapping, words[0].source[0].value)


def _scalar(node: Node) -> object:
    """The value as YAML 1.1 types it."""
    import yaml

    if node.style or (node.tag and node.tag != "!"):
        return (
            node.value
            if node.tag is None or node.tag.endswith(":str")
            else yaml.safe_load(json.dumps(node.value))
        )
    try:
        loaded: object = yaml.safe_load(re.sub(r"\s*\n\s*", " ", node.value)) if node.value else None
    except yaml.YAMLError:
        return node.value
    return loaded


def _text(node: Node) -> str:
    return str(_plain(node))


def _plain(node: Node) -> object:
    if node.kind == "map":
        return {k.value: _plain(v) for k, v in node.all_pairs()}
    if node.kind == "seq":
        return [_plain(i) for i in node.items]
    return _scalar(node)
