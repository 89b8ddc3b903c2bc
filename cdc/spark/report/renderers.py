"""Renders a report: as report.html, one file that loads nothing, and as lines for a terminal."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any
from unicodedata import combining, east_asian_width

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from cdc.spark.report.document import Document, Table
from cdc.spark.report.outcome import Audit
from cdc.spark.report.printable import cut, visible
from cdc.spark.report.sections import document
from cdc.spark.state.folder import PastVerdict

__all__ = ["page", "template", "terminal"]

# The page contains no script and loads nothing; this policy makes the browser enforce it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(audit: Audit, verdicts: Sequence[PastVerdict] = ()) -> str:
    """Writes the whole report as HTML. ``verdicts`` are the verdicts of all audits on the same state, oldest first."""
    # Only this text becomes markup without escaping: it is a file of this program.
    style = Markup(_file("page.css"))
    return template(_file("page.html")).render(document=document(audit, verdicts), policy=_POLICY, style=style)


@cache
def template(text: str) -> Template:
    """Compiles a template that makes all values visible (``printable.visible``) and escapes them."""
    environment = Environment(
        autoescape=True, finalize=_shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cut"] = cut
    return environment.from_string(text)


def _shown(value: Any) -> Any:
    """Makes ``value`` visible before Jinja2 escapes it, unless it is the result of a macro, which is markup already."""
    return value if isinstance(value, Markup) else visible(str(value))


def _file(name: str) -> str:
    return files("cdc.spark.report").joinpath(name).read_text(encoding="utf-8")


# Renders a report as lines for a terminal, in the order of the page, but shorter and no wider than the terminal.

_NARROWEST = 40  # columns


def terminal(audit: Audit, *, width: int = 0) -> Iterator[str]:
    """Yields the report's lines, the verdict first. Lines have at most ``width`` columns, or 40 if ``width`` is
    smaller; a ``width`` of 0 is no limit.
    """
    width = max(width, _NARROWEST) if width else 0
    for line in _lines(document(audit), width):
        yield from _wrapped(visible(line), width)


def _lines(report: Document, width: int) -> Iterator[str]:
    """Yields the lines before they are wrapped; only tables need the ``width``."""
    yield report.verdict + (f" at sequence {report.sequence}" if report.sequence is not None else "")
    yield report.sentence
    yield from (f"  because {reason}" for reason in report.reasons)
    yield from report.not_compared
    if report.not_found:
        yield report.not_found
    for section in report.sections:
        for line in section.lines:
            yield from _aligned(line, width) if isinstance(line, Table) else [line]


def _aligned(table: Table, width: int) -> Iterator[str]:
    """Yields the lines of a table, with names aligned left and numbers aligned right; names are shortened to fit
    ``width``. A table without rows has no lines.
    """
    if not table.rows:
        return
    shown = [at for at, column in enumerate(table.columns) if column.terminal is not None]
    head = [table.columns[at].terminal or "" for at in shown]
    rows = ([row[at].terminal or row[at].text for at in shown] for row in table.rows)
    lines = [[visible(cell) for cell in line] for line in (head, *rows)]
    widths = [max(_columns(line[at]) for line in lines) for at in range(len(head))]
    if width:
        widths[0] = max(_NARROWEST // 2, min(widths[0], width - sum(widths[1:]) - 2 * len(widths[1:])))
    for name, *cells in lines:
        name = _shortened(name, widths[0])
        padded = [" " * (room - _columns(cell)) + cell for cell, room in zip(cells, widths[1:], strict=True)]
        yield "  ".join([name + " " * (widths[0] - _columns(name)), *padded])


def _columns(text: str) -> int:
    """Returns the number of columns that ``text`` occupies on a terminal."""
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _shortened(text: str, room: int) -> str:
    """Removes the middle of ``text`` if it is wider than ``room``: names often differ at one of their ends."""
    if _columns(text) <= room:
        return text
    head, tail = text, ""
    while _columns(head) > room // 2:
        head = head[:-1]
    for each in reversed(text):
        if _columns(head + tail + each) >= room:
            break
        tail = each + tail
    return f"{head}…{tail}"


def _wrapped(line: str, width: int) -> Iterator[str]:
    """Breaks ``line`` into parts of at most ``width`` columns, at spaces if possible, and indents all parts after the
    first."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    while width and len(line) > (end := _fitting(line, width)):
        space = line.rfind(" ", len(indent) + 1, end + 1)
        end = space if space > 0 else end
        yield line[:end]
        line = indent + line[end:].lstrip()
    yield line


def _fitting(line: str, width: int) -> int:
    """Returns the number of characters of ``line``, at least one, that fit in ``width`` columns."""
    # Each character is measured only once, since a value or a statement in a line may have thousands of characters.
    columns = accumulate(map(_columns, line))
    return max(1, next((at for at, end in enumerate(columns) if end > width), len(line)))
