"""Topics by hand: the records that a producer would write for a test's history, and Kafka topics of them."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from cdc.config.topic_names import Topics
from cdc.kafka.fragments import FRAGMENT_HEADER, cut
from cdc.model.gtid import former_gtid, statement_gtid
from cdc.model.record import Uri
from tests.generators.frames import frame_of
from tests.harness.readable import until_readable
from tests.harness.wait import LIMIT_SECONDS

Part = dict[str, Any]

CHECKPOINT_COLUMNS = ["resource", "worker", "sequence"]
SERVER_UUID = {"mysql-srv1": "11111111-1111-1111-1111-111111111111"}
FOLLOWER_UUID = "22222222-2222-2222-2222-222222222222"


def value(content: object) -> object:
    """The record's form of a Python value."""
    if content is None:
        return "Null"
    return {"SignedInteger": content} if isinstance(content, int) else {"String": content}


def image(row: Sequence[object]) -> list[object]:
    """A record's image of a row."""
    return [value(content) for content in row]


@dataclass(frozen=True)
class Table:
    """A table as its records show it; ``name`` is ``database/table``."""

    name: str
    columns: Sequence[str]
    key: Sequence[str] | None = None

    def _part(self, operation: str, rows: list[dict[str, Any]]) -> Part:
        part: Part = {"path": self.name, "columns": list(self.columns), "operation": {operation: {"rows": rows}}}
        return part | ({"key": list(self.key)} if self.key else {})

    def add(self, *rows: Sequence[object]) -> Part:
        return self._part("Add", [{"cols": image(row)} for row in rows])

    def delete(self, *rows: Sequence[object]) -> Part:
        return self._part("Delete", [{"cols": image(row)} for row in rows])

    def update(self, *pairs: tuple[Sequence[object], Sequence[object]]) -> Part:
        return self._part("Update", [{"before_cols": image(b), "after_cols": image(a)} for b, a in pairs])

    def chunk(self, after: Sequence[object] | None, upto: Sequence[object] | None, *rows: Sequence[object]) -> Part:
        """A chunk of a copy of the table: all rows with keys after one up to another, None for the table's ends."""
        part = self.add(*rows)
        ends = {name: None if key is None else {"cols": image(key)} for name, key in (("after", after), ("upto", upto))}
        return part | {"operation": {"Copy": ends | part["operation"]["Add"]}}

    def piece(self, number: int, *rows: Sequence[object], last: bool = False) -> Part:
        """A piece of the rows of a table that is copied as a whole."""
        part = self.chunk(None if number == 0 else (), None if last else (), *rows)
        return part | {"operation": {"Copy": {"piece": number} | part["operation"]["Copy"]}}

    def repair(self, keys: Sequence[Sequence[object]], *rows: Sequence[object]) -> Part:
        """All existing rows with some keys."""
        part = self.add(*rows)
        named = {"keys": [{"cols": image(key)} for key in keys]}
        return part | {"operation": {"Repair": named | part["operation"]["Add"]}}


def query(text: str, path: str, *affects: tuple[str, str] | tuple[str, str, str]) -> Part:
    """A statement; ``affects`` are (action, path[, new path])."""
    acts = [{"action": act[0], "path": act[1]} | ({"to": act[2]} if len(act) > 2 else {}) for act in affects]
    return {"path": path, "operation": {"Query": text}, "context": {"database": path}, "affects": acts}


def checkpoint(before: int | None, after: int, *, resource: str = "mysql-srv1", names: str | None = None) -> Part:
    """The consumer's checkpoint row, moved from one leader sequence to another, or written first.

    ``names`` is the leader's transaction in it; with None the table has no column for it.
    """
    more = [] if names is None else [names]
    table = Table("cdc/checkpoint", [*CHECKPOINT_COLUMNS, *["leader_gtid"] * len(more)], ["resource", "worker"])
    if before is None:
        return table.add((resource, 0, after, *more))
    return table.update(((resource, 0, before, *more), (resource, 0, after, *more)))


@dataclass
class Stream:
    """The records of one server so far, as JSON."""

    resource: str = "mysql-srv1"
    uuid: str = SERVER_UUID["mysql-srv1"]
    messages: list[str] = field(default_factory=list)
    sequence: int = 0
    commits: int = 0
    statements: int = 0
    ts_us: int = 1_732_125_600_000_000

    def transaction(self, *parts: Part, gtid: str = "", ts_us: int | None = None) -> None:
        """One committed transaction; its time is 1 ms after the one before unless it is given."""
        self.commits += 1
        self.ts_us = self.ts_us + 1_000 if ts_us is None else ts_us
        for index, part in enumerate(parts):
            place = {"fileName": "binlog.000001", "offset": 200 * self.sequence + 4}
            transaction = {
                "id": gtid or f"{self.uuid}:{self.commits}",
                "index": index,
                "last": index == len(parts) - 1,
                "ts_us": self.ts_us,
            }
            self.messages.append(json.dumps(self._record(part, place, transaction)))
            self.sequence += 1

    def _record(self, part: Part, place: dict[str, Any], transaction: dict[str, Any]) -> dict[str, Any]:
        body = {key: content for key, content in part.items() if key not in ("path", "affects")}
        if "affects" in part:
            body["affects"] = [self._affect(act) for act in part["affects"]]
        head = {"uri": self._uri(part["path"]), "sequence": self.sequence, "bn_file": place, "transaction": transaction}
        return head | body

    def _affect(self, act: Mapping[str, str]) -> dict[str, str]:
        affect = {"action": act["action"], "uri": self._uri(act["path"])}
        return affect | ({"to": self._uri(act["to"])} if "to" in act else {})

    def _uri(self, path: str) -> str:
        return f"flv://{self.resource}/{path}"


