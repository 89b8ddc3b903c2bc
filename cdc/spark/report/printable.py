"""Text from a database as people may look at it: nothing in it is unseen, endless, or changes what is around. Pure."""

import json
from dataclasses import dataclass

from cdc.model.printable import visible
from cdc.model.values import NULL, display

__all__ = ["Cut", "cut", "differing", "value_text", "visible"]

_SHOWN = 160
_AROUND = 24


@dataclass(frozen=True, slots=True)
class Cut:
    """A text in three parts, of which the middle one differs from another text's.

    ``length`` is the text's, in characters, where something was cut off, else None.
    """

    before: str
    middle: str
    after: str
    length: int | None = None


def value_text(text: str | None) -> str:
    """A value of an image, which is JSON text or absent for NULL, as people read it."""
    return visible(display(NULL if text is None else json.loads(text)))


def cut(text: str, length: int = _SHOWN) -> str:
    """The beginning of a text that is longer than ``length`` characters, with its length."""
    return text if len(text) <= length else f"{text[:length]}… ({len(text):,} characters)"


def differing(one: str, other: str) -> tuple[Cut, Cut]:
    """Two texts with what differs between them in the middle; of long ones that and what is around it."""
    before = _alike(one, other)
    after = _alike(one[before:][::-1], other[before:][::-1])
    first, second = (_around(text, before, len(text) - after) for text in (one, other))
    return first, second


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    at = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        at += 1
    return at


def _around(text: str, start: int, end: int) -> Cut:
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
