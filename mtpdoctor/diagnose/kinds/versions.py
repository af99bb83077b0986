"""The packages that a failure lies in or between, in the versions that this SGLang release asks for.

Where the log shows another version of one of them, ``diagnose.drift`` offers that first; this is what is known without it.
"""

from __future__ import annotations

import shlex

from mtpdoctor.case import Case
from mtpdoctor.diagnose.drift.blame import blame_of
from mtpdoctor.diagnose.drift.commands import compile_again, index_of
from mtpdoctor.diagnose.drift.found import KERNELS, packages_shown, pins_of
from mtpdoctor.kb.types import Match, Remedy, Safety
from mtpdoctor.sglang.packages import companions, package_of

_MOST = 5  # packages in one command


def versions_remedies(match: Match, case: Case) -> list[Remedy]:
    """Captures: ``package`` (an import name) or ``library`` (a compiled one) where the message alone does not tell them."""
    pins = pins_of(case)
    names = [n for n in _blamed(match) if pins.get(n)]
    for name in tuple(names):
        names += [n for n in companions(name) if pins.get(n, "").startswith("==") and n not in names]
    wanted = [n + pins[n] for n in names][:_MOST]
    if not wanted and _on_cpu(case) and _of_kernel(match):
        prepare = "cd sgl-kernel && cp pyproject_cpu.toml pyproject.toml"
        torch = case.facts.look("host.package.torch")
        version = torch.partition("+")[0] if isinstance(torch, str) else "THE-INSTALLED-ONE"
        why = "the kernel package for CPUs is compiled on the machine; "
        return [compile_again("the kernel package", "the torch that is installed", why, prepare, version)]
    if not wanted:
        return [_unknown(match)]
    torch = next((w[7:] for w in wanted if w.startswith("torch==")), None)
    index = index_of(torch, case) if torch is not None else None
    line = f"pip install {' '.join(shlex.quote(w) for w in wanted)}"
    return [
        Remedy(
            title=f"Install what SGLang {case.release} asks for: {' '.join(wanted)}",
            safety=Safety.MANUAL,
            why="they were built and tested together; another version of one of them is what such a failure comes from",
            run=(
                f"pip list | grep -i -E {shlex.quote('|'.join(n.replace('-', '.') for n in names[:_MOST]))}",
                f"{line} --index-url {index}" if index else line,
            ),
            risk="what else uses this Python may need other versions; use an environment of its own then",
        )
    ]


def _blamed(match: Match) -> list[str]:
    traceback = match.traceback
    kind = traceback.type if traceback is not None else match.line.body.partition(":")[0]
    text = f"{match.line.body}\n{traceback.message if traceback is not None else ''}"
    blame = blame_of(text, kind, traceback.frames if traceback is not None else ())
    named = match.captures.get("package")
    out = list(package_of(named.partition(".")[0]).distributions) if named else []
    return list(dict.fromkeys([*out, *(blame.packages if blame is not None else ())]))


def _on_cpu(case: Case) -> bool:
    """By the platform, or by the kernel package for CPUs."""
    shown = packages_shown(case)
    return case.facts.look("host.platform") == "cpu" or any(
        name in shown for name in KERNELS if name.endswith("-cpu")
    )


def _of_kernel(match: Match) -> bool:
    return any(name in KERNELS for name in _blamed(match))


def _unknown(match: Match) -> Remedy:
    """The release, or what it asks for on this platform, is not known."""
    names = (
        "|".join(dict.fromkeys(n.partition("-")[0] for n in _blamed(match))) or "torch|sgl|triton|flashinfer"
    )
    return Remedy(
        title="Look up which versions this SGLang asks for, and install those",
        safety=Safety.MANUAL,
        why="packages with compiled code fit the versions that they were built with; the second command prints what SGLang asks for",
        run=(
            f"pip list | grep -i -E {shlex.quote(names)}",
            "python -c \"import importlib.metadata as m; print([r for r in m.requires('sglang') or [] if '==' in r])\"",
            "pip check",
        ),
    )
