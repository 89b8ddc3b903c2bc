"""Kills the leader under load: its replica is promoted, and the producer follows by ``database.hosts``."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.drills.load import Load
from bench.drills.outcome import Outcome
from bench.drills.replicated import Replicated
from bench.drills.stream import profile, run_to_the_end, running
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql

__all__ = ["drill"]


def drill(folder: Path, opened: ExitStack, *, kills: int) -> Iterator[Outcome]:
    leaders = Replicated(folder, first_id=1, waits=True)
    follower, kafka = MySql(folder / "s3", server_id=3).start(), Kafka(folder / "kafka").start()
    for server in (leaders, follower, kafka):
        opened.callback(server.kill)
    first, second = leaders.servers
    source = profile(folder / "source.toml", first, kafka, hosts=[second])
    target = profile(folder / "target.toml", follower, kafka)
    outcome = Outcome("the leader, its replica promoted (semi-synchronous replication)")
    with running(source, target), Load(leaders.primary) as load:
        load.await_row(follower)
        leaders.rejoin()
        for _ in range(kills):
            with outcome.timed():
                leaders.fail_over()
                load.leader = leaders.primary
                load.await_row(follower)
            leaders.rejoin()
    run_to_the_end(source, target)
    outcome.count(load, follower, source)
    yield outcome
