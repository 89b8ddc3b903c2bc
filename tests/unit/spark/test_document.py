"""report.html and the terminal's report of all kinds of audits: complete, readable, and safe for any data."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from cdc.spark.compare.row_drift import in_order
from cdc.spark.ddl.table_copies import ALTERED, UnderCopy
from cdc.spark.report.document import Cell, Shape
from cdc.spark.report.outcome import AcceptedDrift, Audit, to_json
from cdc.spark.report.phrases import verdict_sentence
from cdc.spark.report.printable import Cut, cut, differing, visible
from cdc.spark.report.renderers import page, template, terminal
from cdc.spark.report.sections import document
from tests.checks.html_page import Page
from tests.checks.json_schema import SCHEMA, faults
from tests.generators import audits

MADE: dict[str, Callable[[], Audit]] = {
    "clean": audits.clean, "drifting": audits.drifting, "unjudged": audits.unjudged, "big": audits.big,
    "copying": audits.copying,
}  # fmt: skip


@cache
def audited(name: str) -> Audit:
    """An audit, which takes longer to invent than most tests to look at."""
    return MADE[name]()


@cache
def made(name: str) -> tuple[str, Page]:
    """The page of an audit, as text and parsed."""
    html = page(audited(name))
    return html, Page(html)


@pytest.mark.parametrize("name", MADE)
def test_the_page_is_complete_and_loads_nothing(name: str) -> None:
    _, read = made(name)
    assert read.faults == []
    assert "script" not in read.elements
    levels = [level for level, _ in read.headings]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))
    assert read.elements.get("svg", 0) == {"clean": 8, "drifting": 9, "unjudged": 0, "big": 8, "copying": 8}[name]


def test_the_parser_finds_a_page_that_loads_something() -> None:
    for bad in (
        "<script>1</script>",
        "<img src=x>",
        "<p onload=x></p>",
        "<div><p></div></p>",
        "<style>@import 'x'</style>",
    ):
        assert Page(f"<body>{bad}</body>").faults, bad


def test_verdict_and_reasons_come_first() -> None:
    _, read = made("unjudged")
    assert read.headings[0] == (1, "? could not judge")
    assert "could not be judged, for 2 reasons" in read.text
    assert read.text.index("begins at sequence 17") < read.text.index("What was read")
    _, clean = made("clean")
    assert "mysql-srv1-follower is a true copy of mysql-srv1 at the leader's sequence 1,204,331" in clean.text
    assert "Looked for and not found: foreign writes, records skipped" in clean.text


def test_tables_under_copy_are_told_by_name_and_are_no_verdict() -> None:
    audit, (_, read), lines = audits.copying(), made("copying"), list(terminal(audits.copying()))
    assert (audit.verdict, audit.exit_status, audit.reasons) == ("could not judge", 2, [])
    reason = "not complete at sequence 1204331, so these tables are not compared yet (30 in all): shop.archive_2000, "
    body = json.loads(to_json(audit))
    assert all(reason in text for text in (body["reasons"][0], read.text, lines[2]))
    assert (len(body["under_copy"]), body["under_copy"][1]) == (
        30,
        {"database": "shop", "table": "archive_2001", "began": 18009, "parked": None, "late": None},
    )
    assert "Being copied, not compared yet: 30" in read.text
    assert "being copied since sequence 18,009" in read.text and "its copy has to begin" in read.text
    kinds = [UnderCopy("shop", "a", None, late=ALTERED), UnderCopy("shop", "b", None, parked=7)]
    others = document(replace(audit, under_copy=kinds), {})
    assert "Parked or not whole in both topics, not compared yet: 2" in [each.title for each in others.sections]
    older = "only the rows that have changed since were compared: shop.order 981,442 rows. Their other rows"
    assert older in read.text
    assert older in "\n".join(lines)
    sentence = verdict_sentence(replace(audit, under_copy=[]))
    assert sentence.startswith("What has changed since the topics begin is on mysql-srv1-follower as on mysql-srv1 at ")
    assert sentence.endswith(" in 3 tables. No other row was compared.")
    assert "30 tables are being copied. No drift in 3 other tables at the leader's sequence 1,204,331." in lines[1]
    assert "Not compared: 1,200 rows of copied tables (shop.customer)" in lines[3]
    one, *others = audit.under_copy
    parked = replace(audit, under_copy=[replace(one, began=None, parked=1_007), *others])
    assert (parked.verdict, parked.exit_status) == ("could not judge", 2)
    assert parked.why[1] == (
        "the follower has parked tables since sequence 1007, so they are not compared until they are copied "
        "again, or their changes are applied (cdc-consumer PROFILE --retry-parked; 1 in all): shop.archive_2000"
    )
    assert "known yet: 29 tables are being copied and 1 table is parked. No drift in 3 other" in verdict_sentence(
        parked
    )
    # Drift elsewhere is known, whatever is being copied.
    drifting = replace(audits.drifting(), under_copy=audit.under_copy)
    assert (drifting.exit_status, drifting.why) == (1, [])
    lines = list(terminal(drifting))
    assert "Not compared yet, since their copy into the leader's topic is not complete: shop.archive_2000, " in lines[2]
    assert lines[2].endswith("shop.archive_2009 and 20 more.")
    assert "archive_2009 and 20 more." in Page(page(drifting)).text


def test_data_is_text_and_nothing_else() -> None:
    html, read = made("drifting")
    assert "<script" not in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", html)
    assert "alert(" in read.text
    assert "\\u202edrawkcab" in read.text
    assert "شارع الملك فهد" in read.text
    assert len(html) < 300_000  # a value of 100 000 characters is cut


def test_what_differs_is_marked_and_equal_columns_are_counted() -> None:
    html, _ = made("drifting")
    assert '<code class="short">shop.order</code>' in html
    assert "<mark>lef</mark>t" in html and "<mark>righ</mark>t" in html
    assert "<mark>NULL</mark>" in html
    assert "and 189 other columns, in report.json" in html
    assert "the leader deleted it, the follower did not" in html
    assert "The table has no key: the follower has 3 more copies of this row." in html


def test_drifted_tables_come_first_and_the_rest_is_hidden() -> None:
    html, read = made("big")
    assert html.index("t09750") < html.index("t00001")  # the last table that drifted, the first that did not
    assert read.elements["details"] == 3
    assert "100 of 13,000, some of each table" in read.text
    assert len(html) < 4_000_000


@pytest.mark.parametrize("name", MADE)
def test_the_json_is_as_its_schema_says(name: str) -> None:
    body = json.loads(to_json(audited(name)))
    assert list(faults(body, SCHEMA)) == []
    for change in ({"version": 2}, {"exit_status": 7}, {"new": 1}, {"tables": [{}]}, {"sequence": True}):
        assert any(faults(body | change, SCHEMA)), change


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("name", MADE)
def test_the_terminal_s_lines_fit(name: str, width: int) -> None:
    lines = list(terminal(audited(name), width=width))
    wide = [sum(1 + (east_asian_width(each) == "W") for each in line) for line in lines]
    assert max(wide) <= width
    whole = "".join(terminal(audited(name)))
    assert width < 200 or "".join("".join(lines).split()) == "".join(whole.split())
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", "".join(lines))


def test_the_terminal_shows_the_same_in_the_same_order() -> None:
    lines = list(terminal(audits.drifting()))
    assert lines[0] == "drift at sequence 1204331"
    order = ["not a true copy", "topic rust-mysql-cdc,", "shop.order_line", "table shop.stock is not defined",
             "different in shop.order: id=4711", "foreign write at", "skipped on the follower", "before images",
             "lag of 125,000 transactions", "leader to follower"]  # fmt: skip
    places = [next(at for at, line in enumerate(lines) if text in line) for text in order]
    assert places == sorted(places)
    assert any(line.startswith("  foreign write: transaction") for line in lines)
    assert any("left yyyy" in line and line.startswith("  leader ") for line in lines)


def test_the_terminal_of_an_audit_without_a_topic() -> None:
    empty = replace(audits.clean(), tables=[], lag=None, leader=replace(audits.clean().leader, records=0, last=None))
    assert any("no records" in line for line in terminal(replace(empty, leader=replace(empty.leader, first_us=None))))


@given(st.text(max_size=300), st.text(max_size=300))
def test_marking_a_difference_loses_nothing_that_is_short(one: str, other: str) -> None:
    for text, part in zip((one, other), differing(one, other), strict=True):
        if len(text) <= 160:
            assert part.before + part.middle + part.after == text
            assert part.length is None
        else:
            assert part.length == len(text)
            assert len(part.before) + len(part.middle) + len(part.after) < 300
    if one == other:
        assert differing(one, other)[0].middle == ""


def test_a_difference_far_inside_is_shown() -> None:
    one, other = differing("a" * 500 + "X" + "b" * 500, "a" * 500 + "Y" + "b" * 500)
    assert one == Cut("…" + "a" * 24, "X", "b" * 24 + "…", 1_001)
    assert other.middle == "Y"


@given(st.text())
@example(audits.NASTY)
def test_nothing_becomes_markup(text: str) -> None:
    macro = "{% macro inner(text) %}<bdi title='{{ text }}'>{{ text }}</bdi>{% endmacro %}<p>{{ inner(text) }}</p>"
    read = Page(template(macro).render(text=text))
    assert read.faults == []
    assert read.text == visible(text)
    assert read.elements == {"p": 1, "bdi": 1}
    assert "\n" not in visible(text)


def test_a_name_that_a_template_does_not_get_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        template("{{ document.verdikt }}").render(document=document(audits.clean()))


def texts(part: Any) -> Iterator[str]:
    """All texts that a part of the document has for the page."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Cell):
        yield cut(part.text) if part.style in {"name", "code"} else part.text
    elif is_dataclass(part):
        for each in fields(part):
            if each.name not in {"kind", "style", "terminal", "lines", "attributes"} and not isinstance(part, Shape):
                yield from texts(getattr(part, each.name))
    elif isinstance(part, list | tuple):
        for each in part:
            yield from texts(each)


