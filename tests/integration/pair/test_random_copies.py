"""Random tables that are copied, in chunks of few rows, while random statements and rows change them: all are equal."""

import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc.model.record import Record
from cdc.producer.copy.definition import read_definition
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.generators.random_history import Deed, RandomHistory
from tests.generators.random_tables import LAX
from tests.harness.long_runs import LONG
from tests.harness.programs import records, run, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_pool import know_vectors
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration

HISTORIES = int(os.environ.get("CDC_COPIED_HISTORIES", "1"))
_TABLES = 4  # that are there before the copy
# An XA transaction that a copy begins amidst stops the producer; views that are invalid when it begins are not copied.
_LEFT_OUT = ("XA", "ALTER VIEW", "DROP VIEW `")
_TURNS = 3 if LONG else 2  # copies of all tables, one after the other
# A copy begins again with each statement on its table, so on a busy machine it would not end while there is one.
_DEEDS = 400 if LONG else 200  # of a turn, mostly more than the copy takes


class Writer:
    """Random deeds of one session on the leader. A table that can't be copied is dropped as soon as it is seen."""

    def __init__(self, leader: MySql, database: str, chance: random.Random, log: Path) -> None:
        self._leader, self._database, self._chance, self._log = leader, database, chance, log
        self._history = RandomHistory(chance, vectors=know_vectors())
        self._stop = threading.Event()
        self._left = 0
        self._failure: BaseException | None = None
        self.statements: Counter[str] = Counter()

    def fill(self) -> None:
        """Tables with some dozens of rows."""
        with self._session() as cursor:
            while len(self._history.tables) < _TABLES:
                deed = self._history.next()
                if deed.statements[-1].startswith("CREATE TABLE"):
                    self._do(cursor, deed)
            for table in self._history.tables.values():
                for statement in table.inserts(self._chance, rows=self._chance.randint(10, 80)):
                    self._take(cursor, statement)
            # The history knows nothing of this one, so that it never drops it: something is there to copy in each turn.
            assert self._take(cursor, "CREATE TABLE kept (id INT PRIMARY KEY) SELECT 1 AS id UNION SELECT 2")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Deeds meanwhile."""
        thread = threading.Thread(target=self._write, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(LIMIT_SECONDS)
        assert not thread.is_alive(), f"a statement of {self._log} hangs"
        if self._failure is not None:
            raise self._failure

    def begin_turn(self) -> None:
        """Have so many more deeds done."""
        self._left = _DEEDS

    def _write(self) -> None:
        try:
            with self._session() as cursor:
                while not self._stop.wait(self._chance.choice([0, 0, 0.005, 0.02])):
                    if not self._left:
                        continue
                    self._left -= 1
                    deed = self._history.next()
                    if not any(statement.startswith(_LEFT_OUT) for statement in deed.statements):
                        self._do(cursor, deed)
        except BaseException as failure:  # noqa: BLE001 - raised again in the test's own thread
            self._failure = failure

    @contextmanager
    def _session(self) -> Iterator[Any]:
        with self._leader.root(charset="utf8mb4") as session, session.cursor() as cursor:
            for statement in (LAX, f"CREATE DATABASE IF NOT EXISTS {self._database}", f"USE {self._database}"):
                cursor.execute(statement)
            yield cursor

    def _do(self, cursor: Any, deed: Deed) -> None:
        taken = [self._take(cursor, statement) for statement in deed.statements][-1]
        if taken:
            self._history.tables = deed.tables
        if taken and deed.ddl:
            for name in sorted(self._history.tables):
                refused = read_definition(cursor.connection, self._database, name).refusal is not None
                # The copy may hold the table's metadata lock in a deadlock with this: then it is dropped later.
                if refused and self._take(cursor, f"DROP TABLE `{name}`"):
                    del self._history.tables[name]

    def _take(self, cursor: Any, statement: str) -> bool:
        with self._log.open("a") as log:
            log.write(f"{statement};\n")
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                log.write(f"-- {error}\n")
                return False
        self.statements[statement.split()[0]] += 1
        return True


def test_random_copies(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    chunks, statements = 0, Counter[str]()
    for number in range(HISTORIES):
        name = f"copies_{SEED}_{number}"
        chance = random.Random(f"{SEED} {number}")
        writer = Writer(leader, name, chance, tmp_path / f"{name}.sql")
        writer.fill()
        found = copied(tmp_path, leader, follower, kafka, writer=writer, name=name, rows=chance.choice([1, 3, 8]))
        copied_tables = Counter(record.uri.table for record in found if record.operation == "Copy")
        # In the copy at the start, and in each that is asked for.
        assert copied_tables["kept"] > _TURNS, f"CDC_SEED={SEED}, {name}: {copied_tables}"
        chunks += copied_tables.total()
        statements += writer.statements
        for server in (leader, follower):
            with server.root() as connection, connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
    with capsys.disabled():
        print(f"\n{HISTORIES} copies of random tables, {chunks} chunks (CDC_SEED={SEED})\n{dict(statements)}")


def copied(
    folder: Path, leader: MySql, follower: MySql, kafka: Kafka, *, writer: Writer, name: str, rows: int
) -> list[Record]:
    """The records of copies of chunks of about so many ``rows``, after which the follower is equal to the leader."""
    topics = {"layout": "per_table", "prefix": f"{name}."} if rows == 1 else {}
    shared = {"resource": name, "topic": name, "kafka": topics, "filters": {"include_dbs": [name]}}
    source = write_profile(folder, leader, kafka, name=f"{name}-source", producer={"start": "copy"}, **shared)
    target = write_profile(folder, follower, kafka, name=f"{name}-target", **shared)
    logged = []
    with writer.writing():
        for _ in range(_TURNS):
            writer.begin_turn()
            logged.append(produced(source, rows))
            logged.append(run_well("cdc-consumer", target, "--until-current"))
            # It refuses if it sees no table that can be copied.
            asked = run("cdc-producer", source, "--copy", f"{name}.*").returncode
            assert asked in (0, 2)
            if asked:
                run_well("cdc-producer", source, "--copy", f"{name}.kept")
    logged += produced(source, rows), run_well("cdc-consumer", target, "--until-current")
    which = f"CDC_SEED={SEED}, {name}"
    here, there = content(leader, name), content(follower, name)
    # A view that is invalid when the copy begins is left out, and may be valid later.
    left_out = set(re.findall(r"a view is invalid, and left out view=\S+?\.(\S+)", "".join(logged)))
    here = {each: found for each, found in here.items() if each in there or each not in left_out}
    assert here.keys() == there.keys(), f"{which}: {logged}"
    for each in here:
        assert there[each] == here[each], f"{which}, {each}: {logged}"
    return records(source)


def produced(source: Path, rows: int) -> str:
    """The producer's log of all that there is, in chunks of so many rows."""
    give_up = time.monotonic() + LIMIT_SECONDS
    while True:
        done = run("small_chunks", str(rows), source, "--until-current")
        # Of a table that can't be copied, and is not dropped yet, it says so.
        if done.returncode != 2 or "some tables can't be copied" not in done.stderr:
            assert done.returncode == 0, f"CDC_SEED={SEED}: {done.stderr}"
            return done.stderr
        assert time.monotonic() < give_up, f"CDC_SEED={SEED}: {done.stderr}"
