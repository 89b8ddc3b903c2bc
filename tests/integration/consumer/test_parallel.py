"""Batches over several connections at once: the same tables, the same order of commits, whatever goes wrong between."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdc.consumer.follower.locks import SILENT_SECONDS, lock_name
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.memory import peak_to_the_end
from tests.harness.long_runs import LONG
from tests.harness.relay import Relay
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.topic import Stage, number, text
from tests.harness.wait import LIMIT_SECONDS, until
from tests.harness.warm_start import WarmProcess

pytestmark = pytest.mark.integration

COLUMNS = ["id", "name"]
APART = "parallel batches failed, retrying serially"
ROWS = 4000 if LONG else 2000  # a batch each: enough for a second


@pytest.fixture
def stage(tmp_path: Path, follower: MySql, kafka: Kafka, request: pytest.FixtureRequest) -> Stage:
    stage = Stage.make(tmp_path, follower, kafka, name=request.node.originalname[5:55], consumer={"batch_rows": 1})
    stage.create_table("t", "(id INT PRIMARY KEY, name VARCHAR(20), UNIQUE (name))")
    stage.apply()
    return stage


def send_rows(stage: Stage, numbers: range) -> None:
    rows = [[number(each), text(f"row {each}")] for each in numbers]
    stage.topic.send(*[[stage.topic.add(f"{stage.name}/t", COLUMNS, row, key=["id"])] for row in rows])


def is_whole(stage: Stage, numbers: range) -> bool:
    return stage.execute("SELECT * FROM t ORDER BY id") == [(each, f"row {each}") for each in numbers]


def test_a_lock_of_somebody_else_is_waited_for(stage: Stage, tmp_path: Path) -> None:
    send_rows(stage, range(40))
    path = tmp_path / "log"
    with stage.follower.connect(database=stage.name, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (17, 'foreign')")
        with path.open("wb") as log:
            process = WarmProcess("cdc-consumer", str(stage.profile), "--until-current", stderr=log.fileno())
        until(lambda: APART in path.read_text(), what="the end of the run")
        connection.rollback()
    assert process.wait() == 0
    assert is_whole(stage, range(40))
    assert "conflicts=0" in path.read_text()


def test_a_run_that_failed_leaves_the_usual_patience(stage: Stage, tmp_path: Path) -> None:
    """The first connection has committed its batch, the other one waits for somebody: then the first one waits."""
    send_rows(stage, range(3))
    path = tmp_path / "log"
    with stage.follower.connect(database=stage.name, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (2, 'foreign')")
        with path.open("wb") as log:
            process = WarmProcess("cdc-consumer", str(stage.profile), "--until-current", stderr=log.fileno())
        until(lambda: APART in path.read_text(), what="the end of the run")
        time.sleep(3)
        connection.rollback()
    assert process.wait() == 0
    assert is_whole(stage, range(3))
    assert "waiting for a server" not in path.read_text()


def test_a_commit_that_takes_long(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """The next batch's checkpoint waits for it: that is no reason to give up the run."""
    follower = mysql_server()
    stage = Stage.make(tmp_path, follower, kafka, name="slow_commit", consumer={"batch_rows": 1})
    stage.create_table("t", "(id INT PRIMARY KEY, name VARCHAR(20))")
    stage.apply()
    before = stage.checkpoint()
    send_rows(stage, range(ROWS))
    with follower.root() as connection, connection.cursor() as cursor, (tmp_path / "log").open("wb") as log:
        # One commit waits for a replica that there is not.
        cursor.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
        cursor.execute("SET GLOBAL rpl_semi_sync_source_timeout = 4000")
        process = WarmProcess("cdc-consumer", str(stage.profile), "--until-current", stderr=log.fileno())
        until(lambda: stage.checkpoint() > before + 100, what="a run")
        cursor.execute("SET GLOBAL rpl_semi_sync_source_enabled = ON")
        assert process.wait() == 0
        cursor.execute("SHOW STATUS LIKE 'Rpl_semi_sync_source_no_times'")
        assert cursor.fetchall() == (("Rpl_semi_sync_source_no_times", "1"),)
    assert is_whole(stage, range(ROWS))
    assert APART not in (tmp_path / "log").read_text()


