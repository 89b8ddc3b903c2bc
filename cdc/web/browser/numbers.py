"""Reads the numbers in addresses: those that SQLite and Kafka can have."""

import re

from starlette.convertors import IntegerConvertor, register_url_convertor

__all__ = ["number"]

_DIGITS = "[0-9]{1,18}"


class _Number(IntegerConvertor):
    """``{name:number}`` in a route. ``{name:int}`` fails for more digits than Python converts."""

    regex = _DIGITS


register_url_convertor("number", _Number())


def number(text: str | None) -> int | None:
    """Returns the number that ``text`` is, None for any other text."""
    return int(text) if text and re.fullmatch(_DIGITS, text) else None
