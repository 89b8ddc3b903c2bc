"""Kills the follower under load: its replica is promoted, and the consumer follows by ``database.hosts``.

Replication is asynchronous: what the replica lacks is read from the topic again.
"""

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
    followers = Replicated(folder, first_id=2, waits=False)
    leader, kafka = MySql(folder / "s1", server_id=1).start(), Kafka(folder / "kafka").start()
    for server in (followers, leader, kafka):
        opened.callback(server.kill)
    first, second = followers.servers
    source = profile(folder / "source.toml", leader, kafka)
    target = profile(folder / "target.toml", first, kafka, hosts=[second])
    outcome = Outcome("the follower, its replica promoted (asynchronous replication)")
    with running(source, target), Load(leader) as load:
        load.await_row(followers.primary)
        for _ in range(kills):
            with outcome.timed():
                followers.fail_over()
                load.await_row(followers.primary)
            followers.rejoin()
    run_to_the_end(source, target)
    outcome.count(load, followers.primary, source)
    yield outcome
