"""Measures cdc-seed, beside cdc-consumer that applies the whole topic to an empty follower.

    python bench/seed.py [--rows 200000] [--changes 1,3,10]

A leader with ``--rows`` rows, written 100 in a statement, and updated so, until each row has changed that often. For
each number of changes both programs run from process start to end on an empty follower each, one after the other, with
all else idle: the topic is whole, and the leader is gone. Each commit is flushed, and the binlog is on.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from consumer import PLAIN, execute, plain
from measure import BIN, profile, run_program, server_cpu_seconds, used
from ratios import note

from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql

AT_ONCE = 100  # rows in a statement


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="of the table (default %(default)s)")
    parser.add_argument("--changes", default="1,3,10", help="of each row (default %(default)s)")
    options = parser.parse_args()
    print(f"{'changes a row':>14}{'consumer s':>12}{'seed s':>10}{'server':>8}{'server':>8}{'as fast':>9}")
    for changes in map(int, options.changes.split(",")):
        with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
            measure(Path(folder), options.rows, changes)
    return 0


def measure(folder: Path, rows: int, changes: int) -> None:
    leader, applied, seeded = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2, 3))
    kafka = Kafka(folder / "kafka").start()
    source, *targets = (profile(folder / f"{each.server_id}.toml", each, kafka) for each in (leader, applied, seeded))
    execute(leader, history(rows, changes))
    run_program("cdc-producer", source)
    leader.kill()
    os.sync()  # neither side pays for earlier writes
    before = server_cpu_seconds(applied)
    ours = used("cdc-consumer", targets[0]).wall
    of_consumer = server_cpu_seconds(applied) - before
    os.sync()
    before, begun = server_cpu_seconds(seeded), time.monotonic()
    jars = ",".join(map(str, spark_connector_jars(version("pyspark"))))
    subprocess.run(
        [BIN / "cdc-seed", "--leader", source, "--follower", targets[1]], check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "CDC_SPARK_JARS": jars},
    )  # fmt: skip
    wall, of_seed = time.monotonic() - begun, server_cpu_seconds(seeded) - before
    print(f"{changes:14}{ours:12.1f}{wall:10.1f}{of_consumer:8.1f}{of_seed:8.1f}{ours / wall:9.2f}", flush=True)
    note(f"seed, {changes} changes a row: seconds of the consumer", ours / wall)
    require_equal(applied, seeded)
    for each in (applied, seeded, kafka):
        each.kill()


def history(rows: int, changes: int) -> Iterator[str]:
    yield from ("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2", "CREATE DATABASE bench",
                f"CREATE TABLE bench.t ({PLAIN})")  # fmt: skip
    for first in range(0, rows, AT_ONCE):
        yield f"INSERT INTO bench.t VALUES {','.join(map(plain, range(first, first + AT_ONCE)))}"
    for _ in range(changes - 1):
        for first in range(0, rows, AT_ONCE):
            yield f"UPDATE bench.t SET k = k + 1 WHERE id BETWEEN {first} AND {first + AT_ONCE - 1}"


def require_equal(one: MySql, other: MySql) -> None:
    sums = []
    for server in (one, other):
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CHECKSUM TABLE bench.t")
            sums.append(cursor.fetchone())
    assert sums[0] == sums[1], sums


if __name__ == "__main__":
    sys.exit(main())
