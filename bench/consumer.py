"""Measures cdc-consumer, from a full topic into the follower, beside a native replica with a full relay log.

    python bench/consumer.py [--scale 1.0] [--tables 100]
                             [--shapes rows,inserted,inserts,updates,mixed,hot,keyless,gone,statements,migrations,lag]

Each shape of work has servers of its own: a leader, Kafka, a follower and a native replica, the last two with the same
settings (every commit flushed, binlog on). What is there before the work is brought over first and not counted. Then
the work waits whole, in the topic and in the relay log, and each side applies it in turn: cdc-consumer from process
start to end, the replica with 4 workers from START REPLICA SQL_THREAD until its last transaction. The lag is from the
commit time that the leader logged to the moment at which a session that asks the follower every ms or so sees the row,
under a steady load and for single writes while nothing else goes on; then the same without Kafka
transactions, and for the replica, without cdc.
Below each line of cdc-consumer: what the stages that are its own take, each measured alone over the same topic.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from lag import measure_lag
from measure import Used, profile, run_program, server_cpu_seconds, used
from ratios import note
from replica import NativeReplica
from stages import end_of_topic, measure_stages

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql

PLAIN = "id INT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12, 2), made DATETIME(3), k INT"
# The table of sysbench's oltp_write_only.
OLTP = (
    "id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k)"
)

# Neither a primary nor a unique key, and no other index.
KEYLESS = "id INT, name VARCHAR(40), amount DECIMAL(12, 2), made DATETIME(3), k INT"

Work = Callable[[int, random.Random], Iterator[str]]


@dataclass(frozen=True)
class Shape:
    """A table, its number of rows at first, and the leader's transactions: ``work`` gives their statements."""

    name: str
    columns: str
    before: int
    work: Work
    count: int
    unit: str = "transactions"
    beside: int = 0  # the number of other tables, which stay as they are
    local_infile: str = "ON"  # the follower's setting


def plain(n: int) -> str:
    return f"({n},'name {n}',{n}.25,'2024-02-29 12:34:56.789',{n * 7 % 1000})"


def bulk(count: int, _: random.Random) -> Iterator[str]:
    for first in range(0, count, 100):
        yield f"INSERT INTO bench.t VALUES {','.join(map(plain, range(first, first + 100)))}"


def inserts(count: int, _: random.Random) -> Iterator[str]:
    for n in range(count):
        yield f"INSERT INTO bench.t VALUES {plain(n)}"


def updates(count: int, chance: random.Random) -> Iterator[str]:
    for n in range(count):
        yield f"UPDATE bench.t SET name = 'new {n}', k = k + 1 WHERE id = {chance.randrange(BEFORE)}"


def all_updated(count: int, _: random.Random) -> Iterator[str]:
    yield "UPDATE bench.t SET k = k + 1, name = CONCAT('new ', id)"


def all_deleted(count: int, _: random.Random) -> Iterator[str]:
    yield "DELETE FROM bench.t"


def hot(count: int, _: random.Random) -> Iterator[str]:
    for _ in range(count):
        yield "UPDATE bench.t SET k = k + 1 WHERE id = 7"


def mixed(count: int, chance: random.Random) -> Iterator[str]:
    """sysbench's oltp_write_only: two updates, a delete and an insert of the same key, as one transaction."""
    for _ in range(count):
        one, other, gone = (chance.randrange(1, BEFORE) for _ in range(3))
        yield "BEGIN"
        yield f"UPDATE bench.t SET k = k + 1 WHERE id = {one}"
        yield f"UPDATE bench.t SET c = '{chance.getrandbits(380):0115d}' WHERE id = {other}"
        yield f"DELETE FROM bench.t WHERE id = {gone}"
        yield f"INSERT INTO bench.t VALUES {oltp(gone, chance)}"
        yield "COMMIT"


def statements(count: int, _: random.Random) -> Iterator[str]:
    """A table is created, altered and dropped."""
    yield from islice(chain.from_iterable(map(lifetime, range(count))), count)


def lifetime(n: int) -> tuple[str, str, str]:
    return (
        f"CREATE TABLE bench.s{n} ({PLAIN})",
        f"ALTER TABLE bench.s{n} ADD COLUMN more INT NOT NULL DEFAULT {n}, ADD INDEX (k)",
        f"DROP TABLE bench.s{n}",
    )


def migrations(count: int, _: random.Random) -> Iterator[str]:
    """Statements, and after each a row in five tables that stay."""
    for n in range(count):
        yield f"ALTER TABLE bench.t ALTER COLUMN k SET DEFAULT {n}"
        for table in range(5):
            yield f"INSERT INTO bench.stays{table} VALUES {plain(n)}"


def oltp(n: int, chance: random.Random) -> str:
    return f"({n},{chance.randrange(1000)},'{chance.getrandbits(380):0115d}','{chance.getrandbits(190):058d}')"