def follower_stream() -> Stream:
    """A follower's stream that begins as the consumer begins it: its database, then the first checkpoint."""
    stream = Stream(resource="mysql-srv1-follower", uuid=FOLLOWER_UUID)
    stream.transaction(query("CREATE DATABASE cdc", "cdc", ("CreateDatabase", "cdc")))
    stream.transaction(query("CREATE TABLE cdc.checkpoint (…)", "cdc", ("CreateTable", "cdc/checkpoint")))
    stream.transaction(checkpoint(None, -1))
    return stream


def _ledger(sequence: int, gtid: str, *, ran: bool) -> Part:
    """The consumer's ledger row of a statement, written before it runs and changed after."""
    table = Table("cdc/ledger", ["resource", "sequence", "gtid", "state"], ["resource", "sequence"])
    intent, done = ([*image(("mysql-srv1", sequence, gtid)), {"Enum": state}] for state in ("intent", "done"))
    cells = {"before_cols": intent, "after_cols": done} if ran else {"cols": intent}
    return table.add() | {"operation": {"Update" if ran else "Add": {"rows": [cells]}}}


def replicate(follower: Stream, parts: Iterable[Part], *, before: int, numbered: bool = False) -> int:
    """Writes to ``follower`` the consumer's records for the leader transaction after ``before``; returns its last
    sequence.

    ``numbered``: a statement's GTID is numbered and in the ledger, else it is one of an earlier version.
    """
    listed = list(parts)
    last = before + len(listed)
    if "Query" in listed[0]["operation"] and numbered:
        follower.statements += 1
        gtid = statement_gtid("mysql-srv1", follower.statements)
        follower.transaction(_ledger(last, gtid, ran=False))
        follower.transaction(*listed, gtid=gtid)
        follower.transaction(checkpoint(before, last), _ledger(last, gtid, ran=True))
    elif "Query" in listed[0]["operation"]:
        follower.transaction(*listed, gtid=former_gtid("mysql-srv1", last))
        follower.transaction(checkpoint(before, last))
    else:
        follower.transaction(*listed, checkpoint(before, last))
    return last


def tutorial() -> tuple[Stream, Stream]:
    """The tutorial's records on the leader, and as the consumer applies them to the follower: 0 to 8."""
    old = Table("flvDb/pet", ["name", "owner", "birth"])
    new = Table("flvDb/pet", ["name", "owner", "birth", "last_vaccine"])
    altered = query("ALTER TABLE pet ADD COLUMN last_vaccine DATE", "flvDb", ("AlterTable", "flvDb/pet"))
    altered["operation"]["Bytes"] = "QUxURVIg"  # like a statement that is not in UTF-8
    history = [
        query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb")),
        query("CREATE TABLE pet (…)", "flvDb", ("CreateTable", "flvDb/pet")),
        old.add(("Puffball", "Diane", "1999-03-30")),
        old.add(("Jack", "Peter", "1999-03-30")),
        old.update((("Jack", "Peter", "1999-03-30"), ("Jack", "Peter", "1989-08-31"))),
        altered,
        new.delete(("Puffball", "Diane", "1999-03-30", None)),
        new.add(("Spot", "Jane", "2010-11-02", None)),
        new.update((("Spot", "Jane", "2010-11-02", None), ("Spot", "Jane", "2010-11-02", "2020-06-10"))),
    ]
    return both(*([part] for part in history))


def both(*transactions: Sequence[Part], numbered: bool = False) -> tuple[Stream, Stream]:
    """A leader with these transactions, and a faithful follower; ``numbered`` as for ``replicate``."""
    leader, follower, last = Stream(), follower_stream(), -1
    for parts in transactions:
        leader.transaction(*parts)
        last = replicate(follower, parts, before=last, numbered=numbered)
    return leader, follower


def messages(spark: SparkSession, sides: Mapping[str, Stream]) -> DataFrame:
    """The rows that Spark would read from Kafka for these streams."""
    schema = "side STRING, partition STRING, offset BIGINT, value BINARY"
    of_sides = [
        frame_of(spark, [(side, f"{side}/0", *each) for each in enumerate(stream.messages)], schema)
        for side, stream in sides.items()
    ]
    return reduce(DataFrame.union, of_sides)


