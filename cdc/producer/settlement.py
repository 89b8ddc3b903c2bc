"""Which entry of the commit log stands for what readers can see, also where Kafka left a transaction without an end.

A broker that restarts may take a transaction for complete without having written its end into the topics (seen with
Kafka 4.3.1: a coordinator that finds a partition without a leader takes it for deleted, "can be skipped"). Nobody can
read the records of such a transaction, and the next one of the same producer would end it together with itself,
whichever way that one ends. So before anything is written, it is ended here: what readers can see of the records
decides which entry is true, and all the rest is rolled back.
"""

from typing import Any

from confluent_kafka import Producer

from cdc.errors import Disconnected, PromiseError
from cdc.producer import commit_log
from cdc.producer.commit_log import Entry
from cdc.producer.topic_tail import backwards, end_offset
from cdc.record import Record

__all__ = ["settled_entry"]

_ANSWER_SECONDS = 10.0


def settled_entry(
    properties: dict[str, Any], producer: Producer, *, topic: str, commits: str, resource: str
) -> tuple[Entry | None, list[str]]:
    """The entry from which to go on, None where nothing was ever committed, and the topics that were rolled back.

    ``producer`` has no open transaction.
    Raises PromiseError where no entry stands for the records that readers can see, Disconnected where a transaction of
    something else is open in the topics, or the brokers do not answer. KafkaException as the producer does.
    """
    hanging = [name for name in (topic, commits) if _hangs(properties, name)]
    newest = next(commit_log.entries(properties, topic=commits, resource=resource), None)
    # Compared also when nothing hangs: it may have been rolled back just before a crash.
    entry = _entry_of(properties, _visible(properties, topic), newest, commits=commits, resource=resource)
    if not hanging:
        return entry, []
    _roll_back(producer, hanging)
    if any(_hangs(properties, name) for name in hanging):
        raise Disconnected(
            "a transaction of something else is open",
            where=f"topics {' and '.join(hanging)}",
            hint="only one cdc-producer may write there; kafka-transactions.sh finds and aborts such transactions",
        )
    return entry, hanging


def _hangs(properties: dict[str, Any], topic: str) -> bool:
    # In this order: a transaction that ends between the two questions must not look open.
    written = end_offset(properties, topic, committed=False)
    return end_offset(properties, topic) < written


def _visible(properties: dict[str, Any], topic: str) -> int | None:
    """The sequence after that of the newest record that readers can see; None where there is no record to tell."""
    newest = next(backwards(properties, topic), None)
    if newest is None:
        return None
    place = f"topic {topic}, offset {newest.offset()}"
    return Record.parse(newest.value() or b"", where=place).sequence + 1


def _entry_of(
    properties: dict[str, Any], visible: int | None, newest: Entry | None, *, commits: str, resource: str
) -> Entry | None:
    next_sequence = 0 if visible is None else visible
    if newest is None and next_sequence == 0:
        return None
    if newest is not None and newest.next_sequence == next_sequence:
        return newest
    # One topic has the transaction's end and the other has not. An entry that was not committed is as true as one
    # that was: it says where in the binlog the records before a sequence end, and that never changes.
    for entry in commit_log.entries(properties, topic=commits, resource=resource, committed=False):
        if entry.next_sequence == next_sequence:
            return entry
    raise PromiseError(
        f"no entry of the commit log stands for the records up to sequence {next_sequence - 1}",
        where=f"topic {commits}",
        hint="name a new topic in kafka.topic and give the follower a fresh copy of the leader",
    )


def _roll_back(producer: Producer, topics: list[str]) -> None:
    """Abort a transaction in each of ``topics``: its end is the end of what hangs there before it."""
    producer.begin_transaction()
    for topic in topics:
        producer.produce(topic, b"", b"")
    # Sent before it is aborted, or there would be nothing to end.
    producer.flush(_ANSWER_SECONDS)
    producer.abort_transaction(_ANSWER_SECONDS)
