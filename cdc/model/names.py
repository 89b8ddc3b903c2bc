"""Defines the URIs of databases and tables in records (docs/record-format.md), and folds names: converts them to lower
case as a server with ``lower_case_table_names = 1`` does. Pure.

Such a server logs rows under folded names, but statements as the client typed them. It folds each character by itself,
according to the tables of Unicode 3.0; it does not fold letters that were added later. All other modules fold names
with this module.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

__all__ = ["FOLDED", "Uri", "folded"]

# In these ranges MySQL folds each character that has a lower-case form. Outside of the ranges it folds no characters,
# although 478 characters there have a lower-case form in Python (MySQL 8.0 to 9.7).
_RANGES = (
    (0x41, 0x5A), (0xC0, 0x21E), (0x222, 0x232), (0x386, 0x3AB), (0x3DA, 0x3EE), (0x400, 0x480), (0x48C, 0x4BE),
    (0x4C1, 0x4C3), (0x4C7, 0x4C7), (0x4CB, 0x4CB), (0x4D0, 0x4F4), (0x4F8, 0x4F8), (0x531, 0x556), (0x1E00, 0x1E94),
    (0x1EA0, 0x1EF8), (0x1F08, 0x212B), (0x2160, 0x216F), (0x24B6, 0x24CF), (0xFF21, 0xFF3A),
)  # fmt: skip
_CODES = [code for first, last in _RANGES for code in range(first, last + 1)]

FOLDED: Mapping[str, str] = {chr(code): chr(code).lower()[0] for code in _CODES if chr(code).lower() != chr(code)}
"""Maps each character that is folded to its lower-case form. A capital I with a dot is mapped to i alone, while
Python's ``lower`` adds a combining dot.
"""

_TABLE = str.maketrans(dict(FOLDED))


def folded(name: str) -> str:
    """Returns the name as a server with ``lower_case_table_names = 1`` stores it."""
    return name.lower() if name.isascii() else name.translate(_TABLE)


# Defines the URIs that name a leader's databases and tables (docs/record-format.md).

_SCHEME = "flv://"


class Uri(NamedTuple):
    """A URI ``flv://<resource>/<database>[/<table>]``. In its text, names are percent-encoded; upper and lower case are
    kept."""

    resource: str
    database: str
    table: str | None = None

    def __str__(self) -> str:
        names = (self.resource, self.database) if self.table is None else (self.resource, self.database, self.table)
        return _SCHEME + "/".join(quote(name, safe="") for name in names)

    def folded(self) -> "Uri":
        """Returns the URI with its names as a server with ``lower_case_table_names = 1`` stores them."""
        return Uri(self.resource, folded(self.database), None if self.table is None else folded(self.table))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a URI. Raises ValueError if ``text`` is not a URI."""
        if not text.startswith(_SCHEME):
            raise ValueError(f"not an {_SCHEME} URI: {text!r}")
        names = [unquote(name, errors="strict") for name in text[len(_SCHEME) :].split("/")]
        if len(names) not in (2, 3):
            raise ValueError(f"not an {_SCHEME}resource/database[/table] URI: {text!r}")
        return cls(*names)
