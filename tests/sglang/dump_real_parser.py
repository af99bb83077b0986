"""Record the flags of a real SGLang's parser: run by hand inside an environment that has SGLang.

    python dump_real_parser.py > real_parser_0.5.23.json

Needs no GPU: packages that load only with one are stood in for. The tests compare the record with what
was learned from the same release's source.
"""

import argparse
import enum
import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import sys
import types
from unittest.mock import MagicMock

GPU_ONLY = frozenset(
    [
        "sgl_kernel",
        "flashinfer",
        "deep_gemm",
        "cutlass",
        "tilelang",
        "quack",
        "sgl_deep_gemm",
        "flash_mla",
        "deep_ep",
        "cuda",
        "nvshmem",
        "humming",
        "triton_kernels",
        "sglang_kernel",
        "decord",
        "decord2",
        "smg_grpc_proto",
        "smg_grpc_servicer",
        "deepseek_recipe",
        "tml_renderers",
        "sgl_flash_mla",
    ]
)


class StandIn(types.ModuleType):
    __path__ = ()
    __version__ = "99.0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in GPU_ONLY:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


def plain(value):
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def main():
    import torch
    from transformers import AutoConfig, AutoProcessor, AutoTokenizer  # noqa: F401 (before the stand-ins)

    sys.meta_path.insert(0, Finder())
    register = torch.library.register_fake

    def register_fake(op, func=None, **kw):  # operators of packages that are only stood in for
        def decorate(function):
            try:
                return register(op, **kw)(function)
            except RuntimeError:
                return function

        return decorate(func) if func else decorate

    torch.library.register_fake = register_fake
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    flags = {}
    for action in parser._actions:
        if not action.option_strings or isinstance(action, argparse._HelpAction):
            continue
        name = next((o for o in action.option_strings if o.startswith("--")), action.option_strings[0])
        arity = {0: "switch", "?": "optional", "+": "many", "*": "many", None: "one"}[action.nargs]
        default = None if action.default is argparse.SUPPRESS else plain(action.default)
        row = {
            "dest": action.dest,
            "aliases": sorted(o for o in action.option_strings if o != name),
            "arity": arity,
            "type": getattr(action.type, "__name__", None) if action.type else None,
            "choices": sorted(map(str, plain(list(action.choices)))) if action.choices else None,
            "default": default,
            "required": action.required,
        }
        usual = {"dest": name[2:].replace("-", "_"), "arity": "one", "required": False}
        flags[name] = {k: v for k, v in row.items() if v not in (None, []) and v != usual.get(k, ...)}
        if default == []:
            flags[name]["default"] = []
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(flags.items()))
    print(
        json.dumps({"release": importlib.metadata.version("sglang")})[:-1] + ', "flags": {\n' + lines + "\n}}"
    )


main()
