"""Turns values of a database into text that is safe to show: visible, short, without control characters. Pure."""

import json
from dataclasses import dataclass

from cdc.model.printable import visible
from cdc.model.values import NULL, display

__all__ = ["Cut", "cut", "differing", "value_text", "visible"]

_SHOWN = 160
_AROUND = 24


@dataclass(frozen=True, slots=True)
class Cut:
    """A text in three parts, of which the ``middle`` differs from that of another text.

    ``length`` is the length of the whole text in characters where parts are shortened, else None.
    """

    before: str
    middle: str
    after: str
    length: int | None = None


def value_text(text: str | None) -> str:
    """A value of an image in readable form; images have JSON texts, and no entry for NULL."""
    return visible(display(NULL if text is None else json.loads(text)))


def cut(text: str, length: int = _SHOWN) -> str:
    """The first ``length`` characters of a text and the length of the whole, or the text itself if it is not longer."""
    return text if len(text) <= length else f"{text[:length]}… ({len(text):,} characters)"


def differing(one: str, other: str) -> tuple[Cut, Cut]:
    """Two texts, each with the part that differs in the middle; long texts are shortened around that part."""
    before = _alike(one, other)
    after = _alike(one[before:][::-1], other[before:][::-1])
    first, second = (_around(text, before, len(text) - after) for text in (one, other))
    return first, second


def _alike(one: str, other: str) -> int:
    """The number of characters that both start with."""
    at = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        at += 1
    return at


def _around(text: str, start: int, end: int) -> Cut:
    """``text`` with the part from ``start`` to ``end`` in the middle."""
    before, middle, after = text[:start], text[start:end], text[end:]
    if len(text) <= _SHOWN:
        return Cut(before, middle, after)
    if len(before) > _AROUND:
        before = "…" + before[-_AROUND:]
    if len(middle) > _SHOWN:
        middle, after = middle[:_SHOWN] + "…", ""
    if len(after) > _AROUND:
        after = after[:_AROUND] + "…"
    return Cut(before, middle, after, len(text))
