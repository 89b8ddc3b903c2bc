"""A leader's topic made by hand: records in the wire format, in Kafka transactions as the producer writes them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import run_well, write_profile
from tests.harness.readable import until_readable
from tests.harness.wait import LIMIT_SECONDS

Body = dict[str, Any]


def number(value: int) -> Body:
    return {"SignedInteger": value}


def text(value: str) -> Body:
    return {"String": value}


class LeaderTopic:
    """The records of the leader ``resource`` in a topic of one partition; sequences and positions count themselves."""

    def __init__(self, kafka: Kafka, name: str, *, resource: str, next_sequence: int = 0) -> None:
        self.name = name
        self.resource = resource
        self.next_sequence = next_sequence
        self._kafka = kafka
        self._transactions = 0
        self._admin = kafka.admin()
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"test-{name}"})
        self._producer.init_transactions()

    @classmethod
    def create(cls, kafka: Kafka, name: str, *, resource: str) -> Self:
        admin = kafka.admin()  # kept while the answer is on its way
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT_SECONDS)
        return cls(kafka, name, resource=resource)

    @classmethod
    def from_sequence(cls, kafka: Kafka, name: str, resource: str, sequence: int) -> Self:
        """The topic from a record on: from the first one, or behind those of a producer that does not run any more."""
        if not sequence:
            return cls.create(kafka, name, resource=resource)
        return cls(kafka, name, resource=resource, next_sequence=sequence)

    def send(self, *transactions: Sequence[Body]) -> None:
        """Sends leader transactions, one per argument: a list of records as ``add``, ``update``, ``delete``, ``query``
        make.

        All go into one Kafka transaction.
        """
        self.send_raw(*[record for transaction in transactions for record in self.transaction(transaction)])

    def send_raw(self, *records: Body) -> None:
        self._producer.begin_transaction()
        for record in records:
            self._producer.produce(
                self.name, json.dumps(record, ensure_ascii=False).encode(), key=record["uri"].encode()
            )
        self._producer.commit_transaction()
        until_readable(self._admin, self.name)

    def transaction(self, bodies: Sequence[Body]) -> list[Body]:
        """The complete records of one leader transaction, not sent."""
        self._transactions += 1
        source = "copy:5b2ad69c" if "Copy" in bodies[0]["operation"] else "3e11fa47-71ca-11e1-9e33-c80aa9429562"
        records = []
        for index, body in enumerate(bodies):
            place = {
                "id": f"{source}:{self._transactions}",
                "index": index,
                "last": index == len(bodies) - 1,
                "ts_us": 1_732_125_600_000_000 + self.next_sequence,
            }
            position = {"fileName": "binlog.000003", "offset": 1000 + self.next_sequence}
            records.append(body | {"sequence": self.next_sequence, "bn_file": position, "transaction": place})
            self.next_sequence += 1
        return records

    def query(self, statement: str, *affects: tuple[str, str], database: str = "", **context: Any) -> Body:
        """The record of a statement; ``affects`` are (action, "database[/table]")."""
        named = [{"action": action, "uri": f"flv://{self.resource}/{path}"} for action, path in affects]
        return {
            "uri": f"flv://{self.resource}/{affects[0][1].partition('/')[0]}",
            "operation": {"Query": statement},
            "context": {"database": database, "sql_mode": "STRICT_TRANS_TABLES"} | context,
            "affects": named,
        }

    def rows(
        self,
        operation: str,
        path: str,
        columns: Sequence[str],
        rows: list[Body],
        key: Sequence[str] | None,
        **more: Any,
    ) -> Body:
        body: Body = {"uri": f"flv://{self.resource}/{path}", "columns": list(columns), **more}
        if key is not None:
            body["key"] = list(key)
        return body | {"operation": {operation: {"rows": rows}}}

    def add(
        self, path: str, columns: Sequence[str], *images: list[Any], key: Sequence[str] | None = None, **more: Any
    ) -> Body:
        return self.rows("Add", path, columns, [{"cols": image} for image in images], key, **more)

    def delete(
        self, path: str, columns: Sequence[str], *images: list[Any], key: Sequence[str] | None = None, **more: Any
    ) -> Body:
        return self.rows("Delete", path, columns, [{"cols": image} for image in images], key, **more)

    def update(
        self,
        path: str,
        columns: Sequence[str],
        *pairs: tuple[list[Any], list[Any]],
        key: Sequence[str] | None = None,
        **more: Any,
    ) -> Body:
        images = [{"before_cols": before, "after_cols": after} for before, after in pairs]
        return self.rows("Update", path, columns, images, key, **more)

    def chunk(
        self,
        path: str,
        columns: Sequence[str],
        *images: list[Any],
        key: Sequence[str],
        after: list[Any] | None = None,
        upto: list[Any] | None = None,
        collations: Sequence[str | None] | None = None,
        **more: Any,
    ) -> list[Body]:
        """A transaction with a chunk: the rows that the table has behind the key ``after``, up to ``upto``."""
        body = self.rows("Copy", path, columns, [{"cols": image} for image in images], key, flags=2, **more)
        ends = {name: end and {"cols": end} for name, end in (("after", after), ("upto", upto))}
        body["operation"]["Copy"] |= ends | ({"collations": list(collations)} if collations else {})
        return [body]


@dataclass(frozen=True)
class Stage:
    """One test's leader topic, its database on the follower (both called ``name``) and the consumer's profile."""

    name: str
    topic: LeaderTopic
    follower: MySql
    profile: Path

    @classmethod
    def make(cls, folder: Path, follower: MySql, kafka: Kafka, *, name: str, **tables: Any) -> Self:
        topic = LeaderTopic.create(kafka, name, resource=name)
        profile = write_profile(
            folder, follower, kafka, name=name, resource=name, **{"log": {"level": "debug"}} | tables
        )
        topic.send([topic.query(f"CREATE DATABASE `{name}`", ("CreateDatabase", name))])
        return cls(name, topic, follower, profile)

    def create_table(self, table: str, definition: str) -> str:
        """Sends the statement; returns the table's path in URIs."""
        path = f"{self.name}/{table}"
        self.topic.send(
            [self.topic.query(f"CREATE TABLE {table} {definition}", ("CreateTable", path), database=self.name)]
        )
        return path

    def apply(self) -> str:
        """Runs the consumer over all records so far; returns its log."""
        return run_well("cdc-consumer", self.profile, "--until-current")

    def execute(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Runs statements on the follower; returns the rows of the last."""
        with self.follower.connect(database=database or self.name) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def checkpoint(self) -> int:
        """The sequence in the follower's checkpoint."""
        ((sequence,),) = self.execute(
            f"SELECT sequence FROM checkpoint WHERE resource = '{self.name}' AND worker = 0", database="cdc"
        )
        return int(sequence)
