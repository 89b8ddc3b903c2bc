"""What is wrong with a page of HTML: elements that are not closed where they should be, and anything it would load."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

__all__ = ["Page"]

_VOID = {"meta", "link", "br", "img", "hr", "input"}
_LOADING = {
    "script",
    "link",
    "img",
    "iframe",
    "object",
    "embed",
    "base",
    "form",
    "video",
    "audio",
    "source",
    "image",
    "use",
}
_LOADING_ATTRIBUTES = {
    "src",
    "href",
    "xlink:href",
    "srcset",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "ping",
}
_INSIDE = {
    "tr": {"thead", "tbody"}, "td": {"tr"}, "th": {"tr"}, "thead": {"table"}, "tbody": {"table"}, "li": {"ul"},
    "summary": {"details"}, "figcaption": {"figure"}, "rect": {"svg"}, "title": {"head", "rect", "circle"},
}  # fmt: skip


class Page(HTMLParser):
    """A page that was read: its ``text``, its headings (level, text), its elements by name, and its ``faults``."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.elements: dict[str, int] = {}
        self.headings: list[tuple[int, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.faults += [f"<{name}> is never closed" for name in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> inside of {self._open[-1:]}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.faults += [f"the style loads: {found}" for found in re.findall(r"url\(|@import|expression\(", data)]
            return
        self.text += data
        if self.headings and any(re.fullmatch("h[1-6]", each) for each in self._open):
            self.headings[-1] = (self.headings[-1][0], self.headings[-1][1] + data)

    def _element(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1
        if tag in _LOADING:
            self.faults.append(f"<{tag}> loads or runs something")
        if tag in _INSIDE and (self._open or [""])[-1] not in _INSIDE[tag]:
            self.faults.append(f"<{tag}> inside of {self._open[-1:]}")
        self.faults += [f"<{tag}> has {fault}" for fault in _attribute_faults(attrs)]


def _attribute_faults(attrs: list[tuple[str, str | None]]) -> Iterator[str]:
    names = [name for name, _ in attrs]
    yield from (f"{name} twice" for name in set(names) if names.count(name) > 1)
    for name, value in attrs:
        if name in _LOADING_ATTRIBUTES or name.startswith("on") or name == "style":
            yield f"{name}={value}"
