"""Environment variables that a log shows outside of the launch command: exported, printed by ``env``, or told by NCCL."""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.log.types import Line
from mtpdoctor.patterns import lazy

__all__ = ["LITERALS", "Variables"]

LITERALS = (
    "set by environment to",
    "NCCL_",
    "GLOO_SOCKET_IFNAME=",
    "CUDA_MODULE_LOADING=",
    "CUDA_LAUNCH_BLOCKING=",
    "CUDA_DEVICE_MAX_CONNECTIONS=",
    "CUDA_HOME=",
    "_ALLOC_CONF=",
    "SGLANG_",
    "HF_HUB_",
    "HF_ENDPOINT=",
    "HF_HOME=",
    "LD_PRELOAD=",
    "TORCH_CUDA_ARCH_LIST=",
    "_VISIBLE_DEVICES=",
    "NVSHMEM_",
    "unset ",
)

# Names that decide how a launch goes; nothing that may hold a secret.
_NAME = (
    r"((?:CUDA|NCCL|GLOO|SGLANG|SGL|PYTORCH|TORCH|TORCHINDUCTOR|TRITON|FLASHINFER|NVSHMEM|UCX|MC|HIP|ROCR|HSA|AITER|ASCEND|HCCL"
    r"|HF|TRANSFORMERS|OMP)_[A-Z0-9_]+|LD_PRELOAD|LD_LIBRARY_PATH)"
)
_PRINTED = lazy(r"(?:export |declare -x )?" + _NAME + r"=(\"[^\"]*\"|'[^']*'|[^\s\"'$]*)")
# The same in a file that somebody pasted above the log: of Docker Compose (a list or a mapping), of Kubernetes (name and value, on two lines or on one).
_QUOTED = r"(\"[^\"$]*\"|'[^'$]*'|[^\s\"',}{$#\[\]]+)"
_LISTED = lazy(r"\s*- " + _NAME + "=" + r"([^\s\"'$]*)|\s*- [\"']" + _NAME + r"=([^\"'$]*)[\"']")
_MAPPED = lazy(r"\s+" + _NAME + r": +" + _QUOTED + r"(?:\s+#.*)?")
_NAMED = lazy(r"\s*- name: +[\"']?" + _NAME + r"[\"']?")
_VALUE = lazy(r"\s+value: +" + _QUOTED + r"(?:\s+#.*)?")
_INLINE = lazy(
    r"\{ ?[\"']?name[\"']?: ?[\"']?" + _NAME + r"[\"']?, ?[\"']?value[\"']?: ?" + _QUOTED + r" ?\}"
)
# A variable that the shell's trace or the person's typing shows; only those that steer a launch.
_EXPORT = lazy(r"^(?:[^=]{0,80}?[$#%] |\++ )?export (\w+=.*)$")  # one or several at once
_EXPORTED = lazy(
    r"(?<!\S)((?:NCCL|GLOO|TP_SOCKET|CUDA|SGLANG|SGL|TORCH|PYTORCH|UCX|MC|HSA|HIP|ROCM|ASCEND|HCCL|NVSHMEM|TRITON|OMP)_\w+)"
    r"=[\"']?([\w.,:/+-]+)[\"']?(?!\S)"
)
_UNSET = lazy(r"^(?:\S*[$#%] |\++ )?unset ([A-Z]\w+)\s*$")
_SECRET = lazy(r"TOKEN(?!S_)|KEY|SECRET|PASS")  # "..._TOKENS_PER_RANK" is a number
_OF_NCCL = lazy(r"NCCL INFO (NCCL_[A-Z0-9_]+) set by environment to (\S+?)\.?$")


class Variables:
    """What the lines of one attempt show. Several values of one name (of two hosts, or tried one after another) tell nothing."""

    __slots__ = ("_named", "_shown", "_told")

    def __init__(self) -> None:
        self._told: dict[str, dict[str, Line]] = {}  # by NCCL: in force, wherever it stands
        self._shown: dict[str, dict[str | None, Line]] = {}  # None: taken away
        self._named: str | None = None  # on the line before, whose value comes on this one

    def feed(self, line: Line) -> None:
        text = line.text
        named, self._named = self._named, None
        if "set by environment to" in text:
            if told := _OF_NCCL.search(text):
                self._told.setdefault(told[1], {}).setdefault(told[2], line)
        elif "unset " in text and (gone := _UNSET.match(line.body)):
            self._shown.setdefault(gone[1], {}).setdefault(None, line)
        elif "export " in text and (export := _EXPORT.match(line.body)):
            for one in _EXPORTED.finditer(export[1]):
                if not _SECRET.search(one[1]):
                    self._shown.setdefault(one[1], {}).setdefault(one[2], line)
        elif "=" in text and (shown := _PRINTED.fullmatch(text.rstrip())) and not _SECRET.search(shown[1]):
            self._shown.setdefault(shown[1], {}).setdefault(shown[2].strip("\"'"), line)
        else:
            self._pasted(text.rstrip(), named, line)

    def _pasted(self, text: str, named: str | None, line: Line) -> None:
        """A line of a file for containers. ``named`` is the variable that the line before names."""
        start = text.lstrip()
        found: list[tuple[str, str]] = []
        if start.startswith("- name:"):
            if called := _NAMED.fullmatch(text):
                self._named = called[1]
        elif named and start.startswith("value:"):
            if given := _VALUE.fullmatch(text):
                found.append((named, given[1]))
        elif start.startswith("- ") and "=" in text:
            if listed := _LISTED.fullmatch(text):
                found.append((listed[1] or listed[3], listed[2] if listed[1] else listed[4]))
        elif text[:1] == " " and ": " in text and start[:1].isupper() and (mapped := _MAPPED.fullmatch(text)):
            found.append((mapped[1], mapped[2]))
        if "value" in text and "{" in text:
            found += _INLINE.findall(text)
        for name, value in found:
            if not _SECRET.search(name):
                self._shown.setdefault(name, {}).setdefault(value.strip("\"'"), line)

    def known(self, died: tuple[int, int, int] | None) -> Iterator[tuple[str, str, Line]]:
        """Name, value and line of each that has one value. What is shown behind the failure, at ``died``, was written later:
        tried next, or quoted from somewhere."""
        for name in {**self._told, **self._shown}:
            told, shown = self._told.get(name, {}), self._shown.get(name, {})
            before = {value: line for value, line in shown.items() if died is None or line.key <= died}
            values = [*(told or before).items()]
            for value, line in values if len(values) == 1 else ():
                if value is not None:
                    yield name, value, line
