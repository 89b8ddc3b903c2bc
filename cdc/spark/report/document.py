"""Defines the parts of a report, for the page and the terminal alike: text and numbers, without markup or widths.

A document has sections, and a section has blocks, which the page shows, and lines, which the terminal shows. All texts
are as databases and logs have them: each renderer makes control characters visible, and escapes what it must. Pure.
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
    """A column's ``heading``. ``terminal`` is its heading on a terminal, which leaves out columns without one."""

    heading: str
    number: bool = False
    terminal: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A ``text``, the style in which the page shows it, and the text for a terminal if that differs.

    The styles are those of page.html: ``name`` (of an object on a server), ``code``, ``foreign`` (written by others,
    perhaps from right to left), ``notable``, ``time``, ``good`` and ``bad``.
    """

    text: str
    style: str = ""
    terminal: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The page hides rows after the first ``opened``, or all of them if there is a ``summary``, until the
    reader opens it.

    ``heading`` stands above it, ``note`` below.
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
    """One or more sentences; ``dim`` if most readers need not read them."""

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
    """A column of a drifted row: the leader's value and the follower's; None if the side has no such row."""

    name: str
    leader: Cut | None
    follower: Cut | None
    differs: bool
    key: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """A drifted row: ``what`` it is (missing, extra, different), where, why, and its columns side by side.

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
    """An SVG element: its name, its attributes, and its text or, shown by the pointer, its title."""

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
    """Plots, side by side if there is room; with a ``caption`` they are a figure."""

    drawings: Sequence[Drawing]
    caption: str = ""
    kind: str = field(default="figure", init=False)


Block = Table | Paragraph | Command | Difference | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A ``title``, which the page shows, with its ``blocks``; the terminal shows the ``lines``. Either may be empty."""

    title: str
    blocks: Sequence[Block] = ()
    lines: Sequence[str | Table] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A report: the verdict with its sign, its sentence, its reasons and notes, then the sections."""

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
