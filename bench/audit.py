"""Measures the audit, beside Spark that only reads and parses the same topics, and beside queries to both databases.

    python bench/audit.py [--updates 150000] [--rows 50000] [--changes 0] [--keys 0] [--long 0]

A leader with ``--rows`` rows and ``--updates`` single-row updates is replicated by our programs, and its follower
captured. Then, one after the other, the best of three:

    cdc-audit           the command, each time in a new process and JVM
    floor               both topics read and parsed, nothing else; this and the next two in one Spark on local[2], with
                        the collector that docs/performance.md advises for large audits, after twenty warm-up rounds
    audit               from their beginning, the report included
    on from it          from the state of that audit, after 1 % more updates, or ``--changes`` of them, with which
                        histories of several sizes compare; after six such warm-up rounds
    SELECT              every row of both tables read from both servers in the order of the key, and compared
    pt-table-checksum   the same table, on the leader and a native replica; Percona Toolkit >= 3.7 must be on PATH

The figure is CPU time: of the program itself (the JVM, all threads; the client of the last two), and of both servers,
with the number of statements they were sent. What the audit costs the follower, its binlog read once, has its own line.
With ``--keys`` a table of so many rows is audited with a heap of 512 MB, which shows whether memory is bounded: what
it spilled to disk, how many such rows would have fitted, and how large the JVM was at most. With ``--long`` the
command audits so many records of the leader, and what they became on the follower, whose records have several rows
each as the consumer applied them: once, for the first time, with its usual heap. It prints how large the JVM and its
temporary files were at most.
"""

import argparse
import functools
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from consumer import PLAIN, Shape, bulk, execute, fill, updates
from jvm import Jvm
from measure import BIN, cpu_seconds, run_program
from pair import Pair
from pyspark.sql import SparkSession
from ratios import note
from table_checksum import Refused, TableChecksum, installed

from cdc.config.profile import Profile, load
from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import FOLLOWER, LEADER, parse, read
from cdc.spark.input.spans import span
from cdc.spark.job.session import CODE_CACHE, NO_REFERENCES, configure_for
from cdc.spark.pipeline import audit_topics
from cdc.spark.state.coverage import identity
from cdc.spark.state.store import StateStore
from cdc.spark.topics import Replication

ROUNDS = 3
WARM_UP, WARM_UP_ON = 20, 6


