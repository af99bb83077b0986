"""The frame of an HTML report: one file that loads nothing, with its style, its script, and a policy that
forbids all else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from mtpdoctor import __version__
from mtpdoctor.report.html_tags import Child, Html, join, tag


def document(title: str, *body: Child) -> str:
    """A whole page that ends in a line feed. Text among ``body`` is escaped; inline styles and handlers would
    be refused by the page's own policy."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"mtpdoctor {__version__}"),
        tag("link", rel="icon", href="data:,"),  # or a browser asks for one
        tag("title", title),
        tag("style", Html(style)),
    )
    page = tag("html", head, tag("body", *body, _foot(), tag("script", Html(script))), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def top(*children: Child) -> Html:
    """The page's head, with the switch between dark and light."""
    switch = tag("button", "Dark / light", type="button", class_="tool js", data_theme_switch=True)
    return tag("header", tag("div", *children), switch)


def section(title: str, *children: Child, **attributes: str | bool | None) -> Html:
    return tag("section", tag("h2", title), *children, **attributes)


def fold(summary: Child, *children: Child, open_: bool = False, **attributes: str | bool | None) -> Html:
    return tag("details", tag("summary", summary), *children, open=open_, **attributes)


def to_copy(text: str, what: str) -> Html:
    """A block of text with a button that copies it."""
    button = tag("button", "Copy", type="button", class_="tool copy js", aria_label=f"Copy {what}")
    return tag("div", tag("pre", tag("code", text), dir="ltr", tabindex="0"), button, class_="copyable")


def diff_lines(lines: list[tuple[str, str]]) -> Html:
    """Lines of a diff: the sign tells what colour tells too."""
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    shown = [tag("span", line, "\n", class_=kinds.get(sign)) for sign, line in lines]
    return tag("pre", tag("code", *shown), class_="diff", dir="ltr", tabindex="0")


def link(url: str) -> Html | None:
    """Only addresses of the web, opened apart from the page."""
    if not url.startswith(("https://", "http://")):
        return None
    return tag("a", url, href=url, target="_blank", rel="noopener noreferrer")


def rows_of(pairs: list[tuple[str, str]], caption: str) -> Html:
    """A table of names and values."""
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in pairs]
    return tag("div", tag("table", tag("caption", caption), join(rows), class_="pairs"), class_="wide")


def _foot() -> Html:
    return tag("footer", f"mtpdoctor {__version__}. This page loads nothing and sends nothing.")


def _asset(name: str) -> str:
    return (files("mtpdoctor.report") / "html_assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
