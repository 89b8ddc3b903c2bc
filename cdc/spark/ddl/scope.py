"""Decides which of the leader's tables and statements are for this follower, according to the consumer's filters.

``LeftOut`` are objects that the leader's producer leaves out of its topic: on the follower, such objects are the
follower's own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from typing import Self

from cdc.config.filters import CHECKPOINT_DATABASE, Filters, filtered_name
from cdc.model.names import Uri
from cdc.spark.ddl.accepted_drift import DEFINITION, ROWS, Entry
from cdc.spark.ddl.definitions import EMPTIED, SchemaDrift
from cdc.spark.ddl.lineage import Act, Name
from cdc.spark.input.renaming import name_on_leader
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.tokens import excerpt

__all__ = ["NOT_REPLICATED", "LeftOut", "Scope"]

_LISTED = 10
_HINT = "name the profile of cdc-consumer with --consumer"


@dataclass(frozen=True, slots=True)
class Scope:
    """The consumer's ``filters``, which apply to the leader's names; None if the consumer's profile was not given.

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
        """Whether a database of the leader with the name of the consumer's own database would be for the follower."""
        return self.filters is None or self.filters.wants_database(self.schema)

    def wants(self, act: Act) -> bool:
        """Whether an effect of a statement is for the follower."""
        uri = Uri.parse(act.uri)
        if self.filters is None or uri.database == CHECKPOINT_DATABASE:
            return uri.database != CHECKPOINT_DATABASE
        return self.filters.wants(name_on_leader(uri.database), filtered_name(act.action, uri.table))

    def may_want(self, act: Act) -> bool:
        """Whether an effect of a skipped event may be for the follower. True if it is unknown which objects changed."""
        return Uri.parse(act.uri).database == "*" or self.wants(act)

    def contradictions(self, leader: Sequence[Act], not_run: Mapping[int, str]) -> Iterator[str]:
        """Reports the first statement that the consumer left out although these filters let it pass. If the consumer's
        filters are not known, reports the first statement that the consumer left out for whatever reason.

        ``not_run`` contains the leader's statements that the follower did not run: the keys are their sequences, the
        values are their states in the follower's ledger. The state ``not applied`` means that the consumer's filters
        left the statement out.
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
                "profile let it pass: they were changed, and a table that passes now needs a fresh copy of its rows"
            )

    def silent(self, tables: Sequence[tuple[str, str]]) -> str | None:
        """Explains why ``tables``, which occur in no statement and no row of the follower, can't be judged.

        Returns None if the consumer's filters are known: then the follower should have these tables, and their absence
        is drift.
        """
        if self.filters is not None or not tables:
            return None
        names = ", ".join(f"{database}.{table}" for database, table in tables[:_LISTED])
        return f"the follower's topic has no records of {names}: if the filters of cdc-consumer leave them out, {_HINT}"


NOT_REPLICATED = 0  # ``number`` of the entries that ``LeftOut.entries`` returns
_WHY = "not replicated"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The objects that the ``filters`` of the leader's producer leave out, and that occur in none of its records.

    The objects in ``named`` occur in a record: they were replicated once, whatever the filters are now, so their drift
    counts.
    """

    filters: Filters
    named: frozenset[tuple[str, str | None]]

    @classmethod
    def of(cls, filters: Filters, tables: Collection[Name], acts: Iterable[Act]) -> Self:
        """Builds a ``LeftOut``. ``tables`` are the tables with rows in the leader's topic, and ``acts`` are the effects
        of the leader's statements.
        """
        uris = (Uri.parse(uri) for act in acts for uri in (act.uri, act.to) if uri)
        named = {*tables, *((uri.database, uri.table) for uri in uris)}
        return cls(filters, frozenset({*named, *((database, None) for database, _ in named)}))

    def has(self, database: str, name: str | None, *, kind: str = "Table") -> bool:
        """Whether an object is left out; for a database ``name`` is None."""
        if (database, name) in self.named:
            return False
        return not self.filters.wants(name_on_leader(database), filtered_name(kind, name))

    def entries(self, tables: Iterable[Name], objects: Iterable[SchemaDrift]) -> list[Entry]:
        """Returns one entry for each of the ``tables`` and ``objects`` that is left out. Wildcards in its name are
        escaped, so that the entry matches only this table or object.
        """
        rows = [Entry(NOT_REPLICATED, (ROWS,), _glob(*name), _WHY) for name in sorted(tables) if self.has(*name)]
        return rows + [
            Entry(NOT_REPLICATED, (_sort(each),), _glob(each.database, each.name), _WHY, kind=each.kind)
            for each in objects
            if self.has(each.database, each.name, kind=each.kind)
        ]


def _sort(drift: SchemaDrift) -> str:
    return ROWS if drift.cause == EMPTIED else DEFINITION


def _glob(database: str, name: str | None) -> str:
    if name is None:
        return database
    return ".".join(f"`{escape(each).replace('`', '``')}`" for each in (database, name))
