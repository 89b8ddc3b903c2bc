"""Answers questions about records from an index, and reads the records themselves from Kafka."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from glob import escape
from typing import Any

from cdc.browse.entries import KINDS, Entry, Filter, gtids
from cdc.browse.index import Index, hash_of
from cdc.browse.records import Decoded, read_record
from cdc.config.table_globs import named
from cdc.errors import UserError

__all__ = ["Page", "Queries"]

_FEW_KEYS = 10
_MAX = (1 << 63) - 1
# If the tables that a filter names have more entries than this, it is cheaper to test the entries of all tables, one
# after the other, until the page is full.
_FEW_ENTRIES = 200_000
_ENTRY = """
SELECT entry.sequence, topic, partition, "offset", size, kind, database, name, rows, ts_us, gtid, entry.first, last
FROM entry CROSS JOIN leader_transaction ON leader_transaction.first = entry.first
CROSS JOIN place ON place.id = entry.place CROSS JOIN object ON object.id = entry.object
"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of entries in the requested order. ``next`` is the cursor of the next page; None if there are no more
    entries yet.
    """

    entries: tuple[Entry, ...]
    next: int | None


_NOTHING = Page((), None)


class Queries:
    """Queries ``index``. All methods may be called by any thread. A damaged file counts as empty until the next
    ``Index.refresh``; all methods raise UserError if the file can't be used.
    """

    def __init__(self, index: Index) -> None:
        self._index = index

    def page(self, filter_: Filter, *, cursor: int | None = None, newest_first: bool = True, limit: int = 50) -> Page:
        """Returns at most ``limit`` entries that pass ``filter_``, from ``cursor`` on (``Page.next``)."""
        asked = partial(_page, filter_=filter_, cursor=cursor, newest_first=newest_first, limit=limit)
        return self._index.ask(asked, _NOTHING)

    def tables(self, text: str, *, limit: int = 50) -> list[str]:
        """Lists at most ``limit`` tables whose names contain ``text``, regardless of case. Each table is returned as a
        glob that matches no other table.
        """
        statement = (
            "SELECT database, name FROM object WHERE name != '' AND instr(lower(database || '.' || name), lower(?))"
            " ORDER BY database, name LIMIT ?"
        )
        found: list[tuple[str, str]] = self._index.ask(
            lambda connection: connection.execute(statement, (_stored(text), limit)).fetchall(), []
        )
        return [named(escape(database), escape(table)) for database, table in found]

    def entry(self, sequence: int) -> Entry | None:
        """Returns the entry of a record; None if the index does not contain the record."""
        return self._index.ask(partial(_entry, sequence=sequence), None)

    def keys(self, sequence: int, *, after: int = -1, limit: int = 100) -> list[tuple[int, str]]:
        """Lists keys of a record that come after the key with the number ``after``, each with its number."""
        statement = "SELECT number, key FROM row_key WHERE sequence = ? AND number > ? ORDER BY number LIMIT ?"
        return self._index.ask(
            lambda connection: connection.execute(statement, (_bounded(sequence), after, limit)).fetchall(), []
        )

    def transaction(self, sequence: int, *, cursor: int | None = None, limit: int = 1000) -> Page:
        """Returns the entries of the leader's transaction to which the record belongs, the oldest first."""
        asked = partial(_transaction, sequence=sequence, cursor=cursor, limit=limit)
        return self._index.ask(asked, _NOTHING)

    def row_before(self, sequence: int, key: str) -> Entry | None:
        """Finds the newest change, before this record, of the row with this ``key`` in the record's table.

        An update that changes a row's key is a change of both keys. To find still earlier changes of the row, continue
        with the key that it had before the update (``RowChange.key_before``). Returns None if the index contains no
        such change. Statements that empty or rename the table do not count.
        """
        return self._index.ask(partial(_neighbour, sequence=sequence, key=key, side="<", order="DESC"), None)

    def row_after(self, sequence: int, key: str) -> Entry | None:
        """Finds the oldest change, after this record, of the row with this ``key`` in the record's table; see
        ``row_before``. If an update changed the key, continue with ``RowChange.key_after``.
        """
        return self._index.ask(partial(_neighbour, sequence=sequence, key=key, side=">", order="ASC"), None)

    def record(self, sequence: int, *, most_bytes: int = 20_000_000) -> Decoded:
        """Reads the whole record from Kafka at its offset.

        Raises UserError if the index does not contain it, if it is larger than ``most_bytes``, if retention has deleted
        it (code CDC-BROWSE-RECORD-GONE), or if Kafka does not answer.
        """
        entry = self.entry(sequence)
        if entry is None:
            raise UserError(
                f"the index has no record {sequence}",
                code="CDC-BROWSE-NO-RECORD",
                where=f"topic {self._index.kafka.topic}",
                hint="it has the newest records only, as many as its limit of bytes allows",
            )
        commits = self._index.kafka.topics().commits
        return read_record(self._index.properties, entry, commits=commits, most_bytes=most_bytes)