@pytest.mark.parametrize("name", [name for name in MADE if name != "big"])
def test_the_page_has_all_texts_of_the_document(name: str) -> None:
    audit = replace(audited(name), repair="cdc-repair a.toml --report b")
    audit = replace(audit, schema_drift=audit.schema_drift and 99)  # more than are listed
    html = page(audit)
    read = Page(html)
    sections = [section for section in document(audit).sections if section.blocks]
    whole = replace(document(audit), sections=sections)
    found = {visible(text) for text in texts(whole)}
    assert len(found) > 20
    assert [text for text in found if text not in read.text and escape(text) not in html] == []


def test_the_terminal_has_the_sections_of_the_page_in_their_order() -> None:
    accepted = AcceptedDrift(1, ["rows"], "shop.old", "for the archive", "2999-01-01", rows={"shop.old": 2})
    audit = replace(audits.drifting(), accepted=[accepted])
    lines, html = list(terminal(audit)), page(audit)
    assert "accepted (for the archive, until 2999-01-01): rows of shop.old: 2 rows of shop.old" in lines
    order = {"Tables": "  table ", "Accepted,": "accepted (", "Not defined": "table shop.stock",
             "Drifted rows": "drifted rows by", "Foreign writes": "foreign write at", "Skipped on": "skipped on",
             "How long": "lag of"}  # fmt: skip
    on_page = [html.index(f"<h2>{title}") for title in order]
    on_terminal = [next(at for at, line in enumerate(lines) if line.startswith(text)) for text in order.values()]
    assert (on_page, on_terminal) == (sorted(on_page), sorted(on_terminal))


