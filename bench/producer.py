"""Measures cdc-producer: from a leader's full binlog to records committed in Kafka, and the lag of a steady load.

    python bench/producer.py [--rows 600000] [--transactions 300000] [--shapes rows,single,wide,text,json,lag]

Each shape of data has its own leader with a full binlog. cdc-producer reads it from its beginning, process start to
end, and then mysql-replication's own reader, which decodes the rows and does nothing with them. The figure is the work
per second of the program's own CPU time (all threads, start-up included). The lag is from the commit time that the
leader logged until a reader has the record, with one broker, one leader and the load on the same machine.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from load import RATE, WARM_UP_SECONDS, percentiles, steady_load
from measure import plain_reader, profile, run_program, running, timed
from ratios import note

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql


@dataclass(frozen=True)
class Shape:
    """A table, the values of its row ``n``, and the number of rows of a statement."""

    name: str
    columns: str
    values: Callable[[int], str]
    rows_a_statement: int
    share: float  # the part of the rows on the command line: wide rows count as many


def plain(n: int) -> str:
    return f"{n},'name {n}',{n}.25,'2024-02-29 12:34:56.789',{n * 7 % 1000}"


def document(n: int) -> str:
    tags = ",".join(f'"tag {n + i}"' for i in range(5))
    return f'{n},\'{{"name":"name {n}","price":{n}.5,"tags":[{tags}],"stock":{{"here":{n},"there":true}}}}\''


PLAIN = "id INT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12, 2), made DATETIME(3), k INT"
TEXT = "id INT PRIMARY KEY, t TEXT"
WIDE = ", ".join(["id INT PRIMARY KEY", *(f"c{i} INT" for i in range(199))])
SHAPES = {
    "rows": Shape("rows in 100-row statements", PLAIN, plain, 100, 1.0),
    "single": Shape("single-row transactions", PLAIN, plain, 1, 1.0),
    "wide": Shape("rows of 200 columns", WIDE, lambda n: ",".join([str(n)] * 200), 100, 0.05),
    "text": Shape("rows with 4 kB of text", TEXT, lambda n: f"{n},REPEAT('žluť {n} ',300)", 20, 0.5),
    "json": Shape("rows with a JSON document", "id INT PRIMARY KEY, j JSON", document, 100, 0.5),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600_000, help="in 100-row statements (default %(default)s)")
    parser.add_argument("--transactions", type=int, default=300_000, help="of one row each (default %(default)s)")
    parser.add_argument("--shapes", default=",".join([*SHAPES, "lag"]), help="which to measure (default %(default)s)")
    options = parser.parse_args()
    print(f"{'':30}{'':20}{'rows':>9}{'wall s':>8}{'CPU s':>8}{'rows/s':>9}{'rows/CPU s':>11}{'ratio':>7}")
    for key in options.shapes.split(","):
        with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
            if key == "lag":
                measure_lag(Path(folder))
                continue
            count = options.transactions if key == "single" else options.rows
            measure(Path(folder), SHAPES[key], int(count * SHAPES[key].share))
    return 0


def measure(folder: Path, shape: Shape, count: int) -> None:
    """Fills one leader, then reads it with cdc-producer and with the plain reader, one after the other."""
    leader, kafka = MySql(folder / "leader", server_id=1).start(), Kafka(folder / "kafka").start()
    fill(leader, shape, count)
    source = profile(folder / "producer.toml", leader, kafka)
    ours = timed(lambda: run_program("cdc-producer", source))
    peer = timed(lambda: plain_reader(leader, count))
    line(shape.name, "cdc-producer", count, *ours, ratio=peer[1] / ours[1])
    line("", "mysql-replication", count, *peer, ratio=1.0)
    note(f"producer, {shape.name}: CPU of the plain reader", peer[1] / ours[1])
    leader.kill()
    kafka.kill()


def line(shape: str, name: str, count: int, wall: float, cpu: float, *, ratio: float) -> None:
    print(
        f"{shape:30}{name:20}{count:9}{wall:8.2f}{cpu:8.2f}{count / wall:9.0f}{count / cpu:11.0f}{ratio:7.2f}",
        flush=True,
    )


def fill(leader: MySql, shape: Shape, count: int) -> None:
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2")
        cursor.execute("CREATE DATABASE bench")
        cursor.execute(f"CREATE TABLE bench.t ({shape.columns})")
        for first in range(0, count, shape.rows_a_statement):
            rows = ",".join(f"({shape.values(n)})" for n in range(first, first + shape.rows_a_statement))
            cursor.execute(f"INSERT INTO bench.t VALUES {rows}")


def measure_lag(folder: Path) -> None:
    """Runs a steady load of single-row updates in its own process, and a reader that records each record's age."""
    leader, kafka = MySql(folder / "leader", server_id=1).start(), Kafka(folder / "kafka").start()
    fill(leader, SHAPES["rows"], 10_000)
    source = profile(folder / "producer.toml", leader, kafka)
    run_program("cdc-producer", source)
    with running("cdc-producer", source):
        load = steady_load(leader)
        counted_from = time.time() + WARM_UP_SECONDS
        found = record_ages(kafka, until=lambda: not load.is_alive())
        ages = [age for committed, age in found if committed > counted_from]
        print(f"{RATE} transactions/s: {percentiles(ages)}", flush=True)
    leader.kill()
    kafka.kill()


def record_ages(kafka: Kafka, *, until: Callable[[], bool]) -> Iterator[tuple[float, float]]:
    """Each record's commit time on the leader (seconds since 1970), and the ms after which it was read."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "bench", "isolation.level": "read_committed"}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition("bench", 0))
    consumer.assign([TopicPartition("bench", 0, end)])
    quiet_since = time.monotonic()
    while not until() or time.monotonic() - quiet_since < 1:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            quiet_since = time.monotonic()
            committed = json.loads(message.value() or b"")["transaction"]["ts_us"] / 1e6
            yield committed, (time.time() - committed) * 1e3
    consumer.close()


if __name__ == "__main__":
    sys.exit(main())
