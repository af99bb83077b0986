"""Environment variables in YAML: a mapping, a list of ``NAME=value``, or a list of ``{name, value}``."""

from __future__ import annotations

from collections.abc import Callable

from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.words import Binding
from mtpdoctor.launch.yamltext import edit
from mtpdoctor.launch.yamltext.nodes import Node
from mtpdoctor.launch.yamltext.scalars import double_quoted, write_scalar

Text = Callable[[str], str]


def _same(value: str) -> str:
    return value


def map_bindings(root: Layer, env: Node, read: Text = _same, write: Text = _same) -> list[Binding]:
    """``environment: {NAME: value}``; a key without a value passes the variable on."""

    def binding(key: Node, value: Node) -> Binding:
        name = key.value

        def replace(new: str) -> list[Splice]:
            return edit.set_scalar(root, value, write(new), tags=("str", "int", "float"))

        return Binding(
            name,
            f"${name}" if value.is_null else read(value.value),
            replace,
            lambda: edit.cut_pair(root, env, name),
        )

    return [binding(k, v) for k, v in env.all_pairs() if v.kind == "scalar"]


def list_bindings(root: Layer, env: Node, read: Text = _same, write: Text = _same) -> list[Binding]:
    """``environment: [NAME=value, NAME]``."""
    host = edit.SeqHost(root, env, write)
    out: list[Binding] = []
    for word in host.words(read):
        name, equals, value = word.value.partition("=")

        def replace(new: str, word: object = word, name: str = name) -> list[Splice]:
            return host.replace(word, f"{name}={new}")  # type: ignore[arg-type]

        def remove(word: object = word) -> list[Splice]:
            return host.remove([word])  # type: ignore[list-item]

        out.append(Binding(name, value if equals else f"${name}", replace, remove))
    return out


def entry_bindings(root: Layer, env: Node) -> list[Binding]:
    """Kubernetes' ``env: [{name: NAME, value: "..."}]``; ``valueFrom`` is not resolved."""
    out: list[Binding] = []
    for item in env.items:
        name = item.text("name")
        if name is None:
            continue
        value = item.get("value")
        shown = value.value if value is not None and value.kind == "scalar" else f"${name}"
        if value is None and item.get("valueFrom") is None:
            shown = ""

        def replace(new: str, item: Node = item, value: Node | None = value) -> list[Splice]:
            if value is not None:
                return edit.set_scalar(root, value, new)
            source = item.pair("valueFrom")
            if source is None:
                return edit.add_pair(root, item, "value", double_quoted(new), after="name")
            key, old = source
            json_like = root.text[key.start] == '"'
            written = f'"value": {double_quoted(new)}' if json_like else f"value: {double_quoted(new)}"
            return [Splice(root, key.start, edit.content_end(root, old), (written,))]

        def remove(item: Node = item) -> list[Splice]:
            return edit.remove_item(root, env, item)

        out.append(Binding(name, shown, replace, remove))
    return out


def add_entry(root: Layer, owner: Node, name: str, value: str) -> list[Splice]:
    """A new ``{name, value}`` in ``owner``'s ``env``, which is created where there is none."""
    env = owner.get("env")
    if env is not None and env.kind == "seq" and env.items:
        last = env.items[-1]
        home = env.home or env
        if home.flow or last.flow:
            if root.text.lstrip().startswith("{"):
                written = f'{{"name": {double_quoted(name)}, "value": {double_quoted(value)}}}'
            else:
                written = f"{{name: {name}, value: {double_quoted(value)}}}"
        else:
            written = f"name: {name}\nvalue: {double_quoted(value)}"
        return edit.SeqHost(root, home).insert_text(last, [written])
    if env is not None:
        return _fill(root, owner, "env", env, f"[{{name: {name}, value: {double_quoted(value)}}}]")
    return add_collection(
        root,
        owner,
        "env",
        ("args", "command", "image"),
        f"\n- name: {name}\n  value: {double_quoted(value)}",
        f'[{{"name": {double_quoted(name)}, "value": {double_quoted(value)}}}]',
    )


def add_variable(root: Layer, owner: Node, name: str, value: str, write: Text = _same) -> list[Splice]:
    """A new variable in a Compose service's ``environment``, in the style it has."""
    env = owner.get("environment")
    if env is not None and env.kind == "map" and env.pairs:
        own = [p for p in env.pairs if p[0].value != "<<"]
        styles = {v.style for _, v in own if v.kind == "scalar"}
        style = styles.pop() if len(styles) == 1 else ""
        home = env.home or env
        written = write_scalar(
            write(value), style if style in ('"', "'") else "", home.flow, tags=("str", "int")
        )
        return edit.add_pair(root, env, name, written)
    if env is not None and env.kind == "seq" and env.items:
        return edit.SeqHost(root, env).insert(env.items[-1], [f"{name}={write(value)}"])
    pair = f"{name}={write(value)}"
    if env is not None:
        return _fill(root, owner, "environment", env, f"[{double_quoted(pair)}]")
    entry = write_scalar(pair, "", False)
    return add_collection(
        root,
        owner,
        "environment",
        ("command", "entrypoint", "image"),
        f"\n  - {entry}",
        f"[{double_quoted(pair)}]",
    )


def _fill(root: Layer, owner: Node, key: str, node: Node, written: str) -> list[Splice]:
    """A value for a key that has an empty one."""
    if node.home is not None or (node.kind == "scalar" and not node.is_null):
        raise ValueError(f"{key} is neither a list nor a mapping")
    if node.start == node.end:
        found = owner.pair(key)
        assert found is not None
        at = found[0].end + 1
        return [Splice(root, at, at, (" " + written,))]
    return [Splice(root, node.start, node.end, (written,))]


def add_collection(
    root: Layer, owner: Node, key: str, behind: tuple[str, ...], block: str, flow: str
) -> list[Splice]:
    """A new key holding a collection: ``block`` in a block mapping, ``flow`` in a flow one."""
    if (owner.home or owner).flow:
        return edit.add_pair(root, owner, key, flow)
    after = next((name for name in behind if owner.own(name)), None)
    return edit.add_pair(root, owner, key, block, after=after)
