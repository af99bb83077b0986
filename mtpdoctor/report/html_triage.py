"""A triage as one HTML file: the table of causes to search, each cause with its launches and their commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mtpdoctor.report import triage_view as view
from mtpdoctor.report.html import log_lines
from mtpdoctor.report.html_page import document, fold, link, rows_of, section, to_copy, top
from mtpdoctor.report.html_tags import Html, join, tag
from mtpdoctor.report.triage_view import shown
from mtpdoctor.report.view import Row
from mtpdoctor.triage.types import Group, Member, Triage


def render_triage_html(triage: Triage) -> str:
    """The triage as a whole HTML page that ends in a line feed. All text of the logs is text in it."""
    return document(view.title(triage), *_parts(triage))


def _parts(triage: Triage) -> Iterator[Html]:
    yield top(tag("h1", view.title(triage)))
    yield tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", value)) for name, value in view.summary(triage)),
        class_="figures",
    )
    if triage.groups:
        yield section("Causes", _filter(triage), _table(triage))
        yield section("Each cause", *(_group(g, i) for i, g in enumerate(triage.groups, 1)))
    yield from _others(triage)


def _filter(triage: Triage) -> Html:
    """Search over causes and launches; the state against a baseline, where there is one."""
    states = [s for s in view.STATUS if any(g.status == s for g in triage.groups)]
    choice = None
    if states:
        options = [tag("option", "any status", value="")]
        options += [tag("option", view.STATUS[s], value=s) for s in states]
        choice = [
            tag("label", "Status", for_="status", class_="quietly"),
            tag("select", *options, id="status"),
        ]
    return tag(
        "div",
        tag("label", "Search causes and launches", for_="search", class_="quietly"),
        tag(
            "input",
            id="search",
            type="search",
            autocomplete="off",
            placeholder="Search: rule, customer, model, GPU, release ...  ( / )",
        ),
        choice,
        tag("span", "", id="shown", class_="quiet", role="status", aria_live="polite"),
        tag("button", "Open / close all", type="button", class_="tool", data_open_all=True),
        class_="filter js",
    )


def _table(triage: Triage) -> Html:
    marked = any(g.status for g in triage.groups)
    names = ["Launches", "Cause", "Rule", "Releases", "GPUs", "Seen", *(["Status"] if marked else [])]
    head = tag("tr", *(tag("th", n, scope="col", class_="count" if n == "Launches" else None) for n in names))
    rows = [_row(g, i, marked) for i, g in enumerate(triage.groups, 1)]
    table = tag(
        "table",
        tag("caption", "Causes", class_="quietly"),
        tag("thead", head),
        tag("tbody", *rows),
        class_="list",
    )
    return tag("div", table, class_="wide")


def _row(group: Group, number: int, marked: bool) -> Html:
    cells = [
        tag("td", f"{len(group.members):,}", class_="count"),
        tag("td", tag("a", shown(group.title), href=f"#{_id(number)}"), _told_apart(group)),
        tag("td", view.rule(group), class_="mono whole"),
        tag("td", view.several(group.releases)),
        tag("td", view.several(group.gpus)),
        tag("td", view.seen(group)),
    ]
    if marked:
        cells.append(tag("td", _status(group)))
    return tag("tr", *cells, id=f"row-{_id(number)}")


def _told_apart(group: Group) -> Html | None:
    """What tells the cause from others of the same title."""
    parts = view.parts(group)
    return (
        tag("div", parts if len(parts) <= 160 else parts[:160] + " ...", class_="quiet small")
        if parts
        else None
    )


def _id(number: int) -> str:
    return f"group-{number}"


def _status(group: Group) -> Html | None:
    if group.status is None:
        return None
    return tag("span", view.STATUS.get(group.status, group.status), class_=f"state {group.status}")


def _group(group: Group, number: int) -> Html:
    words = " ".join(
        (shown(group.title), view.rule(group), view.parts(group), group.fingerprint.key, shown(group.cause))
    )
    head = join([f"{len(group.members):,} × {shown(group.title)} ", _status(group)])
    return fold(
        head,
        *_details(group),
        open_=number == 1,
        id=_id(number),
        class_="group",
        data_words=words,
        data_status=group.status or "",
    )


def _details(group: Group) -> Iterator[Html]:
    example = group.example
    yield tag("p", shown(group.cause))
    if example.root is not None:
        yield tag("h3", f"Best example: {shown(example.launch.name)}")
        lines = {(x.file, x.line): x for x in (*example.evidence, example.root)}
        rows = [
            Row(
                shown(x.file),
                x.line,
                shown(x.text),
                (x.file, x.line) == (example.root.file, example.root.line),
            )
            for _, x in sorted(lines.items())
        ]
        who = ", ".join(shown(x) for x in (example.root.node, example.root.rank) if x)
        yield log_lines(rows, ranks=who)
    if example.remedy:
        safety = tag("span", example.safety, class_=f"state {example.safety}") if example.safety else None
        yield tag("p", tag("b", "Fix "), safety, f" {shown(example.remedy)}")
    for run in example.run:
        yield to_copy(shown(run), "a command")
    if example.next_steps:
        yield tag("ol", *(tag("li", shown(s)) for s in example.next_steps))
    facts = [
        ("Rule", view.rule(group)),
        ("Distinguished by", view.parts(group)),
        ("Fingerprint", group.fingerprint.key),
        ("Releases", view.several(group.releases, 20)),
        ("GPUs", view.several(group.gpus, 20)),
        ("Models", view.several(group.models, 20)),
        ("Seen", view.seen(group)),
    ]
    yield rows_of([(name, value) for name, value in facts if value], "Facts of the cause")
    links = [found for url in view.web_links(example) if (found := link(url))]
    if links:
        yield tag("p", "See ", *(join([", " if i else "", x]) for i, x in enumerate(links)))
    yield tag("h3", "Launches")
    yield _members(group.members)
    commands = [(c, of) for c, of in view.by_command(group.members) if c]
    if commands:
        yield tag("h3", "What each should type")
    for command, members in commands:
        names = ", ".join(shown(m.launch.name) for m in members)
        yield fold(f"For {names}", to_copy(command, "the fixed command"), open_=len(commands) <= 3)


def _members(members: Sequence[Member]) -> Html:
    names = ("Launch", "Root cause at", "Stage", "Release", "GPU", "Model", "Started")
    head = tag("tr", *(tag("th", n, scope="col") for n in names))
    table = tag(
        "table",
        tag("caption", "Launches", class_="quietly"),
        tag("thead", head),
        tag("tbody", *map(_member, members)),
        class_="list",
    )
    return tag("div", table, class_="wide")


def _member(member: Member) -> Html:
    values = [
        shown(member.launch.name),
        view.place(member),
        member.stage or "",
        *(shown(x or "") for x in (member.release, member.gpu, member.model)),
        view.moment(member.started),
    ]
    files = ", ".join(shown(p) for p in member.launch.paths)
    cells = [
        tag("th", values[0], scope="row", title=files, class_="long"),
        tag("td", values[1], class_="long"),
        *(tag("td", v) for v in values[2:]),
    ]
    return tag("tr", *cells, data_words=" ".join((*values, files)))


def _others(triage: Triage) -> Iterator[Html]:
    if triage.gone:
        items = [
            tag(
                "li",
                f"{shown(g.title)} ({view.count(g.count, 'launch', 'launches')})",
                " ",
                tag("code", g.fingerprint.key),
            )
            for g in triage.gone
        ]
        yield section("Gone since the baseline", tag("ul", *items))
    folds = [
        _named("Unfinished", triage.unfinished, lambda m: shown(m.stop or f"ends at {m.stage or '?'}")),
        _named("Unreadable", triage.unreadable, lambda m: shown(m.error or m.outcome)),
        _named("Ready", triage.ready, lambda m: ", ".join(v for _, v in view.member_facts(m))),
    ]
    notes = [shown(n) for n in triage.notes]
    notes += [f"left out: {shown(what)} ({number:,})" for what, number in triage.skipped]
    if notes:
        folds.append(fold("Notes", tag("ul", *(tag("li", n) for n in notes))))
    if any(folds):
        yield section("Other launches", *folds)


def _named(what: str, members: Sequence[Member], says: Callable[[Member], str]) -> Html | None:
    if not members:
        return None
    items = [tag("li", tag("code", shown(m.launch.name)), f" {says(m)}") for m in members]
    return fold(f"{what}: {len(members):,}", tag("ul", *items))
