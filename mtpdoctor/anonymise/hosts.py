"""Names of machines, pods and containers: learned where a text says that something is one, replaced everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mtpdoctor.anonymise.tokens import is_placeholder
from mtpdoctor.anonymise.words import GENERIC, PROSE, is_public_host
from mtpdoctor.patterns import lazy

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"
_H = rf"(?P<h>{_NAME})"
_TIME = r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)"
_Q = r"(?:\\*[\"'])?"
_FLAGS = (
    r"dist-init-addr|nccl-init-addr|nccl-init|master-addr|master_addr|rdzv-endpoint|rdzv_endpoint|rdzv-id-host|host|hostname"
    r"|node-name|nodename|nodelist|nodes|server-addr|address|addr|add-host|network-alias|disaggregation-bootstrap-host|net-alias"
    r"|prefill|decode|worker-urls|base-url|kv-events-host|ray-address|head|pod"
)
_SURE_KEYS = (
    r"hostname|host_name|host_?fqdn|fqdn|nodename|node_name|node_host|pod_?name|podname|pod_hostname|container_name|master_addr"
    r"|dist_init_addr|nccl_init_addr|server_?name|slurmd_nodename|slurm_launch_node\w*|slurm_submit_host|slurm_job_nodelist"
    r"|slurm_nodelist|rdzv_endpoint|computer_?name|kubernetes\.io/hostname|machine_?name|hosts?name_override|local_host_name"
)
_LOOSE_KEYS = (
    r"host|hosts|node|pod|peer|peer_host|endpoint|bootstrap_host|disaggregation_bootstrap_host|instance|master|head_node|head"
    r"|remote|upstream|target|nodes|nodelist|container|addr|address|leader|worker_host|dst|src|server|client"
)

# The name is the group "h". Sure ones are names whatever they look like; of the others only what no word looks like.
_SURE = tuple(
    lazy(p, re.M | re.I)
    for p in (
        rf"(?<![\w-])--(?:{_FLAGS}){_Q}(?:=|[ \t]*,[ \t]*|[ \t]+|[ \t]*\\?\n[ \t]*(?:-[ \t]+)?){_Q}(?:\w+://)?{_H}",
        rf"(?<![A-Za-z0-9])(?:{_SURE_KEYS}){_Q}\s?[=:][ \t]*{_Q}(?:\w+://)?{_H}",
        rf"^(?:<\d+>)?{_TIME} {_H} (?=[\w./@-]+\[\d+\]: |kernel: |systemd: )",
        rf"^(?:<\d+>)1 \S+ {_H} ",
        rf"\bpods?/{_H}",
        rf"\bhost ?name(?: is|:| ->| =)[ \t]+{_Q}{_H}",
        rf"(?<![\w.@/:-])[a-z_][\w.-]*@{_H}(?=[\"']?$)",
        rf"\b(?:docker|podman|helm|nerdctl) login\b[^\n]*[ \t]{_H}[ \t]*$",
        rf"\b(?:pods?|nodes?|containers?|hosts?) \\*[\"']{_H}(?=\\*[\"']|[ \t]\()",
        rf"(?:^|\s){_H}:\d+:\d+ \[\w+\] (?:\S+ )?NCCL ",
        rf"^\[{_H}:\d{{2,8}}\](?= )",
        rf"(?<![\w.@/:-])[a-z_][\w.-]*@{_H}(?=:[~/][^\n]*[$#]|[ ][^\n\]]*\][$#]|:\S*[$#%] )",
        rf"\bsrun: (?:error|warning): {_H}: tasks? ",
        rf"\bON {_H} (?:CANCELLED|FAILED)",
        rf"\b(?:ssh|scp|rsync|ping|nslookup|dig|host)[ \t]+(?:-\w+[ \t]+(?:\d+[ \t]+)?)*(?:[a-z_][\w.-]*@){_H}",
        rf"\b(?:on|from|to|by|at) (?:the )?(?:host|node|machine|pod|container|server) {_Q}{_H}(?=[\s\"'\\,.:;)]|$)",
    )
)
_LOOSE = tuple(
    lazy(p, re.M | re.I)
    for p in (
        rf"(?<![A-Za-z0-9_.])(?:{_LOOSE_KEYS}){_Q}[=:][ \t]*{_Q}(?:\w+://)?{_H}(?![\w(\[])",
        rf"^[ \t]*(?:host|node)[ \t]*:[ \t]*{_H}(?=\s)",
        rf"(?:tcp|grpc|zmq|udp|ipc|nats|redis|mooncake|rdma|etcd|ray|kafka)://{_H}(?=:\d)",
        rf"\(\\*['\"]?{_H}\\*['\"]?, \d{{2,5}}\)",
        rf"(?:connect(?:ing|ed)? to|connection to|listening on|bind(?:ing)? to|resolve(?: host(?:name)?)?|for host|reach|contact"
        rf"|getaddrinfo(?: failed)?(?: for)?|lookup|\bon) {_Q}\[?{_H}\]?(?=:\d|\\*[\"']|[ \t]*[(,;.]|[ \t]*$|: )",
        rf"(?<![\w./@:-]){_H}(?=:\d{{4,5}}(?![\w.:]))",
        rf"\[{_H}\]:\d{{2,5}}\b",
        rf"(?<![\w./@:-])(?P<h>(?:{_LABEL}\.)+[A-Za-z]{{2,12}})(?=(?::\d+)?/[a-z0-9][\w./-]*:[\w.-])",
        rf"(?:Name or service not known|Temporary failure in name resolution|nodename nor servname)\S* *[\[(:'\" ]*{_H}",
    )
)
# names that tell by their shape: of pods (the hash of a replica set and five characters), of cloud machines
_SHAPES = lazy(
    r"(?<![\w.-])(?:[a-z0-9][a-z0-9-]*?-(?=[0-9a-f]*\d)[0-9a-f]{7,10}-[a-z0-9]{5}"
    r"|ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[\w.-]*\w)?|gke-[\w-]+-[\w-]+|aks-[\w-]+-vmss\w+|i-0[0-9a-f]{16})(?![\w-])"
)
_FQDN = lazy(
    rf"(?<![\w.@/\\-])(?P<h>(?:{_LABEL}\.)+(?:com|net|org|edu|gov|mil|local|internal|intranet|lan|corp|home|svc|localdomain"
    rf"|private|example|test|invalid|cluster|prod|consul))(?![\w(\[=-])(?!\.\w)"
)
_SUFFIX = lazy(
    rf"(?<=[\s,=;\"':])\.(?P<h>(?:{_LABEL}\.)+(?:com|net|org|edu|gov|local|internal|intranet|lan|corp|home|io|ai|cn|de))(?![\w(\[-])"
)
_FQDN_MORE = lazy(
    rf"(?<![\w.@/\\-])(?P<h>(?:{_LABEL}\.)*[A-Za-z0-9]*[-\d][A-Za-z0-9-]*\.(?:{_LABEL}\.)+(?:io|ai|dev|cn|de|uk|fr|eu|jp|kr|in|ru|us"
    rf"|ch|nl|se|cloud|tech|app|tv|sh|co|ca|au|br|it|es|pl|at|be|info|biz|xyz|site|online|systems|computer))(?![\w(\[=-])(?!\.\w)"
)
_PREFIX = lazy(r"(?P<h>[a-z][\w.-]*\d): ", re.M)
_STERN = lazy(r"(?P<h>[a-z0-9][\w.]*-[\w.-]+) [a-z0-9][\w.-]* ", re.M)
_DIGITS = lazy(r"[\d.:_-]+$")
_FILE = lazy(
    r"(?i).*\.(?:py|log|json|ya?ml|sh|txt|so|cu|cc|cpp|h|hpp|cuh|bin|pt|safetensors|gguf|md|toml|cfg|whl|html|conf|pem|key|crt)$"
)


def found_hosts(text: str, keep: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Names that ``text`` calls machines, and whether they may be replaced wherever else they stand."""
    for pattern in (*_SURE, *_LOOSE):
        sure = pattern in _SURE
        for m in pattern.finditer(text):
            name = m["h"]
            if _is_host(name, sure, keep, m):
                yield name, is_distinct(name, keep)
    for m in _SHAPES.finditer(text):
        yield m[0], True
    for pattern in (_FQDN, _FQDN_MORE, _SUFFIX):
        for m in pattern.finditer(text):
            if _is_domain(m["h"]):
                yield m["h"], True
    yield from _prefixes(text)


