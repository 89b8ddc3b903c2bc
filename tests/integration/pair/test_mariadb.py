"""A MariaDB leader and a MySQL follower: rows, transactions and statements, through kills, cell by cell."""

import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pymysql
import pytest
import toml

from cdc.config.profile import load
from cdc.producer.flavor.mariadb_leader import inspect_leader
from cdc.sandbox.fetch.mysql_programs import mariadb_programs
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.sequences import broken_places
from tests.harness.mariadb import VALUES, logged_gtids, maria_pair, on, rows, types_of
from tests.harness.pair import Pair
from tests.harness.programs import end_offset, own_name, records, refused, run_well, running, stopped
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

SQL = Path(__file__).parents[2] / "data" / "all_types.sql"
DATABASES = ["cdc_types", "Cdc_Mixed", "cdc schema-with.odd$chars", "схема"]  # of that file
# MariaDB puts a question mark for a letter that the character set of an ENUM lacks, MySQL keeps the letter.
DIFFERENT = {"t_ascii_members"}


@pytest.fixture
def pair(mariadb: MySql, follower: MySql, kafka: Kafka, tmp_path: Path) -> Pair:
    """A pair whose leader begins a new binlog with the database ``maria``."""
    return maria_pair(tmp_path, mariadb, follower, kafka)


def transactions_of(found: Iterable[Any]) -> list[str]:
    """The transactions of records, each once, in order."""
    return list(dict.fromkeys(record.transaction for record in found))


def prepared(xid: str, number: int) -> list[str]:
    """The statements that prepare an XA transaction which adds a row."""
    return [f"XA START {xid}", f"INSERT INTO t VALUES ({number}, {number})", f"XA END {xid}", f"XA PREPARE {xid}"]


def test_a_leader_to_which_nobody_has_written_yet(pair: Pair) -> None:
    """Its binlog has nothing but events that the producer leaves out."""
    pair.on_leader("DROP DATABASE maria", "RESET MASTER")
    assert pair.replicate()
    assert records(pair.source) == []


def test_types_and_ordinary_statements(pair: Pair) -> None:
    pair.on_leader("SET sql_mode = ''", types_of(pair.leader), VALUES, database="maria")
    pair.on_leader(
        "UPDATE types SET v = 'changed', j = '{}', w = 6 WHERE id = 1",
        "CREATE TABLE made AS SELECT id, v, dt6 FROM types",  # one transaction of a statement and rows
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) CHARACTER SET utf8mb4, f DATETIME(6))",
        "INSERT INTO t VALUES (1, 'a', '2026-01-01 00:00:00.999999'), (2, 'b', NULL)",
        # MariaDB truncates the fraction, MySQL rounds it but for a mode.
        "ALTER TABLE t MODIFY f DATETIME, ADD k JSON, ADD COLUMN ts TIMESTAMP",
        "CREATE TABLE gone LIKE t",
        "TRUNCATE TABLE gone",
        "RENAME TABLE t TO u",
        "DROP TABLE gone",
        "CREATE INDEX a ON u (a)",
        "CREATE OR REPLACE VIEW seen AS SELECT a FROM u",
        "SET explicit_defaults_for_timestamp = OFF",
        "CREATE TABLE old (id INT PRIMARY KEY, ts TIMESTAMP)",
        "INSERT INTO old (id) VALUES (1)",
        database="maria",
    )
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)
    for server in (pair.leader, pair.follower):
        with on(server, "maria") as cursor:
            cursor.execute("SHOW COLUMNS FROM old LIKE 'ts'")
            assert cursor.fetchone()[2] == "NO", server  # the session's setting held
            cursor.execute("SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_name = 'u'")
            assert {row[0] for row in cursor.fetchall()} == {None, "utf8mb4_general_ci", "utf8mb4_bin"}, server


