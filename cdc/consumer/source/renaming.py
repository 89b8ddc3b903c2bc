"""Replaces the leader's database names in records by the follower's names (the profile's ``[renames]``)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable, position_of
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.renamed_sql import names_database, rewritten
from cdc.errors import UserError
from cdc.model.record import SKIPPED, Record, Uri
from cdc.sql.redaction import excerpt

__all__ = ["Renaming"]


class Renaming:
    """Renames records; ``replicated(uri)`` says whether an object, by its name on the leader, is replicated."""

    def __init__(self, renames: Renames, *, replicated: Callable[[Uri], bool]) -> None:
        self._renames = renames
        self._replicated = replicated

    def passes(self, uri: Uri) -> bool:
        """Whether an object, by its name on the follower, is replicated."""
        return self._replicated(Uri(uri.resource, self._renames.former(uri.database), uri.table))

    def on_follower(self, uri: Uri) -> Uri:
        """An object, by its name on the leader, by that on the follower."""
        return Uri(uri.resource, self._renames.new(uri.database), uri.table)

    def located(self, records: Iterable[Located | None]) -> Iterator[Located | None]:
        """Rows records with the follower's names; statements unchanged, since a refused one may be skipped."""
        for item in records:
            if item is None or item.record.operation in ("Query", SKIPPED):
                yield item
            else:
                yield item._replace(record=self.rows(item.record))

    def rows(self, record: Record) -> Record:
        """The rows record with its table's name on the follower.

        Raises UserError if another database has that name there.
        """
        uri = record.uri
        new = self._renames.new(uri.database)
        if new != uri.database:
            return replace(record, uri=Uri(uri.resource, new, uri.table))
        if uri.database not in self._renames.taken:
            return record
        if self._replicated(uri):
            raise self._taken(record, uri.database)
        # Later stages know only the follower's names, and would write these rows to the other database.
        return record.emptied()

    def statement(self, record: Record) -> Record:
        """A replicated Query record with the follower's names in its text and context; ``affects`` is unchanged.

        Raises Unapplicable if it is ambiguous which of its words are databases, or if it names a database whose name
        another database gets; UserError if it changes such a database.
        """
        for name in self._renames.taken:
            if _affects(record, name):
                raise self._taken(record, name)
            if names_database(record, name):
                raise Unapplicable(
                    f"a statement names the leader's {name}, but on the follower another database has that name: "
                    f"{excerpt(record.query)}",
                    record=record,
                    hint="rename that database too",
                )
        context = dict(record.context or {})
        database = context.get("database", "")
        # No default database rather than the wrong one: the server then refuses names without a database.
        context["database"] = "" if database in self._renames.taken else self._renames.new(database)
        return replace(rewritten(record, self._renames), context=context)

    def _taken(self, record: Record, database: str) -> UserError:
        return UserError(
            f"two of the leader's databases would have the name {database} on the follower: "
            f"{database} itself and {self._renames.former(database)}",
            where=position_of(record),
            hint="exclude one of them in the consumer's [filters], or rename it too",
        )


def _affects(record: Record, database: str) -> bool:
    ends = [affect[end] for affect in record.affects for end in ("uri", "to") if end in affect]
    return any(Uri.parse(uri).database == database for uri in ends)