def test_a_line_of_many_characters_is_wrapped() -> None:
    """In time that grows with its length: with its cube, as once, this test would not end."""
    reason = "x" * 30_000 + " " + "y" * 30_000
    lines = list(terminal(replace(audits.unjudged(), reasons=[reason]), width=80))
    assert max(map(len, lines)) == 80
    assert reason.replace(" ", "") in "".join("".join(lines).split())


def test_long_text_is_cut_with_its_length() -> None:
    assert cut("x" * 1_000, 3) == "xxx… (1,000 characters)"


def test_what_to_do_about_drifted_rows_is_a_command() -> None:
    command = "cdc-repair '/etc/my leader.toml' --report /srv/report"
    assert f"{command}" in Page(page(replace(audits.drifting(), repair=command))).text
    assert "cdc-repair" not in made("drifting")[1].text


def test_columns_are_in_the_tables_order_the_keys_first() -> None:
    row = next(each for each in audits.drifting().drifted if each.keyed and each.leader_image)
    image = {name: audits.text(name) for name in ("amount", "day", "shop", "till")}
    mixed = replace(
        row,
        identity={"shop": audits.text("shop"), "till": audits.text("till")},
        leader_image=image,
        follower_image=None,
    )
    found = in_order(mixed, ["till", "shop", "day", "amount"])
    assert list(found.identity) == ["till", "shop"]
    assert list(found.leader_image or {}) == ["till", "shop", "day", "amount"]
    assert list(in_order(mixed, []).identity) == ["shop", "till"]
