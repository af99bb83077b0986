"""A shell line or script, ``docker run`` lines and sbatch scripts included."""

from __future__ import annotations

import re

from mtpdoctor.launch.forms.errors import no_server, unreadable
from mtpdoctor.launch.layers import Layer
from mtpdoctor.launch.shell.lexer import ShellSyntaxError
from mtpdoctor.launch.shell.sites import ShellReader
from mtpdoctor.launch.types import Form
from mtpdoctor.launch.words import Site
from mtpdoctor.patterns import lazy

# "$ ", "# ", "+ ", "(venv) user@host:~/dir$ ", "[root@host ~]# "
_PROMPT = lazy(
    r"[ \t]*(?:\([\w.-]+\)[ \t]+)?(?:[$#>%+]|\+{2,}|❯|\[?[\w.-]+@[\w.-]+[^\n$#]{0,80}[$#])[ \t]+(?=\S)"
)

_FENCE = lazy(r"\s*```[\w-]*[ \t]*\r?\n(.*?\n)[ \t]*```\s*\Z", re.S)
_ENOUGH = 20_000  # characters


def read_shell(text: str, name: str, form: Form) -> tuple[list[Site], Form]:
    """Sites and the form in the narrower sense (a line, a script, a container run)."""
    if not re.search(r"sglang|launch_server", text):
        text = text[:_ENOUGH]  # a log given by mistake: only to say what was found
    layer, shift = Layer(text), 0
    if m := _FENCE.match(text):  # pasted from Markdown
        shift, end = m.span(1)
        places = range(shift, end)
        layer = Layer(m[1], layer, shift, end, places, range(shift + 1, end + 1))
        text = m[1]
    starts = [0]
    if (m := _PROMPT.match(text)) and not text.startswith(("#!", "#SBATCH")):
        starts = [m.end(), 0] if "#" not in m[0] or "@" in m[0] else [0, m.end()]
    seen: list[str] = []
    for start in starts:
        reader = ShellReader(layer)
        if form is Form.SBATCH:
            from mtpdoctor.launch.forms.sbatch import scheduler_options

            reader.scheduler = scheduler_options(text)
        try:
            sites = reader.read(start)
        except ShellSyntaxError as error:
            if start != starts[-1]:
                continue
            hint = "check the quoting there; nothing was changed"
            raise unreadable(layer.root.text, error.offset + shift, name, str(error), hint) from None
        if sites:
            return sites, _narrow(sites, form)
        if start == starts[0]:
            seen = reader.seen
    raise no_server(name, _found(text, seen))


def _narrow(sites: list[Site], form: Form) -> Form:
    if form in (Form.SHELL, Form.SCRIPT) and sites[0].container is not None:
        return Form.DOCKER
    return form


def _found(text: str, seen: list[str]) -> str:
    if not text.strip():
        return "it is empty"
    names = list(dict.fromkeys(n for n in seen if n))[:5]
    return f"found commands: {', '.join(names)}" if names else "found no command at all"
