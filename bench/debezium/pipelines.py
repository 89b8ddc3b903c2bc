"""The two pipelines from the leader to a follower, started again for each question, on its own databases."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import quote

from confluent_kafka import ConsumerGroupTopicPartitions, Message

from bench.debezium.stage import Stage, await_that, execute
from bench.measure import BIN
from cdc.kafka.partitions import newest
from cdc.sandbox.server.mysql import PASSWORD, USER
from tests.harness.debezium import source_settings

__all__ = ["KEYLESS", "SINK", "SOURCE", "Cdc", "Debezium", "Pipeline", "Sink", "topic_name"]

_PRODUCER, _CONSUMER = "cdc-producer", "cdc-consumer"
# Settings that are not the defaults, and no addresses or names.
SOURCE = {
    "exactly.once.support": "required",
    "schema.history.internal.store.only.captured.databases.ddl": "true",
    "snapshot.mode": "no_data",
    "column.propagate.source.type": ".*",
    "bigint.unsigned.handling.mode": "precise",
    "skipped.operations": "none",
    "poll.interval.ms": "10",
    "max.batch.size": "4096",
    "max.queue.size": "16384",
}
SINK = {
    "insert.mode": "upsert",
    "primary.key.mode": "record_key",
    "delete.enabled": "true",
    "truncate.enabled": "true",
    "schema.evolution": "basic",
    "quote.identifiers": "true",
    "batch.size": "3000",
    "consumer.override.max.poll.records": "3000",
    "consumer.override.isolation.level": "read_committed",
    "consumer.override.session.timeout.ms": "6000",
    "consumer.override.heartbeat.interval.ms": "2000",
    "consumer.override.metadata.max.age.ms": "500",
    "connection.pool.min_size": "1",
    "connection.pool.acquire_increment": "1",
}
KEYLESS = {"insert.mode": "insert", "primary.key.mode": "none", "delete.enabled": "false"}
_URL = "rewriteBatchedStatements=true&allowPublicKeyRetrieval=true&characterEncoding=UTF-8"


@dataclass(frozen=True)
class Sink:
    """A JDBC sink for the tables of a database whose names match ``tables``, with further ``settings``."""

    database: str
    tables: str = ".*"
    settings: Mapping[str, str] = field(default_factory=dict)

    def without(self, table: str) -> "Sink":
        """The same sink for all of its tables but one."""
        return replace(self, tables=f"(?!{re.escape(table)}$){self.tables}")


class Pipeline(Protocol):
    """A way from the leader to the follower of this name."""

    name: str

    def start(self) -> None:
        """Starts the programs, and waits until they read the leader."""

    def settle(self) -> None:
        """Waits until the follower has all that the leader has, or the pipeline has stopped."""

    def kill(self) -> None:
        """Sends SIGKILL to all programs at once, and starts them again."""

    def stopped(self, database: str) -> str:
        """Why the database's changes no longer arrive; empty if they do."""

    def pids(self) -> list[int]:
        """The process ids of the programs."""

    def end(self) -> None:
        """Ends the programs, or has them wait; ``start`` goes on."""


class Cdc:
    """cdc-producer and cdc-consumer, with the profiles' defaults but for ``consumer`` keys."""

    name = "cdc"

    def __init__(self, stage: Stage, question: str, databases: Sequence[str], *, consumer: str = "") -> None:
        self._stopped = ""
        self._programs: list[subprocess.Popen[bytes]] = []
        self._commands = []
        names = ", ".join(f'"{each}"' for each in databases)
        for program, server in ((_PRODUCER, stage.leader), (_CONSUMER, stage.followers[self.name])):
            path = stage.folder / f"{question}-{program}.toml"
            path.write_text(
                f'mysql_resource_name = "{question}"\n[database]\nport = {server.port}\nuser = "{USER}"\n'
                f'password = "{PASSWORD}"\n[kafka]\nbootstrap_servers = "{stage.kafka.bootstrap_servers}"\n'
                f'topic = "cdc-{question}"\n[filters]\ninclude_dbs = [{names}]\n[producer]\nstart = "now"\n'
                f"[consumer]\n{consumer}"
            )
            self._commands.append([BIN / program, path])
        self._run("--until-current")

    def _run(self, *options: str) -> None:
        for command in self._commands:
            log = command[1].with_suffix(".log")
            with log.open("ab") as file:
                file.truncate(0)
                ended = subprocess.run([*command, *options], stderr=file, check=False).returncode
            if ended:
                self._stopped = log.read_text().strip().rpartition("\n")[2]

    def start(self) -> None:
        for command in self._commands:
            with command[1].with_suffix(".log").open("ab") as log:
                self._programs.append(subprocess.Popen(command, stderr=log))

    def settle(self) -> None:
        self.end()
        self._stopped = ""
        self._run("--until-current")
        self.start()

    def stopped(self, database: str) -> str:
        return self._stopped

    def kill(self) -> None:
        for program in self._programs:
            program.kill()
        for program in self._programs:
            program.wait()
        self._programs.clear()
        self.start()

    def pids(self) -> list[int]:
        return [program.pid for program in self._programs]

    def end(self) -> None:
        for program in self._programs:
            program.terminate()
        for program in self._programs:
            program.wait()
        self._programs.clear()


