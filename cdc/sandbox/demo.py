"""Runs the demo. It replicates the tutorial, one statement after another, and audits the follower. Then it writes a row
on the follower by hand, and finds and repairs that row."""

import importlib.metadata
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pymysql
from confluent_kafka import Consumer, TopicPartition

from cdc.config.profile import load
from cdc.errors import PromiseError, ServerGone, UserError
from cdc.kafka.errors import NO_TOPIC
from cdc.sandbox.fetch.jars import java, spark_connector_jars
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import Process, wait_until
from cdc.sandbox.servers import ProfileFiles, Servers
from cdc.service.java import with_spark

__all__ = ["Programs", "demo", "spark_jars"]

# Runs cdc's programs as a user would run them: as console scripts with a profile.

_AUDIT_SECONDS = 300
_REPAIR_SECONDS = 60


class Programs:
    """Runs a producer on each server, and the consumer between the servers. Also runs audits and repairs. The logs of
    all programs are in ``folder``.
    """

    def __init__(self, folder: Path, profiles: ProfileFiles) -> None:
        self._folder = folder
        self._profiles = profiles
        self._running: list[Process] = []

    def start(self) -> None:
        """Starts both producers and the consumer. They end together with this process. Raises UserError if a program is
        not installed.
        """
        for script, name, profile in (
            ("cdc-producer", "producer", self._profiles.producer),
            ("cdc-producer", "follower-producer", self._profiles.follower),
            ("cdc-consumer", "consumer", self._profiles.consumer),
        ):
            process = Process(name, folder=self._folder)
            process.start([_script(script), profile])
            self._running.append(process)

    def check(self) -> None:
        """Raises PromiseError, with the last line of the program's output, if a program has ended."""
        for process in self._running:
            if not process.running():
                said = process.said().rpartition("\n")[2]
                raise PromiseError(f"{process.name} ended: {said}", code="CDC-DEMO-NO-PROGRESS", where=str(process.log))

    def stop(self) -> None:
        """Stops the programs in the order in which they were started. Raises PromiseError if a program does not end by
        itself within 30 s."""
        slow = [process.name for process in self._running if not process.stop(seconds=30)]
        self._running.clear()
        if slow:
            raise PromiseError(
                f"{', '.join(slow)} did not end when asked to", code="CDC-DEMO-NO-PROGRESS", where=str(self._folder)
            )

    def kill(self) -> None:
        """Sends SIGKILL to the programs that are still running."""
        for process in self._running:
            process.kill()
        self._running.clear()

    def audit(self, report: Path) -> tuple[int, str]:
        """Runs the audit; returns its exit status and output. The audit writes its report to the folder ``report``."""
        process = Process(report.name, folder=self._folder)
        files = ("--leader", self._profiles.producer, "--follower", self._profiles.follower, "--report", report)
        jars = ",".join(map(str, spark_jars()))
        process.start([_script("cdc-audit"), *files], environment=os.environ | {"CDC_SPARK_JARS": jars})
        return process.wait(seconds=_AUDIT_SECONDS), process.said()

    def repair(self, report: Path) -> str:
        """Runs cdc-repair on ``report``; returns its output. Raises PromiseError if cdc-repair fails, which means that
        not all drifted rows were requested.
        """
        process = Process("repair", folder=self._folder)
        process.start([_script("cdc-repair"), self._profiles.producer, "--report", report])
        if status := process.wait(seconds=_REPAIR_SECONDS):
            raise PromiseError(
                f"cdc-repair ended with exit status {status}", code="CDC-DEMO-BROKEN", where=str(process.log)
            )
        return process.said()


def spark_jars() -> list[Path]:
    """Fetches the jars with which Spark reads Kafka, if they are not in the cache yet. Raises UserError if Java or
    PySpark is missing, or if the jars can't be fetched.
    """
    java()
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise UserError("the audit needs PySpark", code="CDC-SANDBOX-JARS", hint=with_spark()) from None
    return spark_connector_jars(version)


