"""Messages in Debezium's format beside the records: what they say, and that they come exactly once."""

import os
import random
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from cdc.kafka import commit_log
from cdc.kafka.partitions import end_offsets
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.debezium import (
    Comparison,
    DebeziumTopicMessage,
    debezium_messages,
    schema_changes,
    transaction_messages,
    uncounted,
)
from tests.generators.random_keys import random_history
from tests.harness.debezium import VERSION, debezium
from tests.harness.dump import restore
from tests.harness.programs import after_now, as_json, own_name, refused, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory
from tests.harness.wait import until

ALL_TYPES = Path(__file__).parents[2] / "data" / "all_types.sql"
HISTORIES = int(os.environ.get("CDC_DEBEZIUM_HISTORIES", "40"))
UNCERTAIN = 20  # definitions of tables that were altered again, or with letters that the server does not show
FORMATS = {"format": ["cdc", "debezium"]}
pytestmark = pytest.mark.integration


def execute(leader: MySql, *statements: str) -> None:
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def short(messages: list[DebeziumTopicMessage]) -> list[tuple[object, ...]]:
    """What a message says in short: operation, key, images, snapshot."""
    found: list[tuple[object, ...]] = []
    for each in messages:
        if each.value is None:
            found.append(("tombstone", each.key))
            continue
        value = each.value
        found.append((value["op"], each.key, value["before"], value["after"], value["source"]["snapshot"]))
    return found


def test_messages_beside_the_records(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    execute(
        leader, f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, at DATETIME(6) NOT NULL DEFAULT '2020-01-01')",
        f"CREATE TABLE {name}.keyless (p POINT)", f"INSERT INTO {name}.t VALUES (1, '2020-01-01 00:00:00.000001')",
    )  # fmt: skip
    profile = write_profile(
        tmp_path, leader, kafka, name=name, kafka=FORMATS, filters={"include_dbs": [name]}, producer={"start": "copy"},
        debezium={"topic_prefix": f"{name}.dbz", "provide_transaction_metadata": True, "schemas_enable": True,
                  "include_schema_changes": True},
    )  # fmt: skip
    run_well("cdc-producer", profile, "--until-current")
    execute(
        leader, f"ALTER TABLE {name}.t COMMENT 'renamed'", f"ALTER TABLE {name}.t COMMENT 'altered'",
        f"ALTER TABLE {name}.t ALTER at SET DEFAULT '2020-01-01 00:00:00.000001'",
        "BEGIN", f"INSERT INTO {name}.t VALUES (2, '2020-01-01')", f"UPDATE {name}.t SET id = id + 10",
        f"DELETE FROM {name}.t WHERE id = 11", f"INSERT INTO {name}.keyless VALUES (POINT(1, 2))", "COMMIT",
    )  # fmt: skip
    run_well("cdc-producer", profile, "--until-current")

    found = debezium_messages(kafka, prefix=f"{name}.dbz")
    assert set(found) == {f"{name}.t", f"{name}.keyless"}
    one, two = 1_577_836_800_000_001, 1_577_836_800_000_000
    assert short(found[f"{name}.t"]) == [
        ("r", {"id": 1}, None, {"id": 1, "at": one}, "incremental"),
        ("c", {"id": 2}, None, {"id": 2, "at": two}, "false"),
        ("d", {"id": 1}, {"id": 1, "at": one}, None, "false"),
        ("tombstone", {"id": 1}),
        ("c", {"id": 11}, None, {"id": 11, "at": one}, "false"),
        ("d", {"id": 2}, {"id": 2, "at": two}, None, "false"),
        ("tombstone", {"id": 2}),
        ("c", {"id": 12}, None, {"id": 12, "at": two}, "false"),
        ("d", {"id": 11}, {"id": 11, "at": one}, None, "false"),
        ("tombstone", {"id": 11}),
    ]
    schemas = [each.schemas for each in found[f"{name}.t"]]
    assert schemas[0][0]["name"] == f"{name}.dbz.{name}.t.Key"
    assert [of_value["fields"][1]["fields"][1]["default"] for _, of_value in schemas if of_value] == [two, *[one] * 6]
    (point,) = found[f"{name}.keyless"]
    assert point.key is None
    assert {**point.value["after"]["p"], "wkb": None} == {"x": 1.0, "y": 2.0, "wkb": None, "srid": None}
    record = as_json(profile)[-1]
    source, at = point.value["source"], record["transaction"]["ts_us"]
    assert source["thread"] > 0
    assert source | {"thread": None} == {
        "version": VERSION, "connector": "mysql", "name": f"{name}.dbz", "ts_ms": at // 1000,
        "snapshot": "false", "db": name, "sequence": None, "ts_us": at,
        "ts_ns": at * 1000, "table": "keyless", "server_id": 1,
        "gtid": record["transaction"]["id"], "file": record["bn_file"]["fileName"], "pos": record["bn_file"]["offset"],
        "row": 0, "thread": None, "query": None,
    }  # fmt: skip
    changes = schema_changes(kafka, prefix=f"{name}.dbz")
    tables = [(each.value["ddl"].split()[0], change["id"], change["table"]) for each in changes
              for change in each.value["tableChanges"]]  # fmt: skip
    id_t, id_keyless = (f'"{name}"."{table}"' for table in ("t", "keyless"))
    assert [each[:2] for each in tables] == [("CREATE", id_keyless), ("CREATE", id_t), *[("ALTER", id_t)] * 3]
    assert [each[2] is None for each in tables] == [False, False, True, True, False], "altered again"
    assert [column["defaultValueExpression"] for column in tables[-1][2]["columns"]] == [
        None, "2020-01-01 00:00:00.000001",
    ]  # fmt: skip
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    newest = next(commit_log.entries(properties, topic=f"{name}.commits", resource=name))
    places = {f"{name}.dbz.{name}.t/0": record["sequence"] - 1, f"{name}.dbz.{name}.keyless/0": record["sequence"],
              f"{name}.dbz.transaction/0": record["sequence"], f"{name}.dbz/0": record["sequence"] - 4}  # fmt: skip
    assert newest.debezium == places
    assert point.value["transaction"] == {
        "id": record["transaction"]["id"], "total_order": 7, "data_collection_order": 1,
    }  # fmt: skip
    assert uncounted(found, transaction_messages(kafka, prefix=f"{name}.dbz")) == []