@dataclass(slots=True)
class _Conditions:
    """The conditions of a query for entries, and their parameters."""

    texts: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, text: str, *values: Any) -> None:
        self.texts.append(text)
        self.values += values


def _page(
    connection: sqlite3.Connection, *, filter_: Filter, cursor: int | None, newest_first: bool, limit: int
) -> Page:
    conditions = _conditions(connection, filter_)
    if conditions is None:
        return _NOTHING
    if cursor is not None:
        conditions.add(f"entry.sequence {'<=' if newest_first else '>='} ?", _bounded(cursor))
    return _entries(connection, conditions, order="DESC" if newest_first else "ASC", limit=limit)


def _entries(connection: sqlite3.Connection, conditions: _Conditions, *, order: str, limit: int) -> Page:
    where = f"WHERE {' AND '.join(conditions.texts)}" if conditions.texts else ""
    statement = f"{_ENTRY} {where} ORDER BY entry.sequence {order} LIMIT ?"
    found = connection.execute(statement, (*conditions.values, limit + 1)).fetchall()
    entries = tuple(_made(connection, row) for row in found[:limit])
    return Page(entries, found[limit][0] if len(found) > limit else None)


def _made(connection: sqlite3.Connection, row: Sequence[Any]) -> Entry:
    sequence, topic, partition, offset, size, kind, database, table, rows, ts_us, gtid, first, last = row
    few = "SELECT key FROM row_key WHERE sequence = ? ORDER BY number LIMIT ?"
    keys = tuple(key for (key,) in connection.execute(few, (sequence, _FEW_KEYS)))
    where = sequence, topic, partition, offset, size
    return Entry(*where, KINDS[kind], database, table, rows, keys, ts_us, gtid, first, last)


def _entry(connection: sqlite3.Connection, *, sequence: int) -> Entry | None:
    found = connection.execute(f"{_ENTRY} WHERE entry.sequence = ?", (_bounded(sequence),)).fetchone()
    return None if found is None else _made(connection, found)


def _transaction(connection: sqlite3.Connection, *, sequence: int, cursor: int | None, limit: int) -> Page:
    found = connection.execute("SELECT first FROM entry WHERE sequence = ?", (_bounded(sequence),)).fetchone()
    if found is None:
        return _NOTHING
    last = "SELECT coalesce(last, ?) FROM leader_transaction WHERE first = ?"
    conditions = _Conditions()
    conditions.add("entry.first = ?", found[0])
    conditions.add("entry.sequence >= ?", max(found[0], _bounded(cursor or 0)))
    conditions.add("entry.sequence <= ?", *connection.execute(last, (_MAX, found[0])).fetchone())
    return _entries(connection, conditions, order="ASC", limit=limit)


