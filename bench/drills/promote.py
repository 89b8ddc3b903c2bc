"""Promotes the follower (``cdc-consumer --promote``), makes the former leader its follower, and fails back.

Nothing is killed: the leader gets ``super_read_only``, everything is replicated, and the servers change places, again
and again. The rows are inserted by the leader of the moment.
"""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.drills.load import Load, execute, ids
from bench.drills.outcome import Outcome
from bench.drills.stream import CONSUMER, run_to_the_end, running
from bench.drills.stream import profile as written
from bench.measure import BIN
from cdc import records
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql

__all__ = ["drill"]

_START = re.compile(r'producer\.start = "([^"]+)"')


def drill(folder: Path, opened: ExitStack, *, kills: int) -> Iterator[Outcome]:
    leader, follower = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2))
    kafka = Kafka(folder / "kafka").start()
    for server in (leader, follower, kafka):
        opened.callback(server.kill)
    outcome = Outcome("nothing; the leader gets super_read_only, the follower is promoted, and back")
    start, begun = "", 0.0
    for server in (leader, follower):
        execute(server, "SET GLOBAL event_scheduler = OFF")
    with Load(leader) as load:
        for number in range(kills + 1):
            source, target = profiles(folder, kafka, leader, follower, name=f"drill{number}", start=start)
            with running(source, target):
                load.await_row(follower)
                if number:
                    outcome.away.append(time.monotonic() - begun)
            begun = time.monotonic()
            execute(leader, "SET GLOBAL super_read_only = ON")
            run_to_the_end(source, target)
            count(outcome, leader, follower, source)
            start = promoted(source, target)
            execute(leader, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
            load.leader, leader, follower = follower, follower, leader
    outcome.lost += len(set(load.acknowledged) - set(ids(leader)))
    yield outcome


def profiles(folder: Path, kafka: Kafka, *servers: MySql, name: str, start: str) -> list[Path]:
    """Writes the profiles of the stream ``name`` between two servers, which begins at the GTIDs ``start``."""
    paths = []
    for server, end in zip(servers, ("source", "target"), strict=True):
        path = written(folder / f"{name}-{end}.toml", server, kafka, lines='[filters]\nexclude_dbs = ["cdc"]\n')
        text = path.read_text().replace('topic = "drill"', f'topic = "{name}"')
        for table in ("[producer]\n", "[consumer]\n") if start else ():
            text = text.replace(table, f'{table}start = "{start}"\n')
        path.write_text(f'mysql_resource_name = "{name}"\n{text}')
        paths.append(path)
    return paths


def promoted(source: Path, target: Path) -> str:
    """Promotes the follower; returns the GTIDs with which it begins as a leader."""
    command = [BIN / CONSUMER, target, "--promote", "--leader", source]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return _START.findall(output)[0]


def count(outcome: Outcome, leader: MySql, follower: MySql, source: Path) -> None:
    """Adds what is lost or repeated between two servers that both are at rest, and in the topic between them."""
    here, there, found = ids(leader), ids(follower), [record.sequence for record in records(source)]
    outcome.rows, outcome.records = len(here), outcome.records + len(found)
    outcome.lost += len(set(here) - set(there)) + len(set(range(len(found))) - set(found))
    outcome.repeated += len(there) - len(set(there)) + len(set(there) - set(here)) + len(found) - len(set(found))
