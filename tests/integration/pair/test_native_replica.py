"""A follower beside a replica of MySQL's own: whatever sessions with any settings do, both become as the leader is."""

import contextlib
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pymysql
import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content, counters, databases, numbers_given_twice
from tests.generators.native.families import FAMILIES, FAMILIES_OF_ENGINES
from tests.generators.native.history import NativeHistory
from tests.generators.random_history import Deed
from tests.harness.programs import records, run, write_profile
from tests.harness.replica import Replica
from tests.harness.seed import SEED
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.server_pool import ON_80, know_vectors, programs_of

pytestmark = pytest.mark.integration

ROUNDS = int(os.environ.get("CDC_NATIVE_ROUNDS", "1"))
DEEDS = int(os.environ.get("CDC_NATIVE_DEEDS", "100"))
# Of a follower: each changes what the consumer's statements would mean if its session did not set it.
SETTINGS = {
    "binlog_format": "'STATEMENT'", "completion_type": "'RELEASE'", "max_binlog_cache_size": "1048576",
    "max_execution_time": "1", "max_join_size": "1", "show_gipk_in_create_table_and_information_schema": "OFF",
    "sql_auto_is_null": "ON", "sql_safe_updates": "ON", "sql_select_limit": "0", "transaction_read_only": "ON",
}  # fmt: skip
LOST = "(2013, "  # the server went away while it ran the statement
# What a client's character set is called in Python.
_ENCODINGS = {"utf8mb3": "utf8", "utf8mb4": "utf8", "binary": "utf8", "koi8r": "koi8-r", "sjis": "shift_jis"}


@dataclass
class Session:
    """A connection, and the encoding in which its statements go to the server."""

    name: str
    cursor: Any
    encoding: str = "utf8"


@dataclass
class Round:
    """What became of a round's statements: those that were run, with the server's error, and what differs."""

    seed: int
    database: str
    statements: list[tuple[str, str, str]] = field(default_factory=list)  # session, statement, error
    taken: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def engines(self) -> bool:
        """Whether it has tables without transactions, and so none with foreign keys, of which each ALTER would stop."""
        return self.seed % 4 == 3


@dataclass(frozen=True)
class Trio:
    """A leader with its two copies."""

    leader: MySql
    follower: MySql
    replica: Replica
    kafka: Kafka
    folder: Path

    def round(self, seed: int) -> Round:
        """Work on a new database, and the comparison of what comes of it."""
        done = Round(seed, f"native_{seed}")
        source, target = self._profiles(done)
        self._program(done, "cdc-producer", source)

        def meanwhile() -> None:
            if self._program(done, "cdc-producer", source):
                self._apply(done, target)

        work(self.leader, done, files(self.folder), meanwhile)
        if not self.leader.running():
            lost = next(statement for _, statement, error in done.statements if error.startswith(LOST))
            done.notes.append(f"the leader crashed, which is its own fault: {lost}")
            self.leader.start()
        error = self.replica.catch_up()
        if error:
            done.notes.append(f"the replica stopped: {error}")
        if self._program(done, "cdc-producer", source) and self._apply(done, target):
            compare(self, done, native=not error)
            done.findings += self._numbers(done, source, native=not error)
        for server in (self.leader, self.follower):
            drop(server, done.database)
        if error:
            self.replica.restart()
            drop(self.replica.server, done.database)
        return done

    def _profiles(self, done: Round) -> tuple[Path, Path]:
        """Of producer and consumer, with any settings that must not show in what is replicated."""
        chance = random.Random(f"profiles of {done.seed}")
        producer: dict[str, Any] = {"start": "now"}
        consumer: dict[str, Any] = {"engine": "InnoDB" if done.engines else "keep"}
        kafka: dict[str, Any] = {}
        if chance.random() < 0.7:
            producer |= {"record_bytes": chance.choice([1000, 900_000]), "commit_records": chance.choice([5, 10_000])}
            consumer |= {"batch_rows": chance.choice([1, 3, 20, 5000]), "connections": chance.choice([1, 2, 4])}
            producer["message_bytes"] = chance.choice([1000, 8_000_000, 8_000_000])
            kafka = {"prefix": f"{done.database}.", "events": chance.random() < 0.3}
            if chance.random() < 0.4:
                kafka |= {"layout": "per_table", "partitions": chance.choice([1, 3])}
        shared = {"resource": done.database, "topic": done.database, "consumer": consumer, "kafka": kafka}
        source = write_profile(self.folder, self.leader, self.kafka, name=done.database, producer=producer, **shared)
        return source, write_profile(self.folder, self.follower, self.kafka, name=f"{done.database}-target", **shared)

    def _numbers(self, done: Round, profile: Path, *, native: bool) -> Iterator[str]:
        """Tables whose next number is not as on the replica, or, where that has stopped, one that the leader gave.

        It may be lower where the leader has prepared an XA transaction and rolled it back: the replica has executed it.
        But no number is given twice.
        """
        others = self.replica.server if native else self.leader
        ours, theirs = (counters(server, done.database) for server in (self.follower, others))
        undone = rolled_back(done)
        for name in sorted(ours.keys() & theirs.keys()) if native else ():
            if ours[name] > theirs[name] or (ours[name] < theirs[name] and not undone):
                yield f"{name}: AUTO_INCREMENT={ours[name]}, on the replica {theirs[name]}"
        if undone or not native:
            for table in numbers_given_twice(self.follower, records(profile)):
                name = table.partition(".")[2]
                # A column that has its type's highest number gives no other, on any server.
                if ours.get(name) != theirs.get(name):
                    yield f"{name}: gives a number that the leader gave"

    def _apply(self, done: Round, profile: Path) -> bool:
        """Run the consumer on a follower whose settings for everybody are any."""
        chance = random.Random(f"follower of {done.seed}, {len(done.statements)}")
        given = [name for name in SETTINGS if chance.random() < 0.3]
        with self.follower.root() as connection, connection.cursor() as cursor:
            for name in given:
                cursor.execute(f"SET GLOBAL {name} = {SETTINGS[name]}")
            try:
                return self._program(done, "cdc-consumer", profile)
            finally:
                for name in given:
                    cursor.execute(f"SET GLOBAL {name} = DEFAULT")

    def _program(self, done: Round, program: str, profile: Path) -> bool:
        ended = run(program, profile, "--until-current")
        lines = [line for line in ended.stderr.splitlines() if "warning conflict" in line or line.startswith(program)]
        done.findings += lines or ([ended.stderr[-1500:]] if ended.returncode else [])
        return not ended.returncode


