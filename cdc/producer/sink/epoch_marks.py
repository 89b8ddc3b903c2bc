"""Writes epoch marks to the topic, and stamps the records after a mark. After a mark, records of former starts are
void.

A topic contains marks once a producer without Kafka transactions has written to it, since records of a former start may
still be on their way to the brokers. See module kafka.epochs.
"""

import time
from dataclasses import replace

from cdc.kafka import epochs
from cdc.model.commit_entry import Entry, Mark
from cdc.producer.sink.kafka_transactions import KafkaTransactions
from cdc.producer.sink.record_parts import Headers
from cdc.producer.sink.recovery import Recovered, recover, require_ended
from cdc.producer.sink.topic_admin import TopicAdmin

__all__ = ["recovered", "stamp", "write_mark"]


def recovered(transactions: KafkaTransactions, topics: TopicAdmin, *, resource: str, instance: str) -> Recovered:
    """Runs ``recover``. Also makes those records void that former starts of a producer without Kafka transactions may
    still write. Raises the errors of ``recover``.
    """
    found = recover(topics.properties, transactions.producer, topics, resource=resource)
    if topics.transactional and not found.marks:
        return found
    if topics.newest_entry(resource) is None:
        return found  # a topic with a mark and no committed entry would look like another client's topic
    # Records without transactions may still arrive from another process, or over a former connection. Behind the mark
    # they are void; the records that arrived before the mark are read now.
    transactions.forget_lost_brokers()
    number = max((mark.epoch for mark in found.marks), default=0) + 1
    assert found.entry is not None
    entry = replace(found.entry, marks=found.marks, instance=instance)
    write_mark(transactions, topics, Mark(number, -1), resource, entry)
    again = recover(topics.properties, transactions.producer, topics, resource=resource)
    true = again.entry and replace(again.entry, instance=found.entry.instance)
    return replace(again, entry=true, rewritten=found.rewritten)


def write_mark(transactions: KafkaTransactions, topics: TopicAdmin, mark: Mark, resource: str, entry: Entry) -> None:
    """Commits ``mark`` and ``entry`` in one Kafka transaction. Raises Disconnected if one of the two topics still has
    an open transaction afterwards.
    """
    names, now_ms = topics.names, int(time.time() * 1000)
    # Because of ``marks`` and ``fragmented`` in this entry, readers check the epoch of each message after the mark, and
    # join fragments (records that were written as several messages).
    entry = replace(entry, marks=(*entry.marks, mark), fragmented=True)
    transactions.begin()
    transactions.produce(names.topic, resource.encode(), None, now_ms, stamp((mark,)), 0)
    transactions.produce(names.commits, resource.encode(), entry.to_json(), now_ms, [], 0)
    transactions.commit(0)
    require_ended(topics, [(names.topic, 0), (names.commits, 0)])


def stamp(marks: tuple[Mark, ...]) -> Headers:
    """Returns the headers of the messages after ``marks``: one header, which contains the newest epoch, or none if
    there are no marks.
    """
    return [(epochs.HEADER, str(marks[-1].epoch))] if marks else []