class Servers:
    """A leader and a captured follower with a Kafka between them, and the profiles of the programs."""

    def __init__(self, folder: Path) -> None:
        self.leader, self.follower = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2))
        self.kafka = Kafka(folder / "kafka").start()
        self.files = {
            LEADER: self._profile(folder / "leader.toml", self.leader, "mysql-srv1", "bench"),
            "consumer": self._profile(folder / "consumer.toml", self.follower, "mysql-srv1", "bench"),
            FOLLOWER: self._profile(folder / "follower.toml", self.follower, "mysql-srv1-follower", "bench-follower"),
        }
        self.profiles: dict[str, Profile] = {side: load(self.files[side]) for side in (LEADER, FOLLOWER)}
        settings = ["SET GLOBAL sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 2"]
        with self.follower.root() as connection, connection.cursor() as cursor:
            for statement in settings:
                cursor.execute(statement)
        self.pair = Pair(self.leader, self.follower)

    def _profile(self, path: Path, server: MySql, resource: str, topic: str) -> Path:
        path.write_text(
            f'mysql_resource_name = "{resource}"\n[database]\nport = {server.port}\nuser = "{USER}"\n'
            f'password = "{PASSWORD}"\n[kafka]\nbootstrap_servers = "{self.kafka.bootstrap_servers}"\n'
            f'topic = "{topic}"\n[log]\nlevel = "warning"\n'
        )
        return path

    def replicate(self) -> None:
        """Replicates everything that the leader has to the follower."""
        for program, of in (("cdc-producer", LEADER), ("cdc-consumer", "consumer")):
            run_program(program, self.files[of])

    def capture(self) -> int:
        """Captures the follower's binlog; returns the number of records in its topic then."""
        run_program("cdc-producer", self.files[FOLLOWER])
        return span(self.profiles[FOLLOWER].kafka).size

    def kill(self) -> None:
        for server in (self.leader, self.follower, self.kafka):
            server.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=150_000, help="of single rows (default %(default)s)")
    parser.add_argument("--rows", type=int, default=50_000, help="of the table (default %(default)s)")
    parser.add_argument("--changes", type=int, default=0, help="before each audit on from a state (default: 1 %%)")
    parser.add_argument("--keys", type=int, default=0, help="of a table for 512 MB (default: not measured)")
    parser.add_argument("--long", type=int, default=0, help="records of the leader (default: not measured)")
    options = parser.parse_args()
    print(f"{'':32}{'count':>9}{'wall s':>8}{'CPU s':>8}{'servers':>9}{'asked':>7}{'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        if options.keys:
            measure_memory(Path(folder), options.keys)
        elif options.long:
            measure_long(Path(folder), options.long)
        else:
            measure(Path(folder), options.updates, options.rows, options.changes or options.updates // 100)
    return 0


def measure(folder: Path, count: int, rows: int, changes: int) -> None:
    servers, chance = Servers(folder), random.Random(1)
    pair = servers.pair
    fill(servers.leader, Shape("", PLAIN, rows, updates, 0))
    execute(servers.leader, updated(count, rows, chance))
    servers.replicate()
    line("follower captured", servers.capture, cpu=cpu_seconds, pair=pair, rounds=1)
    line("cdc-audit", lambda: commanded(servers, folder), cpu=cpu_seconds, pair=pair)
    spark = session("2g")
    jvm = Jvm(spark).cpu_seconds
    floor = line("read and parsed only", lambda: parsed(spark, servers.profiles), cpu=jvm, pair=pair, warm_up=WARM_UP)
    work = functools.partial(audited, spark, servers.profiles, folder)
    line("audit", work, cpu=jvm, pair=pair, floor=floor, warm_up=WARM_UP)
    state = StateStore.open(spark, folder / "state", identity(servers.profiles, None))

    def kept() -> int:
        return audited(spark, servers.profiles, folder, state)

    line("audit that keeps a state", kept, cpu=jvm, pair=pair, rounds=1, floor=floor)
    for number in range(WARM_UP_ON + ROUNDS):
        execute(servers.leader, updated(changes, rows, chance))
        servers.replicate()
        servers.capture()
        if number < WARM_UP_ON:
            kept()
        else:
            line(f"on from it, {changes} more", kept, cpu=jvm, pair=pair, rounds=1, floor=floor)
    line("SELECT of all, compared", lambda: asked(servers), cpu=cpu_seconds, pair=pair)
    spark.stop()
    measure_table_checksum(servers.leader, folder / "s3")
    servers.kill()


def updated(count: int, rows: int, chance: random.Random) -> Iterator[str]:
    """Updates of single rows, evenly over all rows."""
    for n in range(count):
        yield f"UPDATE bench.t SET name = 'new {n}', k = k + 1 WHERE id = {chance.randrange(rows)}"


def measure_table_checksum(leader: MySql, folder: Path) -> None:
    if not installed():
        print("pt-table-checksum: not installed")
        return
    peer = TableChecksum(leader, folder)
    try:
        line("pt-table-checksum", peer.run, cpu=cpu_seconds, pair=Pair(leader, peer.replica))
    except Refused as refused:
        print(refused)
    peer.replica.kill()


def measure_memory(folder: Path, keys: int) -> None:
    servers = Servers(folder)
    fill(servers.leader, Shape("", PLAIN, 0, bulk, 0))
    execute(servers.leader, bulk(keys, random.Random(1)))
    servers.replicate()
    servers.capture()
    spark = session("512m")
    jvm = Jvm(spark)
    work = functools.partial(audited, spark, servers.profiles, folder)
    line(f"{keys} keys in 512 MB", work, cpu=jvm.cpu_seconds, pair=servers.pair, rounds=1)
    tell_memory(keys, jvm)
    spark.stop()
    servers.kill()


def tell_memory(keys: int, jvm: Jvm) -> None:
    """Prints how many keys would have fitted, from the size of the rows that the worst stage spilled to disk."""
    spilled, room = jvm.spilled_megabytes(), jvm.room_megabytes()
    if spilled:
        print(f"a stage spilled {spilled:.0f} MB of rows, {spilled * (1 << 20) / keys:.0f} bytes a key of both sides")
        fit = int(keys * room / spilled)
        print(f"{fit} keys fit into the {room:.0f} MB that are for rows; these are {keys / fit:.1f} times as many")
    print(f"the JVM was {jvm.peak_megabytes():.0f} MB at most")


_HISTORY = """
    CREATE PROCEDURE bench.history(count INT) BEGIN
        DECLARE n, changed INT DEFAULT 0;
        WHILE n < count DO
            IF n % 1000 = 0 THEN START TRANSACTION; END IF;
            IF n < count DIV 4 THEN
                INSERT INTO bench.t VALUES (n, CONCAT('name ', n), n + 0.25, '2024-02-29 12:34:56.789', n % 1000);
            ELSE
                SET changed = FLOOR(RAND() * (count DIV 4));
                UPDATE bench.t SET name = CONCAT('new ', n), k = k + 1 WHERE id = changed;
            END IF;
            SET n = n + 1;
            IF n % 1000 = 0 OR n = count THEN COMMIT; END IF;
        END WHILE;
    END
"""


def measure_long(folder: Path, count: int) -> None:
    """Measures the first audit of ``count`` records of the leader: a quarter inserts rows, the others update them."""
    servers = Servers(folder)
    fill(servers.leader, Shape("", PLAIN, 0, updates, 0))
    # Millions of statements from a client would cost it more than the server.
    execute(servers.leader, [_HISTORY, f"CALL bench.history({count})", "DROP PROCEDURE bench.history"])
    servers.replicate()
    print(f"the follower's topic has {servers.capture()} records", flush=True)
    with largest_size(folder / "spark") as size:
        line("first cdc-audit", lambda: commanded(servers, folder, SPARK_LOCAL_DIRS=str(folder / "spark")),
             cpu=cpu_seconds, pair=servers.pair, rounds=1)  # fmt: skip
    # The largest of all processes that have ended: the JVM, since those of the programs before it stay far below.
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"its JVM was {megabytes:.0f} MB at most, its temporary files {size() >> 20} MB")
    servers.kill()


@contextmanager
def largest_size(folder: Path) -> Iterator[Callable[[], int]]:
    """Watches a folder; yields what returns its largest size so far, in bytes."""
    folder.mkdir()
    ended, sizes = threading.Event(), [0]

    def watch() -> None:
        while not ended.wait(1):
            shown = subprocess.run(["du", "-sb", folder], capture_output=True, text=True)  # files may go meanwhile
            sizes.append(int(shown.stdout.split()[0]))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield lambda: max(sizes)
    finally:
        ended.set()
        watching.join()


def session(heap: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", heap)
    builder = builder.config("spark.jars", ",".join(map(str, spark_connector_jars(version("pyspark")))))
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.ansi.enabled", "true")
    builder = builder.config(*CODE_CACHE).config(*NO_REFERENCES)
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def parsed(spark: SparkSession, profiles: dict[str, Profile]) -> int:
    spans = {side: span(profile.kafka) for side, profile in profiles.items()}
    configure_for(spark, sum(each.size for each in spans.values()))
    messages = [
        read(spark, spans[side], options=kafka_options(profile.kafka), side=side) for side, profile in profiles.items()
    ]
    parse(messages[0].unionByName(messages[1])).write.format("noop").mode("overwrite").save()
    return sum(each.size for each in spans.values())


def audited(spark: SparkSession, profiles: dict[str, Profile], folder: Path, state: StateStore | None = None) -> int:
    audit = audit_topics(spark, Replication(profiles), folder / "report", state)
    assert audit.verdict == "no drift", audit
    return audit.leader.records + audit.follower.records


def commanded(servers: Servers, folder: Path, **variables: str) -> int:
    """Runs ``cdc-audit`` as a user does, with the connector already fetched."""
    sides = [word for side in (LEADER, FOLLOWER) for word in (f"--{side}", servers.files[side])]
    jars = ",".join(map(str, spark_connector_jars(version("pyspark"))))
    command = [BIN / "cdc-audit", *sides, "--report", folder / "report"]
    environment = os.environ | {"CDC_SPARK_JARS": jars} | variables
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return sum(span(profile.kafka).size for profile in servers.profiles.values())


def asked(servers: Servers) -> int:
    found = []
    for server in (servers.leader, servers.follower):
        with server.connect(database="bench") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM t ORDER BY id")
            found.append(cursor.fetchall())
    assert found[0] == found[1]
    return len(found[0])


@dataclass(frozen=True, order=True)
class Spent:
    """CPU and wall seconds, both servers' CPU seconds and statements, for so many records or rows."""

    cpu: float
    wall: float
    servers: float
    asked: int
    count: int


def line(
    name: str,
    work: Callable[[], int],
    *,
    cpu: Callable[[], float],
    pair: Pair,
    rounds: int = ROUNDS,
    floor: float = 0,
    warm_up: int = 0,
) -> float:
    """Measures and prints, after the warm-up rounds; returns the CPU seconds of the best round."""
    for _ in range(warm_up):
        work()
    best = min(spent(work, cpu, pair) for _ in range(rounds))
    ratio = f"{best.cpu / floor:7.2f}" if floor else ""
    figures = f"{best.count:9}{best.wall:8.2f}{best.cpu:8.2f}{best.servers:9.2f}{best.asked:7}"
    print(f"{name:32}{figures}{ratio}", flush=True)
    if floor:
        note(f"audit, {name}: CPU of a Spark that reads and parses", floor / best.cpu)
    return best.cpu


def spent(work: Callable[[], int], cpu: Callable[[], float], pair: Pair) -> Spent:
    asked, begun, before, theirs = pair.questions(), time.monotonic(), cpu(), pair.cpu_seconds()
    count = work()
    wall, after, theirs_after = time.monotonic() - begun, cpu(), pair.cpu_seconds()
    return Spent(after - before, wall, theirs_after - theirs, pair.questions() - asked, count)


if __name__ == "__main__":
    sys.exit(main())