BEFORE = 50_000
LAG = Shape("", PLAIN, 10_000, updates, 0)
SHAPES = {
    "rows": Shape("rows in 100-row inserts", PLAIN, 0, bulk, 600_000, "rows"),
    "inserted": Shape("the same, local_infile OFF", PLAIN, 0, bulk, 600_000, "rows", local_infile="OFF"),
    "inserts": Shape("single-row inserts", PLAIN, 0, inserts, 100_000),
    "updates": Shape("single-row updates", PLAIN, BEFORE, updates, 100_000),
    "mixed": Shape("oltp_write_only", OLTP, BEFORE, mixed, 40_000),
    "hot": Shape("updates of one row", PLAIN, 100, hot, 100_000),
    # The whole table at once: before, it has as many rows as are counted.
    "keyless": Shape("all rows updated, no key", KEYLESS, 100_000, all_updated, 100_000, "rows"),
    "statements": Shape("statements", PLAIN, 0, statements, 300, beside=100),
    "migrations": Shape("statements between rows", PLAIN, 0, migrations, 300, beside=100),
    "gone": Shape("all rows deleted, no key", KEYLESS, 100_000, all_deleted, 100_000, "rows"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the amounts of work (default %(default)s)")
    parser.add_argument("--shapes", default=",".join([*SHAPES, "lag"]), help="which to measure (default %(default)s)")
    parser.add_argument("--tables", type=int, default=100, help="that stay beside statements (default %(default)s)")
    options = parser.parse_args()
    print(f"{'':26}{'':16}{'count':>9}{'wall s':>8}{'CPU s':>8}{'server':>8}{'MB':>6}{'each/s':>9}{'ratio':>7}")
    for key in options.shapes.split(","):
        with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
            if key == "lag":
                measure_lag(Path(folder), fill=lambda leader: fill(leader, LAG))
            else:
                shape, count = SHAPES[key], int(SHAPES[key].count * options.scale)
                shape = replace(shape, before=count if shape.columns == KEYLESS else shape.before,
                                beside=options.tables if shape.beside else 0)  # fmt: skip
                measure(Path(folder), shape, count)
    return 0


def measure(folder: Path, shape: Shape, count: int) -> None:
    options = ["", f"--local-infile={shape.local_infile}", ""]
    leader, follower, third = (
        MySql(folder / f"s{number}", server_id=number, extra_args=[option] if option else []).start()
        for number, option in enumerate(options, 1)
    )
    kafka = Kafka(folder / "kafka").start()
    source, target = (profile(folder / f"{server.server_id}.toml", server, kafka) for server in (leader, follower))
    replica = NativeReplica(leader, third)
    fill(leader, shape)
    run_program("cdc-producer", source)
    run_program("cdc-consumer", target)
    replica.receive()
    replica.apply()
    execute(leader, shape.work(count, random.Random(1)))
    since = end_of_topic(target)
    run_program("cdc-producer", source)
    replica.receive()
    os.sync()  # neither side pays for earlier writes
    server = server_cpu_seconds(follower)
    ours = used("cdc-consumer", target)
    line(shape, "cdc-consumer", count, ours, server_cpu_seconds(follower) - server)
    if shape.columns != KEYLESS and not shape.beside:  # the SQL of these depends on the follower's answers
        measure_stages(target, since=since, count=count)
    os.sync()
    server, begun = server_cpu_seconds(third), time.monotonic()
    replica.apply()
    wall = time.monotonic() - begun
    # A replica's work is done by its server.
    line(shape, "native replica", count, Used(wall, 0, 0), server_cpu_seconds(third) - server, ratio=wall / ours.wall)
    note(f"consumer, {shape.name}: seconds of a native replica", wall / ours.wall)
    for each in (leader, follower, third, kafka):
        each.kill()


def line(shape: Shape, name: str, count: int, spent: Used, server: float, *, ratio: float | None = None) -> None:
    shown = f"{'':7}" if ratio is None else f"{ratio:7.2f}"
    print(
        f"{shape.name:26}{name:16}{count:9}{spent.wall:8.2f}{spent.cpu:8.2f}{server:8.2f}{spent.megabytes:6.0f}"
        f"{count / spent.wall:9.0f}{shown}",
        flush=True,
    )


def fill(leader: MySql, shape: Shape) -> None:
    chance = random.Random(0)
    row = (lambda n: oltp(n, chance)) if shape.columns == OLTP else plain
    execute(leader, ["SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2", "CREATE DATABASE bench",
                     f"CREATE TABLE bench.t ({shape.columns})",
                     *(f"CREATE TABLE bench.stays{n} ({shape.columns})" for n in range(shape.beside))])  # fmt: skip
    for first in range(1, shape.before, 1000):
        last = min(first + 1000, shape.before + 1)
        execute(leader, [f"INSERT INTO bench.t VALUES {','.join(map(row, range(first, last)))}"])


def in_transactions(statements: Iterable[str]) -> Iterator[str]:
    """Executes a thousand statements in each transaction, which is faster: what is measured depends on records, not on
    transactions.
    """
    for number, statement in enumerate(statements):
        if number % 1000 == 0:
            yield from ("COMMIT", "BEGIN")
        yield statement
    yield "COMMIT"


def execute(server: MySql, statements: Iterator[str] | list[str]) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


if __name__ == "__main__":
    sys.exit(main())
