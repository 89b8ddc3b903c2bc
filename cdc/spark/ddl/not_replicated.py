"""Finds objects that the leader's producer leaves out of its topic by its filters: the follower has its own ones."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from glob import escape
from typing import Self

from cdc.config.filters import Filters, filtered_name
from cdc.model.uri import Uri
from cdc.spark.ddl.accepted_drift import DEFINITION, ROWS, Entry
from cdc.spark.ddl.definitions import SchemaDrift
from cdc.spark.ddl.lineage import Act, Name
from cdc.spark.input.renaming import name_on_leader

__all__ = ["NOT_REPLICATED", "LeftOut"]

NOT_REPLICATED = 0  # the number of all entries for such objects
_WHY = "not replicated"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The objects that the leader's ``filters`` leave out and that none of its records names.

    An object that a record ``named`` was replicated once, whatever the filters are now: its drift counts.
    """

    filters: Filters
    named: frozenset[tuple[str, str | None]]

    @classmethod
    def of(cls, filters: Filters, tables: Collection[Name], acts: Iterable[Act]) -> Self:
        """``tables`` have rows in the leader's topic, ``acts`` are the effects of its statements."""
        uris = (Uri.parse(uri) for act in acts for uri in (act.uri, act.to) if uri)
        named = {*tables, *((uri.database, uri.table) for uri in uris)}
        return cls(filters, frozenset({*named, *((database, None) for database, _ in named)}))

    def has(self, database: str, name: str | None, *, kind: str = "Table") -> bool:
        """Whether an object is left out; a database has no ``name`` of its own."""
        if (database, name) in self.named:
            return False
        return not self.filters.wants(name_on_leader(database), filtered_name(kind, name))

    def entries(self, tables: Iterable[Name], objects: Iterable[SchemaDrift]) -> list[Entry]:
        """Returns one entry for each of the ``tables`` and ``objects`` that is left out. An entry matches exactly that
        name: its wildcards are escaped.
        """
        rows = [Entry(NOT_REPLICATED, (ROWS,), _glob(*name), _WHY) for name in sorted(tables) if self.has(*name)]
        return rows + [
            Entry(NOT_REPLICATED, (DEFINITION,), _glob(each.database, each.name), _WHY, kind=each.kind)
            for each in objects
            if self.has(each.database, each.name, kind=each.kind)
        ]


def _glob(database: str, name: str | None) -> str:
    if name is None:
        return database
    return ".".join(f"`{escape(each).replace('`', '``')}`" for each in (database, name))
