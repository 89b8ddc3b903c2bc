"""Counts the messages of the open leader transaction, and builds the messages about its begin and its end. Pure.

A leader transaction may be committed to Kafka in parts. The counts of the committed part are then in the entry of the
commit log (``state``), since its rows are not converted again.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from cdc.config.topic_names import debezium_transactions
from cdc.model.record import Record
from cdc.producer.debezium.message import DebeziumMessage, Heads, rendered
from cdc.producer.debezium.schemas import array, field, struct

__all__ = ["TransactionCounts"]

_TABLES = "tables"
_NAME = "io.debezium.connector.common.TransactionMetadata"
_KEY = struct([field("id", "string")], optional=False, name=f"{_NAME}Key", version=1)
_COLLECTION = struct(
    [field("data_collection", "string"), field("event_count", "int64")],
    optional=True, name="event.collection", version=1,
)  # fmt: skip
_VALUE = struct(
    [
        field("status", "string"),
        field("id", "string"),
        field("event_count", "int64", optional=True),
        field("data_collections", array(_COLLECTION, optional=True)),
        field("ts_ms", "int64"),
    ],
    optional=False, name=f"{_NAME}Value", version=1,
)  # fmt: skip


class TransactionCounts:
    """Counts the messages of one leader's transactions. ``prefix`` begins all topics.

    ``committed`` is the part of a transaction that is committed to Kafka: its id, and its ``state`` in the entry of the
    commit log, which is empty if that was written without these counts.
    """

    def __init__(self, prefix: str, *, schemas: bool, committed: tuple[str, Mapping[str, Any]] = ("", {})) -> None:
        self.topic = debezium_transactions(prefix)
        self._heads = rendered(_KEY, _VALUE) if schemas else Heads()
        transaction, state = committed
        self._counts: dict[str, int] = dict(state.get(_TABLES, {}))
        self._total = sum(self._counts.values())
        self._is_known = _TABLES in state
        # Without a message yet, the transaction is still to begin.
        self._transaction = transaction if self._counts or not self._is_known else ""

    def state(self, transaction: str) -> dict[str, Any]:
        """Returns the counts of ``transaction``, which is open, in the form of the commit log's entries; empty if they
        are not known.
        """
        if transaction != self._transaction:
            return {_TABLES: {}}
        return {_TABLES: dict(self._counts)} if self._is_known else {}

    def begun(self, record: Record) -> DebeziumMessage | None:
        """Begins the transaction of ``record``, which has rows; returns the message about it, None if it has begun."""
        if record.transaction == self._transaction:
            return None
        self._transaction, self._counts, self._total, self._is_known = record.transaction, {}, 0, True
        return self._message(record, "BEGIN", None, None)

    def block(self, record: Record) -> dict[str, Any]:
        """Counts a message of a row of ``record``; returns its place in the transaction."""
        name = f"{record.uri.database}.{record.uri.table}"
        self._counts[name] = self._counts.get(name, 0) + 1
        self._total += 1
        return {
            "id": record.transaction,
            "total_order": self._total,
            "data_collection_order": self._counts[name],
        }

    def ended(self, record: Record) -> DebeziumMessage | None:
        """Returns the message about the end of the transaction, None if ``record`` is not the last one, or if the
        transaction has no message.
        """
        if not record.last or record.transaction != self._transaction:
            return None
        self._transaction = ""
        if not self._is_known:
            return self._message(record, "END", None, None)
        found = [{"data_collection": name, "event_count": count} for name, count in sorted(self._counts.items())]
        return self._message(record, "END", self._total, found)

    def _message(
        self, record: Record, status: str, count: int | None, collections: list[dict[str, Any]] | None
    ) -> DebeziumMessage:
        value = {
            "status": status, "id": record.transaction, "event_count": count, "data_collections": collections,
            "ts_ms": record.ts_us // 1000,
        }  # fmt: skip
        key = self._heads.of_key(orjson.dumps({"id": record.transaction}))
        return DebeziumMessage(self.topic, key, self._heads.of_value(orjson.dumps(value)), [])