def test_what_readers_see_already_is_not_written_again(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """As behind a commit that came late: the topics have messages of records that the commit log does not count."""
    name = own_name(tmp_path)
    start = after_now(leader)
    execute(leader, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    execute(leader, f"INSERT INTO {name}.t VALUES (1), (2)")
    behind = after_now(leader)

    def profile(topic: str, start: str, **more: str) -> Path:
        return write_profile(
            tmp_path, leader, kafka, name=topic, kafka=FORMATS, filters={"include_dbs": [name]},
            producer={"start": start}, **{"resource": name} | more,
            debezium={"topic_prefix": f"{name}.dbz", "provide_transaction_metadata": True,
                      "include_schema_changes": True},
        )  # fmt: skip

    run_well("cdc-producer", profile(f"{name}_1", start), "--until-current")
    execute(leader, f"INSERT INTO {name}.t VALUES (3)", f"INSERT INTO {name}.t VALUES (4)")
    run_well("cdc-producer", profile(f"{name}_2", start), "--until-current")
    messages = debezium_messages(kafka, prefix=f"{name}.dbz")
    found = messages[f"{name}.t"]
    assert [each.key["id"] for each in found] == [1, 2, 3, 4]
    assert uncounted(messages, transaction_messages(kafka, prefix=f"{name}.dbz")) == []
    statements = [each.value["ddl"].split()[1] for each in schema_changes(kafka, prefix=f"{name}.dbz")]
    assert statements == ["DATABASE", "TABLE"]

    other = refused("cdc-producer", profile(f"{name}_3", behind), "--until-current", status=3)
    assert "CDC-DEBEZIUM-MESSAGES-LOST" in other
    other = refused("cdc-producer", profile(f"{name}_4", start, resource=f"{name}_4"), "--until-current")
    assert "the topic has messages of another leader" in other
    assert len(debezium_messages(kafka, prefix=f"{name}.dbz")[f"{name}.t"]) == len(found)


@pytest.mark.long
def test_the_defaults_of_a_mariadb_leader(tmp_path: Path, mariadb: MySql, kafka: Kafka) -> None:
    """Such a server shows a default as an expression. In `make test` test_messages_beside_the_records has MySQL's."""
    name = own_name(tmp_path)
    execute(
        mariadb, f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a INT DEFAULT 5, s VARCHAR(9) DEFAULT 'x''y', "
        "d DATETIME DEFAULT CURRENT_TIMESTAMP, e DECIMAL(5,2) DEFAULT (1+1), n INT DEFAULT NULL)",
        f"INSERT INTO {name}.t (id) VALUES (1)",
    )  # fmt: skip
    profile = write_profile(
        tmp_path, mariadb, kafka, name=name, kafka=FORMATS, filters={"include_dbs": [name]}, producer={"start": "copy"},
        debezium={"topic_prefix": f"{name}.dbz", "schemas_enable": True, "include_schema_changes": True},
    )  # fmt: skip
    run_well("cdc-producer", profile, "--until-current")
    execute(mariadb, f"INSERT INTO {name}.t (id) VALUES (2)", f"ALTER TABLE {name}.t ADD z INT DEFAULT 9")
    run_well("cdc-producer", profile, "--until-current")
    for each in debezium_messages(kafka, prefix=f"{name}.dbz")[f"{name}.t"]:
        columns = each.schemas[1]["fields"][1]["fields"]
        assert [column.get("default") for column in columns] == [None, 5, "x'y", 0, None, None]
    newest = schema_changes(kafka, prefix=f"{name}.dbz")[-1].value["tableChanges"][0]
    defaults = [column["defaultValueExpression"] for column in newest["table"]["columns"]]
    assert defaults == [None, "5", "x'y", "1970-01-01 00:00:00", None, None, "9"]


def test_formats_that_no_profile_can_have(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    profile = write_profile(tmp_path, leader, kafka, name=name, kafka=FORMATS | {"transactions": False})
    assert "Debezium's messages commit with the records" in refused("cdc-producer", profile)
    profile = write_profile(tmp_path, leader, kafka, name=name, kafka={"format": ["debezium"]})
    assert "is no list of formats" in refused("cdc-producer", profile)


_SNAPSHOT = """
CREATE DATABASE snap;
CREATE TABLE snap.t (id INT PRIMARY KEY, j JSON, at DATETIME(3), ts TIMESTAMP NULL, b BIT(5), d DATE NOT NULL, p POINT,
 n DECIMAL(10,2), f FLOAT, s SET('a','b'), u BIGINT UNSIGNED, v VARBINARY(4));
INSERT INTO snap.t VALUES (1, '{"b":1,"a":[1, 2.5]}', '2020-01-01 00:00:00.123', '2020-01-01 10:00:00', 5, '2021-01-01',
 POINT(1, 2), -1.5, 0.1, 'a,b', 18446744073709551615, x'01ff'),
 (2, NULL, NULL, NULL, NULL, '2021-01-01', NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE snap.keyless (a INT);
INSERT INTO snap.keyless VALUES (1), (1);
"""
_DEFAULTS = """
CREATE DATABASE extra CHARACTER SET latin1;
USE extra;
CREATE TABLE defaults (id INT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 5, b INT NOT NULL DEFAULT 7,
 c VARCHAR(20) DEFAULT 'abc', d DECIMAL(10,3) DEFAULT 1.5, dn DECIMAL(10,3) NOT NULL DEFAULT 0,
 e ENUM('x','y') DEFAULT 'y', s SET('p','q') NOT NULL DEFAULT 'p,q', dt DATETIME DEFAULT '2020-01-02 03:04:05',
 dt6 DATETIME(6) NOT NULL DEFAULT '2020-01-02 03:04:05.123456', dnow DATETIME DEFAULT CURRENT_TIMESTAMP,
 ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, ts3 TIMESTAMP(3) NULL
 DEFAULT '2020-01-02 03:04:05.123', tn TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, da DATE DEFAULT '2020-01-02',
 ti TIME DEFAULT '10:11:12', ti6 TIME(6) NOT NULL DEFAULT '10:11:12.5', y YEAR DEFAULT 2020, bi BIT(1) DEFAULT b'1',
 bi8 BIT(8) NOT NULL DEFAULT b'101', f FLOAT DEFAULT 1.25, db DOUBLE NOT NULL DEFAULT 1e10,
 vb VARBINARY(10) DEFAULT 'xyz', tx TEXT DEFAULT ('hello'), un BIGINT UNSIGNED DEFAULT 18446744073709551615,
 sm SMALLINT NOT NULL DEFAULT -3, me MEDIUMINT UNSIGNED DEFAULT 9, nn VARCHAR(10) DEFAULT NULL, ex INT DEFAULT (1+2),
 es VARCHAR(5) NOT NULL DEFAULT '', iu INT UNSIGNED NOT NULL DEFAULT 4294967295, bu BIGINT NOT NULL DEFAULT -9);
INSERT INTO defaults (id) VALUES (1);
ALTER TABLE defaults ALTER a SET DEFAULT 6;
INSERT INTO defaults (id, a, c) VALUES (2, NULL, NULL);
CREATE TABLE `odd name` (`a.b` INT, `c-d` VARCHAR(3) CHARACTER SET utf8mb4, `1x` INT DEFAULT 1, UNIQUE KEY (`a.b`));
INSERT INTO `odd name` VALUES (1, 'x', 2);
"""
# A schema such as applications have: numbered keys, defaults, foreign keys with cascades, a trigger, a view.
_RENTALS = """
CREATE DATABASE rentals CHARACTER SET utf8mb4;
USE rentals;
CREATE TABLE place (place_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, street VARCHAR(50) NOT NULL,
 street2 VARCHAR(50) DEFAULT NULL, at GEOMETRY NOT NULL, spot POINT NOT NULL,
 changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
 ON UPDATE CURRENT_TIMESTAMP) ENGINE=InnoDB;
CREATE TABLE film (film_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT, title VARCHAR(128) NOT NULL, about TEXT,
 year YEAR DEFAULT NULL, days TINYINT UNSIGNED NOT NULL DEFAULT 3, rate DECIMAL(4,2) NOT NULL DEFAULT 4.99,
 minutes SMALLINT UNSIGNED DEFAULT NULL, rating ENUM('G','PG','PG-13','R','NC-17') DEFAULT 'G',
 features SET('Trailers','Commentaries','Deleted Scenes') DEFAULT NULL, PRIMARY KEY (film_id), KEY (title),
 FULLTEXT KEY (title, about));
CREATE TABLE customer (customer_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT, place_id SMALLINT UNSIGNED NOT NULL,
 name VARCHAR(45) NOT NULL, email VARCHAR(50) DEFAULT NULL, picture BLOB, since DATETIME NOT NULL,
 PRIMARY KEY (customer_id), FOREIGN KEY (place_id) REFERENCES place (place_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE rental (rental_id INT NOT NULL AUTO_INCREMENT, at DATETIME NOT NULL, film_id SMALLINT UNSIGNED NOT NULL,
 customer_id SMALLINT UNSIGNED NOT NULL, back DATETIME DEFAULT NULL, PRIMARY KEY (rental_id),
 UNIQUE KEY (at, film_id, customer_id), FOREIGN KEY (film_id) REFERENCES film (film_id) ON UPDATE CASCADE,
 FOREIGN KEY (customer_id) REFERENCES customer (customer_id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE film_text (film_id SMALLINT UNSIGNED NOT NULL PRIMARY KEY, title VARCHAR(255) NOT NULL);
CREATE TRIGGER film_added AFTER INSERT ON film FOR EACH ROW INSERT INTO film_text VALUES (NEW.film_id, NEW.title);
CREATE VIEW rented AS SELECT title, name FROM rental JOIN film USING (film_id) JOIN customer USING (customer_id);
INSERT INTO place (street, at, spot) VALUES ('Main Street 1', ST_GeomFromText('POINT(1 2)'), POINT(1, 2)),
 ('Žižkova 2', ST_GeomFromText('LINESTRING(0 0, 1 1)'), POINT(0, 0));
INSERT INTO film (title, year, features) VALUES ('ACADEMY', 2006, 'Trailers,Deleted Scenes'), ('ZORRO', NULL, '');
INSERT INTO customer (place_id, name, since, picture) VALUES (1, 'Ann', '2020-01-01', x'ff00'), (2, 'Bob', NOW(), NULL);
INSERT INTO rental (at, film_id, customer_id) VALUES ('2020-02-29 10:00:00', 1, 1), ('2020-02-29 11:00:00', 2, 2);
BEGIN;
UPDATE place SET place_id = place_id + 10;
UPDATE film SET film_id = 20, rating = 'NC-17' WHERE film_id = 2;
DELETE FROM customer WHERE name = 'Ann';
COMMIT;
"""
_END = "CREATE DATABASE the_end; CREATE TABLE the_end.t (id INT PRIMARY KEY); INSERT INTO the_end.t VALUES (1)"
_PRECISE = {
    "decimal.handling.mode": "string", "bigint.unsigned.handling.mode": "precise", "binary.handling.mode": "hex",
    "time.precision.mode": "connect",
}  # fmt: skip


_CHANGES = """
CREATE DATABASE changed CHARACTER SET latin1
CREATE TABLE changed.comp (b VARCHAR(5), a INT, PRIMARY KEY (a, b)) COMMENT 'c'
CREATE TABLE changed.u (b INT NOT NULL, a INT NOT NULL, n INT, UNIQUE KEY (a, b), UNIQUE KEY (n))
ALTER TABLE changed.u ADD COLUMN c INT DEFAULT 3 AFTER b, ADD KEY (c)
ALTER TABLE changed.u CHANGE c cc VARCHAR(10) NOT NULL DEFAULT 'z', MODIFY a BIGINT NOT NULL FIRST, ADD PRIMARY KEY (a)
ALTER TABLE changed.u RENAME COLUMN cc TO ccc
ALTER TABLE changed.u ALTER COLUMN ccc SET DEFAULT 'w'
ALTER TABLE changed.u ALTER ccc DROP DEFAULT, COMMENT 'c2'
ALTER TABLE changed.u ADD d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), ADD e ENUM('x', 'y') DEFAULT 'x'
CREATE INDEX ib ON changed.u (b)
DROP INDEX ib ON changed.u
RENAME TABLE changed.u TO changed.u2, changed.comp TO changed.comp2
ALTER TABLE changed.u2 RENAME TO changed.u3
CREATE TABLE changed.liked LIKE changed.u3
TRUNCATE TABLE changed.u3
ALTER TABLE changed.liked DROP COLUMN b
ALTER TABLE changed.liked CONVERT TO CHARACTER SET utf8mb4
CREATE VIEW changed.v AS SELECT 1
DROP VIEW changed.v
DROP TABLE changed.liked, changed.comp2
DROP TABLE IF EXISTS changed.nothing
CREATE USER changed@localhost
ALTER DATABASE changed CHARACTER SET utf8mb4
CREATE TABLE changed.t (id INT AUTO_INCREMENT PRIMARY KEY, c CHAR(3))
DROP DATABASE changed
"""


def random_work(leader: MySql, *, histories: int) -> None:
    """Histories of tables with any keys; what the server refuses leaves nothing in the log."""
    chance = random.Random(f"{SEED} debezium")
    execute(leader, "CREATE DATABASE work")
    with leader.root(charset="utf8mb4", database="work") as connection, connection.cursor() as cursor:
        for number in range(histories):
            history = random_history(chance, f"t{number}", transactions=20)
            for statements in (history.definitions, *history.transactions):
                cursor.execute("BEGIN")
                for statement in statements:
                    with suppress(pymysql.MySQLError):
                        cursor.execute(statement)
                cursor.execute("COMMIT")


def compare_schema_changes(
    comparison: Comparison, ours: list[DebeziumTopicMessage], theirs: list[DebeziumTopicMessage]
) -> None:
    """Compares the messages about changes of schemas: of the snapshot, and database by database."""

    def chosen(side: list[DebeziumTopicMessage], database: str, *, snapshot: str) -> list[DebeziumTopicMessage]:
        found = [each for each in side if each.value["databaseName"] == database]
        return [each for each in found if each.value["source"]["snapshot"] == snapshot]

    # Debezium's snapshot drops what it is about to create.
    created = [each for each in chosen(theirs, "snap", snapshot="true") if "CREATE TABLE" in each.value["ddl"]]
    mine = [each for each in chosen(ours, "snap", snapshot="true") if "CREATE TABLE" in each.value["ddl"]]
    comparison.compare_schema_changes(mine, created, where="copied")
    for database in sorted({each.value["databaseName"] for each in theirs} - {"", "snap", "work"}):
        sides = [chosen(side, database, snapshot="false") for side in (ours, theirs)]
        comparison.compare_schema_changes(*sides, where=database)


@pytest.mark.long
@pytest.mark.parametrize("schemas", [False, True], ids=["plain", "schemas"])
@pytest.mark.parametrize("modes", [{}, _PRECISE], ids=["default", "precise"])
def test_messages_are_those_of_debezium(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_broker: KafkaFactory, modes: dict[str, str], schemas: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Both read one leader: a snapshot, all types, random histories. Each field is compared.

    In `make test` test_messages_beside_the_records has what a message consists of, and the unit tests have the values.
    """
    leader, kafka = mysql_server(server_id=61), kafka_broker(settings={"message.max.bytes": "104857600"})
    restore(leader, _SNAPSHOT)
    own = {key.replace(".", "_"): value for key, value in modes.items()}
    profile = write_profile(
        tmp_path, leader, kafka, name="records", kafka=FORMATS, producer={"start": "copy"},
        debezium={"topic_prefix": "ours", "provide_transaction_metadata": True, "schemas_enable": schemas,
                  "include_schema_changes": True} | own,
    )  # fmt: skip
    run_well("cdc-producer", profile, "--until-current")
    settings = {"provide.transaction.metadata": "true"} | modes
    with debezium(
        tmp_path / "debezium", leader, kafka, prefix="theirs", settings=settings, schemas=schemas
    ) as connector:
        until(lambda: "INFO: Connected to 127.0.0.1" in connector.said(), what="Debezium to follow the binlog")
        restore(leader, ALL_TYPES.read_text())
        restore(leader, _DEFAULTS)
        restore(leader, _RENTALS)
        run_well("cdc-producer", profile, "--until-current")
        for statement in _CHANGES.strip().split("\n"):
            # A definition is certain while the leader has executed no later statement on the table.
            restore(leader, statement if "CREATE DATABASE" in statement else f"USE changed; {statement}")
            run_well("cdc-producer", profile, "--until-current")
        random_work(leader, histories=HISTORIES)
        restore(leader, _END)
        run_well("cdc-producer", profile, "--until-current")
        end, properties = ("theirs.the_end.t", 0), {"bootstrap.servers": kafka.bootstrap_servers}
        until(lambda: end[0] in kafka.admin().list_topics(timeout=10).topics, what="Debezium's last topic")
        until(lambda: end_offsets(properties, [end])[end] > 0, what="Debezium's last message")
        theirs, about = debezium_messages(kafka, prefix="theirs"), transaction_messages(kafka, prefix="theirs")
        changes = schema_changes(kafka, prefix="theirs")
    comparison = Comparison()
    comparison.compare_transactions(transaction_messages(kafka, prefix="ours"), about)
    compare_schema_changes(comparison, schema_changes(kafka, prefix="ours"), changes)
    comparison.compare(debezium_messages(kafka, prefix="ours"), theirs)
    with capsys.disabled():
        print(f"\n{comparison.messages} messages, {comparison.equal} fields equal, different: {dict(comparison.known)}")
    assert not comparison.others, "\n".join(comparison.others[:40])
    assert set(comparison.known) <= {
        "types", "values", "snapshots", "defaults", "nulls", "rows", "uncertain",
    }  # fmt: skip
    assert comparison.known["uncertain"] < UNCERTAIN
    assert comparison.messages > HISTORIES
