"""Which versions of packages a log shows, and what packages ask of each other.

Read are pip's, uv's and conda's lists and summaries, ``pip show``, ``pip check``, the resolver's conflicts, Dockerfiles and typed
``pip install`` commands, ``sglang.check_env``, torch's ``collect_env``, and messages of libraries that name versions. What was
said last counts, except that a command or a path only fills what nothing else tells.
"""

from __future__ import annotations

from collections.abc import Iterator

from mtpdoctor.patterns import lazy

# Distributions whose versions matter to a launch, as pip and uv write them. "_" stands where older metadata has it.
NAMES = (
    "torch", "torchvision", "torchaudio", "torchao", "torchcodec", "torch-npu", "torch_npu", "torch-memory-saver",
    "torch_memory_saver", "triton", "triton-ascend", "triton_ascend", "triton-xpu", "triton-rocm", "pytorch-triton",
    "pytorch-triton-rocm", "pytorch-triton-xpu", "transformers", "tokenizers", "huggingface-hub", "huggingface_hub", "hf-xet",
    "safetensors", "accelerate", "peft", "diffusers", "sgl-kernel", "sgl_kernel", "sgl-kernel-cpu", "sgl-kernel-npu",
    "sgl_kernel_npu", "sglang-kernel", "sglang-kernel-cpu", "sglang-kt", "kt-kernel", "sgl-deep-gemm", "sgl-deep-ep", "sgl-flash-mla",
    "deep-gemm", "deep_gemm", "deep-ep", "deep_ep", "flashinfer-python", "flashinfer_python", "flashinfer-cubin",
    "flashinfer_cubin", "flashinfer-jit-cache", "flashinfer_jit_cache", "flash-attn", "flash_attn", "flash-attn-4", "quack-kernels",
    "apache-tvm-ffi", "tilelang", "tvm", "xgrammar", "outlines", "outlines-core", "outlines_core", "llguidance", "compressed-tensors",
    "numpy", "numba", "llvmlite", "protobuf", "grpcio", "pydantic", "openai", "timm", "sentencepiece", "tiktoken", "mistral-common",
    "mistral_common", "opencv-python", "opencv-python-headless", "decord", "decord2", "av", "kernels", "humming-kernels",
    "tokenspeed-mla", "vllm", "bitsandbytes", "mooncake-transfer-engine", "mooncake-transfer-engine-cuda13", "nixl", "nixl-cu12",
    "nixl-cu13", "cuda-python", "cuda-bindings", "cupy-cuda12x", "cupy-cuda13x", "amd-aiter", "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-cublas-cu12", "nvidia-cublas", "nvidia-nvjitlink-cu12",
    "nvidia-nvjitlink", "nvidia-nvshmem-cu12", "nvidia-nvshmem-cu13", "nvidia-cutlass-dsl", "nvidia-cutlass-dsl-libs-base",
    "nvidia-cutlass-dsl-libs-cu12", "nvidia-cutlass-dsl-libs-cu13",
)  # fmt: skip
# Of ``python -m sglang.check_env`` and torch's collect_env: "name: version".
_REPORTED = (
    "PyTorch", "PyTorch version", "torch", "triton", "transformers", "tokenizers", "torchao", "torchcodec", "numpy", "xgrammar",
    "outlines", "huggingface_hub", "sgl_kernel", "sgl-kernel", "sglang-kernel", "flashinfer_python", "flashinfer_cubin",
    "flashinfer_jit_cache", "vllm", "openai",
)  # fmt: skip
# One space only where the name is the longest of the list that was printed, or a person typed it.
_CLOSE = (
    "torch 2.", "torchvision 0.", "triton 3.", "transformers 4.", "transformers 5.", "sgl-kernel 0.", "sglang-kernel 0.",
    "flashinfer-python 0.", "flashinfer-cubin 0.", "flashinfer-jit-cache 0.", "nvidia-cudnn-cu12 9.", "nvidia-cudnn-cu13 9.",
    "huggingface-hub 0.", "huggingface-hub 1.", "tokenizers 0.", "xgrammar 0.", "numpy 1.", "numpy 2.",
)  # fmt: skip

# Literals whose lines are worth looking at; ordinary logs of a server have none of them.
LITERALS = (
    *(f"{name}  " for name in NAMES),
    *(f"{name}==" for name in NAMES if len(name) > 2),
    *(f"{name}: " for name in _REPORTED),
    "PyTorch version  ",
    "PyTorch version (",
    "`transformers` version: ",
    "Huggingface_hub version: ",
    *(
        f'"name": "{name}"'
        for name in ("torch", "transformers", "sgl-kernel", "sglang-kernel", "flashinfer-python", "triton")
    ),
    *_CLOSE,
    "Package  ",
    "which is incompatible",
    "has requirement ",
    ", which is not installed",
    "Successfully installed ",
    "Successfully uninstalled ",
    "Successfully built ",
    "Installing build dependencies",
    "Requirement already satisfied: ",
    "No matching distribution found for ",
    "Name: ",
    "Version: ",
    "Transformers version ",
    "for torchao version",
    "Current Environment: PyTorch",
    "is installed with version ",
    " requires `",
)

