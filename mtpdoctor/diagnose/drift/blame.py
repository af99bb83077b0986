"""Which packages a failure lies in or between, where it is of a kind that another version explains.

A missing value (``NoneType``) is none, and what only passes through a package (a module's ``forward``) is not raised in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from mtpdoctor.log.types import Frame
from mtpdoctor.patterns import lazy
from mtpdoctor.records import dataclass
from mtpdoctor.sglang.packages import package_of


class Kind(str, Enum):
    """What the failure is, surest first."""

    SYMBOL = "symbol"  # a compiled library and the one that should have its symbol
    MODEL_TYPE = "model type"  # transformers
    CHECK = "check"  # a message names a package and versions
    IMPORT = "import"  # a name or a module that a package does not have
    BORDER = "border"  # an attribute, an argument or a type, in a package or where it is called


@dataclass(frozen=True, slots=True)
class Blame:
    """``packages``: distributions, those in which the failure shows first. ``library``: the compiled one."""

    kind: Kind
    packages: tuple[str, ...]
    library: str | None = None


_SYMBOL = lazy(
    r"(?P<lib>[\w./+-]+\.so(?:\.\d+)*)?:? ?undefined symbol:? (?P<symbol>\w+)|(?P<dll>[\w./+-]+\.so(?:\.\d+)*): cannot open shared object"
)
_OF_TORCH = lazy(r"_ZN?K?\w*?(?:2at|3c10|5torch|4c10d)\d|aoti_torch|_ZNK?(?:3c10|2at|5torch)|torch_")
_TYPE = lazy(r"model type `[^`]+` but Transformers does not recognize")
_IMPORT = lazy(
    r"cannot import name '\w+' from (?:partially initialized module )?'([\w.]+)'|No module named '([\w]+\.[\w.]+)'"
)
_MODULE = lazy(r"module '([\w.]+)' has no attribute|'_OpNamespace' '(\w+)' object has no attribute")
_OPERATOR = lazy(
    r"operator (torchvision|torchaudio|torchao|sgl_kernel|_C)::\w+ does not exist|No such operator (\w+)::\w+"
)
_REQUIRED = lazy(
    r"(?P<name>[A-Za-z][\w-]*)\s*(?:>=|==|<=|<|>|~=|!=)[^ ]* is required for a normal functioning|"
    r"\b(?P<other>[a-z][\w-]*) is installed with version|(?i:version of (?P<third>[a-z][\w-]*) (?:is|must|should|needs))|"
    r"(?P<fourth>flashinfer)-(?:cubin|jit-cache) version \("
)
_SITE = lazy(r"(?:site|dist)-packages/(?:nvidia_cutlass_dsl/python_packages/)?([A-Za-z0-9_]+)")
_CUDNN = lazy(r"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH|libcudnn\w*\.so|cuDNN version incompatibility")
_NUMPY = lazy(
    r"compiled using NumPy 1|numpy\.core\.multiarray failed|numpy\.dtype size changed|(?i:needs numpy) \d|_ARRAY_API not found"
)
_LIBRARIES = {
    "cudnn": ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
    "nccl": ("nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    "cublas": ("nvidia-cublas-cu12", "nvidia-cublas"),
    "__nvJitLink": ("nvidia-nvjitlink-cu12", "nvidia-nvjitlink"),
}
_KINDS = frozenset(
    {"AttributeError", "TypeError", "ImportError", "ModuleNotFoundError", "NotImplementedError", "NameError"}
)
# Exceptions that a library makes of a wrong use of another.
_OF_OTHERS = frozenset({"InductorError", "CompilationError", "BackendCompilerFailed", "StrictDataclassFieldValidationError",
                        "StrictDataclassDefinitionError", "ValidationError", "DSLRuntimeError", "UnsupportedOperation"})  # fmt: skip
_NEVER = frozenset(
    {"sglang", "uvloop", "asyncio", "click", "typer", "concurrent", "multiprocessing", "fastapi", "starlette"}
)
# What one calls of a package, by which its name shows where no frame is in it.
_CALLED = (
    ("flashinfer", lazy(r"\bflashinfer\b|\btrtllm_\w+\(|\bBatch(?:Decode|Prefill|MLA)\w+|\bcutlass_fused_moe|\bmm_fp4\b|\bfp4_quantize\b")),
    ("sgl_kernel", lazy(r"\bsgl_kernel\b|\bsgl_per_token\w+|\bfp8_scaled_mm\b|\bmoe_align_block_size\b|\btopk_softmax\b")),
    ("deep_gemm", lazy(r"\bdeep_gemm\.|\bDeepGEMM\b|get_paged_mqa_logits|fp8_m_grouped")),
    ("deep_ep", lazy(r"\bdeep_ep\b|\bBuffer\.(?:dispatch|combine)|low_latency_dispatch")),
    ("transformers", lazy(r"\btransformers\b|\bAuto(?:Config|Tokenizer|Processor|ImageProcessor)\b|\bPretrainedConfig\b|\bPreTrained\w+|\w+Config\(\*\*")),
    ("xgrammar", lazy(r"\bxgrammar\b|\bxgr\.|\bGrammarCompiler\b|\bTokenizerInfo\b|\bGrammarMatcher\b")),
    ("outlines", lazy(r"\boutlines\b|\bRegexGuide\b")),
    ("llguidance", lazy(r"\bllguidance\b|\bLLMatcher\b|\bLLInterpreter\b")),
    ("triton", lazy(r"\btriton\b|\btl\.\w+|'CompiledKernel'|\bASTSource\b|\bAttrsDescriptor\b|\blaunch_enter_hook\b|\bJITFunction\b|triton_key")),
    ("cutlass", lazy(r"\bcutlass\.|\bcute\.|\b_cutlass_ir\b")),
    ("tvm_ffi", lazy(r"\btvm_ffi\b|\bTVMFFI\w+|_ZNK?3tvm3ffi")),
    ("torchao", lazy(r"\btorchao\b")),
    ("torchcodec", lazy(r"\btorchcodec\b|libtorchcodec")),
    ("compressed_tensors", lazy(r"\bcompressed_tensors\b|\bQuantizationArgs\b")),
    ("torch_memory_saver", lazy(r"\btorch_memory_saver\b")),
    ("numpy", lazy(r"\bnumpy\b|\bnp\.\w+")),
    ("torch", lazy(r"\btorch\._(?:inductor|dynamo)|torch/_(?:inductor|dynamo)/")),
)  # fmt: skip
# What calls SGLang's code back, and raises nothing of its own.
_WRAPPER = lazy(
    r"/torch/(?:nn/modules/module|utils/_contextlib|utils/_device|_ops|cuda/graphs|multiprocessing/\w+)\.py"
)
_CALL = lazy(
    r"\(\) (?:got (?:an unexpected keyword|multiple values)|missing \d+ required|takes (?:from )?\d+)|incompatible function"
)
_CLASS = lazy(r"'\w+(?:Config|Tokenizer|TokenizerFast|Processor)' object has no attribute")
_NOTHING = lazy(
    r"'NoneType' object|for [-+*/]=?: 'NoneType'|\bNoneType\b.{0,40}\b(?:subscriptable|iterable|callable)"
    r"|(?i:out of resource|out ?of ?memory|No space left|Permission denied|Failed to find C compiler|Python\.h)"
)


def blame_of(text: str, kind: str, frames: tuple[Frame, ...]) -> Blame | None:
    """``text``: the exception with its message; ``kind``: its type. None where no version can explain it."""
    name = kind.rpartition(".")[2]
    if (m := _SYMBOL.search(text)) is not None and m["symbol"]:
        return _of_symbol(m["lib"] or "", m["symbol"], frames)
    if _CUDNN.search(text):
        return Blame(Kind.SYMBOL, (*_LIBRARIES["cudnn"], "torch"), "cudnn")
    if _TYPE.search(text):
        return Blame(Kind.MODEL_TYPE, ("transformers",))
    if "Could not load libtorchcodec" in text:  # or FFmpeg is not there
        return Blame(Kind.BORDER, ("torchcodec", "torch"))
    if _NUMPY.search(text):
        return Blame(Kind.CHECK, ("numpy", "numba"))
    if (m := _REQUIRED.search(text)) is not None:
        said = m["name"] or m["other"] or m["third"] or m["fourth"]
        if package_of(said.replace("-", "_")).known or package_of(said).known:
            return Blame(Kind.CHECK, tuple(_distributions([said.replace("-", "_")])))
    if (m := _OPERATOR.search(text)) is not None:
        return Blame(Kind.SYMBOL, tuple(_distributions([m[1] or m[2], "torch"])), m[1] or m[2])
    if _NOTHING.search(text.partition("\n")[0]):
        return None  # a value that is not there, or something of the machine
    if name in _KINDS or name in _OF_OTHERS or "incompatible function arguments" in text:
        said_of = _IMPORT.search(text) or _MODULE.search(text)
        modules = [(said_of[1] or said_of[2]).partition(".")[0]] if said_of is not None else []
        packages = tuple(_distributions([*modules, *_named(text, name, frames), *_lying_in(frames)]))
        if packages:
            of = Kind.IMPORT if modules and name in ("ImportError", "ModuleNotFoundError") else Kind.BORDER
            return Blame(of, packages)
    return None


def _of_symbol(library: str, symbol: str, frames: tuple[Frame, ...]) -> Blame:
    place = _SITE.search(library)
    module = place[1] if place else library.rpartition("/")[2].partition(".")[0]
    if not place and (near := next(_lying_in(frames), None)):
        module = near
    module = {"common_ops": "sgl_kernel", "flash_ops": "sgl_kernel", "spatial_ops": "sgl_kernel"}.get(
        module, module
    )
    provider = [name for name, pattern in _CALLED if name in ("tvm_ffi", "numpy") and pattern.search(symbol)]
    if _OF_TORCH.match(symbol):
        provider.append("torch")
    for prefix, names in _LIBRARIES.items():
        if symbol.startswith(prefix):  # torch brings these libraries in the version that it was built with
            return Blame(Kind.SYMBOL, (*names, *_distributions([module, "torch"])), module)
    return Blame(Kind.SYMBOL, tuple(_distributions([module, *provider])), module)


def _named(text: str, kind: str, frames: tuple[Frame, ...]) -> Iterator[str]:
    """By the words of the message; of a call with wrong arguments also by the line that makes it."""
    code = " ".join(f.code for f in frames[-2:]) if _CALL.search(text) else ""
    for module, pattern in _CALLED:
        if pattern.search(text) or pattern.search(code):
            yield module
    if kind == "AttributeError" and _CLASS.search(text):
        yield "transformers"


def _lying_in(frames: tuple[Frame, ...]) -> Iterator[str]:
    """Import names of the packages of others between the last frame of SGLang and where it was raised."""
    for frame in reversed(frames):
        if "/sglang/" in frame.path or frame.path.startswith("sglang/"):
            return
        found = _SITE.search(frame.path)
        if found and found[1] not in _NEVER and not _WRAPPER.search(frame.path):
            yield found[1]


def _distributions(modules: Iterable[str]) -> Iterator[str]:
    """Each once; a package of several parts with all of them."""
    seen: set[str] = set()
    for module in modules:
        for name in (*package_of(module).distributions, *_PARTS.get(module, ())):
            if name not in seen:
                seen.add(name)
                yield name


_PARTS = {
    "flashinfer": ("flashinfer-cubin", "flashinfer-jit-cache"),
    "cutlass": (
        "nvidia-cutlass-dsl-libs-base",
        "nvidia-cutlass-dsl-libs-cu13",
        "nvidia-cutlass-dsl-libs-cu12",
    ),
    "sgl_kernel": ("sgl-kernel-cpu", "sgl-kernel-npu"),
    "triton": ("triton",),
    "transformers": ("tokenizers", "huggingface-hub"),
}