class Debezium:
    """Debezium's connector on some databases, and its JDBC sinks. ``source`` are further settings of the connector."""

    name = "Debezium"

    def __init__(
        self, stage: Stage, question: str, databases: Sequence[str], *,
        source: Mapping[str, str] | None = None, sinks: Sequence[Sink] = (),
    ) -> None:  # fmt: skip
        self._stage, self._prefix, self._databases = stage, question, databases
        self._properties = {"bootstrap.servers": stage.kafka.bootstrap_servers}
        self._admin = stage.kafka.admin()
        self._settings = source_settings(stage.leader, stage.kafka, prefix=question) | SOURCE | dict(source or {})
        self._sinks = sinks
        self._connectors = [f"{question}-source"]
        self._reads: dict[str, re.Pattern[str]] = {}
        self._marks = 0

    def start(self) -> None:
        worker = self._stage.worker
        if worker.state(self._connectors[0]):
            self._each(worker.resume, "RUNNING")
            return
        execute(
            self._stage.leader, f"CREATE DATABASE {self._marked}", f"CREATE TABLE {self._marked}.t (id INT PRIMARY KEY)"
        )
        included = ",".join(map(re.escape, [*self._databases, self._marked]))
        only = {"database.include.list": included}
        worker.create(self._connectors[0], self._settings | only)
        for number, sink in enumerate(self._sinks, 1):
            self.create_sink(sink, number)
        self._await_source()

    @property
    def _marked(self) -> str:
        """The database with a table whose rows only mark how far the connector has read."""
        return f"{self._prefix}_mark"

    def _await_source(self) -> None:
        """Waits until the connector reads the binlog: it begins at a position that it asks for at its start, so a mark
        before that does not arrive.
        """

        def reads() -> bool:
            self._mark()
            return self._newest_mark() > 0 or self._failure() != ""

        await_that(reads, what="Debezium to read the binlog", every=1)

    def create_sink(self, sink: Sink, number: int) -> str:
        """Creates the sink of this number, or gives it other settings; returns the connector's name."""
        name = f"{self._prefix}-sink{number}"
        follower = self._stage.followers[self.name]
        topics = rf"{self._prefix}\.{re.escape(topic_name(sink.database))}\.{sink.tables}"
        address = {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "connection.url": f"jdbc:mysql://127.0.0.1:{follower.port}/{quote(sink.database)}?{_URL}",
            "connection.username": USER,
            "connection.password": PASSWORD,
            "collection.name.format": "${source.table}",
            "topics.regex": topics,
        }
        self._stage.worker.create(name, address | SINK | dict(sink.settings))
        self._connectors += [name] if name not in self._connectors else []
        self._reads[name] = re.compile(topics)
        return name

    def settle(self) -> None:
        self._mark()
        mark = self._marks

        def has_read() -> bool:
            return self._newest_mark() >= mark or self._failure() != ""

        await_that(has_read, what="Debezium to read everything", every=1)
        last = {topic: message.offset() or 0 for topic, message in self.newest().items()}
        sinks = self._connectors[1:]
        await_that(lambda: all(self._is_done(sink, last) for sink in sinks), what="the JDBC sinks", every=1)

    def newest(self) -> dict[str, Message]:
        """The last message of each table's topic."""
        found = newest(self._properties, [(name, 0) for name in self._topics()])
        return {topic: message for (topic, _), message in found.items()}

    def _mark(self) -> None:
        self._marks += 1
        execute(self._stage.leader, f"INSERT INTO {self._marked}.t VALUES ({self._marks})")

    def _newest_mark(self) -> int:
        """The last mark that the connector has written, and so all that the leader committed before it; 0: none."""
        topic = f"{self._prefix}.{self._marked}.t"
        if topic not in self._known_topics():
            return 0
        found = newest(self._properties, [(topic, 0)])
        return max((int(json.loads(each.key() or b"")["payload"]["id"]) for each in found.values()), default=0)

    def _known_topics(self) -> list[str]:
        return sorted(self._admin.list_topics(timeout=30).topics)

    def _topics(self) -> list[str]:
        """The topics of the tables that are compared."""
        others = (f"{self._prefix}.history", f"{self._prefix}.{self._marked}.t")
        return [name for name in self._known_topics() if name.startswith(f"{self._prefix}.") and name not in others]

    def _is_done(self, sink: str, last: Mapping[str, int]) -> bool:
        """Whether a sink has failed, or has committed that all of its topics are on the follower."""
        worker = self._stage.worker
        if worker.state(sink) == "FAILED":
            return True
        group = f"connect-{sink}"
        asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        done = {each.topic: each.offset for each in asked[group].result().topic_partitions}
        return all(done.get(topic, 0) > offset for topic, offset in last.items() if self._reads[sink].fullmatch(topic))

    def _failure(self) -> str:
        """Why the connector has failed; empty if it has not."""
        return self._stage.worker.failure(self._connectors[0])

    def stopped(self, database: str) -> str:
        own = rf"{self._prefix}\.{re.escape(topic_name(database))}\."
        sinks = [name for name, topics in self._reads.items() if topics.pattern.startswith(own)]
        return next(filter(None, map(self._stage.worker.failure, [self._connectors[0], *sinks])), "")

    def failures(self) -> dict[str, str]:
        """Why connector or sinks have failed, for each that has."""
        return {name: why for name in self._connectors if (why := self._stage.worker.failure(name))}

    def kill(self) -> None:
        worker = self._stage.worker
        worker.process.kill()
        worker.start()

    def pids(self) -> list[int]:
        return [self._stage.worker.process.pid]

    def end(self) -> None:
        """Pauses the connectors."""
        self._each(self._stage.worker.pause, "PAUSED")

    def _each(self, change: Callable[[str], None], state: str) -> None:
        for name in self._connectors:
            change(name)
        worker = self._stage.worker
        done = (state, "FAILED")
        await_that(lambda: all(worker.state(each) in done for each in self._connectors), what=f"connectors: {state}")

    def delete(self) -> None:
        """Removes the connectors."""
        for name in self._connectors:
            self._stage.worker.delete(name)


def topic_name(name: str) -> str:
    """The name of a database or a table as it is in the name of a topic."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
