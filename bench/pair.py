"""Two MySQL servers that are compared, and the load on both."""

from measure import server_cpu_seconds

from cdc.sandbox.server.mysql import MySql

__all__ = ["Pair"]


class Pair:
    """A leader and what follows it. Keeps a connection to each, to ask what others asked."""

    def __init__(self, *servers: MySql) -> None:
        self._servers = servers
        self._connections = [server.root() for server in servers]
        self._asked = 0

    def cpu_seconds(self) -> float:
        """Of both servers since their start."""
        return sum(map(server_cpu_seconds, self._servers))

    def questions(self) -> int:
        """How many statements clients sent to both since their start, without ours; to be compared with a later one."""
        counts = []
        for connection in self._connections:
            with connection.cursor() as cursor:
                cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
                counts += [int(count) for _, count in cursor.fetchall()]
        self._asked += len(counts)
        return sum(counts) - self._asked
