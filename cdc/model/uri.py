"""Defines the URIs that name a leader's databases and tables (docs/record-format.md)."""

from typing import NamedTuple, Self
from urllib.parse import quote, unquote

from cdc.model.folding import folded

__all__ = ["Uri"]

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
