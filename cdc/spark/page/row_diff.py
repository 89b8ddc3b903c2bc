"""Renders drifted rows with leader and follower side by side, column by column, the differences marked."""

from collections.abc import Iterator

from cdc.spark.compare.row_drift import DriftedRow
from cdc.spark.page.markup import Html, element, fragment, table
from cdc.spark.report.outcome import Audit
from cdc.spark.report.phrases import binlog_position, row_notes
from cdc.spark.report.printable import Cut, cut, differing, value_text

__all__ = ["drifted", "side_by_side"]

_COLUMNS_SHOWN = 12


def side_by_side(row: DriftedRow) -> Html:
    """The columns of ``row`` as a table, key and differing ones first; beyond a limit equal ones are only counted."""
    differs = set(row.columns)
    images = (row.leader_image or {}, row.follower_image or {})
    names = list(dict.fromkeys([*row.identity, *row.columns, *images[0], *images[1]]))
    shown = [name for at, name in enumerate(names) if at < _COLUMNS_SHOWN or name in differs]
    lines = [_line(row, name, differs=name in differs) for name in shown]
    head = element("tr", *(element("th", name, scope="col") for name in ("column", "leader", "follower")))
    if len(shown) < len(names):
        rest = f"and {len(names) - len(shown):,} other columns, in report.json"
        lines.append(element("tr", element("td", rest, colspan=3, class_="dim")))
    return element("table", element("thead", head), element("tbody", *lines), class_="sides")


def _line(row: DriftedRow, name: str, *, differs: bool) -> Html:
    key = (element("span", " key", class_="dim"),) if row.keyed and name in row.identity else ()
    title = element("th", element("bdi", name), *key, scope="row")
    cells = _differing(row, name) if differs else _cells(row, name)
    return element("tr", title, *cells, class_="differs" if differs else "same")


def _differing(row: DriftedRow, name: str) -> Iterator[Html]:
    one, other = (value_text((image or {}).get(name)) for image in (row.leader_image, row.follower_image))
    for part in differing(one, other):
        middle = (element("mark", part.middle),) if part.middle else ()
        text = element("bdi", element("code", part.before, *middle, part.after))
        yield element("td", element("span", "≠ ", class_="sign"), text, *_length(part))


def _length(part: Cut) -> Iterator[Html]:
    if part.length is not None:
        yield element("span", f" of {part.length:,} characters", class_="dim")


def _cells(row: DriftedRow, name: str) -> Iterator[Html]:
    for side, image in (("missing", row.leader_image), ("extra", row.follower_image)):
        if image is None and row.kind == side:
            image = row.identity  # the row is older than the topic, which shows only its key
        if image is None:
            yield element("td", "no such row", class_="none")
        else:
            yield element("td", element("bdi", element("code", cut(value_text(image.get(name))))))


def drifted(audit: Audit) -> Html:
    """The drifted rows that the report lists, each with its cause, below a table of all causes."""
    if not audit.drifted:
        return Html("")
    causes = sorted(audit.drifted_by_cause.items(), key=lambda item: -item[1])
    shown = sum(row.rows for row in audit.drifted)
    more = element("p", f"{shown:,} of {audit.drifted_rows:,}, some of each table; drift.parquet has all of them.")
    return fragment(
        table(("cause", "rows"), causes),
        _next(audit.repair),
        more if shown < audit.drifted_rows else Html(""),
        *map(_article, audit.drifted),
    )


def _next(repair: str) -> Html:
    """What to do about drifted rows."""
    if not repair:
        return Html("")
    what = (
        "To have them copied again from the leader, through the stream (with --dry-run it only shows what it would do):"
    )
    return fragment(element("p", what), element("pre", element("code", repair)))


def _article(row: DriftedRow) -> Html:
    name = element("bdi", element("code", f"{row.database}.{row.table}"))
    title = element("h3", element("span", row.kind, class_="kind"), " in ", name)
    cause = element("p", element("strong", row.cause), ": ", element("bdi", row.evidence))
    notes = (element("p", note) for note in row_notes(row))
    leader, follower = binlog_position(row.leader_last), binlog_position(row.follower_last)
    last = f"Last change on the leader: {leader}; on the follower: {follower}."
    return element("article", title, cause, *notes, side_by_side(row), element("p", last, class_="dim"))