def in_place(text: str) -> Iterator[tuple[int, int, str]]:
    """Where a text calls something a machine: start, end, name. For names that are words elsewhere."""
    for pattern in _SURE:
        for m in pattern.finditer(text):
            if _is_host(m["h"], True, frozenset(), m):
                yield m.start("h"), m.end("h"), m["h"]


def _is_host(name: str, sure: bool, keep: frozenset[str], m: re.Match[str]) -> bool:
    low = name.lower()
    if low in GENERIC or low in PROSE or _DIGITS.match(name) or is_placeholder(name) or is_public_host(name):
        return False
    if (
        _FILE.match(name)
        or ("_" in name and "." in name)
        or low.startswith(("self.", "args.", "torch.", "sglang."))
    ):
        return False  # a file, an attribute of a program
    if (
        len(name) > 253 or name.startswith("redacted-") or ("_" in name and name.isupper())
    ):  # a usage text's word
        return False
    after = m.string[m.end("h") : m.end("h") + 2]
    if after[:1] in ("(", "[") or after[:2] in ("::", "/-"):
        return False
    if sure:
        return True
    if low in keep or not any(c.isdigit() or c in "-." for c in name) or "_" in name:
        return False
    return not re.fullmatch(r"(?i)v?\d[\d.]*\w{0,6}|0x\w+|[0-9a-f-]{30,}|.*\.\d+", name)