def test_transactions_have_their_gtids_and_are_whole(pair: Pair) -> None:
    # A session with a prepared transaction does nothing else before it ends.
    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        "BEGIN", "INSERT INTO t VALUES (1, 1), (2, 2)", "SAVEPOINT one", "DELETE FROM t", "ROLLBACK TO one",
        "UPDATE t SET a = 3 WHERE id = 2", "COMMIT",
        "BEGIN", "INSERT INTO t VALUES (3, 3)", "ROLLBACK",
        *prepared("X'00ff', X'01', 3", 4),
        database="maria",
    )  # fmt: skip
    pair.on_leader("INSERT INTO t VALUES (5, 5)", database="maria")
    pair.replicate()
    assert [row[0] for row in rows(pair.follower)["t"]] == [1, 2, 5]
    # The next producer has to read the prepared transaction again.
    pair.on_leader("XA COMMIT X'00ff', X'01', 3", *prepared("'dropped'", 6), database="maria")
    pair.on_leader("XA ROLLBACK 'dropped'")
    pair.on_leader(
        "SET gtid_domain_id = 3", "INSERT INTO t VALUES (7, 7)",
        "SET SESSION server_id = 11", "INSERT INTO t VALUES (8, 8)",
        database="maria",
    )  # fmt: skip
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)
    found = records(pair.source)
    assert broken_places(found) == []
    logged = logged_gtids(pair.leader)
    told = transactions_of(found)
    assert [gtid for gtid in logged if gtid in told] == told
    # The transactions that only prepare or roll back have no records.
    assert len(logged) - len(told) == 3
    assert told[-2:] == ["3-7-1", "3-11-2"]


def test_compressed_events(pair: Pair) -> None:
    with on(pair.leader) as cursor:
        cursor.execute("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
        try:
            pair.on_leader(
                "CREATE TABLE t (id INT PRIMARY KEY, a TEXT) COMMENT 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'",
                "INSERT INTO t SELECT seq, REPEAT('x', 1000) FROM seq_1_to_50",
                "UPDATE t SET a = CONCAT(a, 'ü')",
                "DELETE FROM t WHERE id > 20",
                database="maria",
            )
            cursor.execute("SHOW BINLOG EVENTS")
            kinds = {row[2] for row in cursor.fetchall()}
        finally:
            cursor.execute("SET GLOBAL log_bin_compress = OFF, GLOBAL log_bin_compress_min_len = DEFAULT")
    names = ("Query", "Write_rows", "Update_rows", "Delete_rows")
    assert {f"{name}_compressed{'' if name == 'Query' else '_v1'}" for name in names} <= kinds
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)
    assert len(rows(pair.follower)["t"]) == 20


def test_transactions_of_a_group_commit(pair: Pair) -> None:
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY)", database="maria")
    with on(pair.leader) as cursor:
        cursor.execute("SET GLOBAL binlog_commit_wait_count = 2, GLOBAL binlog_commit_wait_usec = 10000000")
        try:
            with ThreadPoolExecutor() as pool:
                for done in [
                    pool.submit(pair.on_leader, f"INSERT INTO maria.t VALUES ({number})") for number in (1, 2)
                ]:
                    done.result()
        finally:
            cursor.execute("SET GLOBAL binlog_commit_wait_count = DEFAULT, GLOBAL binlog_commit_wait_usec = DEFAULT")
        cursor.execute("SHOW BINLOG EVENTS")
        assert sum("cid=" in row[5] for row in cursor.fetchall()) == 2
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader) == {"t": [(1,), (2,)]}


def test_kills_of_producer_and_leader_lose_and_repeat_nothing(pair: Pair, kafka: Kafka) -> None:
    topic = pair.source.stem.removesuffix("-source")
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)", database="maria")
    run_well("cdc-producer", pair.source, "--until-current")
    for kill in range(4):
        with running("cdc-producer", pair.source) as producer:
            written = end_offset(kafka, topic)
            for number in range(20):
                pair.on_leader(
                    f"INSERT INTO t (a) VALUES ({number}), ({number})", "UPDATE t SET a = a + 1", database="maria"
                )
            until(lambda before=written: end_offset(kafka, topic) > before, what="the producer writes")
            if kill == 2:
                pair.leader.kill()
                pair.leader.start()
            producer.kill()
            producer.wait()
    pair.replicate()
    found = records(pair.source)
    assert broken_places(found) == []
    assert transactions_of(found) == logged_gtids(pair.leader)
    assert rows(pair.follower) == rows(pair.leader)
    assert len(rows(pair.follower)["t"]) == 160


