"""Statements on real servers: that their effects are the truth, what never leaves the leader, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sql.ddl import Effect, classify
from tests.checks.binlog import position, queries
from tests.checks.compare import content, databases
from tests.checks.objects import objects, unnamed, unseen
from tests.checks.statements import Form, forms, said_of
from tests.harness.pair import Pair
from tests.harness.programs import json_lines, own_name, refused, run_well, write_profile
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str, database: str | None = None) -> None:
    with server.root(database=database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_the_effects_of_every_form_are_what_the_server_does(mysql_server: MySqlFactory) -> None:
    """Each statement of the corpus: what it is said to do, as typed and as logged, is what happens to the objects."""
    server = mysql_server()
    with (
        server.root() as connection, connection.cursor() as cursor,
        server.root() as other, other.cursor() as looking,
    ):  # fmt: skip
        before = objects(looking)
        for form in forms():
            if form.not_run:
                continue
            start = position(server)
            cursor.execute(form.text)
            if form.expected.startswith("Create") and form.text.endswith("START TRANSACTION"):
                cursor.execute("COMMIT")
            after = objects(looking)
            effects = _effects(form)
            lost = _logged_otherwise(form, server, start)
            if form.expected not in ("dml", "admin"):  # a routine may do anything; OPTIMIZE makes a table anew
                assert not unnamed(effects, before, after), form.text
            if "EXISTS" not in form.text:
                assert not [each for each in unseen(effects, before, after) if each.name != "t7b"], form.text
            assert not lost, f"logged as {lost}"
            before = after


def _effects(form: Form) -> tuple[Effect, ...]:
    modes = form.sql_mode.split(",")
    kind, effects = classify(
        form.text,
        database=form.database,
        ansi_quotes="ANSI_QUOTES" in modes,
        backslash_escapes="NO_BACKSLASH_ESCAPES" not in modes,
    )
    return effects if kind == "ddl" else ()  # a temporary table is to be seen by its session only


def _logged_otherwise(form: Form, server: MySql, start: tuple[str, int]) -> list[str]:
    """The statements in the log that are understood otherwise than the one that was typed."""
    logged = [
        (query.text.decode("utf-8", "replace"), query.database, query.variables.get("sql_mode", ""))
        for query in queries(server, start)
    ]
    said = {text: said_of(text, database=database, sql_mode=sql_mode) for text, database, sql_mode in logged}
    # DROP DATABASE first drops the tables of engines without transactions, and a routine's statements are its own.
    expected = {form.expected, "begin", "commit"}
    server_made = form.expected == "dml" or form.expected.startswith("DropDatabase")
    if any("START TRANSACTION" in text for text in said):
        expected.add(form.expected.removesuffix(", not faithfully"))  # the rows of its query follow it
    return [text for text, words in said.items() if words not in expected and not (server_made and "Drop" in words)]


def test_a_comment_that_is_not_executed_is_logged_as_a_comment(mysql_server: MySqlFactory) -> None:
    """The producer relies on it: it takes the content of every executable comment for executed."""
    server = mysql_server()
    start = position(server)
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.a /*!99999 RENAME b */ (i INT)")
    assert [query.text for query in queries(server, start)][1] == b"CREATE TABLE d.a /* 99999 RENAME b */ (i INT)"
    statement = "CREATE TABLE d./*!99999 a */ b (i INT)"
    start = position(server)
    execute(server, statement)
    (query,) = queries(server, start)
    assert said_of(query.text.decode(), database="", sql_mode="") == "CreateTable d.b"


SECRETS = [
    "CREATE USER keeper IDENTIFIED BY 'hunter2'",
    "CREATE USER 'keeper'@'10.0.0.1' IDENTIFIED WITH caching_sha2_password BY 'hunter2', keeper2 IDENTIFIED BY 'x'",
    "ALTER USER keeper IDENTIFIED BY 'hunter2'",
    "SET PASSWORD FOR keeper = 'hunter2'",
    "CREATE ROLE keepers",
    "GRANT keepers TO keeper",
    "GRANT SELECT ON secrets.* TO keeper",
    "SET DEFAULT ROLE keepers TO keeper",
    "REVOKE keepers FROM keeper",
    "RENAME USER keeper2 TO keeper3",
    "CREATE SERVER away FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h', PASSWORD 'hunter2')",
    "DROP SERVER away",
    "DROP USER keeper, 'keeper'@'10.0.0.1', keeper3",
    "DROP ROLE keepers",
    "ANALYZE TABLE a",
]


def test_account_statements_are_named_in_the_log_and_nowhere_else(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    execute(leader, "CREATE DATABASE secrets", "CREATE TABLE secrets.a (i INT)")
    path = write_profile(tmp_path, leader, kafka, name="secrets", producer={"start": "now"})
    run_well("cdc-producer", path, "--until-current")
    start = position(leader)
    with leader.root(database="secrets") as connection, connection.cursor() as cursor:
        for statement in SECRETS:
            cursor.execute(statement)
    hashes = [part for query in queries(leader, start) for part in query.text.split(b"'") if part.startswith(b"$A$")]
    assert len(hashes) == 5
    log = run_well("cdc-producer", path, "--until-current")
    assert json_lines(path) == []
    assert "hunter2" not in log
    assert "$A$" not in log
    for named in (
        'kind=account statement="CREATE USER keeper@%"',
        'statement="CREATE USER keeper@10.0.0.1, keeper2@%"',
        'statement="GRANT keeper@%"',
        'statement="RENAME USER keeper2, keeper3"',
        'kind=admin statement="ANALYZE TABLE a"',
    ):
        assert named in log


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("ALTER TABLE a ADD c INT DEFAULT (CONNECTION_ID())", "another answer"),
        ("CREATE TABLE a2 (i INT) CONNECTION = 'mysql://u:hunter2@h/d/t'", "may hold a password"),
    ],
)
def test_what_a_follower_cannot_repeat_stops_until_the_table_is_left_out(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, statement: str, said: str
) -> None:
    name = f"unlike_{own_name(tmp_path)}"

    def profile(server: MySql, role: str, **tables: Any) -> Path:
        return write_profile(tmp_path, server, kafka, name=role, topic=name, resource=name, **tables)

    begun = {"producer": {"start": "now"}, "filters": {"include_dbs": [name]}}
    run_well("cdc-producer", profile(leader, "leader", **begun), "--until-current")
    execute(leader, f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE b (i INT)", "CREATE TABLE a (i INT)")
    execute(leader, "INSERT INTO a VALUES (7)", statement, database=name)
    line = refused("cdc-producer", tmp_path / "leader.toml", "--until-current", status=3)
    assert said in line
    assert f"at {position(leader)[0]}:" in line
    assert "hunter2" not in line
    # The way out that the line tells.
    begun["filters"] = {"exclude_tables": [f"{name}.a*"], "include_dbs": [name]}
    execute(leader, "CREATE TABLE new_a SELECT * FROM a", database=name)
    run_well("cdc-producer", profile(leader, "leader", **begun), "--until-current")
    run_well("cdc-consumer", profile(follower, "follower"), "--until-current")
    there, here = content(leader, name), content(follower, name)
    assert (here["b"], here["new_a"]) == (there["b"], there["new_a"])


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        ("CREATE TABLE t SELECT * FROM unseen.a", "equal"),
        ("CREATE TABLE t LIKE unseen.a", "the follower refuses a statement: Unknown database"),
        ("CREATE TABLE t (i INT, FOREIGN KEY (i) REFERENCES unseen.a (i))", "the follower refuses a statement: Failed"),
        ("CREATE VIEW t AS SELECT * FROM unseen.a", "the follower refuses a statement: Unknown database"),
        ("CREATE PROCEDURE t() SELECT * FROM unseen.a", "equal"),
        ("CREATE TRIGGER unseen.t BEFORE INSERT ON unseen.a FOR EACH ROW INSERT INTO seen VALUES (1)", "equal"),
        ("RENAME TABLE seen TO unseen.seen", "a statement crosses the border of the filters"),
        ("RENAME TABLE unseen.a TO t", "a statement crosses the border of the filters"),
        ("DROP TABLE seen, unseen.a", "a statement crosses the border of the filters"),
        ("DROP DATABASE unseen", "equal"),
    ],
)  # fmt: skip
def test_a_statement_that_names_what_the_filters_leave_out(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, follower: MySql, statement: str, outcome: str
) -> None:
    """docs/filters-and-renames.md: what becomes of each, with the database ``unseen`` left out."""
    leader = mysql_server()
    name = f"border_{own_name(tmp_path)}"
    path = write_profile(
        tmp_path, leader, kafka, name="border", topic=name, resource=name, filters={"exclude_dbs": ["unseen"]}
    )
    execute(leader, "CREATE DATABASE unseen", "CREATE TABLE unseen.a (i INT PRIMARY KEY)")
    execute(leader, f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE seen (i INT)", statement)
    target = write_profile(tmp_path, follower, kafka, name="target", topic=name, resource=name)
    if "border" in outcome:
        assert outcome in refused("cdc-producer", path, "--until-current", status=3)
        return
    run_well("cdc-producer", path, "--until-current")
    if outcome != "equal":
        assert outcome in refused("cdc-consumer", target, "--until-current", status=3)
        return
    run_well("cdc-consumer", target, "--until-current")
    assert content(follower, name) == content(leader, name)


def test_a_view_that_needs_an_account_that_the_follower_lacks(
    tmp_path: Path, leader: MySql, kafka: Kafka, follower: MySql
) -> None:
    name = own_name(tmp_path)
    user = f"{name[-20:]}@localhost"
    filters = {"include_dbs": [name]}
    source = write_profile(
        tmp_path, leader, kafka, name="l", topic=name, resource=name, filters=filters, producer={"start": "now"}
    )
    target = write_profile(tmp_path, follower, kafka, name="f", topic=name, resource=name)
    run_well("cdc-producer", source, "--until-current")
    execute(
        leader,
        f"CREATE DATABASE {name}",
        f"CREATE USER {user}",
        f"CREATE DEFINER = {user} FUNCTION {name}.f() RETURNS INT NO SQL RETURN 7",
        f"GRANT EXECUTE ON {name}.* TO {user}",
        f"CREATE DEFINER = {user} VIEW {name}.v AS SELECT {name}.f()",
    )
    run_well("cdc-producer", source, "--until-current")
    line = refused("cdc-consumer", target, "--until-current", status=3)
    assert "hint: create that account on the follower, since accounts are not replicated, and start again" in line
    execute(follower, f"CREATE USER {user}", f"GRANT EXECUTE ON {name}.* TO {user}")
    run_well("cdc-consumer", target, "--until-current")
    assert content(follower, name) == content(leader, name)
    execute(leader, f"DROP USER {user}")
    execute(follower, f"DROP USER {user}")


def test_a_dropped_database_takes_the_followers_own_tables_along(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, follower: MySql
) -> None:
    leader = mysql_server()
    hidden = {"exclude_tables": ["whole.hidden"]}
    path = write_profile(tmp_path, leader, kafka, name="whole", resource="whole", filters=hidden)
    target = write_profile(tmp_path, follower, kafka, name="target", topic="whole", resource="whole")
    execute(leader, "CREATE DATABASE whole", "CREATE TABLE whole.a (i INT)", "CREATE TABLE whole.hidden (i INT)")
    run_well("cdc-producer", path, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    execute(follower, "CREATE TABLE whole.hidden (ours INT)")
    execute(leader, "DROP DATABASE whole")
    run_well("cdc-producer", path, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    assert "whole" not in databases(follower)


def test_a_table_whose_tablespace_was_discarded(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """It cannot be read on either; rows of other tables go on, and it can be altered, renamed and dropped."""
    name = own_name(tmp_path)
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, producer={"start": "now"})
    run_well("cdc-producer", pair.source, "--until-current")
    columns = "(i INT PRIMARY KEY, s VARCHAR(9) UNIQUE)"
    parted = "CREATE TABLE p (i INT PRIMARY KEY, s VARCHAR(9)) PARTITION BY HASH (i) PARTITIONS 2"
    pair.on_leader(
        f"CREATE DATABASE {name}", f"USE {name}", *(f"CREATE TABLE {table} {columns}" for table in "abc"), parted,
        *(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')" for table in "abcp"),
        "ALTER TABLE a DISCARD TABLESPACE", f"ALTER TABLE {name}.b ALGORITHM = DEFAULT, DISCARD TABLESPACE",
        "ALTER TABLE p DISCARD PARTITION ALL TABLESPACE", "INSERT INTO c VALUES (3, 'c')",
    )  # fmt: skip
    pair.replicate()
    found = content(follower, name)
    assert [found[table]["rows"] for table in "abp"] == [None, None, None]
    assert found == content(leader, name)
    pair.on_leader("INSERT INTO c VALUES (4, 'd')", "RENAME TABLE b TO b2", "DROP TABLE a, p", database=name)
    pair.on_leader(
        "ALTER TABLE b2 ADD KEY (s, i)", "CREATE TABLE d LIKE b2", "INSERT INTO d VALUES (5, 'e')", database=name
    )
    pair.replicate()
    pair.on_leader("DROP TABLE b2", "DELETE FROM c WHERE i = 1", database=name)
    assert " conflict " not in pair.replicate()
    assert content(follower, name) == content(leader, name)


def test_a_followers_own_defaults_change_no_table(
    tmp_path: Path, leader: MySql, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    follower = mysql_server(
        "--default-storage-engine=MyISAM", "--sql-generate-invisible-primary-key=ON", "--lc-time-names=de_DE",
        "--auto-increment-increment=5", "--auto-increment-offset=2",
    )  # fmt: skip
    path = write_profile(
        tmp_path, leader, kafka, name="defaults", producer={"start": "now"}, filters={"include_dbs": ["defaults"]}
    )
    run_well("cdc-producer", path, "--until-current")
    execute(leader, "CREATE DATABASE defaults", "CREATE TABLE defaults.a (i INT)", "INSERT INTO defaults.a VALUES (1)")
    execute(leader, "ALTER TABLE defaults.a ADD m VARCHAR(9) DEFAULT (MONTHNAME('2024-05-06'))")
    execute(
        leader,
        "CREATE TABLE defaults.c (i INT PRIMARY KEY, n INT, KEY (n))",
        "INSERT INTO defaults.c VALUES (1, 0), (2, 0)",
    )
    execute(leader, "ALTER TABLE defaults.c MODIFY n INT AUTO_INCREMENT")
    execute(leader, "SET default_storage_engine = MyISAM", "CREATE TABLE defaults.b (i INT)")
    run_well("cdc-producer", path, "--until-current")
    target = write_profile(tmp_path, follower, kafka, name="other", topic="defaults")
    run_well("cdc-consumer", target, "--until-current")
    ours, theirs = content(follower, "defaults"), content(leader, "defaults")
    assert (ours["a"], ours["c"]) == (theirs["a"], theirs["c"])
    # The leader doesn't log the engine of a table that names none; a follower's tables must be transactional.
    assert "ENGINE=MyISAM" in theirs["b"]["definition"]
    assert "ENGINE=InnoDB" in ours["b"]["definition"]


def test_options_of_tables_that_mean_nothing_elsewhere(
    tmp_path: Path, leader: MySql, kafka: Kafka, follower: MySql
) -> None:
    """A tablespace that only the leader has, a password, and the server of another engine."""
    name = f"options_{own_name(tmp_path)}"
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, producer={"start": "now"})
    pair.replicate()
    comments = "PASSWORD = 'hunter2' CONNECTION = 'mysql://u:hunter2@h/d/t'"
    pair.on_leader(
        f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd'",
        "CREATE TABLE a (i INT PRIMARY KEY) TABLESPACE ts", "CREATE TABLE b (i INT) TABLESPACE = innodb_file_per_table",
        "CREATE TABLE c (i INT) PASSWORD = 'hunter2'", "ALTER TABLE c PASSWORD 'hunter3', TABLESPACE `ts`",
        f"CREATE TABLE d (i INT) {comments} ENGINE = InnoDB", f"CREATE TABLE e (i INT) ENGINE = MyISAM {comments}",
        f"ALTER TABLE d ADD j INT, {comments} ENGINE = InnoDB", "ALTER TABLE e ENGINE = InnoDB",
        *(f"INSERT INTO {table} (i) VALUES (1), (2)" for table in "abcde"),
    )  # fmt: skip
    pair.replicate()
    there, here = content(leader, name), content(follower, name)
    assert [here[table]["rows"] for table in "abcde"] == [there[table]["rows"] for table in "abcde"]
    assert [here[table]["definition"] for table in "bde"] == [there[table]["definition"] for table in "bde"]
    for table in "ac":
        defined = there[table]["definition"].replace("TABLESPACE `ts`", "TABLESPACE `innodb_file_per_table`")
        assert here[table]["definition"] == defined
    pair.on_leader(f"DROP DATABASE {name}", "DROP TABLESPACE ts")


def test_rows_with_values_that_only_an_alter_makes(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    """No statement stores a VECTOR of 5 bytes; other columns of such rows change, and the rows go.

    And members of an ENUM or SET stay the same bytes in another character set.
    """
    name = own_name(tmp_path)
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, producer={"start": "now"})
    pair.replicate()
    members = "e ENUM('x', x'ef') CHARACTER SET ascii, s SET('y', 'ß') CHARACTER SET latin1"
    time = "ts TIMESTAMP NOT NULL DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP"
    pair.on_leader(f"CREATE DATABASE {name}")
    for table, key in (("keyed", "PRIMARY KEY"), ("keyless", "")):
        pair.on_leader(
            f"CREATE TABLE {table} (id INT {key}, v BLOB, {members}, n INT, {time})",
            f"INSERT INTO {table} VALUES (1, x'0102030405', 2, 3, 1, '2002-02-02')",
            f"INSERT INTO {table} VALUES (2, x'00000000', 1, 2, 1, '2002-02-02')",
            f"ALTER TABLE {table} MODIFY v VECTOR(8)",
            f"UPDATE {table} SET n = n + id, ts = ts",
            f"UPDATE {table} SET n = n + 1 WHERE id = 1",
            f"UPDATE {table} SET v = NULL WHERE id = 2",
            f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4",
            f"UPDATE {table} SET e = 3 - e, s = 1 WHERE id = 2",
            f"INSERT INTO {table} VALUES (3, NULL, 2, 2, 1, '2002-02-02')",
            database=name,
        )
    assert "conflicts=0" in pair.replicate()
    assert content(follower, name) == content(leader, name)
    pair.on_leader("DELETE FROM keyed", "DELETE FROM keyless WHERE id = 1", database=name)
    assert "conflicts=0" in pair.replicate()
    assert content(follower, name) == content(leader, name)