def _neighbour(connection: sqlite3.Connection, *, sequence: int, key: str, side: str, order: str) -> Entry | None:
    statement = (
        "SELECT sequence FROM row_key WHERE hash = ? AND object = (SELECT object FROM entry WHERE sequence = ?)"
        f" AND sequence {side} ? AND key = ? ORDER BY sequence {order} LIMIT 1"
    )
    at = _bounded(sequence)
    found = connection.execute(statement, (hash_of(key), at, at, _stored(key))).fetchone()
    return None if found is None else _entry(connection, sequence=found[0])


def _conditions(connection: sqlite3.Connection, filter_: Filter) -> _Conditions | None:
    """Writes the conditions of ``filter_``; None if no entry can pass."""
    found = _Conditions()
    if filter_.first is not None:
        found.add("entry.sequence >= ?", _bounded(filter_.first))
    if filter_.last is not None:
        found.add("entry.sequence <= ?", _bounded(filter_.last))
    if filter_.kinds:
        found.add(_among("entry.kind"), json.dumps([KINDS.index(kind) for kind in filter_.kinds]))
    if filter_.gtid or filter_.since_us is not None or filter_.upto_us is not None:
        _add_transactions(connection, filter_, found)
    objects = None
    if filter_.globs:
        every = connection.execute("SELECT id, database, name FROM object").fetchall()
        objects = [number for number, *name in every if filter_.globs.match(*name)]
        if not objects:
            return None
        if len(objects) < len(every):
            _add_objects(connection, objects, found)
    if filter_.keys:
        keys = [_stored(key) for key in filter_.keys]
        of_objects = "" if objects is None else f" AND {_among('object')}"
        found.add(
            f"entry.sequence IN (SELECT sequence FROM row_key WHERE {_among('hash')} AND {_among('key')}{of_objects})",
            json.dumps(list(map(hash_of, filter_.keys))),
            json.dumps(keys),
            *([] if objects is None else [json.dumps(objects)]),
        )
    return found


def _add_transactions(connection: sqlite3.Connection, filter_: Filter, found: _Conditions) -> None:
    """Adds the conditions on an entry's transaction. Adds bounds of the sequence, so that few entries are read."""
    wanted = _Conditions()
    if filter_.gtid:
        wanted.add(_among("gtid"), json.dumps([_stored(each) for each in gtids(filter_.gtid)]))
    if filter_.since_us is not None:
        wanted.add("ts_us >= ?", _bounded(filter_.since_us))
    if filter_.upto_us is not None:
        wanted.add("ts_us <= ?", _bounded(filter_.upto_us))
    for text, value in zip(wanted.texts, wanted.values, strict=True):
        found.add(text, value)
    bounds = "SELECT min(first), max(coalesce(last, ?)) FROM leader_transaction WHERE "
    first, last = connection.execute(bounds + " AND ".join(wanted.texts), (_MAX, *wanted.values)).fetchone()
    found.add("entry.sequence >= ?", _MAX if first is None else first)
    found.add("entry.sequence <= ?", 0 if last is None else last)


def _add_objects(connection: sqlite3.Connection, objects: list[int], found: _Conditions) -> None:
    some = json.dumps(objects)
    counted = f"SELECT count(*) FROM (SELECT 1 FROM changed WHERE {_among('object')} LIMIT ?)"
    (count,) = connection.execute(counted, (some, _FEW_ENTRIES)).fetchone()
    if count < _FEW_ENTRIES:
        found.add(f"entry.sequence IN (SELECT sequence FROM changed WHERE {_among('object')})", some)
    else:
        found.add(
            f"({_among('entry.object')} OR EXISTS (SELECT 1 FROM changed"
            f" WHERE {_among('changed.object')} AND changed.sequence = entry.sequence))",
            some,
            some,
        )


def _among(name: str) -> str:
    # The list is passed as one parameter, since it may contain tens of thousands of tables.
    return f"{name} IN (SELECT value FROM json_each(?))"


def _stored(text: str) -> str:
    """Replaces single surrogates, which SQLite refuses and no record contains."""
    return text.encode("utf-8", "replace").decode()


def _bounded(number: int) -> int:
    return max(-_MAX, min(number, _MAX))