@pytest.mark.skipif(len(ON_80) == 1, reason="9.7 refuses statements of 8.0, and 8.0 those of 9.7")
def test_native_replica(
    tmp_path: Path,
    leader: MySql,
    follower: MySql,
    mysql_server: MySqlFactory,
    kafka: Kafka,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--performance-schema=ON")
    replica = Replica.make(leader, mysql_server(*options, server_id=9, find=programs_of("leader")))
    trio = Trio(leader, follower, replica, kafka, tmp_path)
    taken: Counter[str] = Counter()
    for number in range(ROUNDS):
        done = trio.round(SEED + number)
        assert not done.findings, report(done)
        taken += done.taken
        if done.notes:
            with capsys.disabled():
                print(f"\nCDC_SEED={done.seed}: {[note[:200] for note in done.notes]}")
    with capsys.disabled():
        print(f"\n{ROUNDS} rounds, {taken.total()} statements, follower and replica as the leader (CDC_SEED={SEED})")


def files(folder: Path) -> list[str]:
    """Rows for LOAD DATA: texts that are numbers, dates and documents, or not, in any character set."""
    rows = ["1\ta\t2024-01-01\n2\t\\N\tb\n", "-5\té\t{}\t1\n\t\t\t\n", "[1]\t12:13:14\t\\0\t\\\\\t7\n"]
    paths = [folder / f"rows{number}" for number in range(len(rows))]
    for path, text in zip(paths, rows, strict=True):
        path.write_bytes(text.encode("utf8"))
    return [str(path) for path in paths]


def work(leader: MySql, done: Round, rows: list[str], meanwhile: Callable[[], None]) -> None:
    """Deeds of two sessions in turns. What the server refuses leaves nothing in the log."""
    chance = random.Random(done.seed)
    families, vectors = (
        FAMILIES_OF_ENGINES if done.engines else FAMILIES,
        know_vectors(),
    )
    families = chance.sample(families, min(6, len(families)))
    pauses = chance.sample(range(DEEDS), chance.choice([0, 0, 1, 3]))
    history = NativeHistory(chance, families=families, files=rows, vectors=vectors)
    with (
        leader.root(charset="utf8mb4", local_infile=True, use_unicode=False) as one,
        leader.root(charset="utf8mb4", local_infile=True, use_unicode=False) as two,
    ):
        sessions = [Session("a", one.cursor()), Session("b", two.cursor())]
        sessions[0].cursor.execute("SET GLOBAL local_infile = 1")
        charset = chance.choice(["utf8mb4", "utf8mb4", "latin1", "cp1251", "gbk"])
        do(sessions[0], f"CREATE DATABASE {done.database} CHARACTER SET {charset}", done)
        for session in sessions:
            session.cursor.execute("SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
            do(session, f"USE {done.database}", done)
        for number in range(DEEDS):
            if number in pauses and not done.findings:
                meanwhile()
            deed = history.next()
            if act(chance.choice(sessions), deed, done):
                history.tables = deed.tables


def rolled_back(done: Round) -> bool:
    """Whether an XA transaction was prepared, so that it is in the log, and never committed."""
    taken = [statement for _, statement, error in done.statements if not error]
    prepared, committed = (
        {each.removeprefix(head) for each in taken if each.startswith(head)} for head in ("XA PREPARE ", "XA COMMIT ")
    )
    return bool(prepared - committed)


def act(session: Session, deed: Deed, done: Round) -> bool:
    """Whether the server took the deed's last statement."""
    well = False
    for statement in deed.statements:
        well = do(session, statement, done)
    # What was refused may have left a transaction open, which the other session would wait for.
    ends = [] if well else ["UNLOCK TABLES"]
    for start in deed.statements:
        if start.startswith("XA START"):
            xid = start.removeprefix("XA START")
            ends += [f"XA END{xid}", f"XA ROLLBACK{xid}"]
    for statement in [*ends, "ROLLBACK"]:
        with contextlib.suppress(pymysql.MySQLError):
            session.cursor.execute(statement)
    return well


def do(session: Session, statement: str, done: Round) -> bool:
    """Whether the server took the statement."""
    error = ""
    if ON_80:  # whose documents can't have a longer TIME
        statement = re.sub(
            r"'(-?)(\d{2,3})(:\d\d:)", lambda found: f"'{found[1]}{int(found[2]) % 32:02d}{found[3]}", statement
        )
    try:
        session.cursor.execute(statement.encode(session.encoding, "replace"))
        while session.cursor.nextset():
            pass
    except pymysql.MySQLError as refused:
        error = str(refused)
    else:
        done.taken[statement.split()[0]] += 1
        if statement.startswith(("SET NAMES ", "SET CHARACTER SET ")):
            charset = statement.rpartition(" ")[2]
            session.encoding = _ENCODINGS.get(charset, charset)
    done.statements.append((session.name, statement, error))
    return not error


def drop(server: MySql, database: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {database}")
        cursor.execute("DROP DATABASE IF EXISTS native_two")


def compare(trio: Trio, done: Round, *, native: bool) -> None:
    """Find what is not on the follower as on the leader. What is wrong on the replica likewise is noted."""
    here, there = (found(server, done) for server in (trio.leader, trio.follower))
    other = found(trio.replica.server, done) if native else here
    if not native:
        # sql_quote_show_create, which is not replicated, decides how a CHECK is kept; there is no replica to show that.
        for each in (here, there):
            without_quotes(each)
    if done.engines:
        for each in (here, other):
            with_one_engine(each)
    for name in sorted(here.keys() | there.keys() | other.keys()):
        known = [each.get(name) for each in (here, there, other)]
        if known[0] != known[2]:
            done.notes.append(f"the replica differs: {first_difference(name, known[0], known[2])}")
        if known[0] != known[1]:
            same = "as on the replica" if known[1] == known[2] else "not as on the replica"
            text = f"{first_difference(name, known[0], known[1])} ({same})"
            (done.notes if known[1] == known[2] else done.findings).append(text)


def found(server: MySql, done: Round) -> dict[str, Any]:
    """The contents of both databases, of which the second one need not be there."""
    second = content(server, "native_two") if "native_two" in databases(server) else {}
    return content(server, done.database) | {f"native_two.{name}": each for name, each in second.items()}


def without_quotes(objects: dict[str, Any]) -> None:
    for each in objects.values():
        if isinstance(each, dict):
            each["definition"] = each["definition"].replace("`", "")


def with_one_engine(objects: dict[str, Any]) -> None:
    """Show tables of other engines as the consumer makes them."""
    for each in objects.values():
        if isinstance(each, dict):
            each["definition"] = re.sub("ENGINE=(MyISAM|MEMORY|CSV)", "ENGINE=InnoDB", each["definition"])


def first_difference(name: str, leaders: Any, others: Any) -> str:
    if not isinstance(leaders, dict) or not isinstance(others, dict):
        return f"{name}: {leaders!r} is {others!r}"
    if leaders["definition"] != others["definition"]:
        lines = zip(leaders["definition"].split("\n"), others["definition"].split("\n"), strict=False)
        one, two = next(((one, two) for one, two in lines if one != two), (leaders["definition"], others["definition"]))
        return f"{name}: {one} is {two}"
    for key in leaders:
        if leaders[key] != others[key]:
            lost, come = Counter(leaders[key]) - Counter(others[key]), Counter(others[key]) - Counter(leaders[key])
            one, two = next(iter(lost), None), next(iter(come), None)
            if one and two and len(one) == len(two):
                cells = [(place, a, b) for place, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
                return f"{name}: {key}: {lost.total()} rows, in the first (cell, leader, here) {cells}"
            return f"{name}: {key}: only on the leader {lost}, only here {come}"
    return f"{name}: unknown"


def report(done: Round) -> str:
    """What differs first, and the statements about it."""
    finding = done.findings[0]
    said = re.search(r"flv://[^/ ]*/[^/ ]*/([^/ :]+)", finding)
    names = {unquote(said[1]) if said else finding.partition(":")[0].removeprefix("native_two.")}
    told: list[str] = []
    for session, statement, error in reversed(done.statements):
        mentioned = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", statement) for name in names)
        if error and not mentioned:
            continue
        if mentioned and re.match("RENAME|ALTER.*(RENAME TO|EXCHANGE)|CREATE TABLE.*(LIKE|SELECT)", statement, re.S):
            names |= set(re.findall("`([^`]*)`", statement))
        if mentioned or statement.startswith(("SET", "BEGIN", "COMMIT", "ROLLBACK", "XA")):
            told.append(f"{session}: {statement};" + (f" -- {error}" if error else ""))
    return "\n".join([f"CDC_SEED={done.seed}", *done.findings, *reversed(told)])