def test_a_copy_made_by_hand_goes_on_at_its_position(pair: Pair, tmp_path: Path) -> None:
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)", database="maria")
    with on(pair.leader) as cursor:
        cursor.execute("SHOW MASTER STATUS")
        file, offset, *_ = cursor.fetchone()
    pair.on_follower(
        "CREATE DATABASE maria", "CREATE TABLE maria.t (id INT PRIMARY KEY, a INT)", "INSERT INTO maria.t VALUES (1, 1)"
    )
    profile = toml.loads(pair.source.read_text())
    profile["producer"]["start"] = f"{file}:{offset - 1}"
    pair.source.write_text(toml.dumps(profile))
    assert "no event of the leader's binlog begins at this position" in refused(
        "cdc-producer", pair.source, "--until-current"
    )
    profile["producer"]["start"] = f"{file}:{offset}"
    pair.source.write_text(toml.dumps(profile))
    pair.on_leader("UPDATE t SET a = 2", database="maria")
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader) == {"t": [(1, 2)]}


def test_the_modes_of_the_leader_are_those_of_its_rows(pair: Pair) -> None:
    """MariaDB logs none with rows, and shows them by their names only."""
    pair.on_leader("SET GLOBAL sql_mode = 'ANSI_QUOTES,TIME_ROUND_FRACTIONAL'")
    try:
        leader = inspect_leader(load(pair.source).database.settings(), name="maria")
    finally:
        pair.on_leader("SET GLOBAL sql_mode = DEFAULT")
    assert leader.session.modes == 1 << 2


def test_a_leader_with_another_history_is_refused(pair: Pair) -> None:
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database="maria")
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_leader(
        "RESET MASTER",
        "CREATE TABLE v (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (2)",
        "INSERT INTO t VALUES (3)",
        "INSERT INTO t VALUES (4)",
        database="maria",
    )
    line = refused("cdc-producer", pair.source, "--until-current")
    assert "CDC-LEADER-REPLACED" in line
    pair.on_leader("SET GLOBAL server_id = 8")
    try:
        pair.on_leader("RESET MASTER", "INSERT INTO maria.t VALUES (5)")
        assert "it has 0-8-1, we have replicated 0-7-3" in refused("cdc-producer", pair.source, "--until-current")
    finally:
        pair.on_leader("SET GLOBAL server_id = 7")


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [("binlog_row_metadata", "MINIMAL", "FULL"), ("gtid_strict_mode", "OFF", "ON"), ("binlog_format", "MIXED", "ROW")],
)
def test_settings_are_required_with_the_statement_that_sets_them(
    pair: Pair, setting: str, wrong: str, right: str
) -> None:
    pair.on_leader(f"SET GLOBAL {setting} = {wrong}")
    try:
        line = refused("cdc-producer", pair.source, "--until-current")
    finally:
        pair.on_leader(f"SET GLOBAL {setting} = {right}")
    assert f"{setting} is {wrong}; SET GLOBAL {setting} = {right}, and the same in the server's option file" in line


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("rows", {"maria.t": "n = 1"}, "rows of a MariaDB leader can't be left out"),
        ("mask_columns", {"maria.t.n": "null"}, "columns of a MariaDB leader can't be masked"),
    ],
)
def test_filters_that_need_a_mysql_leader_are_refused(pair: Pair, key: str, value: dict[str, str], why: str) -> None:
    profile = toml.loads(pair.source.read_text())
    profile["filters"] = profile.get("filters", {}) | {key: value}
    pair.source.write_text(toml.dumps(profile))
    assert why in refused("cdc-producer", pair.source, "--until-current")


def test_missing_grants_are_named_with_the_statement_that_grants_them(pair: Pair) -> None:
    with on(pair.leader) as cursor:
        cursor.execute("CREATE USER poor IDENTIFIED BY 'poor'")
        cursor.execute("GRANT REPLICATION SLAVE ON *.* TO poor")
    profile = toml.loads(pair.source.read_text())
    profile["database"] |= {"user": "poor", "password": "poor"}
    pair.source.write_text(toml.dumps(profile))
    try:
        line = refused("cdc-producer", pair.source, "--until-current")
        for privilege in ("BINLOG MONITOR", "SLAVE MONITOR", "SELECT"):
            assert f"{privilege} is missing; GRANT {privilege} ON *.* TO 'poor'@'%'" in line
            pair.on_leader(f"GRANT {privilege} ON *.* TO poor")
        run_well("cdc-producer", pair.source, "--until-current")
    finally:
        pair.on_leader("DROP USER poor")


