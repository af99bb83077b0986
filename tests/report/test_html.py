"""The HTML reports as text: well formed, escaped, readable in both schemes. A browser: test_html_browser.py."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hostile import TOKEN, hostile_log
from hypothesis import given
from hypothesis import strategies as st
from reports import ALL, FAILED
from triages import NO_BUFFER, failed, group, triage

from mtpdoctor.cli.main import main
from mtpdoctor.records import replace
from mtpdoctor.report.html import render_html
from mtpdoctor.report.html_tags import Html, join, tag
from mtpdoctor.report.html_triage import render_triage_html

ASSETS = Path(__file__).parent.parent.parent / "mtpdoctor" / "report" / "html_assets"
VOID = {"meta", "link", "input", "br", "hr", "wbr"}


class Reader(HTMLParser):
    """Holds that every element is closed in order; gathers texts, ids and links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += [(name, key, value) for key, value in attributes]
        self.ids += [value or "" for key, value in attributes if key == "id"]
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    targets = [v for t, k, v in reader.attributes if t == "a" and k == "href" and v and v.startswith("#")]
    assert {t[1:] for t in targets} <= set(reader.ids)
    assert not [k for _, k, _ in reader.attributes if k == "style" or k.startswith("on") or k == "src"]
    return reader


@given(st.text(max_size=60), st.text(max_size=60))
def test_text_and_attributes_are_text(text: str, value: str) -> None:
    reader = Reader()
    page = tag("p", text, title=value)
    assert page.count("<") == 2
    reader.feed(page.replace("\x00", "").replace("\r", ""))
    reader.close()
    assert "".join(reader.texts) == text.replace("\x00", "").replace("\r", "")
    assert reader.tags == ["p"]


def test_only_what_was_built_is_markup() -> None:
    assert join(["<b>", tag("b", "&"), None, [Html("<hr>"), "'"]]) == "&lt;b&gt;<b>&amp;</b><hr>&#x27;"


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_kind_of_report_is_well_formed(name: str) -> None:
    page = render_html(ALL[name])
    reader = read(page)
    assert page.startswith("<!DOCTYPE html>\n<html lang=")
    assert reader.tags.count("script") == 1
    assert reader.tags.count("h1") == 1
    text = " ".join(reader.texts)
    for diagnosis in ALL[name].diagnoses:
        assert " ".join(diagnosis.title.split()) in text


def test_what_is_needed_first_comes_first() -> None:
    text = " ".join(read(render_html(FAILED)).texts)
    first = FAILED.diagnoses[0]
    parts = [
        "does not start",
        "FAILED",
        "Root cause",
        "server.log:25",
        "Not the cause:",
        "What to type",
        first.fixes[0].title,
    ]
    parts += [first.fixes[0].command or "", "Proof:", first.fixes[1].title, "Risk:", "The command as it was"]
    flat = " ".join(text.replace("\\\n", "").split())
    at = [flat.index(" ".join(part.split())) for part in parts]
    assert at == sorted(at)


def test_links_are_of_the_web_only() -> None:
    refs = ("https://github.com/sgl-project/sglang/pull/19391", "javascript:alert(1)", "file:///etc/passwd")
    report = replace(FAILED, diagnoses=(replace(FAILED.diagnoses[0], references=refs),))
    links = [v for t, k, v in read(render_html(report)).attributes if t == "a" and k == "href"]
    assert links == [refs[0]]


def test_a_hostile_log_stays_text_and_secrets_are_masked(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert main(["diagnose", str(hostile_log(tmp_path)), "--out", str(out)]) == 3
    page = out.read_text(encoding="utf-8")
    reader = read(page)
    assert TOKEN not in page
    assert "<script>window.pwned=1</script>" in "".join(reader.texts)
    assert not set(page) & set("\x1b\u202e\u202c\x07")
    assert set(reader.tags) & {"img", "svg", "iframe", "a", "i"} == set()


def test_a_triage_names_everybody(tmp_path: Path) -> None:
    evil = failed("<img src=x>/\x1b[31mred", NO_BUFFER, 3, model="</td><script>1</script>", release=TOKEN)
    page = render_triage_html(triage(groups=(*triage().groups, group("back", evil))))
    reader = read(page)
    text = " ".join(reader.texts)
    for name in (
        "customer-a/node0",
        "customer-b/run7",
        "customer-c/first",
        "customer-d/good",
        "customer-d/secret",
    ):
        assert name in text
    assert "<img src=x>/red" in text
    assert TOKEN not in page
    assert reader.tags.count("script") == 1 and "img" not in reader.tags
    assert {"new", "known", "came back"} <= {t.strip() for t in reader.texts}


def _colours(scheme: str) -> dict[str, str]:
    blocks = re.findall(
        r"\{\n(  --ground.*?)\}",
        (ASSETS / "page.css").read_text(encoding="utf-8").replace("    --", "  --"),
        re.DOTALL,
    )
    return dict(re.findall(r"--(\w+): (#\w+);", blocks[0 if scheme == "light" else 1]))


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(scheme: str) -> None:
    """Contrast of at least 4.5 (WCAG 2.1, 1.4.3) on every ground a text stands on."""
    colours = _colours(scheme)
    pairs = [(t, g) for t in ("text", "quiet", "accent", "bad", "good", "warn") for g in ("ground", "raised")]
    pairs += [("text", g) for g in ("mark", "added", "removed")]
    for text, under in pairs:
        high, low = sorted((_luminance(colours[text]), _luminance(colours[under])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, under)
