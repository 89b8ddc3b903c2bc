"""How fast the audit is: beside Spark that only reads and parses the same topics, and beside asking both databases.

    python bench/audit.py [--updates 150000] [--rows 50000] [--keys 0]

A leader with ``--rows`` rows and ``--updates`` single-row updates is replicated by our programs, and its follower
captured. Then, in one Spark on local[2] with a JVM that is warm, each in turn and the best of three:

    floor         both topics read and parsed, nothing else
    audit         from their beginning, the report included
    incremental   on from the state of that audit, after 1 % more updates
    SELECT        every row of both tables asked of both servers in the order of the key, and compared

What counts is CPU time: of the JVM (all threads) and of both servers. With ``--keys`` a table of so many rows is
audited with a heap of 512 MB, which says whether memory is bounded.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from consumer import PLAIN, Shape, bulk, execute, fill, updates
from measure import run_program, server_cpu_seconds
from pyspark.sql import SparkSession

from cdc.profile import Profile, load
from cdc.sandbox.jars import spark_connector_jars
from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import PASSWORD, USER, MySql
from cdc.spark.audit import audit_topics
from cdc.spark.brokers import kafka_options, span
from cdc.spark.session import KEPT_CODE, set_for
from cdc.spark.state import State, identity
from cdc.spark.topics import FOLLOWER, LEADER, parse, read

ROUNDS = 3


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

    def _profile(self, path: Path, server: MySql, resource: str, topic: str) -> Path:
        path.write_text(
            f'mysql_resource_name = "{resource}"\n[database]\nport = {server.port}\nuser = "{USER}"\n'
            f'password = "{PASSWORD}"\n[kafka]\nbootstrap_servers = "{self.kafka.bootstrap_servers}"\n'
            f'topic = "{topic}"\n[log]\nlevel = "warning"\n'
        )
        return path

    def replicate(self) -> None:
        """Bring what the leader has to the follower, and what the follower logged into its topic."""
        for program, of in (("cdc-producer", LEADER), ("cdc-consumer", "consumer"), ("cdc-producer", FOLLOWER)):
            run_program(program, self.files[of])

    def cpu_seconds(self) -> float:
        return server_cpu_seconds(self.leader) + server_cpu_seconds(self.follower)

    def kill(self) -> None:
        for server in (self.leader, self.follower, self.kafka):
            server.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=150_000, help="of single rows (default %(default)s)")
    parser.add_argument("--rows", type=int, default=50_000, help="of the table (default %(default)s)")
    parser.add_argument("--keys", type=int, default=0, help="of a table for 512 MB (default: not measured)")
    options = parser.parse_args()
    print(f"{'':34}{'records':>9}{'wall s':>8}{'CPU s':>8}{'servers':>9}{'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        if options.keys:
            measure_memory(Path(folder), options.keys)
        else:
            measure(Path(folder), options.updates, options.rows)
    return 0


def measure(folder: Path, count: int, rows: int) -> None:
    servers, chance = Servers(folder), random.Random(1)
    fill(servers.leader, Shape("", PLAIN, rows, updates, 0))
    execute(servers.leader, updates(count, chance))
    servers.replicate()
    spark = session("2g")
    floor = line(servers, spark, "read and parsed only", lambda: parsed(spark, servers.profiles))
    line(servers, spark, "audit", lambda: audited(spark, servers.profiles, folder), floor=floor)
    line(servers, spark, "SELECT of all, compared", lambda: asked(servers))
    state = State.open(spark, folder / "state", identity(servers.profiles, None))
    line(servers, spark, "audit that keeps a state", lambda: kept(spark, servers, folder, state), rounds=1, floor=floor)
    for _ in range(ROUNDS):
        execute(servers.leader, updates(count // 100, chance))
        servers.replicate()
        line(servers, spark, "on from it, 1 % more", lambda: kept(spark, servers, folder, state), rounds=1, floor=floor)
    spark.stop()
    servers.kill()


def measure_memory(folder: Path, keys: int) -> None:
    servers = Servers(folder)
    fill(servers.leader, Shape("", PLAIN, 0, bulk, 0))
    execute(servers.leader, bulk(keys, random.Random(1)))
    servers.replicate()
    spark = session("512m")
    line(servers, spark, f"{keys} keys in 512 MB", lambda: audited(spark, servers.profiles, folder), rounds=1)
    spark.stop()
    servers.kill()


def session(heap: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", heap)
    builder = builder.config("spark.jars", ",".join(map(str, spark_connector_jars(version("pyspark")))))
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.ansi.enabled", "true")
    builder = builder.config(*KEPT_CODE)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def parsed(spark: SparkSession, profiles: dict[str, Profile]) -> int:
    spans = {side: span(profile.kafka) for side, profile in profiles.items()}
    set_for(spark, sum(each.size for each in spans.values()))
    messages = [
        read(spark, spans[side], options=kafka_options(profile.kafka), side=side) for side, profile in profiles.items()
    ]
    parse(messages[0].unionByName(messages[1])).write.format("noop").mode("overwrite").save()
    return sum(each.size for each in spans.values())


def audited(spark: SparkSession, profiles: dict[str, Profile], folder: Path, state: State | None = None) -> int:
    audit = audit_topics(spark, profiles, None, folder / "report", state)
    assert audit.verdict == "no drift", audit
    return audit.leader.records + audit.follower.records


def kept(spark: SparkSession, servers: Servers, folder: Path, state: State) -> int:
    return audited(spark, servers.profiles, folder, state)


def asked(servers: Servers) -> int:
    found = []
    for server in (servers.leader, servers.follower):
        with server.connect(database="bench") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM t ORDER BY id")
            found.append(cursor.fetchall())
    assert found[0] == found[1]
    return len(found[0])


def line(
    servers: Servers, spark: SparkSession, name: str, work: Callable[[], int], *, rounds: int = ROUNDS, floor: float = 0
) -> float:
    """Measure and print; the CPU seconds of the best round."""
    best = None
    for _ in range(rounds):
        begun, cpu, theirs = time.monotonic(), jvm_cpu_seconds(spark), servers.cpu_seconds()
        records = work()
        spent = (jvm_cpu_seconds(spark) - cpu, time.monotonic() - begun, servers.cpu_seconds() - theirs, records)
        best = min(best or spent, spent)
    assert best is not None
    ratio = f"{best[0] / floor:7.2f}" if floor else ""
    print(f"{name:34}{best[3]:9}{best[1]:8.2f}{best[0]:8.2f}{best[2]:9.2f}{ratio}", flush=True)
    return best[0]


def jvm_cpu_seconds(spark: SparkSession) -> float:
    """All threads' since the JVM's start."""
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / 100


if __name__ == "__main__":
    sys.exit(main())