def test_rows_of_a_type_that_is_not_replicated_stop_the_stream(pair: Pair, kafka: Kafka) -> None:
    """The error names column, table and reason. Left out by the filters, such a table stops nothing."""
    with on(pair.leader) as cursor:
        cursor.execute("SET GLOBAL mysql56_temporal_format = OFF")
        try:
            cursor.execute("CREATE TABLE maria.own (id INT PRIMARY KEY, a DATETIME)")
            cursor.execute("INSERT INTO maria.own VALUES (1, NOW())")
        finally:
            cursor.execute("SET GLOBAL mysql56_temporal_format = ON")
        cursor.execute("CREATE TABLE maria.t (id BINARY(16) PRIMARY KEY)")
        cursor.execute("INSERT INTO maria.t VALUES ('like a UUID')")
    line = refused("cdc-producer", pair.source, "--until-current", status=3)
    assert "column a has a type that is not replicated yet: DATETIME of MySQL before 5.6" in line
    assert "table maria.own;" in line
    left_out = Pair.make(
        pair.source.parent, pair.leader, pair.follower, kafka, name="left", filters={"exclude_tables": ["maria.own*"]}
    )
    left_out.replicate()
    assert rows(pair.follower) == {"t": rows(pair.leader)["t"]}


UUIDS = (
    "00112233-4455-1677-8899-aabbccddee00",
    "00112233-4455-7677-8899-AABBCCDDEEFF",
    "",
    "FFEEDDCC00112233c456778899aabb00",
)
ADDRESSES = ("::", "1.2.3.4", "::ffff:1.2.3.4", "1:0:0:2:0:0:0:3", "2001:DB8::FF00:42:8329", "1:2:3:4:5:6:7:0", "::2:0")


def test_mariadbs_own_types_as_keys_and_in_statements(pair: Pair) -> None:
    uuids = ", ".join(f"('{each}', '1.2.3.{at}', REPEAT('{at}', {at}00))" for at, each in enumerate(UUIDS))
    addresses = ", ".join(f"('{each if ':' in each else '::' + each}')" for each in ADDRESSES)
    pair.on_leader(
        "SET sql_mode = ''",  # the empty text is the zero UUID
        "CREATE TABLE k (u UUID PRIMARY KEY DEFAULT UUID(), i INET4 NOT NULL, c VARCHAR(999) COMPRESSED, UNIQUE (i))",
        f"INSERT INTO k VALUES {uuids}",
        "INSERT INTO k (i) VALUES ('0.0.0.0')",
        f"UPDATE k SET i = '255.0.0.0', c = 'x' WHERE u = '{UUIDS[0]}'",
        f"DELETE FROM k WHERE u = '{UUIDS[1]}'",
        "CREATE TABLE f (a INET6, k UUID, FOREIGN KEY (k) REFERENCES k (u))",
        f"INSERT INTO f (a) VALUES {addresses}",
        f"UPDATE f SET k = '{UUIDS[0]}' WHERE a < '2::'",
        "ALTER TABLE f ADD b INET6 DEFAULT '::1', ADD COLUMN d UUID AFTER a",
        "UPDATE f SET d = k, b = a",
        "CREATE TABLE made AS SELECT u, i FROM k",
        "CREATE TABLE same LIKE k",
        "INSERT INTO same SELECT * FROM k",
        # Of rows before such a statement the stream has the types in the one that created the table.
        "ALTER TABLE made MODIFY u VARCHAR(36), MODIFY i TEXT",
        "CREATE TABLE brief (u UUID)",
        "INSERT INTO brief VALUES (UUID())",
        "DROP TABLE brief",
        database="maria",
    )
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)
    types = {kind for record in records(pair.source) for kind in record.types}
    assert {f"{kind} character set ascii" for kind in ("char(36)", "varchar(15)", "varchar(39)")} <= types
    # The consumer stops where MySQL would make other bytes of the text.
    pair.on_leader(
        "ALTER TABLE same MODIFY u BINARY(16), MODIFY i BINARY(4)",
        "DELETE FROM same LIMIT 1",
        database="maria",
    )
    run_well("cdc-producer", pair.source, "--until-current")
    line = refused("cdc-consumer", pair.target, "--until-current", status=3)
    assert "CDC-STATEMENT-OWN-TYPE" in line and "may be UUID or INET on the leader: u, i: " in line
    pair.on_follower(
        "USE maria",
        "ALTER TABLE same ADD u2 BINARY(16) FIRST, ADD i2 BINARY(4) AFTER u2",
        "UPDATE same SET u2 = UNHEX(REPLACE(u, '-', '')), i2 = INET6_ATON(i)",
        "ALTER TABLE same DROP PRIMARY KEY, DROP u, DROP i, CHANGE u2 u BINARY(16) PRIMARY KEY, CHANGE i2 i BINARY(4)",
    )
    run_well("cdc-consumer", pair.target, "--until-current")
    assert rows(pair.follower) == rows(pair.leader)


