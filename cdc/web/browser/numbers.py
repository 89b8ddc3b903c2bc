"""Reads the numbers in addresses of pages; accepts at most 18 digits, which SQLite and Kafka can store."""

import re

from starlette.convertors import IntegerConvertor, register_url_convertor

__all__ = ["number"]

_DIGITS = "[0-9]{1,18}"


class _Number(IntegerConvertor):
    """Matches ``{name:number}`` in a route. It replaces ``{name:int}``, which fails for numbers with more digits than
    Python converts.
    """

    regex = _DIGITS


register_url_convertor("number", _Number())


def number(text: str | None) -> int | None:
    """Parses ``text``; returns None if it is not a number of at most 18 digits."""
    return int(text) if text and re.fullmatch(_DIGITS, text) else None
