"""MariaDB's statements for a MySQL follower: rewritten where that is certain, else with the reason why not."""

import pytest

from cdc.model.gtid import executed_before, newest_of_each_domain
from cdc.producer.decode.query_event import logged_statement
from cdc.producer.flavor.mariadb_statements import rewritten
from tests.generators.binlog_events import Log

TEXT = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


def of(text: str) -> tuple[str, str]:
    """The statement's new text, and the reason why no follower may execute it."""
    found = rewritten(logged_statement(Log().query(text), {}))
    return found.text, next((effect.unfaithful for effect in found.effects), "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("CREATE TABLE t (a INT, j JSON, k json NOT NULL)", f"CREATE TABLE t (a INT, j {TEXT}, k {TEXT} NOT NULL)"),
        ("CREATE TABLE t (`json` JSON)", f"CREATE TABLE t (`json` {TEXT})"),
        ("CREATE TABLE t (json JSON, KEY json (a))", f"CREATE TABLE t (json {TEXT}, KEY json (a))"),
        ("ALTER TABLE t ADD j JSON, MODIFY COLUMN k JSON", f"ALTER TABLE t ADD j {TEXT}, MODIFY COLUMN k {TEXT}"),
        ("ALTER TABLE t ADD (j JSON, k JSON)", f"ALTER TABLE t ADD (j {TEXT}, k {TEXT})"),
    ],
)
def test_json_is_text(text: str, wanted: str) -> None:
    assert of(text) == (wanted, "")


ASCII = "CHARACTER SET ascii COLLATE ascii_general_ci"
UUID, INET4, INET6 = f"CHAR(36) {ASCII}", f"VARCHAR(15) {ASCII}", f"VARCHAR(39) {ASCII}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "CREATE TABLE t (uuid UUID KEY, `b` uuid, KEY uuid (b))",
            f"CREATE TABLE t (uuid {UUID} KEY, `b` {UUID}, KEY uuid (b))",
        ),
        ("CREATE TABLE t (a UUID NOT NULL DEFAULT UUID())", f"CREATE TABLE t (a {UUID} NOT NULL DEFAULT (UUID()))"),
        ("CREATE TABLE t (a INET4, b INET6 DEFAULT '::1')", f"CREATE TABLE t (a {INET4}, b {INET6} DEFAULT '::1')"),
        ("ALTER TABLE t ADD a UUID, ADD COLUMN b INET6 NULL", f"ALTER TABLE t ADD a {UUID}, ADD COLUMN b {INET6} NULL"),
        ("ALTER TABLE t ADD a UUID DEFAULT NULL FIRST", f"ALTER TABLE t ADD a {UUID} DEFAULT NULL FIRST"),
        ("ALTER TABLE t ADD a UUID UNIQUE KEY", f"ALTER TABLE t ADD a {UUID} UNIQUE KEY"),
        (
            "ALTER TABLE t ADD (a INET6 NOT NULL DEFAULT '::1.2.3.4', j JSON)",
            f"ALTER TABLE t ADD (a {INET6} NOT NULL DEFAULT '::1.2.3.4', j {TEXT})",
        ),
        ("CREATE TABLE t (a TEXT COMPRESSED NOT NULL, b INT)", "CREATE TABLE t (a TEXT  NOT NULL, b INT)"),
        ("ALTER TABLE t MODIFY a VARCHAR(9) COMPRESSED=zlib", "ALTER TABLE t MODIFY a VARCHAR(9) "),
        ("CREATE TABLE t (a TEXT /*M!100301 COMPRESSED*/)", "CREATE TABLE t (a TEXT )"),
    ],
)
def test_mariadbs_own_types_are_text(text: str, wanted: str) -> None:
    assert of(text) == (wanted, "")


