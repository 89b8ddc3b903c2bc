"""Three brokers, of which one at a time is killed, stopped or paused: each transaction of the leader is on the follower
once, whole and in order.
"""

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka, KafkaCluster
from cdc.sandbox.server.mysql import MySql
from tests.generators.appends import AppendLoad, SnapshotReads, lists_of
from tests.harness.plain_reader import PlainReader
from tests.harness.programs import records, write_profile
from tests.harness.seed import SEED
from tests.harness.wait import until
from tests.integration.pair.test_hostile_network import Programs, await_arrival, judged, topics_of

pytestmark = [pytest.mark.integration, pytest.mark.crash]

ROUNDS = int(os.environ.get("CDC_BROKER_ROUNDS", "3"))
# A client learns of a broker without a sign of life after the first of these, by default 60 s.
_LIBRDKAFKA = {"socket.timeout.ms": 5000, "reconnect.backoff.max.ms": 200, "request.timeout.ms": 5000}


@pytest.mark.long
@pytest.mark.parametrize("written", ["single", "plain", "per_table"])
def test_one_broker_at_a_time_is_away(
    tmp_path: Path, leader: MySql, follower: MySql, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    """`make test` has one broker: test_hostile_network.test_each_transaction_arrives_once."""
    name, chance = f"brokers_{written}", random.Random(SEED)
    cluster = KafkaCluster(tmp_path / "cluster")
    with started(cluster):
        source, target = (profile(tmp_path, server, cluster, name, written) for server in (leader, follower))
        reads, told = SnapshotReads(follower, database=name), []
        with Programs(source, target) as programs, reads:
            with AppendLoad(leader, database=name, seed=SEED) as writers:
                await_arrival(follower, name, writers)
                for number in range(ROUNDS):
                    broker, way = chance.choice(cluster.brokers), chance.choice([killed, stopped, paused])
                    told.append(f"{way.__name__} {cluster.brokers.index(broker) + 1}")
                    with way(broker):
                        if number % 3 == 1:
                            programs.restart_producer()
                        await_arrival(follower, name, writers)
                        if way is not paused:
                            # With a topic a table, it needs a new topic, and that all three brokers.
                            executed(leader, f"CREATE TABLE {name}.t{number} AS SELECT {number} AS n")
                    await_replicas(cluster)
                    await_arrival(follower, name, writers)
            until(lambda: lists_of(follower, name) == lists_of(leader, name), what="the rest")
        found, topics = records(source), topics_of(source)
        plain = PlainReader(cluster.bootstrap_servers, topics)
    assert [record.sequence for record in found] == [record["sequence"] for record in plain.records]
    transactions, faults = judged(found, writers, reads, lists_of(leader, name), lists_of(follower, name))
    with capsys.disabled():
        print(f"\n{written}: {', '.join(told)}: {transactions} transactions, {reads.reads} reads, {plain.void} void")
    assert faults == [], f"CDC_SEED={SEED}"


@contextmanager
def started(cluster: KafkaCluster) -> Iterator[None]:
    try:
        cluster.start()
        yield
    finally:
        cluster.kill()


@contextmanager
def killed(broker: Kafka) -> Iterator[None]:
    broker.kill()
    yield
    broker.start()


@contextmanager
def stopped(broker: Kafka) -> Iterator[None]:
    broker.stop()
    yield
    broker.start()


@contextmanager
def paused(broker: Kafka) -> Iterator[None]:
    """The others take what it leads; when it goes on, it does not know that yet."""
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)


def executed(server: MySql, statement: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(statement)


def await_replicas(cluster: KafkaCluster) -> None:
    """Waits until each partition has all of its replicas again."""

    def missing() -> int:
        topics = cluster.brokers[0].admin().list_topics(timeout=10).topics
        return sum(
            len(each.isrs) < len(each.replicas) for topic in topics.values() for each in topic.partitions.values()
        )

    until(lambda: not missing(), what="all replicas")


def profile(folder: Path, server: MySql, cluster: KafkaCluster, name: str, written: str) -> Path:
    topics = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "replicas": 3,
        "layout": "per_table" if written == "per_table" else "single",
        "prefix": f"{name}.",
        "transactions": written != "plain",
        "librdkafka": _LIBRDKAFKA,
    }
    limits = {"start": "now", "message_bytes": 1000, "commit_records": 50}
    return write_profile(
        folder, server, cluster.brokers[0], name=f"{name}_{server.server_id}", topic=name, resource=name,
        filters={"include_dbs": [name]}, kafka=topics, producer=limits, consumer={"batch_rows": 20},
    )  # fmt: skip
