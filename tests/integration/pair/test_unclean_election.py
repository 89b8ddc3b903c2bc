"""Unclean elections: two brokers have the topics, and the one that becomes their leader lacks records that the other
one has acknowledged. The follower equals the leader in the end, or an error with a code says why it does not.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic

from cdc.kafka.partitions import end_offsets
from cdc.sandbox.server.kafka import KafkaCluster
from cdc.sandbox.server.mysql import MySql
from tests.harness.keeper import FEW_THREADS
from tests.harness.plain_reader import PlainReader
from tests.harness.programs import records, run, run_well, running, write_profile
from tests.harness.wait import until
from tests.integration.pair.test_three_brokers import await_replicas, started
from tests.spark.test_cdc_audit import environment

pytestmark = [pytest.mark.integration, pytest.mark.crash]

TABLES = ("a", "b")
MODES: dict[str, dict[str, Any]] = {"single": {}, "plain": {"transactions": False}, "pertable": {"layout": "per_table"}}
# A restarted producer is unknown to the broker that is elected, which was away when this producer wrote its first
# batch: such a broker accepts a batch behind the lost ones.
PRODUCERS = ("stopped", "running", "restarted")
INTERNAL = {"__transaction_state": "4", "__consumer_offsets": "4"}
# The errors with which programs may stop. With one topic, a consumer that is started again goes on.
NAMED = {
    "cdc-producer": {"CDC-TOPIC-WITHOUT-COMMIT-LOG", "CDC-TOPIC-RECORDS-LOST", "CDC-KAFKA-TRANSACTION-OPEN"},
    "cdc-consumer": {
        "CDC-FOLLOWER-AHEAD",
        "CDC-FOLLOWER-BEHIND-RETENTION",
        "CDC-TOPIC-GAP",
        "CDC-TOPIC-OFFSET-GONE",
        "CDC-TOPIC-OTHER-RECORDS",
    },
}
_LIBRDKAFKA = {"socket.timeout.ms": 5000, "reconnect.backoff.max.ms": 200, "request.timeout.ms": 5000}
_UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}


@dataclass
class Stream:
    """A database with its topics and both programs. ``ahead``: the follower applies the records before they are lost.

    ``ended`` are the errors with which programs ended, in order.
    """

    name: str
    source: Path
    target: Path
    capture: Path
    topics: tuple[str, ...]
    producer: str = "stopped"
    ahead: bool = False
    ended: list[str] = field(default_factory=list)
    programs: "dict[str, subprocess.Popen[str]]" = field(default_factory=dict)

    def start(self, program: str, opened: ExitStack) -> None:
        path = self.source if program == "cdc-producer" else self.target
        log = opened.enter_context(path.with_suffix(f".{program}.log").open("a"))
        self.programs[program] = opened.enter_context(running(program, path, stderr=log))

    def runs(self, program: str) -> bool:
        return program in self.programs and self.programs[program].poll() is None

    def finish(self, program: str) -> bool:
        """Runs the program until it has everything; returns whether it does not end with an error."""
        path = self.source if program == "cdc-producer" else self.target
        done = run(program, path, "--until-current")
        if done.returncode:
            self.note(program, done.stderr)
        return not done.returncode

    def note_logs(self) -> None:
        """Notes the errors of the programs that ran in the background."""
        for program in self.programs:
            path = self.source if program == "cdc-producer" else self.target
            self.note(program, path.with_suffix(f".{program}.log").read_text())

    def note(self, program: str, log: str) -> None:
        for line in log.splitlines():
            if line.startswith(f"{program}: "):
                assert "Traceback" not in log, log
                code = re.search(r"CDC-[A-Z-]+", line)
                assert code and code[0] in NAMED[program], f"{self.name}: {line}"
                self.ended.append(code[0])


@pytest.mark.long
@pytest.mark.parametrize("internal", ["three", "two"])
@pytest.mark.parametrize("mode", list(MODES))
def test_no_wrong_copy_after_an_unclean_election(
    tmp_path: Path, leader: MySql, follower: MySql, capsys: pytest.CaptureFixture[str], mode: str, internal: str
) -> None:
    """``internal``: how many brokers have Kafka's own topics; with two, their newest messages are lost, too.

    `make test` has test_lost_records.test_a_broker_that_has_lost_acknowledged_records.
    """
    cluster = KafkaCluster(tmp_path / "cluster", settings=FEW_THREADS)
    with started(cluster):
        if internal == "two":
            own = {"cleanup.policy": "compact", "compression.type": "uncompressed"}
            create(cluster, {name: int(number) for name, number in INTERNAL.items()}, own)
        streams = []
        for producer, way in product(PRODUCERS, ("ahead", "behind")):
            made = stream(tmp_path, leader, follower, cluster, f"unclean{mode}{internal}{producer}{way}", MODES[mode])
            streams.append(replace(made, producer=producer, ahead=way == "ahead"))
        with ExitStack() as opened:
            lose_records(cluster, streams, leader, follower, opened)
        for each in streams:
            each.note_logs()
        faults = [fault for each in streams for fault in finished(cluster, each, leader, follower)]
        if mode != "pertable":
            faults += [f"{each.name}: {each.ended}" for each in streams if each.ended[-1] != "equal"]
        if internal == "three":
            faults += [fault for each in streams if each.ended[-1] == "equal" for fault in audited(each)]
        with capsys.disabled():
            print(f"\n{mode}, {internal}:", *(f"{each.name}: {', '.join(each.ended)}" for each in streams),
                  sep="\n  ")  # fmt: skip
    assert faults == []


def lose_records(
    cluster: KafkaCluster, streams: list[Stream], leader: MySql, follower: MySql, opened: ExitStack
) -> None:
    """Kills the second broker, then the first one, which has more by then; the second one starts and leads."""
    first, second, _ = cluster.brokers
    topics = {topic for each in streams for topic in each.topics}
    for each in streams:
        if each.producer == "running":
            each.start("cdc-producer", opened)
        if each.producer != "stopped" and each.ahead:
            each.start("cdc-consumer", opened)
    insert(leader, streams, 2)
    await_written(streams, leader, follower, 2)
    await_replicas(cluster)
    second.kill()
    until(lambda: replicas_in_sync(cluster, topics) == {(1,)}, what="the first broker alone")
    for each in streams:
        if each.producer == "restarted":
            each.start("cdc-producer", opened)
    insert(leader, streams, *range(3, 9))
    await_written(streams, leader, follower, 8)
    before = ends(cluster, streams)
    first.kill()
    second.start()
    until(lambda: leaders(cluster, topics) == {2}, what="an unclean election")
    after = ends(cluster, streams)
    assert all(after[partition] < before[partition] for partition in after), "nothing was lost"

    insert(leader, streams, 9)
    for each in streams:
        if each.producer == "stopped" and each.ahead:
            each.finish("cdc-consumer")
    await_written([each for each in streams if each.producer != "stopped"], leader, follower, 9)
    first.start()
    until(lambda: replicas_in_sync(cluster, topics) == {(1, 2)}, what="the first broker's truncated replicas")
    insert(leader, streams, 10)


def await_written(streams: list[Stream], leader: MySql, follower: MySql, number: int) -> None:
    """Waits until the records of row ``number`` can be read, and are on the followers that are ahead; not for programs
    that have ended.
    """
    for each in streams:
        if "cdc-producer" not in each.programs:
            run_well("cdc-producer", each.source, "--until-current")
        else:
            until(partial(is_written, each, number), what=f"the records of {each.name}")
        if each.ahead and "cdc-consumer" not in each.programs:
            run_well("cdc-consumer", each.target, "--until-current")
        elif each.ahead:
            until(partial(is_applied, each, leader, follower), what=f"the rows of {each.name}")


def is_written(each: Stream, number: int) -> bool:
    return not each.runs("cdc-producer") or shown(each, number)


def is_applied(each: Stream, leader: MySql, follower: MySql) -> bool:
    run = each.runs("cdc-producer") and each.runs("cdc-consumer")
    return not run or rows(follower, each.name) == rows(leader, each.name)


def shown(each: Stream, number: int) -> bool:
    """Whether readers see row ``number`` of each table. A reader that finds a gap sees nothing behind it."""
    done = run("cdc-tail", each.source, "-B", "--json")
    return done.returncode != 0 or len(re.findall(rf'"{number:03}"', done.stdout)) >= len(TABLES)


def finished(cluster: KafkaCluster, each: Stream, leader: MySql, follower: MySql) -> Iterator[str]:
    """Lets both programs write and apply the rest; yields what is wrong then although no error says so. What the
    producer has written is whole, also if the follower can't continue.
    """
    if not each.finish("cdc-producer"):
        return
    found = [record.sequence for record in records(each.source)]
    plain = PlainReader(cluster.bootstrap_servers, [topic for topic in each.topics if ".commits" not in topic])
    if not found == [record["sequence"] for record in plain.records] == list(range(len(found))):
        yield f"{each.name}: {found}, {[record['sequence'] for record in plain.records]}"
    if each.finish("cdc-consumer"):
        each.ended.append("equal")
        if rows(follower, each.name) != rows(leader, each.name):
            yield f"{each.name}: {rows(follower, each.name)} is not {rows(leader, each.name)}"


def audited(each: Stream) -> Iterator[str]:
    """Yields what is wrong with the audit of a follower that equals its leader."""
    run_well("cdc-producer", each.capture, "--until-current")
    sides = "--leader", each.source, "--follower", each.capture, "--consumer", each.target
    done = run("cdc-audit", *sides, "--report", each.capture.with_suffix(".report"), env=environment())
    if done.returncode:
        yield f"{each.name}: {done.stdout}{done.stderr}"


def stream(
    folder: Path, leader: MySql, follower: MySql, cluster: KafkaCluster, name: str, mode: dict[str, Any]
) -> Stream:
    """A stream with its first row on the follower; the first two brokers have its topics."""
    kafka: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap_servers, "replicas": 2, "prefix": f"{name}.", "librdkafka": _LIBRDKAFKA,
    } | mode  # fmt: skip
    source, target = (
        write_profile(
            folder, server, cluster.brokers[0], name=f"{name}{server.server_id}", topic=name, resource=name,
            filters={"include_dbs": [name]}, kafka=kafka, producer={"start": "now"},
        )
        for server in (leader, follower)
    )  # fmt: skip
    theirs = {each: kafka[each] for each in ("bootstrap_servers", "replicas", "librdkafka")}
    capture = write_profile(
        folder, follower, cluster.brokers[0], name=f"{name}-capture", filters={"include_dbs": [name, "cdc"]},
        kafka=theirs,
    )  # fmt: skip
    own = [f"{name}.mysql_binlog_events", *(f"{name}.{name}_{table}" for table in TABLES)]
    topics = [f"{name}.commits", *(own if mode.get("layout") else [name])]
    create(cluster, {topic: 1 for topic in topics if topic != f"{name}.commits"}, {"retention.ms": "-1"})
    create(cluster, {f"{name}.commits": 1}, {"cleanup.policy": "compact"})
    made = Stream(name, source, target, capture, tuple(topics))
    run_well("cdc-producer", source, "--until-current")
    executed(leader, f"CREATE DATABASE {name}", *(f"CREATE TABLE {name}.{table} (t CHAR(3) PRIMARY KEY, n INT)"
                                                  for table in TABLES))  # fmt: skip
    insert(leader, [made], 1)
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    return made


def create(cluster: KafkaCluster, partitions: dict[str, int], settings: dict[str, str]) -> None:
    """Creates topics on the first two brokers, with the first one as the leader."""
    made = [
        NewTopic(name, num_partitions=number, replica_assignment=[[1, 2]] * number, config=_UNCLEAN | settings)
        for name, number in partitions.items()
    ]
    admin = cluster.brokers[2].admin()  # lives until the answers are here
    for answer in admin.create_topics(made).values():
        answer.result()


def insert(leader: MySql, streams: list[Stream], *numbers: int) -> None:
    """Inserts rows into each table, and changes a row that all transactions change: one too few or too many shows."""
    for each, number in product(streams, numbers):
        both = [f"INSERT INTO {each.name}.{table} VALUES ('{number:03}', 0)" for table in TABLES]
        counted = [f"UPDATE {each.name}.{table} SET n = n + 1 WHERE t = '001'" for table in TABLES]
        executed(leader, "BEGIN", *both, *counted, "COMMIT")


def executed(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def rows(server: MySql, database: str) -> list[tuple[str, int]]:
    with server.root() as connection, connection.cursor() as cursor:
        found = list[tuple[str, int]]()
        for table in TABLES:
            cursor.execute(f"SELECT t, n FROM {database}.{table} ORDER BY t")
            found += cursor.fetchall()
        return found


def replicas_in_sync(cluster: KafkaCluster, topics: set[str]) -> set[tuple[int, ...]]:
    return {tuple(sorted(each.isrs)) for each in partitions_of(cluster, topics)}


def leaders(cluster: KafkaCluster, topics: set[str]) -> set[int]:
    return {each.leader for each in partitions_of(cluster, topics)}


def partitions_of(cluster: KafkaCluster, topics: set[str]) -> list[Any]:
    """The partitions as the third broker knows them; none while it finds no majority of the controllers."""
    try:
        known = cluster.brokers[2].admin().list_topics(timeout=10).topics
    except KafkaException:
        return []
    return [each for topic in topics for each in known[topic].partitions.values()]


def ends(cluster: KafkaCluster, streams: list[Stream]) -> dict[tuple[str, int], int]:
    """The ends of the partitions to which nobody writes now: those of stopped producers, with records."""
    still = {(topic, 0) for each in streams if each.producer == "stopped" for topic in each.topics}
    found = dict[tuple[str, int], int]()

    def answered() -> bool:
        with suppress(KafkaException):
            found.update(end_offsets({"bootstrap.servers": cluster.bootstrap_servers}, still, committed=False))
        return bool(found)

    until(answered, what="the ends of the topics")
    return {partition: end for partition, end in found.items() if not partition[0].endswith("events")}