def publish_per_table(brokers: str, names: Topics, messages: Iterable[str]) -> None:
    """Creates topics of two partitions, one per table, that hold ``messages`` and events, and a commit log that counts
    them.

    Every other record is several messages. One more message is committed, but not counted by the commit log yet: a
    reader sees a part of a transaction.
    """
    *records, beyond = [*messages, '{"sequence": 1000000}']
    admin = AdminClient({"bootstrap.servers": brokers})
    placed = [(_topic_of(json.loads(record), names), number % 2, record) for number, record in enumerate(records)]
    topics = {topic for topic, _, _ in placed} | {names.events}
    for made in admin.create_topics([NewTopic(topic, 2) for topic in topics] + [NewTopic(names.commits, 1)]).values():
        made.result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": brokers, "transactional.id": names.commits})
    producer.init_transactions(LIMIT_SECONDS)
    producer.begin_transaction()
    for sequence, (topic, partition, record) in enumerate([*placed, (placed[-1][0], 0, beyond)]):
        for mark, fragment in (
            cut(record.encode(), 150, sequence=sequence) if sequence % 2 else [(b"", record.encode())]
        ):
            headers = [(FRAGMENT_HEADER, mark)] if mark else []
            producer.produce(topic, fragment, partition=partition, headers=headers)
        producer.produce(names.events, b'{"uri":"flv://any","bn_file":{},"event":{"Stop":{}}}', partition=0)
    counts = {f"{topic}/{number}": 1 for topic in topics for number in (0, 1)}
    entry = {"next_sequence": len(records), "counts": counts, "fragmented": True}
    producer.produce(names.commits, json.dumps(entry).encode())
    producer.commit_transaction(30)
    until_readable(admin, *topics, names.commits)


def _topic_of(record: dict[str, Any], names: Topics) -> str:
    uri = Uri.parse(record["uri"])
    return names.events if uri.table is None else names.of_table(uri.database, uri.table)


class CommitLog:
    """The commit log beside a topic, to which a test writes signs of life."""

    def __init__(self, brokers: str, topic: str, *, resource: str, there: bool = False) -> None:
        """Opens the commit log; ``there``: a producer has created it."""
        self._topic, self._resource = f"{topic}.commits", resource
        if not there:
            admin = AdminClient({"bootstrap.servers": brokers})
            admin.create_topics([NewTopic(self._topic, 1)])[self._topic].result(LIMIT_SECONDS)
        self._producer = Producer({"bootstrap.servers": brokers})

    def write(self, next_sequence: int, *, age_seconds: float = 0.0, fragmented: bool = False) -> None:
        """An entry written so long ago."""
        body, at = {"next_sequence": next_sequence, "counts": {}}, int((time.time() - age_seconds) * 1_000)
        value = json.dumps(body | {"fragmented": fragmented}).encode()
        self._producer.produce(self._topic, value, key=self._resource.encode(), timestamp=at)
        assert not self._producer.flush(LIMIT_SECONDS)


class GrowingTopic:
    """A topic of one partition that a test fills step by step, in Kafka transactions as the producer does.

    With ``fragmented`` every fifth record is several messages, and a commit log names them so.
    """

    def __init__(self, brokers: str, topic: str, *, fragmented: bool = False) -> None:
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(LIMIT_SECONDS)
        self._admin, self._topic, self._sent = admin, topic, 0
        self._producer = Producer({"bootstrap.servers": brokers, "transactional.id": topic})
        self._producer.init_transactions(LIMIT_SECONDS)
        self._fragmented = fragmented
        if fragmented:
            CommitLog(brokers, topic, resource="of no server").write(0, fragmented=True)

    def grow(self, messages: Sequence[str], upto: int) -> None:
        """Writes the missing ones of ``messages``, up to the one with the index ``upto``."""
        while self._sent < upto:
            self._producer.begin_transaction()
            for message in messages[self._sent : min(upto, self._sent + 7)]:
                value = message.encode()
                size = 300 if self._fragmented and self._sent % 5 == 0 else len(value)  # the head is in the first
                for mark, fragment in cut(value, size, sequence=self._sent):
                    headers = [(FRAGMENT_HEADER, mark)] if size < len(value) else []
                    self._producer.produce(self._topic, fragment, headers=headers)
                self._sent += 1
            self._producer.commit_transaction(30)
        until_readable(self._admin, self._topic)

    def expire(self, before: int = OFFSET_END) -> None:
        """Lets the topic begin at an offset, as retention does; without one, at its end."""
        place = TopicPartition(self._topic, 0, before)
        self._admin.delete_records([place])[place].result(LIMIT_SECONDS)


def publish(brokers: str, topic: str, messages: Iterable[str]) -> None:
    """Creates a topic of one partition that holds ``messages``, written in Kafka transactions as the producer does."""
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": brokers, "transactional.id": topic})
    producer.init_transactions(LIMIT_SECONDS)
    producer.begin_transaction()
    for at, message in enumerate(messages):
        if at % 3 == 2:
            producer.commit_transaction(30)
            producer.begin_transaction()
        producer.produce(topic, message.encode())
    producer.commit_transaction(30)
    # Aborted messages must not be seen.
    producer.begin_transaction()
    producer.produce(topic, b"never committed")
    producer.flush(LIMIT_SECONDS)
    producer.abort_transaction(30)
    until_readable(admin, topic)
