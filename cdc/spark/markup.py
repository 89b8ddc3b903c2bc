"""HTML and SVG in which text can't become markup: elements are made here, and everything else is escaped. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from cdc.spark.visible import visible

__all__ = ["Content", "Html", "element", "empty", "fragment", "table"]


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is markup."""

    text: str

    def __bool__(self) -> bool:
        return bool(self.text)


Content = Html | str | int
"""What can stand inside an element; all but Html is text."""


def fragment(*parts: Content) -> Html:
    """The parts, one after the other."""
    return Html("".join(part.text if isinstance(part, Html) else escape(visible(str(part))) for part in parts))


def element(tag: str, /, *content: Content, **attributes: str | float | bool) -> Html:
    """One element. Of attributes ``class_`` gives ``class`` and ``stroke_width`` gives ``stroke-width``; True, an empty one."""
    return Html(f"<{tag}{_attributes(attributes)}>{fragment(*content).text}</{tag}>")


def empty(tag: str, /, **attributes: str | float | bool) -> Html:
    """An element that can't have content: void in HTML, closed in SVG."""
    return Html(f"<{tag}{_attributes(attributes)}/>")


def _attributes(attributes: dict[str, str | float | bool]) -> str:
    return "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())


def _attribute(name: str, value: str | float | bool) -> str:
    if value is True:
        return f" {name}"
    if isinstance(value, float):
        value = f"{value:.1f}"
    return f' {name}="{escape(visible(str(value)))}"'


def table(head: Iterable[Content], rows: Iterable[Iterable[Content]], *, caption: str = "") -> Html:
    """A table; numbers stand right. Nothing where there are no rows."""
    lines = [element("tr", *(_cell(cell) for cell in row)) for row in rows]
    if not lines:
        return Html("")
    top = element("thead", element("tr", *(element("th", name, scope="col") for name in head)))
    title = (element("caption", caption),) if caption else ()
    return element("div", element("table", *title, top, element("tbody", *lines)), class_="scroll")


def _cell(cell: Content) -> Html:
    if isinstance(cell, int):
        return element("td", f"{cell:,}", class_="n")
    return element("td", cell)
