"""How fast the whole path is, beside its peers: one leader with a full binlog, then each reader of it in turn.

    python bench/path.py [--rows 200000] [--transactions 20000]

Producer: cdc-producer to records committed in Kafka; peer: mysql-replication's own reader, which only decodes.
Consumer: cdc-consumer from the full topic; peer: a native replica with 4 workers, from the leader's binlog.
Each figure is of one run from process start to end, start-up included; run it again to see the spread.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import plain_reader, profile, run_program, timed

from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import PASSWORD, USER, MySql

SHAPES = {"rows in 100-row statements": 100, "single-row transactions": 1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="in 100-row statements (default %(default)s)")
    parser.add_argument("--transactions", type=int, default=20_000, help="of one row each (default %(default)s)")
    options = parser.parse_args()
    print(f"{'':28}{'':24}{'wall s':>9}{'CPU s':>9}{'rows/s':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        for number, (shape, width) in enumerate(SHAPES.items()):
            count = options.rows if width > 1 else options.transactions
            measure(Path(folder) / str(number), shape=shape, width=width, count=count)
    return 0


def measure(folder: Path, *, shape: str, width: int, count: int) -> None:
    """Fill one leader and let each program and its peer read it, one after the other."""
    leader = MySql(folder / "leader", server_id=1).start()
    follower, replica = (MySql(folder / name, server_id=id_).start() for name, id_ in (("follower", 2), ("replica", 3)))
    kafka = Kafka(folder / "kafka").start()
    fill(leader, width=width, count=count)
    source = profile(folder / "producer.toml", leader, kafka)
    target = profile(folder / "consumer.toml", follower, kafka)
    pairs: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "producer": (lambda: run_program("cdc-producer", source), lambda: plain_reader(leader, count)),
        "consumer": (lambda: run_program("cdc-consumer", target), lambda: native_replica(leader, replica)),
    }
    for name, (ours, peer) in pairs.items():
        wall, cpu = timed(ours)
        peer_wall, peer_cpu = timed(peer)
        line(shape, f"cdc-{name}", wall, cpu, count, peer_wall / wall)
        # A replica's work is the server's, whose CPU time is not ours to read.
        line("", PEERS[name], peer_wall, peer_cpu if name == "producer" else None, count, 1.0)
    for server in (leader, follower, replica, kafka):
        server.kill()


PEERS = {"producer": "mysql-replication", "consumer": "native replica"}


def line(shape: str, name: str, wall: float, cpu: float | None, count: int, ratio: float) -> None:
    shown = f"{cpu:9.2f}" if cpu is not None else f"{'-':>9}"
    print(f"{shape:28}{name:24}{wall:9.2f}{shown}{count / wall:10.0f}{ratio:8.2f}", flush=True)


def fill(leader: MySql, *, width: int, count: int) -> None:
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2")
        cursor.execute("CREATE DATABASE bench")
        cursor.execute(
            "CREATE TABLE bench.t "
            "(id INT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12, 2), made DATETIME(3), k INT)"
        )
        for first in range(0, count, width):
            rows = ",".join(
                f"({n},'name {n}',{n}.25,'2024-02-29 12:34:56.789',{n * 7 % 1000})" for n in range(first, first + width)
            )
            cursor.execute(f"INSERT INTO bench.t VALUES {rows}")


def native_replica(leader: MySql, replica: MySql) -> None:
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@global.gtid_executed")
        (executed,) = cursor.fetchone()
    with replica.root() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL replica_parallel_workers = 4")
        cursor.execute(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={leader.port}, SOURCE_USER='{USER}', "
            f"SOURCE_PASSWORD='{PASSWORD}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1"
        )
        cursor.execute("START REPLICA")
        cursor.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 600)", (executed,))
        assert cursor.fetchone() == (0,), "the replica did not get there"


if __name__ == "__main__":
    sys.exit(main())
