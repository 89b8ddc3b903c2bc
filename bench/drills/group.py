"""Kills the primary of a group of three (MySQL Group Replication, single primary) that is the leader.

The group elects another primary, which the producer finds by ``database.hosts``. The killed member joins again.
"""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pymysql

from bench.drills.load import Load, execute, wait_for
from bench.drills.outcome import Outcome
from bench.drills.stream import profile, run_to_the_end, running
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.sandbox.server.process import free_port

__all__ = ["drill"]


class Group:
    """Three members, of which one is the primary."""

    def __init__(self, folder: Path) -> None:
        ports = [free_port() for _ in range(3)]
        seeds, name = ",".join(f"127.0.0.1:{port}" for port in ports), uuid.uuid4()
        self.servers = [
            MySql(
                folder / f"s{number}",
                server_id=number,
                extra_args=[
                    "--plugin-load-add=group_replication.so",
                    "--super-read-only=ON",
                    "--report-host=127.0.0.1",
                    "--performance-schema=ON",
                    f"--group-replication-group-name={name}",
                    f"--group-replication-local-address=127.0.0.1:{port}",
                    f"--group-replication-group-seeds={seeds}",
                    "--group-replication-start-on-boot=OFF",
                    "--group-replication-recovery-get-public-key=ON",
                ],
            )
            for number, port in enumerate(ports, 1)
        ]
        for server in self.servers:
            server.start()
            # A member with a transaction that the group does not have can't join it.
            execute(server, "SET GLOBAL super_read_only = OFF", "RESET BINARY LOGS AND GTIDS",
                    f"CHANGE REPLICATION SOURCE TO SOURCE_USER='{USER}', SOURCE_PASSWORD='{PASSWORD}' "
                    "FOR CHANNEL 'group_replication_recovery'")  # fmt: skip
        self.primary = self.servers[0]
        execute(self.primary, "SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION",
                "SET GLOBAL group_replication_bootstrap_group = OFF")  # fmt: skip
        for server in self.servers[1:]:
            execute(server, "START GROUP_REPLICATION")
        wait_for(self.whole, what="three members")

    def kill_primary(self) -> None:
        """Kills the primary, and waits until the group has another one, which takes writes."""
        former = self.primary
        former.kill()
        others = [server for server in self.servers if server is not former]
        wait_for(lambda: any(map(_takes_writes, others)), what="another primary")
        self.primary = next(filter(_takes_writes, others))

    def rejoin(self) -> None:
        """Starts the member that was killed, and waits until it belongs to the group again."""
        for server in self.servers:
            if not server.running():
                execute(server.start(), "START GROUP_REPLICATION")
        wait_for(self.whole, what="three members")

    def whole(self) -> bool:
        online = "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'"
        return execute(self.primary, online) == [(3,)]

    def kill(self) -> None:
        for server in self.servers:
            server.kill()


def _takes_writes(server: MySql) -> bool:
    try:
        return execute(server, "SELECT @@GLOBAL.read_only") == [(0,)]
    except pymysql.MySQLError:
        return False


def drill(folder: Path, opened: ExitStack, *, kills: int) -> Iterator[Outcome]:
    group = Group(folder)
    follower, kafka = MySql(folder / "s4", server_id=4).start(), Kafka(folder / "kafka").start()
    for server in (group, follower, kafka):
        opened.callback(server.kill)
    first, *others = group.servers
    source = profile(folder / "source.toml", first, kafka, hosts=others)
    target = profile(folder / "target.toml", follower, kafka)
    outcome = Outcome("the primary of a group of three that is the leader (group replication)")
    with running(source, target), Load(group.primary, key="PRIMARY KEY") as load:
        load.await_row(follower)
        for _ in range(kills):
            with outcome.timed():
                group.kill_primary()
                load.leader = group.primary
                load.await_row(follower)
            group.rejoin()
    run_to_the_end(source, target)
    outcome.count(load, follower, source)
    yield outcome