def send_copy(stage: Stage, path: str, chunks: int) -> dict[int, str]:
    """Sends chunks of 20 rows, most of them with changes of rows before, in or behind the chunk, as transactions before
    it; returns the table's last rows.
    """
    topic, rows = stage.topic, {each: f"read {each}" for each in range(20 * chunks)}
    columns: dict[str, Any] = {"key": ["id"], "copying": True}

    def image(each: int) -> list[Any]:
        return [number(each), text(rows[each])]

    for chunk in range(chunks):
        first, sent = 20 * chunk, []
        changed = {1: (first - 5, first - 45), 2: (first + 25,), 4: (first + 5, first - 1), 5: (first + 65,)}
        for each in changed.get(chunk % 8, ()):
            if each in rows:
                before, rows[each] = image(each), f"changed beside {chunk}"
                sent.append([topic.update(path, COLUMNS, (before, image(each)), **columns)])
        if chunk % 8 in (4, 7):
            at = first + 10 if chunk % 8 == 4 else first - 30
            sent.append([topic.delete(path, COLUMNS, [number(at), text(rows.pop(at))], **columns)])
        images = [image(each) for each in range(first, first + 20) if each in rows]
        ends = {"after": [number(first - 1)] if chunk else None, "upto": [number(first + 19)]}
        topic.send(*sent, topic.chunk(path, COLUMNS, *images, **columns, **ends))
    return rows


