"""Defines the parts of a report, for both the page and the terminal: texts and numbers, without markup or widths.

A document consists of sections. A section has blocks, which the page shows, and lines, which the terminal shows. All
texts are unchanged texts of databases and logs: each renderer makes control characters visible, and escapes the text
for its format. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cdc.spark.report.printable import Cut

__all__ = [
    "Block",
    "Cell",
    "Column",
    "Command",
    "Comparison",
    "Difference",
    "Document",
    "Drawing",
    "Figure",
    "Paragraph",
    "Section",
    "Shape",
    "Table",
]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with its ``heading``. ``terminal`` is the column's heading on a terminal. The terminal
    leaves out columns that have no such heading.
    """

    heading: str
    number: bool = False
    terminal: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: its ``text``, the style in which the page shows the text, and another text for a terminal, if
    the terminal shows another text.

    The styles are defined in page.html: ``name`` (the name of an object on a server), ``code``, ``foreign`` (a text
    that others wrote, perhaps from right to left), ``notable``, ``time``, ``good`` and ``bad``.
    """

    text: str
    style: str = ""
    terminal: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The page shows only the first ``opened`` rows, or only the ``summary`` if there is one, until the reader
    opens the table.

    ``heading`` stands above the table, and ``note`` below it.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    opened: int | None = None
    summary: str = ""
    heading: str = ""
    note: str = ""
    kind: str = field(default="table", init=False)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One or more sentences. ``dim`` is true for sentences that most readers need not read."""

    text: str
    dim: bool = False
    kind: str = field(default="paragraph", init=False)


@dataclass(frozen=True, slots=True)
class Command:
    """A command for a shell."""

    text: str
    kind: str = field(default="command", init=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The values of one column in a drifted row: the leader's value and the follower's value. A value is None if that
    side does not have the row.
    """

    name: str
    leader: Cut | None
    follower: Cut | None
    differs: bool
    key: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """A drifted row: ``what`` it is (missing, extra or different), its table, its cause, and both sides' values of its
    columns.

    ``left_out`` is the number of equal columns that are not listed.
    """

    what: str
    table: str
    cause: str
    evidence: str
    notes: Sequence[str]
    columns: Sequence[Comparison]
    left_out: int
    last_change: str
    kind: str = field(default="difference", init=False)


@dataclass(frozen=True, slots=True)
class Shape:
    """An SVG element: its name, its attributes, its text, and its title, which the browser shows under the pointer."""

    name: str
    attributes: Mapping[str, str]
    text: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot: its shapes, a ``label`` that describes them, and its size in pixels."""

    label: str
    shapes: Sequence[Shape]
    width: int
    height: int
    wide: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """Plots, side by side if there is room. With a ``caption`` they become an HTML figure."""

    drawings: Sequence[Drawing]
    caption: str = ""
    kind: str = field(default="figure", init=False)


Block = Table | Paragraph | Command | Difference | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A section: the page shows its ``title`` and ``blocks``, and the terminal shows its ``lines``. Both may be
    empty."""

    title: str
    blocks: Sequence[Block] = ()
    lines: Sequence[str | Table] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A report: the verdict with its sign, its sentence, its reasons and notes, and the sections."""

    title: str
    verdict: str
    sign: str
    sequence: int | None
    sentence: str
    reasons: Sequence[str]
    not_compared: Sequence[str]
    not_found: str
    sections: Sequence[Section]
    footer: str
