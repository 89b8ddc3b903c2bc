"""Renders the outcome of an audit as report.html: one file that loads nothing, for screen and print."""

from collections.abc import Sequence
from importlib.resources import files

from cdc.spark.page.markup import Html, element, empty, fragment
from cdc.spark.page.row_diff import drifted
from cdc.spark.page.sections import (
    accepted,
    breaks,
    compared,
    copying,
    discontinued,
    foreign,
    lag_section,
    schema,
    section,
    skipped,
    tables,
    verdict_history,
)
from cdc.spark.report.outcome import Audit
from cdc.spark.report.phrases import audit_time, not_compared, not_found, verdict_sentence
from cdc.spark.state.history import PastVerdict

__all__ = ["page"]

_SIGNS = {"no drift": "✓", "drift": "✗", "could not judge": "?"}
# The page has no script and loads nothing; this makes the browser enforce it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(audit: Audit, verdicts: Sequence[PastVerdict] = ()) -> str:
    """The whole report as HTML, with its parts in the same order as on the terminal.

    ``verdicts`` are those of the audits on the same state, oldest first, this one's included.
    """
    parts = (
        _verdict(audit),
        section("Verdicts so far", verdict_history(verdicts)),
        section("What was read" if audit.reasons else "What was compared", compared(audit)),
        section("Tables", tables(audit.tables)),
        section("Accepted, and no part of the verdict", accepted(audit)),
        section(f"Being copied, not compared yet: {len(audit.under_copy):,}", copying(audit)),
        section(f"Not defined as on the leader: {audit.schema_drift:,}", schema(audit)),
        section(f"Drifted rows: {audit.drifted_rows:,}", drifted(audit)),
        section(f"Foreign writes: {audit.foreign_writes:,}", foreign(audit)),
        section("Skipped on the follower by an operator", skipped(audit)),
        section("Breaks in the streams", breaks(audit)),
        section("Before images that do not match the row's previous image", discontinued(audit)),
        section("How long transactions took", lag_section(audit.lag)) if audit.lag else Html(""),
    )
    body = element("body", element("main", *parts), element("footer", _footer(audit)))
    return f"<!doctype html>\n{element('html', _head(audit), body, lang='en').text}\n"


def _head(audit: Audit) -> Html:
    # The only text that becomes markup without escaping: a file of this program.
    style = Html(files("cdc.spark").joinpath("report.css").read_text(encoding="utf-8"))
    return element(
        "head",
        empty("meta", charset="utf-8"),
        empty("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{audit.verdict}: {audit.follower.resource} as a copy of {audit.leader.resource}"),
        element("style", style),
    )


def _verdict(audit: Audit) -> Html:
    sign = element("span", _SIGNS[audit.verdict], class_="sign", aria_hidden="true")
    title = element("h1", sign, " ", audit.verdict)
    reasons = [element("li", reason) for reason in audit.why]
    listed = element("ul", *reasons) if reasons else Html("")
    unknown = [element("p", sentence) for sentence in not_compared(audit)]
    none = element("p", not_found(audit), class_="dim")
    return element(
        "header",
        title,
        element("p", verdict_sentence(audit), class_="lede"),
        listed,
        *unknown,
        none,
        class_=audit.verdict.replace(" ", "-"),
    )


def _footer(audit: Audit) -> Html:
    audited = f"Audited at {audit_time(audit)}. Exit status {audit.exit_status}."
    more = " Everything above is also in report.json"
    return fragment(audited, f"{more}; drift.parquet has all drifted rows." if audit.drifted_rows else f"{more}.")
