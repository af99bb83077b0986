"""What a bundle holds and what was taken out of it, for people."""

from __future__ import annotations

from mtpdoctor.bundle.types import Bundle
from mtpdoctor.text import one_line

_WORDS = {
    "secret": ("secret", "secrets"),
    "email": ("e-mail address", "e-mail addresses"),
    "url": ("query of a URL", "queries of URLs"),
    "ip": ("IP address", "IP addresses"),
    "mac": ("hardware address", "hardware addresses"),
    "host": ("host name", "host names"),
    "user": ("user name", "user names"),
    "path": ("private part of paths", "private parts of paths"),
    "model": ("model name", "model names"),
}


def render_bundle(bundle: Bundle, written: str | None, kept: str | None) -> str:
    """``written``: where the archive lies; None: a dry run. Ends in a line feed."""
    rows = [f"Wrote {one_line(written)}" if written else "Would go in (nothing was written):", ""]
    wide = max(len(e.name) for e in bundle.entries)
    for entry in bundle.entries:
        rows.append(f"  {entry.name:<{wide}}  {_size(len(entry.data)):>9}  {one_line(entry.note)}".rstrip())
    rows += ["", "Taken out:"]
    kinds: dict[str, list[int]] = {}
    for r in bundle.redactions:
        kinds.setdefault(r.kind, []).append(r.count)
    for kind, counts in kinds.items():
        name = _WORDS[kind][len(counts) != 1]
        places = sum(counts)
        rows.append(f"  {len(counts)} {name}, in {places} place{'s' * (places != 1)}")
    if not kinds:
        rows.append("  nothing: no private name was found")
    rows.append("")
    unchanged = bundle.manifest["diagnosis_unchanged"]
    if unchanged:
        rows.append("The diagnosis of the redacted logs is that of the logs themselves.")
    elif unchanged is False:
        rows.append("The diagnosis of the redacted logs is not quite that of the logs themselves:")
        rows += [f"  {one_line(text)}" for text in bundle.manifest["differences"]]
    if written and kept:
        rows.append(f"{one_line(kept)} tells which name became what; it stays here.")
    rows.append(
        "Nothing was sent anywhere. Look through the archive before you pass it on."
        if written
        else "Nothing was sent anywhere."
    )
    return "\n".join(rows) + "\n"


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 2**20 else f"{count / 2**20:.1f} MiB"
