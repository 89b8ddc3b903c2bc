"""Kills one of three brokers under load, then stops and starts one after the other (a rolling restart)."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.drills.load import Load, wait_for
from bench.drills.outcome import Outcome
from bench.drills.stream import profile, run_to_the_end, running
from cdc.sandbox.server.kafka import KafkaCluster
from cdc.sandbox.server.mysql import MySql

__all__ = ["drill"]

_LINES = "replicas = 3\nmin_insync_replicas = 2\n"


def drill(folder: Path, opened: ExitStack, *, kills: int) -> Iterator[Outcome]:
    leader, follower = (MySql(folder / f"s{number}", server_id=number) for number in (1, 2))
    cluster = KafkaCluster(folder / "brokers")
    for server in (leader, follower, cluster):
        opened.callback(server.kill)
        server.start()
    source = profile(folder / "source.toml", leader, cluster, lines=_LINES)
    target = profile(folder / "target.toml", follower, cluster, lines=_LINES)
    killed, restarted = Outcome("one of three brokers"), Outcome("each broker in turn (stopped: a rolling restart)")
    with running(source, target), Load(leader) as load:
        load.await_row(follower)
        for number in range(kills + len(cluster.brokers)):
            broker = cluster.brokers[number % 3]
            await_replicas(cluster)
            load.await_row(follower)
            rolling = number >= kills
            with (restarted if rolling else killed).timed():
                broker.stop() if rolling else broker.kill()
                load.await_row(follower)
            broker.start()
    run_to_the_end(source, target)
    for outcome in (killed, restarted):
        outcome.count(load, follower, source)
        yield outcome


def await_replicas(cluster: KafkaCluster) -> None:
    """Waits until each partition has all of its replicas again."""
    admin = cluster.brokers[0].admin()

    def whole() -> bool:
        topics = admin.list_topics(timeout=10).topics.values()
        return all(len(each.isrs) == len(each.replicas) for topic in topics for each in topic.partitions.values())

    wait_for(whole, what="all replicas of the topics")