def is_distinct(name: str, keep: frozenset[str]) -> bool:
    low = name.lower()
    if "." in name or (any(c.isdigit() for c in name) and len(name) > 3):
        return low not in keep
    return len(name) > 3 and low not in keep and low not in GENERIC


def _is_domain(name: str) -> bool:
    labels = name.lower().split(".")
    if is_public_host(name) or "_" in name or _FILE.match(name):
        return False
    # "self.internal", "torch.local": an attribute is two plain words, unless the end says that it is a domain
    return (
        len(labels) > 2
        or any(c.isdigit() or c == "-" for c in labels[0])
        or labels[-1] in ("com", "org", "net", "lan", "corp")
    )


def _prefixes(text: str) -> Iterator[tuple[str, bool]]:
    """Names that all lines begin with: pdsh's, stern's."""
    lines = [line for line in text[:200_000].split("\n") if line.strip()]
    for pattern, share in ((_PREFIX, 0.95), (_STERN, 0.97)):
        found = [m["h"] for line in lines if (m := pattern.match(line))]
        if len(found) >= max(4, share * len(lines)) and len(set(found)) <= 16:
            for name in set(found):
                if name.lower() not in GENERIC:
                    yield name, True


def same_machine(names: set[str]) -> dict[str, str]:
    """Name in lower case -> the name it is told by: a short name goes with its longer forms (``node7``,
    ``node7.dc1``, ``node7.dc1.corp.internal``), unless several machines begin with it."""
    lowered = sorted({name.lower() for name in names}, key=lambda n: (-n.count("."), n))
    out: dict[str, str] = {}
    longest: dict[str, list[str]] = {}  # every beginning of a longest form -> the forms
    for name in lowered:
        forms = longest.get(name)
        out[name] = forms[0] if forms else name
        if not forms:
            labels = name.split(".")
            for i in range(1, len(labels)):
                longest.setdefault(".".join(labels[:i]), []).append(name)
    return out