def _script(name: str) -> Path:
    script = Path(sys.executable).with_name(name)
    if not script.exists():
        raise UserError(
            f"{name} is not installed", code="CDC-SANDBOX-JARS", where=str(script.parent), hint=with_spark()
        )
    return script


_TUTORIAL = Path(__file__).with_name("tutorial.sql")
_KEYED = (
    "CREATE TABLE flvDb.visit (pet VARCHAR(20), day DATE, vet VARCHAR(20), PRIMARY KEY (pet, day))",
    "INSERT INTO flvDb.visit VALUES ('Spot', '2010-11-30', 'Kim'), ('Jack', '2010-12-24', 'Lee')",
)
_FOREIGN = "INSERT INTO flvDb.visit VALUES ('Ghost', '2024-10-31', 'nobody')"
_LAST_SEQUENCE = 8
_LAST_KEYED = _LAST_SEQUENCE + len(_KEYED)
_NO_DRIFT, _DRIFT = 0, 1


_SECONDS = 60
_NO_SUCH_TABLE = (pymysql.constants.ER.NO_SUCH_TABLE, pymysql.constants.ER.BAD_DB_ERROR)


class Topic:
    """Reads the committed records of a topic in order, from the first record on. While it waits, it calls ``check``,
    which may raise an error."""

    def __init__(self, name: str, *, bootstrap_servers: str, check: Callable[[], None]) -> None:
        self.name = name
        self._check = check
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"cdc-sandbox-{name}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(name, 0, 0)])

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def next(self) -> dict[str, Any]:
        """Waits for the next record and returns it. Raises PromiseError if no record arrives within a minute, and
        ServerGone if reading from Kafka fails.
        """
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            self._check()
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            error, value = message.error(), message.value()
            if error is None and value is not None:
                record: dict[str, Any] = json.loads(value)
                return record
            # The topic may be missing at first, because the producer creates it, and may do so only after this program
            # begins to read.
            if error is not None and error.code() not in NO_TOPIC:
                raise ServerGone(error.str(), where=f"topic {self.name}")
        raise PromiseError(
            f"no further record within {_SECONDS} s", code="CDC-DEMO-NO-PROGRESS", where=f"topic {self.name}"
        )

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads up to the first record for which ``wanted`` is true, and returns it. Raises PromiseError if no further
        record arrives within a minute."""
        return next(record for record in self._rest() if wanted(record))

    def _rest(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self.next()


class Checkpoint:
    """Reads the checkpoint of the leader ``resource`` on the follower."""

    def __init__(self, follower: MySql, resource: str, *, check: Callable[[], None]) -> None:
        self._connection = follower.connect()
        self._resource = resource
        self._check = check

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def reached(self, sequence: int) -> float:
        """Waits until the checkpoint shows that the follower has applied the record ``sequence``; returns the time at
        which this was seen, in seconds since 1970.

        Raises PromiseError if the follower has not applied the record within a minute.
        """

        def has_it() -> bool:
            self._check()
            found = self._sequence()
            return found is not None and found >= sequence

        if not wait_until(has_it, seconds=_SECONDS, every=0.002):
            raise PromiseError(
                f"the follower has not applied sequence {sequence} within {_SECONDS} s", code="CDC-DEMO-NO-PROGRESS"
            )
        return time.time()

    def _sequence(self) -> int | None:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SELECT MIN(sequence) FROM cdc.checkpoint WHERE resource = %s", (self._resource,))
                row = cursor.fetchone()
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _NO_SUCH_TABLE:
                raise
            return None  # the consumer has not created the checkpoint table yet
        return None if row is None else row[0]


def demo(folder: Path | None) -> int:
    """Runs the demo in the empty ``folder``, or in a temporary folder if ``folder`` is None, and prints each step.

    All servers and programs are stopped when the demo ends. Raises PromiseError if a result of the demo differs from
    the expected result.
    """
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="cdc-demo-")) if folder is None else folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UserError(
            "the demo's folder is not empty",
            code="CDC-SANDBOX-FOLDER",
            where=str(folder),
            hint="name an empty or a new one",
        )
    servers = Servers(folder)
    try:
        _title("Servers: two MySQL, one Kafka")
        servers.start(say=print)
        spark_jars()
        _replicate_and_prove(servers)
    finally:
        servers.kill()
        servers.wipe()
    _title(f"Done in {time.monotonic() - started:.0f} s, everything stopped")
    print(f"report before the foreign write: {folder / 'report' / 'report.html'}")
    print(f"report after it:                 {folder / 'report-drift' / 'report.html'}")
    print(f"report after the repair:         {folder / 'report-repaired' / 'report.html'}")
    print(f"profiles and logs:               {folder}")
    return 0


def _replicate_and_prove(servers: Servers) -> None:
    programs = Programs(servers.folder / "logs", servers.profiles)
    leader_profile, follower_profile = load(servers.profiles.producer), load(servers.profiles.follower)
    resource = leader_profile.mysql_resource_name
    with ExitStack() as stack:
        programs.start()
        stack.callback(programs.kill)
        records, echoes = (
            stack.enter_context(
                closing(
                    Topic(profile.kafka.topic, bootstrap_servers=servers.kafka.bootstrap_servers, check=programs.check)
                )
            )
            for profile in (leader_profile, follower_profile)
        )
        checkpoint = stack.enter_context(closing(Checkpoint(servers.follower, resource, check=programs.check)))
        _title("cdc-producer on each server, cdc-consumer between them")
        checkpoint.reached(-1)
        print("all three run")
        _tutorial(servers.leader, records, checkpoint)
        _compare(servers.leader, servers.follower)
        _title("cdc-audit: both topics folded and compared by Spark")
        echoes.until(_is_checkpoint_of(_LAST_SEQUENCE))
        _audit(programs, servers.folder / "report", status=_NO_DRIFT, words=["no drift", f"sequence {_LAST_SEQUENCE}"])
        _title("A table with a key, and a row of it written on the follower by hand")
        _keyed_table(servers.leader, records, checkpoint)
        position = _write_by_hand(servers.follower, echoes)
        _title("cdc-audit again")
        _audit(programs, servers.folder / "report-drift", status=_DRIFT, words=["Ghost", *position])
        _title("cdc-repair: the producer sends the row again, from the leader")
        repaired = _repair(programs, servers.folder / "report-drift", records, checkpoint)
        echoes.until(_is_checkpoint_of(repaired))
        _title("cdc-audit once more")
        words = ["no drift", f"sequence {repaired}"]
        _audit(programs, servers.folder / "report-repaired", status=_NO_DRIFT, words=words)
        programs.stop()


def _tutorial(leader: MySql, records: Topic, checkpoint: Checkpoint) -> None:
    _title("The tutorial on the leader, statement by statement")
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in _statements():
            before = _executed(cursor)
            print(f"leader>   {statement};")
            cursor.execute(statement)
            if _executed(cursor) == before:
                print("          no change, no record\n")
                continue
            record = records.next()
            seen = checkpoint.reached(record["sequence"])
            after = seen - record["transaction"]["ts_us"] / 1e6
            print(f"record    {_shown(record)}")
            print(f"follower  had it {after * 1000:.0f} ms after the commit\n")
    if record["sequence"] != _LAST_SEQUENCE:
        raise PromiseError(
            f"the tutorial became records up to sequence {record['sequence']}, not {_LAST_SEQUENCE}",
            code="CDC-DEMO-BROKEN",
        )


def _shown(record: dict[str, Any]) -> str:
    """Returns the JSON of a record as in Kafka, without the session settings of a statement, because they would fill a
    screen.
    """
    short = record | ({"context": "…"} if "context" in record else {})
    return json.dumps(short, ensure_ascii=False, separators=(",", ":"))


def _statements() -> Iterator[str]:
    """Yields the statements of the tutorial, whose file has one statement per line."""
    for line in _TUTORIAL.read_text().splitlines():
        if line and not line.startswith("--"):
            yield line.rstrip(";")


def _executed(cursor: Any) -> str:
    cursor.execute("SELECT @@GLOBAL.gtid_executed")
    return str(cursor.fetchone()[0])


def _compare(leader: MySql, follower: MySql) -> None:
    tables = []
    for name, server in (("leader", leader), ("follower", follower)):
        _title(f"SELECT * FROM pet on the {name}")
        with server.connect(database="flvDb") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM pet")
            table = [tuple(column[0] for column in cursor.description), *cursor.fetchall()]
        for row in table:
            print("  ".join(f"{'NULL' if value is None else value!s:12}" for value in row).rstrip())
        tables.append(table)
    if sorted(map(repr, tables[0])) != sorted(map(repr, tables[1])):
        raise PromiseError("the follower's pet is not the leader's", code="CDC-DEMO-BROKEN")


def _is_checkpoint_of(sequence: int) -> Callable[[dict[str, Any]], bool]:
    """Returns a function for records of the follower's topic. It decides whether a record is the UPDATE that sets the
    checkpoint to the leader's ``sequence``.
    """

    def is_checkpoint(record: dict[str, Any]) -> bool:
        if not record["uri"].endswith("/cdc/checkpoint") or "Update" not in record["operation"]:
            return False
        row = record["operation"]["Update"]["rows"][-1]["after_cols"]
        return bool(row[record["columns"].index("sequence")] == {"SignedInteger": sequence})

    return is_checkpoint


def _keyed_table(leader: MySql, records: Topic, checkpoint: Checkpoint) -> None:
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in _KEYED:
            print(f"leader>   {statement};")
            cursor.execute(statement)
            checkpoint.reached(records.next()["sequence"])


def _repair(programs: Programs, report: Path, records: Topic, checkpoint: Checkpoint) -> int:
    """Repairs the drifted rows in ``report``. Returns the sequence of the record with which the producer
    repairs them.
    """
    print(programs.repair(report))
    record = records.next()
    if "Repair" not in record["operation"] or record["sequence"] != _LAST_KEYED + 1:
        raise PromiseError(
            f"the producer wrote another record than the repair: {_shown(record)}", code="CDC-DEMO-BROKEN"
        )
    checkpoint.reached(record["sequence"])
    print(f"record    {_shown(record)}")
    return int(record["sequence"])


def _write_by_hand(follower: MySql, echoes: Topic) -> list[str]:
    """Writes a row on the follower by hand. Returns the binlog file and offset of this write; they are read from the
    topic of the follower's own producer.
    """
    print(f"follower> {_FOREIGN};")
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute(_FOREIGN)
    record = echoes.until(lambda record: record["uri"].endswith("/flvDb/visit") and "Ghost" in json.dumps(record))
    position = record["bn_file"]
    print(f"it is in the follower's binlog at {position['fileName']}:{position['offset']}")
    return [position["fileName"], str(position["offset"])]


def _audit(programs: Programs, report: Path, *, status: int, words: list[str]) -> None:
    got, said = programs.audit(report)
    print(f"{said}\nexit status {got}")
    print("(times are of programs that have just started; docs/performance.md has those of programs that have run)")
    missing = [word for word in words if word.lower() not in said.lower()]
    if got != status:
        raise PromiseError(
            f"the audit's exit status is {got}, {status} was promised", code="CDC-DEMO-BROKEN", where=str(report)
        )
    if missing:
        raise PromiseError(f"the audit did not say {', '.join(missing)}", code="CDC-DEMO-BROKEN", where=str(report))


def _title(text: str) -> None:
    print(f"\n── {text} " + "─" * max(0, 100 - len(text)), flush=True)
