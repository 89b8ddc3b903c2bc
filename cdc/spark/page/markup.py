"""Builds HTML and SVG from elements, and escapes all other text so that it can't become markup. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from cdc.spark.report.printable import visible

__all__ = ["Content", "Figure", "Html", "element", "empty", "fragment", "table"]


_MOST_NARROW = 1_000  # lines


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is markup and is not escaped."""

    text: str

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure in a table: it is aligned right, and a notable one is emphasized."""

    text: str
    notable: bool = False


Content = Html | str | int
"""What an element can contain; all but Html is escaped."""


def fragment(*parts: Content) -> Html:
    """The parts in order, without an element around them."""
    return Html("".join(part.text if isinstance(part, Html) else escape(visible(str(part))) for part in parts))


def element(tag: str, /, *content: Content, **attributes: str | float | bool) -> Html:
    """An element. The attribute ``class_`` becomes ``class``; an attribute that is True gets no value."""
    return Html(f"<{tag}{_attributes(attributes)}>{fragment(*content).text}</{tag}>")


def empty(tag: str, /, **attributes: str | float | bool) -> Html:
    """An element without content: void in HTML, self-closing in SVG."""
    return Html(f"<{tag}{_attributes(attributes)}/>")


def _attributes(attributes: dict[str, str | float | bool]) -> str:
    return "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())


def _attribute(name: str, value: str | float | bool) -> str:
    if value is True:
        return f" {name}"
    if isinstance(value, float):
        value = f"{value:.1f}"
    return f' {name}="{escape(visible(str(value)))}"'


def table(head: Sequence[str], rows: Iterable[Sequence[Content | Figure]]) -> Html:
    """A table; figures and integers, and their headings, are aligned right. Nothing without rows."""
    lines = list(rows)
    if not lines:
        return Html("")
    titles = (element("th", name, scope="col", **_right(cell)) for name, cell in zip(head, lines[0], strict=True))
    # Where the page is narrow, cells are not in columns but each with its heading, which a long table has no room for.
    headings = head if len(lines) <= _MOST_NARROW else [""] * len(head)
    cells = (map(_cell, headings, line) for line in lines)
    body = (element("tr", *each) for each in cells)
    whole = element("table", element("thead", element("tr", *titles)), element("tbody", *body))
    return element("div", whole, class_="scroll narrow" if len(lines) <= _MOST_NARROW else "scroll")


def _cell(name: str, cell: Content | Figure) -> Html:
    heading = {"data_heading": name} if name else {}
    return element("td", _inside(cell), **_right(cell), **heading)


def _right(cell: Content | Figure) -> dict[str, str]:
    return {"class_": "n"} if isinstance(cell, int | Figure) else {}


def _inside(cell: Content | Figure) -> Content:
    if isinstance(cell, Figure):
        return element("strong", cell.text) if cell.notable else cell.text
    return f"{cell:,}" if isinstance(cell, int) else cell
