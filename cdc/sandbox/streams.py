"""Waits for the events of the demo: the records of a topic as they arrive, and the follower's checkpoint."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
from confluent_kafka import Consumer, TopicPartition

from cdc.errors import PromiseError, ServerGone
from cdc.kafka.errors import NO_TOPIC
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import wait_until

__all__ = ["Checkpoint", "Topic"]

_SECONDS = 60
_NO_SUCH_TABLE = (pymysql.constants.ER.NO_SUCH_TABLE, pymysql.constants.ER.BAD_DB_ERROR)


class Topic:
    """A topic's committed records from the first on, in order; ``check`` is called while waiting and may raise."""

    def __init__(self, name: str, *, bootstrap_servers: str, check: Callable[[], None]) -> None:
        self.name = name
        self._check = check
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"cdc-sandbox-{name}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(name, 0, 0)])

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def next(self) -> dict[str, Any]:
        """The next record. Raises PromiseError if none comes within a minute, ServerGone if Kafka fails."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            self._check()
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            error, value = message.error(), message.value()
            if error is None and value is not None:
                record: dict[str, Any] = json.loads(value)
                return record
            # The producer creates the topic, perhaps after we start to read it.
            if error is not None and error.code() not in NO_TOPIC:
                raise ServerGone(error.str(), where=f"topic {self.name}")
        raise PromiseError(
            f"no further record within {_SECONDS} s", code="CDC-DEMO-NO-PROGRESS", where=f"topic {self.name}"
        )

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first record from here on for which ``wanted`` is true. Raises PromiseError if none comes."""
        return next(record for record in self._rest() if wanted(record))

    def _rest(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self.next()


class Checkpoint:
    """The checkpoint in the follower."""

    def __init__(self, follower: MySql, resource: str, *, check: Callable[[], None]) -> None:
        self._connection = follower.connect()
        self._resource = resource
        self._check = check

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def reached(self, sequence: int) -> float:
        """Waits until the follower has applied this record; returns the time (seconds since 1970) at which that was
        seen.

        Raises PromiseError if it has not within a minute.
        """

        def has_it() -> bool:
            self._check()
            found = self._sequence()
            return found is not None and found >= sequence

        if not wait_until(has_it, seconds=_SECONDS, every=0.002):
            raise PromiseError(
                f"the follower has not applied sequence {sequence} within {_SECONDS} s", code="CDC-DEMO-NO-PROGRESS"
            )
        return time.time()

    def _sequence(self) -> int | None:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SELECT MIN(sequence) FROM cdc.checkpoint WHERE resource = %s", (self._resource,))
                row = cursor.fetchone()
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _NO_SUCH_TABLE:
                raise
            return None  # the consumer has not created its table yet
        return None if row is None else row[0]
