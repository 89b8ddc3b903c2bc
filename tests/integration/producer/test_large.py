"""A leader transaction much larger than Kafka's, with kills in its midst: all of it, once, in little memory.

``CDC_LARGE_ROWS=10000000`` makes it one of 1 GB; compressed by the leader, it is one event of more than half of that.
``CDC_LARGE_ROW_MB`` is the size of one large row, ``CDC_HUGE_ROW_MB`` that of one that is inserted and deleted.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc.consumer.literals.scalars import Variables
from cdc.consumer.literals.values import literal
from cdc.large_rows import BlobFile, StoredBlob
from cdc.model.record import Record
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.memory import peak_of, peak_of_run, peak_to_the_end
from tests.harness import wait
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import BIN, begin_now, end_offset, run_well, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import uncommitted_rows, until, waits_for_a_lock

pytestmark = [pytest.mark.integration, pytest.mark.crash]

ROWS = int(os.environ.get("CDC_LARGE_ROWS", "50000"))
KILLS = 4 if ROWS > 1_000_000 else 2
COMMITS = 40  # between kills; with the limits below there are hundreds
MEMORY_MB = 300
ROW_MB = int(os.environ.get("CDC_LARGE_ROW_MB", "12"))
HUGE_ROW_MB = int(os.environ.get("CDC_HUGE_ROW_MB", "20"))
LARGE_ROW_MEMORY_MB = 400  # whatever the size of a BLOB
TIMES_THE_ROW = 8  # for the texts of an update, which has two images, and for its statement
LIMIT_SECONDS = wait.LIMIT_SECONDS + ROWS // 5000


@pytest.mark.parametrize("compression", ["OFF", in_long_runs("ON")])
def test_a_large_transaction(
    compression: str, tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    """In `make test` test_large_rows_in_all_kinds_of_changes_through_kills has a compressed one."""
    name = f"huge_{compression}"
    leader = mysql_server("--innodb-redo-log-capacity=1G")
    # Many small Kafka transactions, so that there are kills in the midst of it.
    limits = {"commit_bytes": max(50_000, ROWS // 10)}
    path = write_profile(tmp_path, leader, kafka, name=name, producer=limits)
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE huge")
        cursor.execute("CREATE TABLE huge.a (i INT PRIMARY KEY, t CHAR(96) CHARACTER SET ascii)")
        run_well("cdc-producer", path, "--until-current")
        cursor.execute("SET cte_max_recursion_depth = 4294967295")
        cursor.execute(f"SET binlog_transaction_compression = {compression}")
        # Text that does not compress away.
        cursor.execute(
            "INSERT INTO huge.a WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %s) "
            "SELECT i, CONCAT(SHA2(i, 256), LEFT(SHA2(-i, 256), 32)) FROM n",
            (ROWS,),
        )
        cursor.execute("INSERT INTO huge.a VALUES (-1, 'the next transaction')")
    peaks = [killed_later(path) for _ in range(KILLS)]
    before = end_offset(kafka, name)
    peaks.append(peak_to_the_end("cdc-producer", path, seconds=LIMIT_SECONDS))
    assert end_offset(kafka, name) > before + 100, "killed too late: the transaction was already through"
    found = summed_up(path)
    with capsys.disabled():
        print(f"\n{ROWS} rows, compression {compression}, {found}")
        print(f"peaks of memory in MB: {', '.join(f'{peak:.0f}' for peak in peaks)}")
    assert found == {"rows": ROWS + 1, "ends": 4, "broken": 0}
    assert max(peaks) < MEMORY_MB
    if compression == "OFF":  # the records are the same
        applied_at_once(tmp_path, mysql_server("--innodb-redo-log-capacity=1G"), kafka, name, capsys)


@pytest.mark.long
def test_a_large_row(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of which each is more than one message. The producer keeps the update on disk, an event of more than 16 MiB; the
    memory of the consumer is bounded by the row's size.

    In `make test` test_large_rows_in_all_kinds_of_changes_through_kills has larger rows.
    """
    keys = {"filters": {"include_dbs": ["largerow"]}, "producer": {"start": "now"}}
    source = write_profile(tmp_path, leader, kafka, name="largerow", **keys)
    target = write_profile(tmp_path, follower, kafka, name="largerow-target", topic="largerow", **keys)
    begin_now(source, leader)
    for server in (leader, follower):
        execute(server, "SET GLOBAL max_allowed_packet = 1073741824")
    rows = f"REPEAT(RANDOM_BYTES(1000), {ROW_MB * 1000})"
    execute(leader, "CREATE DATABASE largerow", "CREATE TABLE largerow.a (i INT PRIMARY KEY, b LONGBLOB)",
            f"INSERT INTO largerow.a VALUES (1, {rows})", "UPDATE largerow.a SET i = 2")  # fmt: skip
    peaks = [
        peak_to_the_end(program, path, seconds=LIMIT_SECONDS)
        for program, path in (("cdc-producer", source), ("cdc-consumer", target))
    ]
    found = [execute(server, "SELECT i, LENGTH(b), SHA2(b, 256) FROM largerow.a") for server in (leader, follower)]
    assert found[0] == found[1]
    assert found[0][0][1] == ROW_MB * 1_000_000
    for server in (leader, follower):
        execute(server, "SET GLOBAL max_allowed_packet = DEFAULT")
    with capsys.disabled():
        print(f"\na row of {ROW_MB} MB, peaks of memory in MB: {', '.join(f'{peak:.0f}' for peak in peaks)}")
    assert peaks[0] < LARGE_ROW_MEMORY_MB
    assert peaks[1] < 150 + TIMES_THE_ROW * ROW_MB


