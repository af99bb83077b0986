"""Which form a text is in, and its reader. Readers of the other notations are imported when needed."""

from __future__ import annotations

import re

from mtpdoctor.launch.flags import FlagTable
from mtpdoctor.launch.types import Form
from mtpdoctor.launch.words import Site
from mtpdoctor.patterns import lazy

_SYSTEMD = lazy(r"^[ \t]*\[(?:Unit|Service|Install)\][ \t]*\r?$", re.M)
_EXEC_START = lazy(r"^[ \t]*ExecStart[ \t]*=", re.M)
_KIND = lazy(r"""^[ \t{,]*["']?kind["']?[ \t]*:""", re.M)
_API = lazy(r"""^[ \t{,]*["']?apiVersion["']?[ \t]*:""", re.M)
_SERVICES = lazy(r"""^\{?[ \t]*["']?services["']?[ \t]*:""", re.M)
_KEY = lazy(r"""(?:-[ \t]+)?(?:[\w./-]+|"[^"\n]+"|'[^'\n]+')[ \t]*:(?:[ \t]|\r?$)""", re.M)


def detect_form(text: str, name: str = "command") -> Form:
    """The form, from the content first, then the file's name."""
    lower = name.lower()
    if _EXEC_START.search(text) and (_SYSTEMD.search(text) or lower.endswith((".service", ".conf"))):
        return Form.SYSTEMD
    if re.search(r"^#SBATCH\b", text, re.M):
        return Form.SBATCH
    if lower.endswith((".yaml", ".yml", ".json")) or _is_yaml(text):
        if _API.search(text) or _KIND.search(text):
            return Form.KUBERNETES
        if _SERVICES.search(text) or "compose" in lower or re.search(r"^[ \t]+(image|command):", text, re.M):
            return Form.COMPOSE
        return Form.SGLANG_CONFIG
    if lower.endswith((".service",)):
        return Form.SYSTEMD
    if lower.endswith((".sbatch", ".slurm")):
        return Form.SBATCH
    if text.startswith("#!") or lower.endswith((".sh", ".bash")):
        return Form.SCRIPT
    lines = [line for line in re.sub(r"\\\r?\n", " ", text).splitlines() if line.strip()]
    return Form.SCRIPT if len(lines) > 1 else Form.SHELL


def _is_yaml(text: str) -> bool:
    """Whether the first line that says something is a mapping key, a document mark or a flow mapping."""
    for line in text.splitlines():
        line = line.strip().lstrip("\ufeff")
        if not line or line.startswith("#"):
            continue
        if line.startswith(("---", "%YAML")):
            return True
        return bool(_KEY.match(line)) or (line.startswith("{") and '"' in text[:200])
    return False


def read_sites(text: str, name: str, form: Form, table: FlagTable) -> tuple[list[Site], Form]:
    """The server commands of a text. Raises UserError."""
    if form in (Form.SHELL, Form.SCRIPT, Form.DOCKER, Form.SBATCH):
        from mtpdoctor.launch.forms.shell import read_shell

        return read_shell(text, name, form)
    if form is Form.SYSTEMD:
        from mtpdoctor.launch.forms.systemd import read_systemd

        return read_systemd(text, name), form
    if form is Form.COMPOSE:
        from mtpdoctor.launch.forms.compose import read_compose

        return read_compose(text, name), form
    if form is Form.KUBERNETES:
        from mtpdoctor.launch.forms.kubernetes import read_kubernetes

        return read_kubernetes(text, name), form
    from mtpdoctor.launch.forms.sglang_config import read_config

    return read_config(text, name, table), form
