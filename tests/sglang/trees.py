"""Small source trees in the three ways SGLang has declared its flags."""

from __future__ import annotations

import zipfile
from pathlib import Path

ARGPARSE = {
    "sglang-1.0.0.dist-info/METADATA": """\
Metadata-Version: 2.4
Name: sglang
Version: 1.0.0
Requires-Dist: torch==2.9.1
Requires-Dist: sgl-kernel==0.3.21
Requires-Dist: transformers==4.57.1; extra == "srt"
Requires-Dist: vllm==1.0; extra == "test"
Requires-Dist: torchvision
Requires-Dist: requests
""",
    "sglang/__init__.py": "",
    "sglang/srt/__init__.py": "",
    "sglang/srt/utils/__init__.py": "from sglang.srt.utils.common import *\n",
    "sglang/srt/utils/common.py": 'TARGETS = ["q_proj", "k_proj"]\n',
    "sglang/srt/parser.py": """\
class Parser:
    DetectorMap = {"deepseek-r1": object, "qwen3": object}
""",
    "sglang/srt/environ.py": """\
import os, warnings
def _print_deprecated_env(new_name, old_name):
    if old_name in os.environ:
        warnings.warn(f"{old_name} is deprecated")
class Envs:
    SGLANG_ENABLE_SPEC_V2 = EnvBool(False)
    SGLANG_TIMEOUT = EnvInt(60 * 5)
    MOONCAKE_MASTER = EnvStr(None)
for key in os.environ:
    if key.startswith("SGL_"):
        pass
_print_deprecated_env("SGLANG_NEW", "SGLANG_OLD")
envs = Envs()
""",
    "sglang/srt/other.py": """\
import os
from sglang.srt.utils import get_bool_env_var
A = get_bool_env_var("SGLANG_SKIP", "true")
B = int(os.getenv("SGLANG_WORKERS", "4"))
C = os.environ["SGL_PLAIN"]
D = "SGLANG_SET" in os.environ
if os.getenv("SGLANG_GONE") is not None:
    logger.warning(
        "SGLANG_GONE has been removed: it is always on. "
        "Use --no-thing to turn it off."
    )
""",
    "sglang/test/noise.py": 'import os\nX = os.getenv("SGLANG_TEST_ONLY")\n',
    "sglang/srt/server_args.py": """\
import argparse, dataclasses, json
from typing import List, Optional
from sglang.srt.parser import Parser
from sglang.srt.utils import TARGETS
from sglang.srt.environ import envs

BACKENDS = ["triton", "fa3"]

def extra():
    return ["added"]

class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, nargs=0, **kwargs):
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

@dataclasses.dataclass
class ServerArgs:
    model_path: str
    tp_size: int = 1
    backend: Optional[str] = None
    mem: float = 0.9
    bs: Optional[List[int]] = None
    tokens: int = 1 << 4
    page_size: int = 1
    chunked_prefill_size: Optional[int] = None
    speculative_eagle_topk: Optional[int] = None
    disable_radix_cache: bool = False

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True, help="Path.")
        parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=ServerArgs.tp_size)
        group = parser.add_argument_group("g")
        group.add_argument("--backend", choices=BACKENDS + extra(), default=ServerArgs.backend)
        parser.add_argument("--mem", type=float, default=ServerArgs.mem)
        parser.add_argument("--bs", type=int, nargs="+")
        parser.add_argument("--overrides", type=json.loads, default="{}")
        parser.add_argument("--reasoning-parser", choices=list(Parser.DetectorMap.keys()))
        parser.add_argument("--targets", nargs="*", choices=TARGETS + ["all"])
        parser.add_argument("--ratio", nargs="?", const=0.5, type=float)
        parser.add_argument("--timeout", type=int, default=envs.SGLANG_TIMEOUT.get())
        parser.add_argument("--page-size", type=int, default=ServerArgs.page_size)
        parser.add_argument("--chunked-prefill-size", type=int)
        parser.add_argument("--disable-radix-cache", action="store_true")
        parser.add_argument("--old-gone", action=DeprecatedAction, help="Note: --old-gone is deprecated now.")
        parser.add_argument("--old-moe", action="store_true", help="(Deprecated) Please set `--backend` to 'fa3' instead.")
        for name in ("--log-a", "--log-b"):
            parser.add_argument(name, action="store_true")
        choices = list(BACKENDS)
        if envs.SGLANG_ENABLE_SPEC_V2.get():
            choices.append("never")
        parser.add_argument("--draft-backend", choices=choices)

    @classmethod
    def from_cli_args(cls, args):
        args.tp_size = args.tensor_parallel_size
        return cls()

    def uses_spec(self):
        return self.speculative_eagle_topk is not None

    def check_server_args(self):
        assert self.page_size > 0
        if self.chunked_prefill_size is not None and self.chunked_prefill_size > 0:
            assert (
                self.chunked_prefill_size % self.page_size == 0
            ), "chunked_prefill_size must be divisible by page_size"
        if self.uses_spec() and not self.disable_radix_cache:
            hint = "add --disable-radix-cache"
            message = f"Spec with {self.backend} needs care: " + hint
            if self.tp_size > 1:
                message += " or one GPU"
            raise ValueError(message)
        if self.mem >= 1:
            raise ValueError("mem {} is over {:.1f}".format(self.mem, 1.0))
        logger.warning("Topk %d of %s is odd.", self.speculative_eagle_topk, self.backend)
""",
}

