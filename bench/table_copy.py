"""Measures a copy of a leader's tables to a follower, beside mysqldump --single-transaction | mysql of the same rows.

    python bench/table_copy.py [--rows 300000] [--tables 50] [--shapes one,many] [--rate 0]

The shape ``one`` is sysbench's table with so many rows, ``many`` are --tables tables that share them. Leader, follower
and the server that the pipe fills have the same settings (every commit flushed, binlog on). Each line is a copy, from
the programs' start until the follower has all rows:

- into an empty follower, while nothing else goes on;
- ``again``, to a follower that has all rows already, and the same with every tenth row missing or different there;
- ``under load``, into an empty table, with 500 single-row updates a second of the tables that are copied.

At most ``--rate`` rows a second are copied; 0: any number.

``rows/s`` is from end to end, the rows for each CPU second are those of producer and consumer, ``MB`` is the largest
resident size of each; ``servers`` are the CPU seconds of leader and of follower. ``p99`` is that of the leader's
updates, commit included, in ms: first with the two programs that only replicate them, then with each kind of copy.
``delay`` is how many ms after an update's commit it can be read from Kafka, the average of the worst quarter of a
second, and after how many seconds it is on the follower, at most. ``ratio`` is to the pipe in the same conditions.
The line below a copy has the CPU seconds of each process for a million rows; how many chunks with how many rows the
producer read; and what the thread that reads them waited for, in seconds: until the stream ``asked`` for the next one,
until the throttles no longer ``held`` it back, until what the stream had read was ``visible``; and ``reading`` itself.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from delays import Delay, watched_delay, worst
from measure import BIN, profile, server_cpu_seconds
from ratios import note

from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.sandbox.server.process import free_port, wait_until

RATE, CLIENTS = 500, 4  # updates a second, and the sessions that share them
BEFORE_SECONDS = 15  # with the load alone
SECONDS = 3600  # only against hangs
TABLE = (
    "id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k)"
)
DIGITS = "LPAD(FLOOR(RAND() * 1e18), 20, '0')"
CPU = "leader", "follower", "producer", "consumer"
NOW = "UNIX_TIMESTAMP(SYSDATE(6))"
# Each session notes how long its updates took in a temporary table, which is not logged.
LOAD = f"""
    CREATE PROCEDURE bench.steady(seconds INT, tables INT, largest INT) BEGIN
        DECLARE started, begun DOUBLE DEFAULT {NOW};
        DECLARE done INT DEFAULT 0;
        WHILE done < seconds * {RATE // CLIENTS} AND NOT EXISTS (SELECT 1 FROM bench.stop) DO
            DO SLEEP(GREATEST(0, started + done * {CLIENTS / RATE} - {NOW}));
            SET @id = FLOOR(1 + RAND() * largest), begun = {NOW};
            IF tables = 1 OR done % 2 = 0 THEN UPDATE bench.t1 SET k = k + 1 WHERE id = @id;
            ELSE UPDATE bench.t2 SET k = k + 1 WHERE id = @id; END IF;
            INSERT INTO bench.took VALUES (({NOW} - begun) * 1e3);
            SET done = done + 1;
        END WHILE;
    END
"""


@dataclass(frozen=True)
class Ended:
    """CPU seconds and largest resident size of a process."""

    cpu: float
    megabytes: float


@dataclass(frozen=True)
class Run:
    """Wall seconds, and the resources of producer and consumer; none of our programs for the pipe."""

    wall: float
    programs: Sequence[Ended]
    delays: Sequence[Delay] = ()
    reading: str = ""


@dataclass(frozen=True)
class Servers:
    """The measured servers: ``third`` is filled by the pipe."""

    leader: MySql
    follower: MySql
    third: MySql
    source: Path
    target: Path
    metrics: tuple[int, int]  # ports of producer and consumer
    rows: int
    tables: int

    def empty(self, server: MySql) -> None:
        """Removes all rows of the tables; not logged."""
        execute(server, "SET sql_log_bin = 0", *(f"TRUNCATE bench.t{n}" for n in numbers(self.tables)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000, help="of all tables (default %(default)s)")
    parser.add_argument("--tables", type=int, default=50, help="of the shape many (default %(default)s)")
    parser.add_argument("--shapes", default="one,many", help="which to measure (default %(default)s)")
    parser.add_argument("--empty-only", action="store_true", help="leave out copies to a follower that has the rows")
    parser.add_argument("--rate", type=int, default=0, help="rows a second that are copied at most (default: any)")
    options, programs = parser.parse_args(), f"{'producer':>16}{'consumer':>16}"
    print(f"{'':33}{'rows':>9}{'wall s':>8}{'rows/s':>8}{'servers':>14}{programs}{'p99':>7}{'delay':>13}{'ratio':>7}")
    print(f"{'':72}{'rows/CPU s   MB':>16}{'rows/CPU s   MB':>16}")
    for shape in options.shapes.split(","):
        with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
            tables = options.tables if shape == "many" else 1
            measure(Path(folder), rows=options.rows, tables=tables, empty_only=options.empty_only, rate=options.rate)
    return 0


def measure(folder: Path, *, rows: int, tables: int, empty_only: bool, rate: int) -> None:
    leader, follower, third = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2, 3))
    kafka = Kafka(folder / "kafka").start()
    source, target = (profile(folder / f"{server.server_id}.toml", server, kafka) for server in (leader, follower))
    ports = (first := free_port()), free_port(other_than=first)
    source.write_text(
        source.read_text().replace('"warning"', '"debug"')
        + f'[producer]\nstart = "copy"\ncopy_rows_per_second = {rate}\n[filters]\nexclude_tables = ["bench.stop"]\n'
        f"[metrics]\nport = {ports[0]}\n"
    )
    target.write_text(target.read_text().replace('"warning"', '"info"') + f"[metrics]\nport = {ports[1]}\n")
    fill(leader, rows, tables)
    servers = Servers(leader, follower, third, source, target, ports, rows, tables)
    title = "one table" if tables == 1 else f"{tables} tables"
    while_idle(title, servers, empty_only=empty_only)
    under_load(f"{title}, {RATE} updates/s", servers)
    for each in (leader, follower, third, kafka):
        each.kill()


def while_idle(title: str, servers: Servers, *, empty_only: bool) -> None:
    piped = measured(f"{title}, idle leader", servers, by_pipe)
    measured(f"{title}, idle leader", servers, by_copy, beside=piped)
    if empty_only:
        return
    ask(servers)
    measured(f"{title}, again", servers, by_copy)
    if servers.tables == 1:
        execute(
            servers.follower, "DELETE FROM bench.t1 WHERE id % 20 = 0", "UPDATE bench.t1 SET k = -1 WHERE id % 20 = 1"
        )
        ask(servers)
        measured(f"{title}, a tenth lost", servers, by_copy)


def under_load(title: str, servers: Servers) -> None:
    with replicating(servers), watched_delay(servers.metrics) as delays, load(servers) as took:
        time.sleep(BEFORE_SECONDS)
    print(f"{title}  replicated only{p99(took):79.1f}{worst(delays)}", flush=True)
    servers.empty(servers.third)
    piped = measured(title, servers, by_pipe, loaded=True)
    servers.empty(servers.follower)
    ask(servers)
    measured(title, servers, by_copy, loaded=True, beside=piped)


def ask(servers: Servers) -> None:
    subprocess.run([BIN / "cdc-producer", servers.source, "--copy", "bench.t*"], check=True)


def measured(
    title: str, servers: Servers, work: Callable[[Servers], Run], *, loaded: bool = False, beside: Run | None = None
) -> Run:
    """Does the work, and prints its line."""
    os.sync()  # no side pays for earlier writes
    both = servers.leader, servers.third if work is by_pipe else servers.follower
    before = [server_cpu_seconds(server) for server in both]
    with load(servers) if loaded else nullcontext(()) as took:
        run = work(servers)
    spent = [server_cpu_seconds(server) - at for server, at in zip(both, before, strict=True)]
    rows = servers.rows
    programs = "".join(f"{rows / each.cpu:11.0f}{each.megabytes:5.0f}" for each in run.programs)
    print(
        f"{title:28}{'copy' if run.programs else 'pipe':5}{rows:9}{run.wall:8.2f}{rows / run.wall:8.0f}"
        f"{spent[0]:7.1f}{spent[1]:7.1f}{programs:32}" + (f"{p99(took):7.1f}" if took else f"{'':7}")
        + (worst(run.delays) if loaded else f"{'':13}")
        + (f"{beside.wall / run.wall:7.2f}" if beside else ""),
        flush=True,
    )  # fmt: skip
    if run.programs:
        cpu = [*spent, *(each.cpu for each in run.programs)]
        each = (f"{name} {seconds / rows * 1e6:.1f}" for name, seconds in zip(CPU, cpu, strict=True))
        print(f"  CPU s for 1 M rows: {', '.join(each)}; {run.reading}", flush=True)
    if beside:
        note(f"copy, {title}: seconds of mysqldump | mysql", beside.wall / run.wall)
    return run


def by_copy(servers: Servers) -> Run:
    """Runs both programs until the follower has all tables."""
    log = servers.target.with_suffix(".log")
    begun = time.monotonic()
    with log.open("wb") as out, servers.source.with_suffix(".log").open("wb") as said:
        producer = subprocess.Popen([BIN / "cdc-producer", servers.source, "--until-current"], stderr=said)
        consumer = subprocess.Popen([BIN / "cdc-consumer", servers.target], stderr=out)
        there = lambda: log.read_text().count("table copied") >= servers.tables or has_failed(consumer, producer)  # noqa: E731
        with watched_delay(servers.metrics) as delays:
            assert wait_until(there, seconds=SECONDS) and not has_failed(consumer, producer), log.read_text()[-2000:]
        wall = time.monotonic() - begun
        consumer.terminate()
        run = Run(wall, [ended(producer), ended(consumer)], delays)
    return replace(run, reading=reading(servers.source.with_suffix(".log").read_text()))


def reading(log: str) -> str:
    """How many chunks the producer read, and what its thread waited for, in seconds; from the log."""
    found = re.findall(r"chunks were read (.*)", log)
    return " ".join(found)


def has_failed(*processes: "subprocess.Popen[bytes]") -> bool:
    """Whether one has ended badly. It is not waited for here: waiting returns the resources that it used."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    ends = [os.waitid(os.P_PID, process.pid, options) for process in processes]
    return any(end is not None and end.si_status for end in ends)


def ended(process: "subprocess.Popen[bytes]") -> Ended:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{process.args} ended with {process.returncode}"
    return Ended(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def by_pipe(servers: Servers) -> Run:
    """Runs mysqldump | mysql into the third server."""
    what = ["--databases", "bench", "--ignore-table=bench.stop"]
    dump = [*client(servers.leader, "mysqldump"), "--single-transaction", "--set-gtid-purged=OFF", *what]
    begun = time.monotonic()
    writer = subprocess.Popen(dump, stdout=subprocess.PIPE)
    subprocess.run(client(servers.third, "mysql"), stdin=writer.stdout, check=True)
    assert writer.wait() == 0
    return Run(time.monotonic() - begun, [])


def client(server: MySql, program: str) -> list[str]:
    found = [*mysql_programs().client]
    options = server.folder / "bench.cnf"
    options.write_text(
        f'[client]\nprotocol=tcp\nhost=127.0.0.1\nport={server.port}\nuser={USER}\npassword="{PASSWORD}"\n'
    )
    return [*found[:-1], str(Path(found[-1]).with_name(program)), f"--defaults-file={options}"]


@contextmanager
def replicating(servers: Servers) -> Iterator[None]:
    """Runs producer and consumer."""
    with servers.target.with_suffix(".log").open("wb") as out:
        programs = [
            subprocess.Popen([BIN / "cdc-producer", servers.source]),
            subprocess.Popen([BIN / "cdc-consumer", servers.target], stderr=out),
        ]
        try:
            yield
        finally:
            for program in programs:
                program.terminate()
                program.wait()


@contextmanager
def load(servers: Servers) -> Iterator[list[float]]:
    """Updates the tables during the block; at its end the list has the ms that each update took."""
    took: list[float] = []
    execute(servers.leader, "SET sql_log_bin = 0", "TRUNCATE bench.stop")
    sessions = [threading.Thread(target=session, args=(servers, took)) for _ in range(CLIENTS)]
    for each in sessions:
        each.start()
    try:
        yield took
    finally:
        execute(servers.leader, "SET sql_log_bin = 0", "INSERT INTO bench.stop VALUES (1)")
        for each in sessions:
            each.join()


def session(servers: Servers, took: list[float]) -> None:
    with servers.leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE bench.took (ms DOUBLE) ENGINE = MEMORY")
        arguments = f"{SECONDS}, {servers.tables}, {servers.rows // servers.tables}"
        cursor.execute(f"CALL bench.steady({arguments})")
        cursor.execute("SELECT ms FROM bench.took")
        took += [ms for (ms,) in cursor.fetchall()]


def p99(took: Sequence[float]) -> float:
    return sorted(took)[len(took) * 99 // 100]


def fill(leader: MySql, rows: int, tables: int) -> None:
    # The tables that the load needs are not copied.
    execute(leader, "CREATE DATABASE bench", *(f"CREATE TABLE bench.t{n} ({TABLE})" for n in numbers(tables)))
    execute(leader, "SET sql_log_bin = 0", "CREATE TABLE bench.stop (n INT)", LOAD)
    some = rows // tables
    pad = f"RPAD(CONCAT_WS('-', {', '.join([DIGITS] * 3)}), 58, '1')"
    text = f"RPAD(CONCAT_WS('-', {', '.join([DIGITS] * 5)}), 118, '1')"
    made = f"SELECT FLOOR(RAND() * 1000000), {text}, {pad}"
    statements = ["SET sql_log_bin = 0, cte_max_recursion_depth = 100000000"]
    for number in numbers(tables):
        for first in range(0, some, 50_000):
            last = min(50_000, some - first)
            count = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {last})"
            statements.append(f"INSERT INTO bench.t{number} (k, c, pad) {count} {made} FROM n")
    execute(leader, *statements)


def numbers(tables: int) -> range:
    return range(1, tables + 1)


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


if __name__ == "__main__":
    sys.exit(main())
