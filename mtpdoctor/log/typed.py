"""Commands that a person or a script typed only to look at something: their words are no news, their output is."""

from __future__ import annotations

from mtpdoctor.log.prompt import PROMPT, TRACE
from mtpdoctor.patterns import lazy

_BEFORE = r"(?:(?:sudo|time|timeout \S+|watch(?: -\S+(?: \d+)?)*|(?:[A-Za-z_]\w*=\S* )+|while true; do|while|for \w+ in|if|!) +)*"
_LOOKING = (
    r"(?:e?grep|zgrep|rg|ag|ack|awk|sed|dmesg|journalctl|echo|printf|cat|bat|tail|head|less|more|find|test|\[{1,2}|wc|sort|ps|pgrep|top|htop"
    r"|strings|ls|stat|file|readelf|objdump|nm|ldd|which|man|history|true|:"
    r"|(?:docker|podman|nerdctl|crictl)(?: container| compose)? (?:inspect|logs|ps|events|images|top|stats)"
    r"|kubectl(?: -\S+(?: [\w-]+)?)*(?: -n \S+)? (?:logs|describe|get|events|top|explain)|systemctl (?:status|show|cat)|sacct|squeue|scontrol|sinfo"
    r"|gh issue|git (?:log|grep|show|diff|status|blame))"
)
_LOOKS = lazy(rf"^\s*(?:{PROMPT}|{TRACE})\s+{_BEFORE}{_LOOKING}(?=\s|$)")
_MIGHT = ("$", "#", "+", "%", "❯", "➜")


def looks(body: str) -> bool:
    """Is the line a command of that kind, behind a prompt or as a shell traces it?"""
    return any(mark in body[:300] for mark in _MIGHT) and _LOOKS.match(body) is not None