_KNOWN = frozenset(name.lower().replace("_", "-") for name in NAMES)
_VERSION = r"\d+(?:\.\w+)+(?:[+!-][\w.]+)?"
_BUILD = lazy(r"^#\d+ (?:\[[^\]]*\] )?(?:\d+\.\d+ )?")  # of docker build
_TABLE = lazy(rf"^\s*(?:\[conda\] |[│|] ?)?([A-Za-z][\w.-]*)(\s+|\s*[│|]\s*)({_VERSION})(?:\s+(\S.*))?$")
_HEAD = lazy(r"^Package\s+Version(?:\s+Editable project location|\s+Location)?(?:\s+Installer)?\s*$")
_FREEZE = lazy(rf"^\s*(?:\+ |~ |\[(?:pip3?|conda)\] )?([A-Za-z][\w.-]*)(?:\[[\w,-]*\])?==({_VERSION})\s*$")
_REPORT = lazy(rf"^\s*([A-Za-z][\w -]*?)\s*: ({_VERSION}|Module Not Found)\s*$")
_OF_TRANSFORMERS = lazy(
    rf"^- `?(transformers|Huggingface_hub|PyTorch|Safetensors)`? version(?: \([^)]*\))?: ({_VERSION})"
)
_CONFLICT = lazy(
    r"(?<![\w.-])([A-Za-z0-9][\w.-]{0,80}) (\d\S{0,40}) (?:requires|has requirement) ([\w.-]{1,80})(?:\[[\w,-]{0,80}\])?([^;`]{0,80}?)(?:;.{0,200}?)?, "
    r"but you have ([\w.-]{1,80}) (\d\S{0,40}?)(?: which is incompatible)?\.?\s*$"
)
_LACKING = lazy(
    r"(?<![\w.-])([A-Za-z0-9][\w.-]{0,80}) (\d\S{0,40}) requires ([\w.-]{1,80})(?:\[[\w,-]{0,80}\])?[^,]{0,200}, which is not installed"
)
_UV_CONFLICT = lazy(
    r"package `([\w.-]+)` requires `([\w.-]+?)((?:[=<>!~]=?|===)[^`;]{1,80})(?:;[^`]*)?`, but `(\d[\w.+!-]*)` is installed"
)
_INSTALLED = lazy(
    r"(?<!\S)([A-Za-z0-9][A-Za-z0-9_.-]{0,80}?)-(\d{1,9}(?:\.\d{1,9}){0,9}[\w.+]{0,40})(?=\s|$)"
)
_SATISFIED = lazy(rf"Requirement already satisfied: ([\w.-]{{1,80}})(?![\w.-]).*\(({_VERSION})\)\s*$")
_COMMAND = lazy(
    r"(?:^\s*(?:RUN |Step \d+/\d+ : RUN |\++ )|[#$%>] |&& |-l?c['\", ]{1,5}).{0,300}?\b(?:uv )?pip3? install (.+?)(?: && | ; |; |\|\|?|$)"
)
_WORD = lazy(rf"(?:^|[\s'\"])([A-Za-z][\w.-]*)(?:\[[\w,-]*\])?==({_VERSION})(?=['\"\s]|$)")
_DIST_INFO = lazy(r"(?:site|dist)-packages/([A-Za-z][\w.]*)-(\d+(?:\.\w+)+(?:\+[\w.]+)?)\.dist-info")
_USED = lazy(r"\bTransformers version (\d+(?:\.\d+)+\w*)")
_TORCHAO = lazy(r"incompatible torch version (\d\S*) for torchao version (\d\S*)")
_OF_TORCH = lazy(r"Current Environment: PyTorch (\d\S*) \| CuDNN (\d[\d.]*)")
_TOO_OLD = lazy(
    r"(?<![\w-])([\w-]{1,80}) is installed with version (\d\S{0,40}), which is less than the minimum required version (\d[\w.]{0,40}\w)"
)
_GONE = lazy(r"^\s*Successfully uninstalled ([A-Za-z0-9][\w.-]{0,80}?)-\d\S{0,40}\s*$")
_NO_SUCH = lazy(r"No matching distribution found for ([\w.-]+)")
_BUILT = lazy(r"Successfully built ([\w.-]+)")
_JSON = lazy(rf"\"name\": ?\"([A-Za-z][\w.-]*)\", ?\"version\": ?\"({_VERSION})\"")  # pip list --format json
_OWN = frozenset({"sglang"})


def canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


