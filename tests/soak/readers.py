"""Reads the topic and the follower's lists, each in a thread, for as long as the workload runs."""

import itertools
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from confluent_kafka import TopicPartition

from cdc.sandbox.server.mysql import MySql
from tests.checks.list_append import Appends
from tests.harness.plain_reader import PlainPartition, plain_consumer
from tests.soak.history import Read
from tests.soak.workload import DATABASE

__all__ = ["Snapshots", "TopicTail", "Written"]

Written = tuple[Appends, list[str]]
"""A transaction of the topic, and the list that each of its records shows."""
_SNAPSHOT_SECONDS = 0.2


class TopicTail(threading.Thread):
    """Reads ``topic`` from ``offset`` on, where the record ``sequence`` is the next one; puts the transactions with
    appends into ``found``.

    ``faults`` are sequences that are missing or come again; ``failure`` is what has ended the thread.
    """

    def __init__(self, servers: str, topic: str, *, offset: int, sequence: int, found: "SimpleQueue[Written]") -> None:
        super().__init__(daemon=True)
        self.offset, self.sequence = offset, sequence
        self._consumer = plain_consumer(servers)
        self._topic = topic
        self._partition = PlainPartition()
        self._found = found
        self._appends: list[tuple[int, int]] = []
        self._texts: list[str] = []
        self.faults: list[str] = []
        self.stop = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._consumer.assign([TopicPartition(self._topic, 0, self.offset)])
            while not self.stop.is_set():
                for message in self._consumer.consume(1000, timeout=0.5):
                    if message.error() is None:
                        if record := self._partition.take(message):
                            self._add(record)
                        self.offset = message.offset() + 1
            self._consumer.close()
        except BaseException as failure:  # noqa: BLE001 - the soak ends with it
            self.failure = failure

    def _add(self, record: dict[str, Any]) -> None:
        sequence = int(record["sequence"])
        if sequence != self.sequence:
            self.faults.append(f"after record {self.sequence - 1} the topic has record {sequence}")
        self.sequence = sequence + 1
        if record["uri"].endswith(f"/{DATABASE}/lists"):
            for key, text in _rows(record):
                self._appends.append((key, int(text.rpartition(" ")[2])))
                self._texts.append(text)
        if record["transaction"]["last"] and self._appends:
            self._found.put((tuple(self._appends), self._texts))
            self._appends, self._texts = [], []


def _rows(record: dict[str, Any]) -> list[tuple[int, str]]:
    """The key and the text of each row that the record inserts, or as it is after an update."""
    ((operation, content),) = record["operation"].items()
    place = {"Add": "cols", "Update": "after_cols"}.get(operation)
    if place is None:
        return []
    key, text = record["columns"].index("k"), record["columns"].index("v")
    return [(_value(row[place][key]), _value(row[place][text])) for row in content["rows"]]


def _value(typed: dict[str, Any]) -> Any:
    ((value,),) = (typed.values(),)
    return value


class Snapshots(threading.Thread):
    """Reads the lists on the follower from the key ``first()`` on, five times a second, each time in one snapshot."""

    def __init__(self, follower: MySql, *, first: Callable[[], int], found: "SimpleQueue[Read]") -> None:
        super().__init__(daemon=True)
        self._follower = follower
        self._first = first
        self._found = found
        self.reads = 0
        self.stop = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with self._follower.root(database=DATABASE) as connection, connection.cursor() as cursor:
                for number in itertools.count():
                    if self.stop.wait(_SNAPSHOT_SECONDS):
                        return
                    first = self._first()
                    cursor.execute(f"SELECT k, v FROM lists WHERE k >= {first}")
                    lists = {key: [int(each) for each in text.split()] for key, text in cursor.fetchall()}
                    self._found.put(Read(number, first, lists))
                    self.reads += 1
        except BaseException as failure:  # noqa: BLE001 - the soak ends with it
            self.failure = failure