FIELDS = {
    **ARGPARSE,
    "sglang-1.0.0.dist-info/METADATA": ARGPARSE["sglang-1.0.0.dist-info/METADATA"]
    .replace("1.0.0", "1.1.0")
    .replace("sgl-kernel==0.3.21", "sglang-kernel==0.4.1"),
    "sglang/srt/environ.py": """\
class _DeprecatedEnv:
    pass
class Envs:
    SGLANG_ENABLE_SPEC_V2 = EnvBool(True)
_DEPRECATED_ENVS = {
    "SGLANG_OLD": _DeprecatedEnv(replacement="SGLANG_NEW"),
    "SGLANG_FLAGGED": _DeprecatedEnv(note="Please use '--new-flag' instead."),
}
""",
    "sglang/srt/server_args.py": """\
import dataclasses
from typing import List, Literal, Optional
from sglang.srt.arg_groups.arg_utils import A, Arg, add_cli_args_from_dataclass

BACKENDS = ["triton", "fa3", "fa4"]

class DeprecatedAliasStoreAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, **kwargs):
        super().__init__(option_strings, dest, **kwargs)

class DeprecatedStoreConstAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, const_value=None, nargs=0, **kwargs):
        pass

@dataclasses.dataclass
class ServerArgs:
    model_path: A[str, Arg(help="Path.", aliases=["--model"])]
    tp_size: A[int, Arg(help="TP.", aliases=["--tensor-parallel-size"])] = 1
    attn_backend: A[Optional[str], Arg(help="Backend.", choices=BACKENDS)] = None
    mem: A[float, "Memory."] = 0.8
    bs: A[Optional[List[int]], "Sizes."] = None
    mode: A[Literal["a", "b"], "Mode."] = "a"
    fast: A[bool, "Fast."] = False
    lazy: A[Optional[str], Arg(help="Lazy.", fallback="x")] = None
    hidden: A[int, Arg(no_cli=True)] = 0
    plain: int = 3

    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument("--config", type=str, help="Read options from a file.")
        parser.add_argument("--backend", dest="attn_backend", type=str,
                            action=DeprecatedAliasStoreAction, new_flag="--attn-backend", help="Deprecated alias.")
        parser.add_argument("--no-fast", action=DeprecatedStoreConstAction, dest="mode", const_value="b",
                            new_flag="--mode=b", help="Deprecated.")
""",
}

NAMESPACES = {
    **FIELDS,
    "sglang-1.0.0.dist-info/METADATA": FIELDS["sglang-1.0.0.dist-info/METADATA"].replace("1.1.0", "1.2.0"),
    "sglang/srt/arg_groups/fields/model.py": """\
import msgspec
from sglang.srt.arg_groups.arg_utils import A, Arg, Derived

class Model(msgspec.Struct):
    _NS_PATH = "model"
    model_path: A[str, Arg(help="Path.")]
    attn_backend: A[str | None, Arg(help="Backend.", choices=["triton", "fa4"])] = None
    stops: A[list[str], "Stops."] = msgspec.field(default_factory=list)
    rank: A[int, Derived("set at run time")] = 0
""",
    "sglang/srt/server_args.py": """\
from sglang.srt.arg_groups.fields.model import Model
from sglang.srt.arg_groups.arg_utils import add_cli_args_from_dataclass

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument("--attn-backend-default", default=_declared_default("attn_backend"))

_INPUT = [Model]
_annotations, _defaults, _names = collect_input_fields(_INPUT)
ServerArgs = defstruct("ServerArgs", _annotations)
""",
}


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def write_wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path
