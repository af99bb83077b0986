"""Kubernetes manifests: every pod template in every document (Deployment, StatefulSet, Job, Pod,
LeaderWorkerSet and other custom resources alike).

``$(NAME)`` in ``command`` and ``args`` is replaced from ``env`` before anything runs; no shell is involved
unless the command names one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mtpdoctor.launch.forms.docker import retag
from mtpdoctor.launch.forms.errors import no_server, unreadable
from mtpdoctor.launch.forms.sizes import kubernetes_size
from mtpdoctor.launch.layers import Layer, Splice
from mtpdoctor.launch.shell.lexer import ShellSyntaxError
from mtpdoctor.launch.shell.locate import Surroundings, locate
from mtpdoctor.launch.shell.scope import Scope
from mtpdoctor.launch.shell.sites import ShellReader
from mtpdoctor.launch.words import Binding, Site, Word
from mtpdoctor.launch.yamltext import edit
from mtpdoctor.launch.yamltext.environment import add_collection, add_entry, entry_bindings
from mtpdoctor.launch.yamltext.nodes import Node, parse_yaml
from mtpdoctor.launch.yamltext.scalars import scalar_layer, write_scalar
from mtpdoctor.patterns import lazy
from mtpdoctor.records import replace

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
_REFERENCE = lazy(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")


def read_kubernetes(text: str, name: str) -> list[Site]:
    """Raises UserError."""
    root = Layer(text)
    sites: list[Site] = []
    kinds: list[str] = []
    for document in parse_yaml(text, name):
        if document.kind != "map":
            continue
        kind = document.text("kind")
        if kind:
            kinds.append(kind)
        scheduler = {"kind": kind} if kind else {}
        for key in ("replicas",):
            if value := document.text("spec", key):
                scheduler[key] = value
        for pod in _pods(document):
            containers = pod.get("containers")
            for container in containers.items if containers else []:
                found = _Container(root, pod, container, name).sites()
                sites += [replace(site, scheduler=scheduler) for site in found]
    if not sites:
        raise no_server(name, f"found kinds: {', '.join(kinds)}" if kinds else "found no Kubernetes object")
    return sites


def _pods(node: Node) -> Iterator[Node]:
    for below in node.walk():
        if below.kind == "map":
            containers = below.get("containers")
            if containers is not None and containers.kind == "seq":
                yield below


class _Container:
    def __init__(self, root: Layer, pod: Node, node: Node, name: str) -> None:
        self.root, self.pod, self.node, self.name = root, pod, node, name
        self.env: dict[str, str] = {}

    def _substitute(self, value: str) -> str:
        return _REFERENCE.sub(lambda m: "$" if not m[1] else self.env.get(m[1], m[0]), value)

    def _bindings(self) -> list[Binding]:
        env = self.node.get("env")
        if env is None or env.kind != "seq":
            return []
        bindings = entry_bindings(self.root, env)
        out: list[Binding] = []
        for binding in bindings:
            value = self._substitute(binding.value)
            if value != f"${binding.name}":
                self.env[binding.name] = value
            out.append(replace(binding, value=value))
        return out

    def sites(self) -> list[Site]:
        if self.node.kind != "map":
            return []
        bindings = self._bindings()
        scope = Scope().child(self.env)
        scope.parens = self.env
        scope.env_files = self._env_sources()

        def add_env(name: str, value: str) -> list[Splice]:
            return add_entry(self.root, self.node, name, value)

        def layer_of(word: Word) -> Layer | None:
            return scalar_layer(self.root, word.source) if isinstance(word.source, Node) else None

        around = Surroundings(
            bindings=bindings,
            env_adder=lambda *_: add_env,
            layer_of=layer_of,
            nested=lambda inner, outer, inside, add: ShellReader(inner, inside, outer, add, 1).read(),
            scope=scope,
            inner_add_env=add_env,
        )
        words: list[Word] = []
        for key in ("command", "args"):
            node = self.node.get(key)
            if node is not None and node.kind == "seq":
                words += edit.SeqHost(self.root, node).words(self._substitute)
        try:
            found = locate(words, around)
        except ShellSyntaxError as error:
            node = self.node.get("args") or self.node.get("command") or self.node
            raise unreadable(
                self.root.text, node.start, self.name, f"in this command {error}", "check the quoting"
            ) from None
        if not found and self._starts_by_image(words):
            found = [Site((), tuple(words), tuple(bindings), add_env, program_values=())]
        return [
            replace(
                site,
                container=self.facts(),
                edit_container=self.change,
                env_files=tuple(dict.fromkeys((*scope.env_files, *site.env_files))),
            )
            for site in found
        ]

    def _starts_by_image(self, words: Sequence[Word]) -> bool:
        flags = {w.value.partition("=")[0] for w in words}
        return "sglang" in (self.node.text("image") or "") and bool({"--model-path", "--model"} & flags)

    def _env_sources(self) -> list[str]:
        sources = self.node.get("envFrom")
        out: list[str] = []
        for item in sources.items if sources is not None else []:
            for kind in ("configMapRef", "secretRef"):
                if name := item.text(kind, "name"):
                    out.append(f"{kind.removesuffix('Ref')}/{name}")
        return out

    # The container

    def _limits(self) -> tuple[Node, str] | None:
        for section in ("limits", "requests"):
            for resource in GPU_RESOURCES:
                if (node := self.node.get("resources", section, resource)) is not None:
                    return node, resource
        return None

    def _shm_volume(self) -> Node | None:
        """The volume mounted on /dev/shm."""
        mounts = self.node.get("volumeMounts")
        for mount in mounts.items if mounts is not None else []:
            if (mount.text("mountPath") or "").rstrip("/") == "/dev/shm":
                volumes = self.pod.get("volumes")
                for volume in volumes.items if volumes is not None else []:
                    if volume.text("name") == mount.text("name"):
                        return volume
        return None

    def facts(self) -> dict[str, str]:
        out: dict[str, str] = {}
        if image := self.node.text("image"):
            out["image"] = image
        if limit := self._limits():
            out["gpus"] = limit[0].value
        volume = self._shm_volume()
        if volume is not None:
            out["shm_size"] = volume.text("emptyDir", "sizeLimit") or "unlimited"
        if (self.pod.text("hostIPC") or "").lower() == "true":
            out["ipc"] = "host"
        if (self.pod.text("hostNetwork") or "").lower() == "true":
            out["network"] = "host"
        return out

    def change(self, op: str, value: str) -> list[Splice]:
        """Splices for a container edit. Raises ValueError when the manifest cannot take it."""
        if op == "image-tag":
            image = self.node.get("image")
            if image is None:
                raise ValueError("the container names no image")
            return edit.set_scalar(self.root, image, retag(image.value, value))
        if op == "gpus":
            return self._gpus(value)
        if op == "ipc":
            return self._ipc(value)
        return self._shm(kubernetes_size(value))

    def _ipc(self, value: str) -> list[Splice]:
        wanted = "true" if value == "host" else "false"
        node = self.pod.get("hostIPC")
        if node is not None:
            same = node.value.lower() == wanted
            return [] if same else edit.set_scalar(self.root, node, wanted, tags=("bool",))
        return [] if wanted == "false" else edit.add_pair(self.root, self.pod, "hostIPC", wanted)

    def _gpus(self, value: str) -> list[Splice]:
        if not value.isdigit():
            raise ValueError("Kubernetes needs a number of GPUs")
        tags = ("str", "int")
        out: list[Splice] = []
        for section in ("limits", "requests"):
            for resource in GPU_RESOURCES:
                node = self.node.get("resources", section, resource)
                if node is not None and node.value != value:
                    out += edit.set_scalar(self.root, node, value, tags=tags)
        if out or self._limits():
            return out
        limits = self.node.get("resources", "limits")
        if limits is not None and limits.kind == "map" and limits.pairs:
            return edit.add_pair(
                self.root, limits, GPU_RESOURCES[0], write_scalar(value, "", False, tags=tags)
            )
        resources = self.node.get("resources")
        flow = f'{{"{GPU_RESOURCES[0]}": {value}}}'
        if resources is not None and resources.kind == "map" and resources.pairs:
            return add_collection(
                self.root, resources, "limits", (), f"\n  {GPU_RESOURCES[0]}: {value}", flow
            )
        if resources is not None:
            raise ValueError("resources is empty; write limits there")
        block = f"\n  limits:\n    {GPU_RESOURCES[0]}: {value}"
        return add_collection(self.root, self.node, "resources", (), block, f'{{"limits": {flow}}}')

    def _shm(self, size: str) -> list[Splice]:
        volume = self._shm_volume()
        if volume is not None:
            empty = volume.get("emptyDir")
            if empty is None or empty.kind != "map":
                raise ValueError("/dev/shm is mounted from something else than an emptyDir")
            limit = empty.get("sizeLimit")
            if limit is not None:
                return [] if limit.value == size else edit.set_scalar(self.root, limit, size)
            return edit.add_pair(self.root, empty, "sizeLimit", size if not empty.flow else f'"{size}"')
        name = "dshm"
        out = _extend(
            self.root, self.node, "volumeMounts", f"name: {name}\nmountPath: /dev/shm",
            f'{{"name": "{name}", "mountPath": "/dev/shm"}}',
        )  # fmt: skip
        return out + _extend(
            self.root, self.pod, "volumes", f"name: {name}\nemptyDir:\n  medium: Memory\n  sizeLimit: {size}",
            f'{{"name": "{name}", "emptyDir": {{"medium": "Memory", "sizeLimit": "{size}"}}}}',
        )  # fmt: skip


def _extend(root: Layer, owner: Node, key: str, block: str, flow: str) -> list[Splice]:
    """One more item in the list ``key`` of ``owner``; the list is made where there is none."""
    node = owner.get(key)
    if node is not None and node.kind == "seq" and node.items:
        home = node.home or node
        return edit.SeqHost(root, home).insert_text(home.items[-1], [flow if home.flow else block])
    if node is not None:
        raise ValueError(f"{key} is empty; write a list there")
    first, *rest = block.split("\n")
    lines = "\n".join([f"\n- {first}", *(f"  {line}" for line in rest)])
    return add_collection(root, owner, key, (), lines, f"[{flow}]")