def test_large_rows_in_all_kinds_of_changes_through_kills(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inserted, changed, deleted, in a transaction with small rows, compressed and in XA: each once, in little memory.

    ``CDC_HUGE_ROW_MB=990`` makes the BLOB that is inserted and deleted of nearly 1 GB. The producer is killed in
    the midst of it.
    """
    keys = {"filters": {"include_dbs": ["hugerow"]}, "producer": {"start": "now"}}
    source = write_profile(tmp_path, leader, kafka, name="hugerow", **keys)
    begin_now(source, leader)
    for server in (leader, follower):
        execute(server, "SET GLOBAL max_allowed_packet = 1073741824")
    rows = "hugerow.a VALUES"
    blob, text = f"REPEAT(RANDOM_BYTES(1000), {HUGE_ROW_MB * 1000})", "REPEAT('1\\\"\n€', 1300000)"
    execute(leader, "CREATE DATABASE hugerow",
            "CREATE TABLE hugerow.a (i INT PRIMARY KEY, b LONGBLOB, s INT, t LONGTEXT CHARACTER SET utf8mb4)",
            "BEGIN", f"INSERT INTO {rows} (1, NULL, 1, 'small')", f"INSERT INTO {rows} (2, {blob}, 2, '')",
            f"INSERT INTO {rows} (3, NULL, 3, 'small')", f"INSERT INTO {rows} (4, 'b', 4, {text})", "COMMIT",
            "UPDATE hugerow.a SET s = 5, t = CONCAT(t, 'é') WHERE i = 4", "DELETE FROM hugerow.a WHERE i = 2",
            "SET binlog_transaction_compression = ON",
            f"INSERT INTO {rows} (5, REPEAT('x', 20000000), 5, NULL)", "UPDATE hugerow.a SET s = 6 WHERE i = 5",
            "XA START 'x'", f"INSERT INTO {rows} (6, 'b', 6, {text})", "XA END 'x'", "XA PREPARE 'x'",
            "XA COMMIT 'x'")  # fmt: skip
    peaks = []
    for count in (1, 3, 6):
        command = [sys.executable, "-m", "tests.altered.killed_producer", source, "after a flush", str(count)]
        status, peak = peak_of_run(command, seconds=LIMIT_SECONDS)
        assert status == -signal.SIGKILL
        peaks.append(peak)
    peaks.append(peak_to_the_end("cdc-producer", source, seconds=LIMIT_SECONDS))
    with capsys.disabled():
        print(f"\na row of {HUGE_ROW_MB} MB, peaks of memory in MB: {', '.join(f'{peak:.0f}' for peak in peaks)}")
    assert max(peaks) < LARGE_ROW_MEMORY_MB
    target = write_profile(tmp_path, follower, kafka, name="hugerow-target", topic="hugerow", **keys)
    run_well("cdc-consumer", target, "--until", "1")  # the statements
    refuse_what_is_too_large(follower)
    # What a client wrote gives way to the leader's.
    execute(follower, "INSERT INTO hugerow.a VALUES (5, 'not the leader''s', 7, NULL)", "COMMIT")
    peak = peak_to_the_end("cdc-consumer", target, seconds=LIMIT_SECONDS)
    sums = "SELECT i, s, SHA2(b, 256), SHA2(t, 256) FROM hugerow.a ORDER BY i"
    assert execute(follower, sums) == execute(leader, sums)
    with capsys.disabled():
        print(f"\nthe consumer's peak of memory: {peak:.0f} MB")
    assert peak < LARGE_ROW_MEMORY_MB
    for server in (leader, follower):
        execute(server, "SET GLOBAL max_allowed_packet = DEFAULT")


def test_a_consumer_killed_amid_large_rows(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """Where it waits for a row that someone else has locked: another consumer goes on, and each row is there once."""
    keys = {"filters": {"include_dbs": ["killedrow"]}, "producer": {"start": "now"}}
    source = write_profile(tmp_path, leader, kafka, name="killedrow", **keys)
    target = write_profile(tmp_path, follower, kafka, name="killedrow-target", topic="killedrow", **keys)
    begin_now(source, leader)
    for server in (leader, follower):
        execute(server, "SET GLOBAL max_allowed_packet = 1073741824")
    blob = "REPEAT(RANDOM_BYTES(1000), 6000)"
    execute(leader, "CREATE DATABASE killedrow", "CREATE TABLE killedrow.a (i INT PRIMARY KEY, b LONGBLOB, c LONGBLOB)",
            "BEGIN", "INSERT INTO killedrow.a VALUES (1, NULL, NULL)",
            f"INSERT INTO killedrow.a VALUES (2, {blob}, {blob})", "INSERT INTO killedrow.a VALUES (3, NULL, NULL)",
            "COMMIT",
            f"UPDATE killedrow.a SET b = {blob} WHERE i = 2")  # fmt: skip
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until", "1")  # the statements
    with follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO killedrow.a VALUES (2, NULL, NULL)")
        with running("cdc-consumer", target, "--until-current") as process:
            until(lambda: waits_for_a_lock(follower), what="the consumer at the locked row")
            process.kill()
            process.wait()
        connection.rollback()
    assert execute(follower, "SELECT i FROM killedrow.a") == []
    assert "conflicts=0" in run_well("cdc-consumer", target, "--until-current")
    sums = "SELECT i, SHA2(b, 256), SHA2(c, 256) FROM killedrow.a ORDER BY i"
    assert execute(follower, sums) == execute(leader, sums)
    for server in (leader, follower):
        execute(server, "SET GLOBAL max_allowed_packet = DEFAULT")


def refuse_what_is_too_large(server: MySql) -> None:
    """A BLOB of more than max_allowed_packet is an error where its variables are put together, never NULL."""
    file = BlobFile()
    file.append(bytes(2_000_000))
    variables = Variables(700_000)
    literals = literal(variables.image([{"Blob": StoredBlob(file, 0, 2_000_000, "")}])[0])
    insert = f"INSERT INTO hugerow.a VALUES (9, {literals}, 9, NULL)"
    (allowed,) = execute(server, "SELECT @@GLOBAL.max_allowed_packet")[0]
    for limit in (1 << 20, 1 << 22):
        execute(server, f"SET GLOBAL max_allowed_packet = {limit}")
        with server.root() as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            for statement in variables.statements():
                cursor.execute(statement)
            if limit > 2_000_000:
                cursor.execute(insert)
                cursor.execute("SELECT LENGTH(b), b = REPEAT('\\0', 2000000) FROM hugerow.a WHERE i = 9")
                assert cursor.fetchall() == ((2_000_000, 1),)
            else:
                cursor.execute("INSERT INTO hugerow.a VALUES (9, NULL, 9, NULL)")
                upsert = f"{insert} AS n ON DUPLICATE KEY UPDATE b = n.b"
                # In strict mode the warning of CONCAT is the error.
                for mode, code in (("STRICT_ALL_TABLES", 1301), ("", 1242)):
                    cursor.execute(f"SET sql_mode = '{mode}'")
                    for sql in (insert, upsert, f"UPDATE hugerow.a SET b = {literals}"):
                        with pytest.raises(pymysql.MySQLError, match=str(code)):
                            cursor.execute(sql)
            connection.rollback()
    execute(server, f"SET GLOBAL max_allowed_packet = {allowed}")


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def applied_at_once(
    folder: Path, follower: MySql, kafka: Kafka, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The follower gets all of it in one commit, though its connection is cut in the midst of it, in little memory."""
    path = write_profile(folder, follower, kafka, name="huge-follower", topic=topic, consumer={"batch_rows": 1000})
    run_well("cdc-consumer", path, "--until", "1")  # the table is there
    with follower.root(autocommit=False) as blocking, blocking.cursor() as last:
        # The transaction can't end before the kill, however late that comes: this lock is on its last row.
        last.execute("INSERT INTO huge.a VALUES (%s, '')", (ROWS - 1,))
        with running("cdc-consumer", path) as process:
            until(lambda: uncommitted_rows(follower) > ROWS // 3, seconds=LIMIT_SECONDS, what="a third of the rows")
            with follower.root() as connection, connection.cursor() as cursor:
                cursor.execute(
                    "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_modified > 1"
                )
                for (number,) in cursor.fetchall():
                    cursor.execute(f"KILL {number}")
            blocking.rollback()
            until(lambda: count(follower) > 0, seconds=LIMIT_SECONDS, what="the commit")
            assert count(follower) >= ROWS, "a part of the transaction was seen"
            peaks = [peak_of(process.pid)]
    peaks.append(peak_to_the_end("cdc-consumer", path, seconds=LIMIT_SECONDS))
    with follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), SUM(i), COUNT(DISTINCT t) FROM huge.a")
        assert cursor.fetchone() == (ROWS + 1, ROWS * (ROWS - 1) // 2 - 1, ROWS + 1)
    with capsys.disabled():
        print(f"\napplied in one commit, peaks of memory in MB: {', '.join(f'{peak:.0f}' for peak in peaks)}")
    assert max(peaks) < MEMORY_MB


def count(follower: MySql) -> int:
    with follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM huge.a")
        return int(cursor.fetchall()[0][0])


def killed_later(path: Path) -> float:
    """Run the producer until it dies before one more of its Kafka commits; its peak of memory in MB."""
    command = [sys.executable, "-m", "tests.altered.killed_producer", path, "before commit", str(COMMITS)]
    status, peak = peak_of_run(command, seconds=LIMIT_SECONDS)
    assert status == -signal.SIGKILL, "the transaction was through before"
    return peak


def summed_up(path: Path) -> dict[str, int]:
    """The topic read record by record: all its rows, the ends of transactions, and what is not as it must be."""
    summary = {"rows": 0, "ends": 0, "broken": 0}
    sequence = index = 0
    for record in streamed(path):
        summary["broken"] += record.sequence != sequence or record.index != index
        sequence, index = record.sequence + 1, 0 if record.last else record.index + 1
        summary["ends"] += record.last
        for row in record.rows:
            assert row.after is not None
            key = row.after[0]["SignedInteger"]
            summary["broken"] += key != (summary["rows"] if summary["rows"] < ROWS else -1)
            summary["rows"] += 1
    return summary


def streamed(path: Path) -> Iterator[Record]:
    """The records of the profile's topic, one at a time."""
    tail = subprocess.Popen([BIN / "cdc-tail", path, "-B", "--json"], stdout=subprocess.PIPE)
    assert tail.stdout is not None
    with tail.stdout as lines:
        yield from (Record.parse(line, where="cdc-tail") for line in lines)
    assert tail.wait() == 0
