"""Records under the follower's names of databases (the profile's ``[renames]``). Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable, place
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.renamed_sql import means, rewritten
from cdc.errors import UserError
from cdc.model.record import SKIPPED, Record, Uri
from cdc.sql.redaction import excerpt

__all__ = ["Renaming"]


class Renaming:
    """``replicated(uri)`` says what is replicated to the follower; it goes by the leader's names."""

    def __init__(self, renames: Renames, *, replicated: Callable[[Uri], bool]) -> None:
        self._renames = renames
        self._replicated = replicated

    def passes(self, uri: Uri) -> bool:
        """Whether what the follower calls ``uri`` is replicated."""
        return self._replicated(Uri(uri.resource, self._renames.former(uri.database), uri.table))

    def located(self, records: Iterable[Located | None]) -> Iterator[Located | None]:
        """Rows records by the follower's names; statements as they are, since a refused one may be skipped."""
        for item in records:
            if item is None or item.record.operation in ("Query", SKIPPED):
                yield item
            else:
                yield item._replace(record=self.rows(item.record))

    def rows(self, record: Record) -> Record:
        """The rows record with the follower's name of its table. Raises UserError where that is another's."""
        uri = record.uri
        new = self._renames.new(uri.database)
        if new != uri.database:
            return replace(record, uri=Uri(uri.resource, new, uri.table))
        if uri.database not in self._renames.taken:
            return record
        if self._replicated(uri):
            raise self._taken(record, uri.database)
        # What passes goes by the follower's names from here on, and this one would be taken for the other.
        return replace(record, rows=())

    def statement(self, record: Record) -> Record:
        """A Query record that is replicated, with the follower's names in text and context; ``affects`` stays.

        Raises Unapplicable where it can't be proven which of its words are databases, or where one of them is a
        database whose name another one gets; UserError where it changes such a database.
        """
        for name in self._renames.taken:
            if _affects(record, name):
                raise self._taken(record, name)
            if means(record, name):
                raise Unapplicable(
                    f"a statement is about the leader's {name}, which is another database on the follower: "
                    f"{excerpt(record.query)}",
                    record=record,
                    hint="give that database a new name too",
                )
        context = dict(record.context or {})
        database = context.get("database", "")
        # In no database rather than in another one: the server then refuses names without a database.
        context["database"] = "" if database in self._renames.taken else self._renames.new(database)
        return replace(record, query=rewritten(record, self._renames), context=context)

    def _taken(self, record: Record, database: str) -> UserError:
        return UserError(
            f"two of the leader's databases would be {database} on the follower: "
            f"{database} itself and {self._renames.former(database)}",
            where=place(record),
            hint="leave one of them out in the consumer's [filters], or rename it too",
        )


def _affects(record: Record, database: str) -> bool:
    ends = [affect[end] for affect in record.affects for end in ("uri", "to") if end in affect]
    return any(Uri.parse(uri).database == database for uri in ends)