@contextmanager
def connections_that_write(stage: Stage) -> Iterator[list[int]]:
    """Yields a list that contains in the end the ids of the connections that have moved the checkpoint."""
    found: list[int] = []
    with stage.follower.root(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE mysql.general_log")
        cursor.execute("SET GLOBAL log_output = 'TABLE', general_log = ON")
        try:
            yield found
        finally:
            cursor.execute("SET GLOBAL general_log = OFF, log_output = DEFAULT")
        moves = "argument LIKE 'UPDATE `cdc`.`checkpoint` SET sequence=%'"
        cursor.execute(f"SELECT DISTINCT thread_id FROM mysql.general_log WHERE {moves}")
        found += [thread for (thread,) in cursor.fetchall()]


def test_chunks_and_changes_beside_one_another(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    stage = Stage.make(tmp_path, follower, kafka, name="chunks_beside")
    path = stage.create_table("t", "(id INT PRIMARY KEY, name VARCHAR(40))")
    stage.apply()
    stage.execute("INSERT INTO t VALUES (15, 'foreign'), (1010, 'foreign'), (-5, 'foreign')", "COMMIT")
    rows = send_copy(stage, path, 60)
    with connections_that_write(stage) as connections:
        stage.apply()
    assert stage.execute("SELECT * FROM t ORDER BY id") == sorted(rows.items())
    assert len(connections) == 2


def test_chunks_of_many_tables_beside_one_another(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """Their definitions are read while the chunks of the tables before are under way."""
    stage = Stage.make(tmp_path, follower, kafka, name="tables_beside")
    kinds = {
        "plain": "id INT PRIMARY KEY, name VARCHAR(40)",
        "parent": "id INT PRIMARY KEY, name VARCHAR(40)",
        "child": "id INT PRIMARY KEY, name VARCHAR(40), FOREIGN KEY (id) REFERENCES parent (id)",
        "named": "id INT, name VARCHAR(40) PRIMARY KEY",
        "doubly": "id INT PRIMARY KEY, name VARCHAR(40) UNIQUE",
        "others": "id INT PRIMARY KEY, name VARCHAR(40)",
    }
    paths = {name: stage.create_table(name, f"({columns})") for name, columns in kinds.items()}
    stage.apply()
    topic = stage.topic
    for round_number in range(5):
        for name, path in paths.items():
            rows = [[number(each), text(f"{name} {each:02} {round_number}")] for each in range(20)]
            column, collation = ("name", "utf8mb4_0900_ai_ci") if name == "named" else ("id", None)
            end = [rows[8][COLUMNS.index(column)]]
            more: dict[str, Any] = {"key": [column], "collations": [collation]}
            topic.send(
                topic.chunk(path, COLUMNS, *rows[:9], upto=end, types=["int", "varchar(40)"], **more),
                topic.chunk(path, COLUMNS, *rows[9:], after=end, **more),
            )
    stage.apply()
    for name in paths:
        wanted = [(each, f"{name} {each:02} 4") for each in range(20)]
        assert stage.execute(f"SELECT * FROM {name} ORDER BY id") == wanted, name


def chunk_of(stage: Stage, path: str, rows: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """The chunk of the rows after the key before the first one, up to the last one."""
    images = [[number(each), text(name)] for each, name in rows]
    ends: dict[str, Any] = {"after": [number(rows[0][0] - 1)] if rows[0][0] else None, "upto": [number(rows[-1][0])]}
    return stage.topic.chunk(path, COLUMNS, *images, key=["id"], copying=True, **ends)


def test_rows_are_looked_at_where_they_are_written(
    tmp_path: Path, follower: MySql, leader: MySql, kafka: Kafka
) -> None:
    """Another server answers at the follower's address, while the connections that apply batches still live."""
    table, wrong = "(id INT PRIMARY KEY, name VARCHAR(40))", "UPDATE t SET name = 'wrong' WHERE id % 5 = 1"
    with Relay(follower.port) as relay:
        profile: dict[str, Any] = {"database": {"port": relay.port}, "consumer": {"batch_rows": 1}}
        stage = Stage.make(tmp_path, follower, kafka, name="looked_at", **profile)
        path = stage.create_table("t", table)
        stage.create_table("u", table)
        stage.apply()
        rows = [(each, f"read {each}") for each in range(160)]
        here = ", ".join(map(str, rows))
        with leader.root() as connection, connection.cursor() as cursor:
            for statement in ("CREATE DATABASE looked_at", "USE looked_at", f"CREATE TABLE t {table}"):
                cursor.execute(statement)
            cursor.execute(f"INSERT INTO t VALUES {here}")
            connection.commit()
        stage.execute(f"INSERT INTO t VALUES {here}", wrong, "COMMIT")
        with (tmp_path / "log").open("wb") as log:
            process = WarmProcess("cdc-consumer", str(stage.profile), stderr=log.fileno())
        until(lambda: " start follower=" in (tmp_path / "log").read_text(), what="the start")
        adds = [stage.topic.add("looked_at/u", COLUMNS, [number(each), text("")], key=["id"]) for each in range(20)]
        stage.topic.send(*([add] for add in adds))
        until(lambda: stage.checkpoint() == stage.topic.next_sequence - 1, what="the additional connection")
        relay.server = leader.port
        stage.topic.send(*(chunk_of(stage, path, rows[first : first + 20]) for first in range(0, len(rows), 20)))
        until(lambda: stage.checkpoint() == stage.topic.next_sequence - 1, what="the copy")
        relay.server = follower.port
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert stage.execute("SELECT * FROM t ORDER BY id") == rows


@pytest.mark.long
def test_a_statement_of_minutes_among_chunks(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """Meanwhile the server closes the connection that looks at rows, which is then no lost connection.

    `make test` has test_chunks_and_changes_beside_one_another.
    """
    stage = Stage.make(tmp_path, follower, kafka, name="long_statement")
    path, other = (stage.create_table(name, "(id INT PRIMARY KEY, name VARCHAR(40))") for name in "tu")
    stage.apply()
    rows = [(each, f"read {each}") for each in range(320)]
    chunks = [chunk_of(stage, path, rows[first : first + 20]) for first in range(0, len(rows), 20)]
    alter = [stage.topic.query("ALTER TABLE u ADD more INT", ("AlterTable", other), database=stage.name)]
    with follower.connect(database=stage.name) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES u READ")
        stage.topic.send(*chunks[:8], alter, *chunks[8:])
        with (tmp_path / "log").open("wb") as log:
            process = WarmProcess("cdc-consumer", str(stage.profile), "--until-current", stderr=log.fileno())
        time.sleep(SILENT_SECONDS + 5)
        cursor.execute("UNLOCK TABLES")
    assert process.wait() == 0
    assert stage.execute("SELECT * FROM t ORDER BY id") == rows
    assert "the follower does not accept the changes" not in (tmp_path / "log").read_text()


def test_memory(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """Rows that go are values, which take more memory than all else, and more batches of them are under way."""
    stage = Stage.make(tmp_path, follower, kafka, name="memory_of_lanes")
    names = [f"c{place}" for place in range(40)]
    path = stage.create_table("t", f"(id INT PRIMARY KEY, {', '.join(f'{name} VARCHAR(9)' for name in names)})")
    stage.apply()
    values = ", CONCAT('x', i % 9)" * len(names)
    stage.execute(
        "SET cte_max_recursion_depth = 30000",
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 29999) "
        f"SELECT i{values} FROM n",
    )
    rows = [[number(each), *[text(f"x{each % 9}")] * 40] for each in range(30_000)]
    deletes = [
        [stage.topic.delete(path, ["id", *names], *rows[first : first + 100], key=["id"])]
        for first in range(0, len(rows), 100)
    ]
    stage.topic.send(*deletes)
    assert peak_to_the_end("cdc-consumer", stage.profile, seconds=LIMIT_SECONDS) < 300
    assert stage.execute("SELECT * FROM t LIMIT 1") == []


def test_connections_that_are_killed(stage: Stage, tmp_path: Path) -> None:
    """Whichever of the two connections ends, nothing is lost and nothing is doubled."""
    count, killed = ROWS, 0
    send_rows(stage, range(count))
    with (tmp_path / "log").open("wb") as log:
        process = WarmProcess("cdc-consumer", str(stage.profile), "--until-current", stderr=log.fileno())
    with stage.follower.root() as connection, connection.cursor() as cursor:
        while process.poll() is None and killed < 6:
            cursor.execute("SELECT IS_USED_LOCK(%s)", [lock_name(stage.name, 0 if killed % 3 == 2 else 1)])
            ((holder,),) = cursor.fetchall()
            if holder is not None:
                cursor.execute(f"KILL {holder}")
                killed += 1
            time.sleep(0.2)
    assert process.wait() == 0, (tmp_path / "log").read_text()
    assert killed
    assert is_whole(stage, range(count))
    assert "conflicts=0" in (tmp_path / "log").read_text()


@pytest.mark.crash
def test_a_consumer_that_is_killed_or_stopped(stage: Stage, tmp_path: Path) -> None:
    """At any moment of a run: the next one goes on where the follower is."""
    count, chance = ROWS, random.Random()
    send_rows(stage, range(count))
    for round_number in range(6 if LONG else 3):
        with (tmp_path / "log").open("ab") as log:
            process = WarmProcess("cdc-consumer", str(stage.profile), stderr=log.fileno())
        before = stage.checkpoint()
        until(lambda before=before: stage.checkpoint() > before, what="progress")
        time.sleep(chance.random() / 4)
        process.send_signal(signal.SIGTERM if round_number % 3 == 2 else signal.SIGKILL)
        assert process.wait() in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
        # Whole up to where the checkpoint says, and nothing behind that.
        until(lambda: not is_held(stage), what="the end of the killed consumer's connections")
        rows = stage.checkpoint() - 1
        assert is_whole(stage, range(rows))
        if rows == count:
            send_rows(stage, range(count, count + 1000))
            count += 1000
    assert "conflicts=0" in stage.apply()
    assert is_whole(stage, range(count))


def is_held(stage: Stage) -> bool:
    names = ",".join(f"IS_USED_LOCK('{lock_name(stage.name, place)}')" for place in (0, 1))
    ((*holders,),) = stage.execute(f"SELECT {names}")
    return any(holder is not None for holder in holders)
