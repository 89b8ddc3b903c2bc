"""A server with a native replica (GTIDs), of which one is killed and the other promoted, again and again."""

import shutil
from pathlib import Path

from bench.drills.load import execute, wait_for
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql

__all__ = ["Replicated"]

_READ_ONLY = ("--super-read-only=ON", "--skip-replica-start=ON")
# The commit of a client is answered only once the replica has it; without a replica, at once.
_SEMI_SYNC = (
    "--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so",
    "--rpl-semi-sync-source-enabled=ON", "--rpl-semi-sync-replica-enabled=ON",
    "--rpl-semi-sync-source-timeout=600000", "--rpl-semi-sync-source-wait-no-replica=OFF",
)  # fmt: skip


class Replicated:
    """Two servers: ``primary`` takes writes, ``replica`` has super_read_only.

    With ``waits`` a commit is answered only once the replica has it (semi-synchronous replication): without that, what
    the dead server alone has is lost to all, and no tool can bring it back.
    """

    def __init__(self, folder: Path, *, first_id: int, waits: bool) -> None:
        options = [*_READ_ONLY, *(_SEMI_SYNC if waits else ())]
        self.servers = [
            MySql(folder / f"s{each}", server_id=each, extra_args=options) for each in (first_id, first_id + 1)
        ]
        for server in self.servers:
            server.start()
        self._waits = waits
        self.primary, self.replica = self.servers
        _take_writes(self.primary)
        self._follow(self.replica)

    def fail_over(self) -> None:
        """Kills the primary, and promotes the replica once it has applied all that it has received."""
        self.primary.kill()
        self.primary, self.replica = self.replica, self.primary
        wait_for(self._all_applied, what="the relay log to be applied")
        execute(self.primary, "STOP REPLICA", "RESET REPLICA ALL")
        _take_writes(self.primary)

    def rejoin(self) -> None:
        """Makes a replica of the server that was killed; without its data, if it has a transaction that the primary
        lacks.
        """
        server = self.replica.start()
        if not self._within(server):
            server.kill()
            shutil.rmtree(server.data)
            server.start()
        self._follow(server)
        wait_for(lambda: self._within(self.primary, other=server), what="the replica to catch up")
        if self._waits:
            wait_for(self._waits_for_replica, what="semi-synchronous replication")

    def kill(self) -> None:
        for server in self.servers:
            server.kill()

    def _follow(self, server: MySql) -> None:
        execute(
            server,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={self.primary.port}, "
            f"SOURCE_USER='{USER}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, "
            "SOURCE_CONNECT_RETRY=1",
            "START REPLICA",
        )

    def _all_applied(self) -> bool:
        with self.primary.root() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW REPLICA STATUS")
            row = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
            # While the source is away, the receiver may still hold an event that it has not written yet.
            if row["Replica_IO_Running"] == "Yes":
                return False
            cursor.execute("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", (row["Retrieved_Gtid_Set"],))
            return bool(cursor.fetchone() == (1,))

    def _within(self, server: MySql, *, other: MySql | None = None) -> bool:
        """Whether ``other``, by default the primary, has all transactions of ``server``."""
        ((executed,),) = execute(server, "SELECT @@GLOBAL.gtid_executed")
        return execute(other or self.primary, f"SELECT GTID_SUBSET('{executed}', @@GLOBAL.gtid_executed)") == [(1,)]

    def _waits_for_replica(self) -> bool:
        found = execute(self.primary, "SHOW STATUS LIKE 'Rpl_semi_sync_source_clients'")
        status = execute(self.primary, "SHOW STATUS LIKE 'Rpl_semi_sync_source_status'")
        return bool(found[0][1] == "1" and status[0][1] == "ON")


def _take_writes(server: MySql) -> None:
    execute(server, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
