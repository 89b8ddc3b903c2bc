"""Compares the types of the leader's columns with the follower's columns, once for each definition of a table."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from cdc.consumer.errors import Refused, Unapplicable
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, table_name
from cdc.consumer.plan.column_fit import misfits
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.table_schema import TableSchema
from cdc.consumer.state import own_table
from cdc.consumer.state.other_streams import require_no_keys_across
from cdc.errors import PromiseError
from cdc.model.record import Record, Uri

__all__ = ["LeaderTypes", "column_error"]

_MOST_TABLES = 10_000
# After a statement with such an effect, the producer writes the column types of a table into the table's next record
# again.
_CHANGING = ("Table", "Index", "Database")


class LeaderTypes:
    """The types of the leader's columns, from the newest records that contained them. They are stored on the follower,
    since not all records after a restart contain them. ``on_follower(uri)`` returns the follower's name of an object,
    or None if it has none; ``uri`` is its name on the leader. ``passes(uri)`` decides which tables are replicated;
    ``uri`` is the follower's name.
    """

    def __init__(
        self, session: Session, *, on_follower: Callable[[Uri], Uri | None], passes: Callable[[Uri], bool]
    ) -> None:
        self._session = session
        self._on_follower = on_follower
        self._passes = passes
        self._types: dict[Uri, Mapping[str, str]] = {}
        self._checked: dict[Uri, tuple[TableSchema, Mapping[str, tuple[str, str]]]] = {}

    def forget(self) -> None:
        """Forgets all types, because the transaction that stored the newest ones may have been rolled back."""
        self._types.clear()
        self._checked.clear()

    def know(self, records: Iterable[Record], schema: Callable[[Uri], TableSchema]) -> bool:
        """Whether ``require_fit`` needs no query for these records: the leader's types of all their tables are in
        memory, and those with foreign keys were compared with the follower's definitions.
        """
        if len(self._types) > _MOST_TABLES:
            self.forget()
        return all(record.uri in self._types and not self._asks(record, schema(record.uri)) for record in records)

    def _asks(self, record: Record, schema: TableSchema) -> bool:
        checked, _ = self._checked.get(record.uri, (None, {}))
        return schema.related and (checked is not schema or self._are_new(record))

    def _are_new(self, record: Record) -> bool:
        return bool(record.types) and self._types.get(record.uri) != _types_of(record)

    def learn(self, tables: Iterable[Uri], *, over: Session) -> None:
        """Reads the stored types of these tables over another connection, while the own one is in use. Raises
        Interrupted and Refused.
        """
        for table in tables:
            if table not in self._types:
                self._types[table] = self._stored(table, over)

    def note(self, records: Iterable[Record]) -> Iterator[Statement]:
        """Remembers the types in the records. Yields the statements that store them in the records' transaction."""
        for record in records:
            if self._are_new(record):
                types = self._types[record.uri] = _types_of(record)
                self._checked.pop(record.uri, None)
                yield Statement(own_table.remember_types(self._session.schema, record.uri, types).encode())

    def outdated(self, statements: Iterable[Record]) -> Iterator[Statement]:
        """Forgets the types of the tables that the leader's statements may have changed. Yields the statements that
        delete them in the same transaction.
        """
        ends = [affect[end] for statement in statements for affect in statement.affects for end in ("uri", "to")
                if end in affect and affect["action"].endswith(_CHANGING)]  # fmt: skip
        here = (self._on_follower(Uri.parse(end)) for end in ends)
        for changed in dict.fromkeys(each for each in here if each is not None):
            tables = [changed] if changed.table else [each for each in self._types if each.database == changed.database]
            for table in tables:
                self._types[table] = {}
                self._checked.pop(table, None)
            yield Statement(own_table.forget_types(self._session.schema, changed).encode())

    def require_fit(self, record: Record, schema: TableSchema) -> None:
        """Compares the follower's definition with the leader's types, unless both were compared before.

        Raises Interrupted and Refused, and Unapplicable for a column that may store another value than the leader's
        without an error, and for a foreign key to or from a table of another stream.
        """
        table = record.uri
        checked, columns = self._checked.get(table, (None, {}))
        if checked is not schema:
            if schema.related:
                require_no_keys_across(self._session, record, passes=self._passes)
            if table not in self._types:
                self._types[table] = self._stored(table, self._session)
            columns = misfits(self._types[table], schema.definitions)
            self._checked[table] = schema, columns
        if columns:
            error = column_error(table, columns)
            refused = Refused(0, error.what)
            raise Unapplicable(error.what, code=error.code, record=record, refused=refused, hint=error.hint)

    def _stored(self, table: Uri, session: Session) -> Mapping[str, str]:
        rows = session.rows(own_table.known_types(session.schema, table))
        return own_table.parsed_types(rows[0][0]) if rows else {}


def _types_of(record: Record) -> Mapping[str, str]:
    return dict(zip(record.columns, record.types, strict=False))


def column_error(table: Uri, columns: Mapping[str, tuple[str, str]]) -> PromiseError:
    """Returns the error for the ``columns`` of the follower's table that may store other values than the leader's. Each
    column is mapped to its types on the leader and on the follower.
    """
    found = ", ".join(f"{name} is {here} and on the leader {there}" for name, (there, here) in columns.items())
    changes = ", ".join(f"MODIFY {identifier(name)} {there}" for name, (there, _) in columns.items())
    return PromiseError(
        f"the follower's table {table.database}.{table.table} could store other values than the leader's without an "
        f"error: column {found}",
        code="CDC-FOLLOWER-COLUMN",
        where=str(table),
        hint=f"on the follower: ALTER TABLE {table_name(table)} {changes}, with NOT NULL, DEFAULT and COLLATE as on "
        "the leader, and start again; then copy the table (cdc-producer PROFILE --copy) if it had rows, since they may "
        "have other values already",
    )