class PackageLines:
    """Feed the lines of one attempt, in order; each call gives facts: (name, value, whether it only fills a gap).

    ``host.package.NAME`` is a version, None where the log says that it is not installed; ``log.ask.NAME`` is "SPEC by OWNER VERSION";
    ``log.built_with.NAME`` is the version that a package was built with in an environment of its own, ``log.built`` that package.
    """

    __slots__ = ("_building", "_listing", "_shown")

    def __init__(self) -> None:
        self._building = False  # between pip's build dependencies and what it built
        self._listing = False  # under the head of pip's table: every row is a distribution
        self._shown: str | None = None  # the distribution that ``pip show`` speaks of

    def feed(self, text: str) -> Iterator[tuple[str, object, bool]]:
        body = _BUILD.sub("", text) if text.startswith("#") else text
        if "Installing build dependencies" in body:
            self._building = True
        elif self._building and "Successfully " in body:
            if (built := _BUILT.search(body)) is not None:
                yield "log.built", canonical(built[1]), False
            self._building = False
        yield from self._shown_by_pip(body)
        yield from self._asks(body)
        yield from self._listed(body)
        for name, version in _said(body):
            yield from self._have(name, version)
        if "==" in body and (command := _COMMAND.search(body)) is not None:
            for word in _WORD.finditer(command[1]):
                yield from self._have(word[1], word[2])
        if "dist-info" in body and (found := _DIST_INFO.search(body)) is not None:
            yield from self._have(found[1], found[2], True)
        if "Successfully uninstalled " in body and (found := _GONE.match(body)) is not None:
            yield f"host.package.{canonical(found[1])}", None, False  # an upgrade says next what it installed
        if "No matching distribution found" in body and (found := _NO_SUCH.search(body)) is not None:
            yield f"host.package.{canonical(found[1])}", None, True

    def _have(self, name: str, version: str, fills: bool = False) -> Iterator[tuple[str, object, bool]]:
        plain = canonical(name)
        if plain in _OWN:
            return
        if self._building:
            if plain in _KNOWN:
                yield f"log.built_with.{plain}", version, False
            return
        yield f"host.package.{plain}", version, fills

    def _listed(self, body: str) -> Iterator[tuple[str, object, bool]]:
        if self._listing and not body.startswith("---"):
            row = _TABLE.match(body)
            self._listing = row is not None
            if row is not None and canonical(row[1]) not in _KNOWN:
                yield from self._have(row[1], row[3])
        elif body.startswith("Package ") and _HEAD.match(body) is not None:
            self._listing = True

    def _shown_by_pip(self, body: str) -> Iterator[tuple[str, object, bool]]:
        if body.startswith("Name: "):
            self._shown = body[6:].strip()
        elif body.startswith("Version: ") and self._shown is not None:
            if canonical(self._shown) in _KNOWN:
                yield from self._have(self._shown, body[9:].strip())
            self._shown = None

    def _asks(self, body: str) -> Iterator[tuple[str, object, bool]]:
        if ", but you have" in body and (m := _CONFLICT.search(body)) is not None:
            yield from self._ask(m[3], m[4], f"{m[1]} {m[2]}")
            yield from self._have(m[5], m[6].rstrip(",."))
            if canonical(m[1]) in _KNOWN:
                yield from self._have(m[1], m[2], True)
        elif "is installed" in body and (m := _UV_CONFLICT.search(body)) is not None:
            yield from self._ask(m[2], m[3], m[1])
            yield from self._have(m[2], m[4])
        elif "which is not installed" in body and (m := _LACKING.search(body)) is not None:
            if canonical(m[3]) in _KNOWN:
                yield f"host.package.{canonical(m[3])}", None, True
        elif "is installed with version" in body and (m := _TOO_OLD.search(body)) is not None:
            yield from self._ask(m[1], f">={m[3]}", "SGLang")
            yield from self._have(m[1], m[2].rstrip(","))

    def _ask(self, name: str, spec: str, owner: str) -> Iterator[tuple[str, object, bool]]:
        spec = spec.strip().strip("()").replace(" ", "")
        if spec:
            yield f"log.ask.{canonical(name)}", f"{spec} by {owner}", False


def _said(body: str) -> Iterator[tuple[str, str]]:
    """(distribution, version) pairs of one line of a list, a summary or a message."""
    if "Successfully installed " in body:
        for found in _INSTALLED.finditer(body.partition("Successfully installed ")[2]):
            yield found[1], found[2]
    elif '"name": "' in body:
        for found in _JSON.finditer(body):
            if canonical(found[1]) in _KNOWN:
                yield found[1], found[2]
    elif (m := _FREEZE.match(body)) is not None:
        yield m[1], m[2]
    elif (m := _TABLE.match(body)) is not None:
        if canonical(m[1]) in _KNOWN and (m[4] is None or len(m[2]) > 1):
            yield m[1], m[3]
    elif body.startswith("- ") and (m := _OF_TRANSFORMERS.match(body)) is not None:  # transformers env
        yield "torch" if m[1] == "PyTorch" else m[1], m[2]
    elif ": " in body and (m := _REPORT.match(body)) is not None and m[1] in _REPORTED:
        if m[2] != "Module Not Found":
            yield "torch" if m[1].startswith("PyTorch") else m[1], m[2]
    elif "Requirement already satisfied" in body and (m := _SATISFIED.search(body)) is not None:
        if canonical(m[1]) in _KNOWN:
            yield m[1], m[2]
    elif "Transformers version " in body and (m := _USED.search(body)) is not None:
        yield "transformers", m[1]
    elif "for torchao version" in body and (m := _TORCHAO.search(body)) is not None:
        yield "torch", m[1]
        yield "torchao", m[2]
    elif "Current Environment" in body and (m := _OF_TORCH.search(body)) is not None:
        yield "torch", m[1]
