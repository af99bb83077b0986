"""Compose files: ``command`` and ``entrypoint`` as string or list, ``environment`` as list or mapping.

Format: the Compose Specification. ``$$`` is a dollar sign, ``${NAME:-default}`` is interpolated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mtpdoctor.launch.forms.docker import retag
from mtpdoctor.launch.forms.errors import no_server, unreadable
from mtpdoctor.launch.forms.sizes import docker_size
from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.shell.lexer import Lexeme, ShellSyntaxError, tokenize
from mtpdoctor.launch.shell.locate import Surroundings, locate
from mtpdoctor.launch.shell.notation import ShellHost, inner_layer
from mtpdoctor.launch.shell.scope import Scope
from mtpdoctor.launch.shell.sites import ShellReader
from mtpdoctor.launch.words import Binding, Site, Word
from mtpdoctor.launch.yamltext import edit
from mtpdoctor.launch.yamltext.environment import add_collection, add_variable, list_bindings, map_bindings
from mtpdoctor.launch.yamltext.nodes import Node, parse_yaml
from mtpdoctor.launch.yamltext.scalars import dollar_layer, scalar_layer


def read_compose(text: str, name: str) -> list[Site]:
    """Raises UserError."""
    root = Layer(text)
    sites: list[Site] = []
    names: list[str] = []
    for document in parse_yaml(text, name):
        services = document.get("services")
        if services is None and document.kind == "map":  # the format of Compose 1
            services = document
        if services is None or services.kind != "map":
            continue
        for key, service in services.all_pairs():
            if service.kind == "map" and not key.value.startswith("x-"):
                names.append(key.value)
                sites += _Service(root, service, name).sites()
    if not sites:
        found = f"services without one: {', '.join(names)}" if names else "it has no services"
        raise no_server(name, found)
    return sites


def _double(value: str) -> str:
    """A literal dollar sign doubled; a reference stays one."""
    return re.sub(r"\$(?!\{?[A-Za-z_])", "$$", value)


class _Service:
    def __init__(self, root: Layer, node: Node, name: str) -> None:
        self.root, self.node, self.name = root, node, name
        self.scope = Scope()

    def read(self, value: str) -> str:
        return self.scope.substitute(value.replace("$$", "\0")).replace("\0", "$")

    def bindings(self) -> list[Binding]:
        env = self.node.get("environment")
        if env is None:
            return []
        return (list_bindings if env.kind == "seq" else map_bindings)(self.root, env, self.read, _double)

    def sites(self) -> list[Site]:
        bindings = self.bindings()
        self.scope = Scope().child({b.name: b.value for b in bindings if b.value != f"${b.name}"})

        def add_env(name: str, value: str) -> list[Splice]:
            return add_variable(self.root, self.node, name, value, _double)

        around = Surroundings(
            bindings=bindings,
            env_adder=lambda *_: add_env,
            layer_of=self._layer_of,
            nested=lambda inner, outer, scope, add: ShellReader(inner, scope, outer, add, 1).read(),
            scope=self.scope,
            inner_add_env=add_env,
        )
        env_files = tuple(self._env_files())
        try:
            words = self._words("entrypoint") + self._words("command")
            found = locate(words, around)
        except ShellSyntaxError as error:
            node = self.node.get("command")
            at = node.start if node else self.node.start
            raise unreadable(
                self.root.text, at, self.name, f"in this command {error}", "check the quoting"
            ) from None
        if not found and self._starts_by_image(words):
            found = [Site((), tuple(words), tuple(bindings), add_env, program_values=())]
        return [
            Site(
                site.program,
                site.args,
                site.bindings,
                site.add_env,
                site.program_values,
                self.facts(),
                self.change,
                None,
                env_files,
            )
            for site in found
        ]

    def _starts_by_image(self, words: Sequence[Word]) -> bool:
        flags = [w.value.partition("=")[0] for w in words]
        return "sglang" in (self.node.text("image") or "") and bool({"--model-path", "--model"} & set(flags))

    def _env_files(self) -> list[str]:
        node = self.node.get("env_file")
        if node is None:
            return []
        items = node.items if node.kind == "seq" else [node]
        return [i.text("path") or "" if i.kind == "map" else i.value for i in items]

    def _words(self, key: str) -> list[Word]:
        node = self.node.get(key)
        if node is None or node.is_null:
            return []
        if node.kind == "seq":
            return edit.SeqHost(self.root, node, _double).words(self.read)
        if node.kind != "scalar":
            return []
        layer = scalar_layer(self.root, node)
        if layer is None:
            return []
        layer = dollar_layer(layer)
        host = ShellHost(layer)
        words: list[Word] = []
        for token in tokenize(layer.text):
            if token.kind == "word" and token.word:
                words += self.scope.expand(token.word, host)
        return words

    def _layer_of(self, word: Word) -> Layer | None:
        if isinstance(word.source, Node):
            layer = scalar_layer(self.root, word.source)
            return dollar_layer(layer) if layer else None
        if isinstance(word.source, Lexeme) and isinstance(word.host, ShellHost):
            return inner_layer(word.host.layer, word.start, word.end)
        return None

    # The container

    def _devices(self) -> list[Node]:
        node = self.node.get("deploy", "resources", "reservations", "devices")
        devices = node.items if node is not None and node.kind == "seq" else []
        gpus = []
        for device in devices:
            kinds = device.get("capabilities")
            if kinds is not None and any(i.value == "gpu" for i in kinds.items):
                gpus.append(device)
        return gpus

    def facts(self) -> dict[str, str]:
        out: dict[str, str] = {}
        for key in ("image", "shm_size", "ipc", "runtime", "network_mode", "user"):
            value = self.node.text(key)
            if value is not None:
                out[key] = self.read(value)
        gpus = self.node.text("gpus")
        for device in self._devices():
            ids = device.get("device_ids")
            gpus = device.text("count") or (",".join(i.value for i in ids.items) if ids else "all")
        if gpus is not None:
            out["gpus"] = self.read(gpus)
        return out

    def change(self, op: str, value: str) -> list[Splice]:
        """Splices for a container edit. Raises ValueError when this service cannot take it."""
        if op == "image-tag":
            image = self.node.get("image")
            if image is None:
                raise ValueError("the service is built, not pulled: it names no image")
            return edit.set_scalar(self.root, image, retag(image.value, value))
        if op == "gpus":
            return self._gpus(value)
        key = {"shm-size": "shm_size", "ipc": "ipc"}[op]
        if op == "shm-size":
            value = docker_size(value)
        node = self.node.get(key)
        if node is not None:
            same = not node.is_null and self.read(node.value) == value
            return [] if same else edit.set_scalar(self.root, node, value)
        written = f'"{value}"' if self.node.flow or value.isdigit() else value
        after = "image" if self.node.own("image") else None
        return edit.add_pair(self.root, self.node, key, written, after=after)

    def _gpus(self, value: str) -> list[Splice]:
        tags = ("str", "int")
        gpus = self.node.get("gpus")
        if gpus is not None and gpus.kind == "scalar":
            return edit.set_scalar(self.root, gpus, value, tags=tags)
        out: list[Splice] = []
        for device in self._devices():
            count = device.get("count")
            if count is not None:
                out += edit.set_scalar(self.root, count, value, tags=tags)
            elif (ids := device.pair("device_ids")) is not None:
                start, end = ids[0].start, edit.content_end(self.root, ids[1])
                out.append(Splice(self.root, start, end, (f"count: {value}",)))
            else:
                out += edit.add_pair(self.root, device, "count", value)
        if out:
            return out
        if self.node.get("deploy") is not None:
            return edit.add_pair(self.root, self.node, "gpus", value)
        single = f"{{driver: nvidia, count: {value}, capabilities: [gpu]}}"
        block = "\n  resources:\n    reservations:\n      devices:\n        - driver: nvidia"
        block += f"\n          count: {value}\n          capabilities: [gpu]"
        flow = f"{{resources: {{reservations: {{devices: [{single}]}}}}}}"
        return add_collection(self.root, self.node, "deploy", (), block, flow)