def test_rows_from_before_a_column_was_altered(pair: Pair) -> None:
    """Nothing in a table map tells BINARY from UUID and INET, and the leader tells its present types only."""
    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY, x BINARY(16), y INET6)",
        "CREATE TABLE u (id INT PRIMARY KEY, x BINARY(16))",
        database="maria",
    )
    pair.replicate()
    pair.on_leader(
        "INSERT INTO t VALUES (1, x'01', '::1')",
        "ALTER TABLE t MODIFY x INET6, MODIFY y BINARY(16)",
        "INSERT INTO t VALUES (2, '::2', x'02')",
        "INSERT INTO u VALUES (1, x'01')",
        "ALTER TABLE u DROP x",
        "INSERT INTO u VALUES (2)",
        database="maria",
    )
    line = refused("cdc-producer", pair.source, "--until-current", status=3)
    assert "a column becomes INET6, and MySQL would keep its values in their old form" in line
    skip = ("--skip", skip_of(line))
    line = refused("cdc-producer", pair.source, "--until-current", *skip, status=3)
    assert "CDC-EVENT-ALTERED-TYPE" in line and "column x was BINARY, or UUID or INET of MariaDB" in line
    run_well("cdc-producer", pair.source, "--until-current", "--copy-unrepeatable")
    line = refused("cdc-consumer", pair.target, "--until-current", status=3)
    assert "CDC-FOLLOWER-COLUMN" in line
    assert "x is binary(16) and on the leader varchar(39) character set ascii" in line
    assert "y is varchar(39) character set ascii and on the leader binary(16)" in line
    pair.on_follower("ALTER TABLE maria.t MODIFY x varchar(39) CHARACTER SET ascii, MODIFY y binary(16)")
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)


# Statements that MySQL would understand in another way, or does not know, and the reasons in the errors.
STATEMENTS = {
    "CREATE TABLE a1 (id INT PRIMARY KEY /*M!100100 , b INT */)": "it has a comment that only MariaDB executes",
    "ALTER TABLE t CHANGE a b JSON": "JSON is another name of LONGTEXT in MariaDB",
    "CREATE TABLE a2 (id INT PRIMARY KEY, t INT REFERENCES t (id))": "a foreign key is in the definition of a column",
    "SET STATEMENT sql_mode = '' FOR CREATE TABLE a3 (id INT PRIMARY KEY)": "the statement is not known",
    "CREATE SEQUENCE a4": "the statement is not known",
    "SET sql_mode = 'ORACLE'; CREATE TABLE a5 (id INT PRIMARY KEY)": "MariaDB's sql_mode ORACLE",
    "SET binlog_alter_two_phase = ON; ALTER TABLE t ADD c INT": "a phase of ALTER TABLE in MariaDB",
}  # fmt: skip


def test_statements_that_would_do_something_else_stop_the_producer(pair: Pair) -> None:
    """Each can be skipped."""
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT)", database="maria")
    for statement in STATEMENTS:
        pair.on_leader(*statement.split("; "), database="maria")
    skips: list[str] = []
    for reason in STATEMENTS.values():
        line = refused("cdc-producer", pair.source, "--until-current", *skips, status=3)
        assert reason in line
        assert "; hint: " in line
        skips = ["--skip", skip_of(line)]