@pytest.mark.parametrize(
    "text",
    [
        # MySQL refuses what stays.
        "ALTER TABLE t CHANGE a uuid CHAR(36), CHANGE COLUMN b uuid CHAR(36), CHANGE uuid c CHAR(36)",
        "ALTER TABLE t ADD UNIQUE uuid USING BTREE (a), ADD INDEX inet4 (a), ADD uuid CHAR(36) AFTER inet6",
        "CREATE TABLE t (uuid CHAR(36) COMMENT 'a UUID', compressed INT, KEY (uuid)) ROW_FORMAT=COMPRESSED",
        "CREATE TABLE t (a VARCHAR(36) DEFAULT (UUID()), CHECK (a > uuid(1)))",
        "CREATE TABLE t (a INT) ROW_FORMAT COMPRESSED",
    ],
)
def test_what_has_the_name_of_a_type_of_mariadb_stays(text: str) -> None:
    assert of(text) == (text, "")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (json INT, a INT COMMENT 'JSON', KEY json (json))",
        "ALTER TABLE t ADD json INT, DROP COLUMN json",
        "ALTER TABLE t RENAME COLUMN a TO json",
        "ALTER TABLE t ADD x INT AFTER json",
        "CREATE TABLE json (id INT)",
        "CREATE VIEW v AS SELECT a AS json FROM t",
        "DROP TABLE json",
        "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (id))",
        "ALTER TABLE t DROP FOREIGN KEY f, ADD FOREIGN KEY (a) REFERENCES u (id)",
        "ALTER TABLE t ADD a DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), ADD b INT",
        "ALTER TABLE t ADD a INT DEFAULT (1 + 2), ADD KEY (a), ADD b VARCHAR(9) DEFAULT 'f(x)'",
        "CREATE OR REPLACE VIEW v AS SELECT 1",
    ],
)
def test_what_mysql_understands_as_mariadb_does_stays(text: str) -> None:
    assert of(text) == (text, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ALTER TABLE t CHANGE a b JSON", "JSON is another name of LONGTEXT"),
        ("ALTER TABLE t CHANGE json j JSON", "JSON is another name of LONGTEXT"),
        ("CREATE TABLE t (a INT REFERENCES u (id))", "a foreign key is in the definition of a column"),
        ("ALTER TABLE t ADD a INT REFERENCES u (id)", "a foreign key is in the definition of a column"),
        ("ALTER TABLE t DROP FOREIGN KEY f, ADD b INT REFERENCES u (id)", "a foreign key is in the definition of"),
        ("CREATE OR REPLACE TABLE t (a INT)", "it replaces a table or a database"),
        ("CREATE OR REPLACE DATABASE d", "it replaces a table or a database"),
        ("ALTER TABLE t ADD j LONGTEXT DEFAULT (JSON_OBJECT('bb', 1))", "MySQL may compute another value"),
        ("ALTER TABLE t ADD j INT DEFAULT (1 + char_length(a)) NOT NULL", "MySQL may compute another value"),
        ("CREATE TABLE t (id INT, after JSON)", "JSON is another name of LONGTEXT"),
        ("ALTER TABLE t ADD COLUMN modify JSON", "JSON is another name of LONGTEXT"),
        ("CREATE TABLE t (a INT /*M! , b INT */)", "it has a comment that only MariaDB executes"),
        ("DROP TABLE t /*M! , u */", "it has a comment that only MariaDB executes"),
        ("CREATE TABLE t (a TEXT DEFAULT '/*M!100301 COMPRESSED*/')", "it has a comment that only MariaDB executes"),
        ("CREATE TABLE t (a TEXT /*M!100301 COMPRESSED*/ /*M! , b INT */)", "it has a comment that only MariaDB"),
        ("ALTER TABLE t MODIFY a UUID", "a column becomes UUID"),
        ("ALTER TABLE t MODIFY COLUMN IF EXISTS a INET4 NULL", "a column becomes INET4"),
        ("ALTER TABLE t CHANGE a b INET6", "a column becomes INET6"),
        ("ALTER TABLE t CHANGE COLUMN IF EXISTS a b UUID", "a column becomes UUID"),
        ("ALTER TABLE t ADD a UUID NOT NULL", "the rows that are there get a value of UUID"),
        ("ALTER TABLE t ADD a UUID KEY", "the rows that are there get a value of UUID"),
        ("ALTER TABLE t ADD a INET4, ADD PRIMARY KEY (a)", "the rows that are there get a value of INET4"),
        ("ALTER TABLE t ADD a INET6 DEFAULT '0::1'", "the rows that are there get a value of INET6"),
        ("ALTER TABLE t ADD a INET6 DEFAULT 'x'", "the rows that are there get a value of INET6"),
        ("ALTER TABLE t ADD a INET4 DEFAULT '1.2.3.04'", "the rows that are there get a value of INET4"),
        ("ALTER TABLE t ADD a UUID DEFAULT x'00'", "the rows that are there get a value of UUID"),
        ("ALTER TABLE t ADD a UUID DEFAULT '00112233-4455-1677-8899-AABBCCDDEEFF'", "get a value of UUID"),
        ("ALTER TABLE t ADD a UUID DEFAULT UUID()", "MySQL may compute another value"),
        (
            "CREATE TABLE t (a UUID KEY) PARTITION BY RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN (MAXVALUE))",
            "its partitions are in MariaDB's order of UUID",
        ),
    ],
)
def test_what_mysql_would_understand_otherwise_is_not_repeated(text: str, reason: str) -> None:
    assert reason in of(text)[1]


def test_the_last_gtid_of_a_domain_stands_for_all_before() -> None:
    executed = executed_before("0-1-5,3-11-2")
    assert str(executed) == "0-1:1-5,3-11:1-2"
    executed.add("0-7-6")
    assert newest_of_each_domain(executed) == {"0": (6, "7"), "3": (2, "11")}
    assert str(executed_before("")) == ""
