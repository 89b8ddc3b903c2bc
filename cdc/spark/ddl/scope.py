"""Decides which of the leader's tables and statements are for this follower, by the consumer's filters.

``LeftOut`` is what the leader's producer leaves out of its topic: objects that the follower has of its own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from typing import Self

from cdc.config.filters import CHECKPOINT_DATABASE, Filters, filtered_name
from cdc.model.uri import Uri
from cdc.spark.ddl.accepted_drift import DEFINITION, ROWS, Entry
from cdc.spark.ddl.definitions import SchemaDrift
from cdc.spark.ddl.lineage import Act, Name
from cdc.spark.input.renaming import name_on_leader
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.tokens import excerpt

__all__ = ["NOT_REPLICATED", "LeftOut", "Scope"]

_LISTED = 10
_HINT = "name the profile of cdc-consumer with --consumer"


@dataclass(frozen=True, slots=True)
class Scope:
    """The consumer's ``filters`` over the leader's names; None if its profile was not given.

    ``schema`` is the consumer's own database on the follower.
    """

    filters: Filters | None = None
    schema: str = CHECKPOINT_DATABASE

    def wants_table(self, database: str, table: str) -> bool:
        """Whether the table's rows are for the follower."""
        if database == CHECKPOINT_DATABASE:
            return False
        return self.filters is None or self.filters.wants_table(name_on_leader(database), table)

    @property
    def lets_in_own(self) -> bool:
        """Whether a leader's database with the same name as the consumer's own would be for the follower."""
        return self.filters is None or self.filters.wants_database(self.schema)

    def wants(self, act: Act) -> bool:
        """Whether an effect of a statement is for the follower."""
        uri = Uri.parse(act.uri)
        if self.filters is None or uri.database == CHECKPOINT_DATABASE:
            return uri.database != CHECKPOINT_DATABASE
        return self.filters.wants(name_on_leader(uri.database), filtered_name(act.action, uri.table))

    def may_want(self, act: Act) -> bool:
        """Whether an effect of a skipped event may be for the follower; which objects it changed may be unknown."""
        return Uri.parse(act.uri).database == "*" or self.wants(act)

    def contradictions(self, leader: Sequence[Act], not_run: Mapping[int, str]) -> Iterator[str]:
        """Reasons why the statements that the consumer left out do not match these filters.

        ``not_run`` has the sequences of the leader's statements that the follower did not run, with their state in its
        ledger: ``not applied`` are those that the consumer left out by its filters.
        """
        left_out = [
            act
            for act in sorted(leader)
            if not_run.get(act.sequence) == "not applied" and not act.action.endswith(LEADER_ONLY)
        ]
        if self.filters is None and left_out:
            act = left_out[0]
            yield (
                f"the filters of cdc-consumer left out statements of the leader, sequence {act.sequence} among them "
                f"({excerpt(act.text)}); {_HINT}"
            )
        for act in [act for act in left_out if self.filters is not None and self.wants(act)][:1]:
            yield (
                f"the filters of cdc-consumer left out sequence {act.sequence} ({excerpt(act.text)}), but those in its "
                "profile let it in: they were changed, and a table that is let in later needs a fresh copy of its rows"
            )

    def silent(self, tables: Sequence[tuple[str, str]]) -> str | None:
        """The reason why ``tables``, which no statement and no row of the follower names, can't be judged.

        None if they are drift: if the consumer's filters are known, the follower should have them.
        """
        if self.filters is not None or not tables:
            return None
        names = ", ".join(f"{database}.{table}" for database, table in tables[:_LISTED])
        return f"the follower's topic has no records of {names}: if the filters of cdc-consumer leave them out, {_HINT}"


NOT_REPLICATED = 0  # the number of all entries for what is left out
_WHY = "not replicated"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The tables and databases that the leader's ``filters`` leave out and that none of its records names.

    Those that a record ``named`` were replicated once, whatever the filters are now: their drift is drift.
    """

    filters: Filters
    named: frozenset[tuple[str, str | None]]

    @classmethod
    def of(cls, filters: Filters, tables: Collection[Name], acts: Iterable[Act]) -> Self:
        """``tables`` have rows in the leader's topic, ``acts`` are what its statements did."""
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