def test_statements_that_mysql_refuses_stop_the_consumer_with_a_way_out(pair: Pair) -> None:
    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT",
        "INSERT INTO t VALUES (1, 2)",
        database="maria",
    )
    run_well("cdc-producer", pair.source, "--until-current")
    line = refused("cdc-consumer", pair.target, "--until-current", status=3)
    assert "the follower refuses a statement" in line
    assert "MariaDB" in line
    pair.on_follower("DROP TABLE maria.t", "CREATE TABLE maria.t (id INT PRIMARY KEY, a INT)")
    run_well("cdc-consumer", pair.target, "--until-current", "--skip", skip_of(line))
    assert rows(pair.follower) == rows(pair.leader)


def skip_of(line: str) -> str:
    """The argument of --skip in an error's hint."""
    return line.rpartition("--skip ")[2].split()[0]


@pytest.mark.long
def test_all_types(mariadb: MySql, follower: MySql, kafka: Kafka, tmp_path: Path) -> None:
    """The types of MySQL that MariaDB has, at their limits.

    `make test` has test_types_and_ordinary_statements.
    """
    client = [
        *(*mariadb_programs().client, "--no-defaults", "--force", "--default-character-set=utf8mb4"),
        *("-uroot", f"--socket={mariadb.socket}"),
    ]
    with on(mariadb) as cursor:
        cursor.execute("RESET MASTER")
    with SQL.open("rb") as text:
        subprocess.run(client, stdin=text, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    left_out = with_generated_columns(mariadb) if version_of(mariadb).startswith("11.") else set()
    filters = {"include_dbs": DATABASES, "exclude_tables": [f"`{database}`.`{table}`" for database, table in left_out]}
    target = {"consumer": {"engine": "InnoDB"}}
    Pair.make(tmp_path, mariadb, follower, kafka, name=own_name(tmp_path), filters=filters, target=target).replicate()
    for database in DATABASES:
        there, here = rows(follower, database), rows(mariadb, database)
        here = {table: found for table, found in here.items() if (database, table) not in left_out}
        assert there.keys() == here.keys()
        assert {table for table in here if there[table] != here[table]} <= DIFFERENT
    assert len(rows(mariadb, DATABASES[0])) > 80


def with_generated_columns(server: MySql) -> set[tuple[str, str]]:
    """The tables of which MariaDB 11.8 logs no whole rows."""
    with on(server) as cursor:
        cursor.execute(
            "SELECT DISTINCT table_schema, table_name FROM information_schema.columns WHERE is_generated = 'ALWAYS'"
        )
        return set(cursor.fetchall())


def version_of(server: MySql) -> str:
    with on(server) as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone()
        return str(version)


@pytest.mark.long
def test_a_timestamp_that_mysql_does_not_have_stops_the_consumer(pair: Pair) -> None:
    """MariaDB has TIMESTAMP up to 2106 from 11.5 on, MySQL up to 2038; the column must become DATETIME on the leader.

    `make test` has test_rows_of_a_type_that_is_not_replicated_stop_the_stream.
    """
    pair.on_leader("CREATE TABLE late (id INT PRIMARY KEY, at TIMESTAMP NULL)", database="maria")
    pair.on_leader("SET time_zone = '+00:00'", "INSERT INTO late VALUES (1, '2038-01-19 03:14:07')", database="maria")
    pair.replicate()
    if version_of(pair.leader).startswith("10."):
        with pytest.raises(pymysql.OperationalError, match="Incorrect datetime"):
            pair.on_leader(
                "SET sql_mode = 'STRICT_ALL_TABLES'", "INSERT INTO late VALUES (2, '2040-01-01')", database="maria"
            )
        return
    pair.on_leader("SET time_zone = '+00:00'", "INSERT INTO late VALUES (2, '2106-02-07 06:28:15')", database="maria")
    run_well("cdc-producer", pair.source, "--until-current")
    line, _ = stopped("cdc-consumer", pair.target, "--until-current", status=3)
    assert "maria/late" in line or "maria.late" in line
    assert "--skip maria.late" in line
    pair.on_leader("ALTER TABLE late MODIFY at DATETIME NULL", database="maria")
    pair.replicate("--skip", "maria.late")
    run_well("cdc-producer", pair.source, "--copy", "maria.late", "--until-current")
    pair.replicate()
    assert rows(pair.follower)["late"] == rows(pair.leader)["late"]
