"""The HTML reports in a real browser: silent, asking for nothing, and doing what their buttons say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, Page, find_browser
from hostile import hostile_log
from triages import triage

from mtpdoctor.cli.main import main
from mtpdoctor.report.html_triage import render_triage_html

SAMPLES = Path(__file__).parent.parent.parent / "sample_logs"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = find_browser()
    if path is None:
        pytest.skip("needs Chromium to open the page in (apt-get install chromium)")
    started = Browser(path, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


def report(log: Path, folder: Path) -> Path:
    out = folder / "report.html"
    assert main(["diagnose", str(log), "--out", str(out)]) in (1, 3)
    return out


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    opened = browser.page(report(SAMPLES / "spec_no_buffer_with_radix.log", tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def triage_page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    out = tmp_path / "triage.html"
    out.write_text(render_triage_html(triage()), encoding="utf-8")
    opened = browser.page(out)
    yield opened
    opened.close()


def test_the_page_is_silent_and_loads_nothing(page: Page) -> None:
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.requests() == [page.url]
    assert page.complaints() == []
    assert page.run("document.title").startswith("SGLang 0.5.13")


def test_the_policy_refuses_what_is_not_the_pages_own(page: Page) -> None:
    page.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.pwned = 1';"
        "document.body.append(s); const i = new Image(); i.src = 'https://example.com/x.png';"
        "document.body.append(i); document.body.setAttribute('onclick', 'window.pwned = 2'); })()"
    )
    page.run("document.body.click()")
    assert page.run("window.pwned") is None
    refused = [e for e in page.requests() if e.startswith("https:")]
    failed = {e["requestId"] for e in page.of("Network.loadingFailed")}
    assert not refused or failed
    assert page.of("Network.responseReceived")[1:] == []


@pytest.mark.parametrize("clipboard", ["allowed", "refused", "missing"])
def test_copy_gives_the_command_whole(page: Page, clipboard: str) -> None:
    page.run("window.clip = navigator.clipboard; clip.writeText('before')")
    if clipboard == "missing":
        page.run("Object.defineProperty(navigator, 'clipboard', {value: undefined}), 0")
    elif clipboard == "refused":
        page.run("navigator.clipboard.writeText = () => Promise.reject(new Error('no')), 0")
    page.run("document.querySelector('.copy').click()")
    page.until("document.querySelector('.copy').textContent === 'Copied'")
    copied = page.run("clip.readText()")
    assert copied == page.run("document.querySelector('.copyable code').textContent")
    assert "--mamba-scheduler-strategy extra_buffer" in copied.replace("\\\n ", "")
    assert page.complaints() == []


def test_the_keyboard_reaches_and_works_everything(page: Page) -> None:
    seen = []
    for _ in range(60):
        page.press("Tab")
        name = page.run(
            "document.activeElement.tagName + ' ' + document.activeElement.textContent.slice(0, 20)"
        )
        if name in seen and name.startswith("BUTTON Dark"):
            break
        seen.append(name)
    assert any(s.startswith("BUTTON Dark") for s in seen)
    assert any(s.startswith("BUTTON Copy") for s in seen)
    assert any(s.startswith("SUMMARY") for s in seen)
    page.run("document.querySelector('details:not([open]) > summary').focus()")
    page.press("Enter")
    assert page.run("document.activeElement.parentElement.open") is True
    page.run("document.querySelector('.copy').focus()")
    page.press("Enter")
    page.until("document.querySelector('.copy').textContent === 'Copied'")


def ground(page: Page) -> str:
    return str(page.run("getComputedStyle(document.body).backgroundColor"))


def test_dark_and_light_follow_the_system_until_somebody_chooses(page: Page) -> None:
    light = ground(page)
    page.scheme("dark")
    dark = ground(page)
    assert light != dark
    page.run("document.querySelector('[data-theme-switch]').click()")
    assert ground(page) == light
    page.scheme("light")
    assert ground(page) == light
    page.run("document.querySelector('[data-theme-switch]').click()")
    assert ground(page) == dark


def test_a_print_shows_every_fold(page: Page) -> None:
    closed = page.run("document.querySelectorAll('details:not([open])').length")
    assert closed > 0
    page.run(
        "addEventListener('beforeprint', () => { window.left = document.querySelectorAll('details:not([open])').length }), 0"
    )
    page.call("Page.printToPDF")
    assert page.run("window.left") == 0
    page.until(f"document.querySelectorAll('details:not([open])').length === {closed}")


def test_a_hostile_log_stays_text(browser: Browser, tmp_path: Path) -> None:
    page = browser.page(report(hostile_log(tmp_path), tmp_path))
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.until("document.readyState === 'complete'")
    assert page.run("window.pwned") is None
    assert page.run("document.scripts.length") == 1
    assert page.run("document.querySelectorAll('style').length") == 1
    assert page.run("document.querySelectorAll('img, svg, iframe, object, i').length") == 0
    assert page.run("document.querySelectorAll('a').length") == 0
    text = page.run("document.body.innerText")
    assert "<script>window.pwned=1</script>" in text
    assert not set(text) & set("\x1b\u202e\u202c\x07")
    assert page.complaints() == []
    assert page.requests() == [page.url]
    page.close()


def test_the_triage_is_silent_too(triage_page: Page) -> None:
    triage_page.run("document.querySelector('[data-open-all]').click()")
    assert triage_page.run("document.querySelectorAll('details:not([open])').length") == 0
    assert triage_page.requests() == [triage_page.url]
    assert triage_page.complaints() == []


def search(page: Page, words: str) -> list[str]:
    """The titles of the causes still shown."""
    page.run(
        f"(() => {{ const s = document.getElementById('search'); s.value = {words!r};"
        "s.dispatchEvent(new Event('input')); })()"
    )
    return list(
        page.run(
            "Array.from(document.querySelectorAll('details.group')).filter(d => !d.hidden && "
            "!document.getElementById('row-' + d.id).hidden).map(d => d.querySelector('summary').textContent)"
        )
    )


def test_searching_causes_and_launches(triage_page: Page) -> None:
    assert len(search(triage_page, "")) == 2
    assert ["widget" in t for t in search(triage_page, "WIDGET turn")] == [True]
    assert len(search(triage_page, "customer-b 0.5.14")) == 1
    shown = "Array.from(document.querySelectorAll('#group-1 tr[data-words]')).filter(r => !r.hidden).length"
    assert triage_page.run(shown) == 1
    assert search(triage_page, "nothing of the kind") == []
    assert triage_page.run("document.getElementById('shown').textContent") == "0 of 2 groups"
    triage_page.run("document.body.focus(), document.activeElement.blur()")
    triage_page.press("/", "/")
    assert triage_page.run("document.activeElement.id") == "search"
    triage_page.press("Escape")
    assert triage_page.run("document.getElementById('search').value") == ""


def test_the_status_against_a_baseline_can_be_chosen(triage_page: Page) -> None:
    triage_page.run(
        "(() => { const s = document.getElementById('status'); s.value = 'new'; s.dispatchEvent(new Event('change')); })()"
    )
    assert triage_page.run("document.getElementById('shown').textContent") == "1 of 2 groups"


def test_a_row_of_the_table_opens_its_cause(triage_page: Page) -> None:
    triage_page.run("document.querySelector(\"a[href='#group-2']\").click()")
    assert triage_page.run("document.getElementById('group-2').open") is True
