"""Defines the data source ``cdc`` for SQL: the changes of a leader's rows, which Python reads from its topics.

    register(spark)
    spark.read.format("cdc").option("profile", "producer_profile.toml").load("shop.orders")

The rows are those of ``changes`` of all tables. Spark runs a data source in processes of its own, without a session.
So it can't use the frames of ``table`` and ``changes``: a single task reads all topics from their beginning, and the
machine of this task needs the package ``cdc``.

As a stream (``readStream``) it gives whole transactions in the leader's order. Each batch is read by a single task,
from where the batch before ended.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from cdc.config.profile import KAFKA_ONLY, Profile, load
from cdc.config.table_globs import TABLE_FORM, table_named
from cdc.errors import UserError
from cdc.large_rows import StoredBlob
from cdc.model.record import Record
from cdc.reader.records import Transaction, records
from cdc.reader.stream_place import StreamPlace, transactions_between

__all__ = ["register"]

_SCHEMA = """
    database STRING, table STRING, op STRING, before MAP<STRING, STRING>, after MAP<STRING, STRING>, sequence BIGINT,
    row INT, gtid STRING, position STRUCT<file: STRING, offset: BIGINT>, commit_time TIMESTAMP, ends_transaction BOOLEAN
"""
_OPS = {"Add": "insert", "Update": "update", "Delete": "delete", "Copy": "copy", "Repair": "repair"}
_OPTIONS = ("profile", "path", "since", "upto")
_NEVER = 1 << 62


def register(spark: SparkSession) -> None:
    """Registers the data source ``cdc`` in the session ``spark``.

    Its options are ``profile``, the file of the leader's profile, and the sequences ``since`` and ``upto``: the changes
    after the one through the other are read; a stream has no ``upto``. A table is named by ``load`` or the option
    ``path``; without it, all are.
    """
    spark.dataSource.register(ChangesSource)


class ChangesSource(DataSource):
    """The data source that ``register`` adds. Spark creates an instance for each use of it."""

    @classmethod
    def name(cls) -> str:
        """Returns the name for ``format`` and USING."""
        return "cdc"

    def schema(self) -> str:
        """Returns the columns, which are the same for all tables."""
        return _SCHEMA

    def reader(self, schema: Any) -> "ChangesReader":
        """Loads the profile. Raises UserError if an option is wrong."""
        given = self._given()
        within = _sequence(given, "since", -1), _sequence(given, "upto", _NEVER)
        return ChangesReader(*_source(given), *within)

    def streamReader(self, schema: Any) -> "ChangesStream":
        """Loads the profile. Raises UserError if an option is wrong."""
        given = self._given()
        if "upto" in given:
            raise UserError(
                "a stream has no end",
                code="CDC-TABLE-ARGUMENT",
                where="option upto",
                hint="leave it out, or use spark.read",
            )
        since = _sequence(given, "since", -1)
        return ChangesStream(*_source(given), since)

    def _given(self) -> dict[str, str]:
        """Returns the options, with names in lower case. Raises UserError for an unknown option."""
        given = {name.lower(): value for name, value in self.options.items()}
        wrong = [name for name in given if name not in _OPTIONS]
        if wrong or not given.get("profile"):
            raise UserError(
                f"no such option: {wrong[0]}" if wrong else "the option profile is missing",
                code="CDC-TABLE-ARGUMENT",
                hint=f"the options are {', '.join(_OPTIONS)}",
            )
        return given


def _source(given: dict[str, str]) -> tuple[Profile, tuple[str, str] | None]:
    """Returns the profile and the table (None: all) in the options. Raises UserError."""
    path = given.get("path")
    table = table_named(path) if path else None
    if path and table is None:
        raise UserError(f"not a table: {path!r}", code="CDC-TABLE-ARGUMENT", hint=TABLE_FORM)
    return load(Path(given["profile"]), servers=KAFKA_ONLY), table


def _sequence(given: dict[str, str], name: str, default: int) -> int:
    value = given.get(name, str(default))
    if not value.removeprefix("-").isdigit():
        raise UserError(
            f"not a sequence: {value!r}",
            code="CDC-TABLE-ARGUMENT",
            where=f"option {name}",
            hint="a number, as records have",
        )
    return int(value)


class ChangesReader(DataSourceReader):
    """Reads the changes of one ``table`` (all if None) after the sequence ``since`` through ``upto``."""

    def __init__(self, profile: Profile, table: tuple[str, str] | None, since: int, upto: int) -> None:
        self._profile, self._table, self._since, self._upto = profile, table, since, upto

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yields the changed rows of whole transactions, in the leader's order."""
        for transaction in records(self._profile).transactions():
            if transaction.records[-1].sequence > self._upto:
                return
            for record in transaction.records:
                if record.sequence > self._since and _wants(self._table, record):
                    yield from _rows(record, transaction)


class _Batch(InputPartition):
    """The transactions of a batch of a stream."""

    def __init__(self, begin: StreamPlace, end: StreamPlace) -> None:
        super().__init__(None)
        self.begin, self.end = begin, end


class ChangesStream(DataSourceStreamReader):
    """Reads the changes of one ``table`` (all if None) after the sequence ``since`` (-1: from the oldest record on) as
    a stream. Its offsets are places between two transactions, so a batch that Spark repeats has the same rows.
    """

    def __init__(self, profile: Profile, table: tuple[str, str] | None, since: int) -> None:
        self._profile, self._table = profile, table
        self._first = self._newest = StreamPlace(since)

    def initialOffset(self) -> dict[str, Any]:
        """Returns the place at which a new stream begins; Spark may ask for it after ``latestOffset``."""
        return self._first.to_json()

    def latestOffset(self, *_: Any) -> dict[str, Any]:
        """Returns the place after the newest transaction; raises the errors of ``StreamPlace.newest``."""
        self._newest = self._newest.newest(self._profile)
        return self._newest.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Returns the only part of a batch."""
        begin, last = StreamPlace.from_json(start), StreamPlace.from_json(end)
        return [_Batch(begin, last)] if begin.sequence != last.sequence else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yields the changed rows of whole transactions, in the leader's order."""
        assert isinstance(partition, _Batch)
        for transaction in transactions_between(self._profile, partition.begin, partition.end):
            for record in transaction.records:
                if _wants(self._table, record):
                    yield from _rows(record, transaction)


def _wants(table: tuple[str, str] | None, record: Record) -> bool:
    return table is None or table == (record.uri.database, record.uri.table)


def _rows(record: Record, transaction: Transaction) -> Iterator[tuple[Any, ...]]:
    gtid = None if record.of_copy else record.transaction
    place = (record.position.file, record.position.offset)
    for number, row in enumerate(record.rows):
        yield (
            record.uri.database, record.uri.table, _OPS[record.operation], _texts(record, row.before),
            _texts(record, row.after), record.sequence, number, gtid, place, transaction.committed, record.last,
        )  # fmt: skip


def _texts(record: Record, values: list[Any] | None) -> dict[str, str | None] | None:
    """Maps the columns of a row to the JSON texts of their values."""
    if values is None:
        return None
    return {name: _text(value) for name, value in zip(record.columns, values, strict=True)}


def _text(value: Any) -> str | None:
    return None if value == "Null" else orjson.dumps(value, default=_stored).decode()


def _stored(value: Any) -> str:
    """Returns the text that a record has for the content of a large BLOB."""
    if not isinstance(value, StoredBlob):
        raise TypeError(type(value).__name__)
    return value.whole()
