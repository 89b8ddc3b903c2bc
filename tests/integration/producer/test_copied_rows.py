"""Rows read from tables are, as text, those that the binlog gives: each table is read, and then emptied."""

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pymysql
import pytest

from cdc.config.filters import Filters
from cdc.errors import Disconnected, PromiseError, UserError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.leader import count_different, inspect
from cdc.producer.copy.chunk_reader import ChunkReader, SnapshotReader, TableChanged
from cdc.producer.copy.definition import TableDefinition, read_definition
from cdc.producer.copy.keys import has_key
from cdc.producer.copy.reader import MisplacedRows
from cdc.producer.copy.structure import Structures
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.table_checks import member_check
from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.sql.statement import classify
from tests.checks.binlog import events, position
from tests.generators.random_documents import document
from tests.generators.random_history import RandomHistory
from tests.generators.random_tables import LAX, random_table
from tests.harness.long_runs import LONG
from tests.harness.seed import SEED
from tests.harness.server_pool import know_vectors, programs_of
from tests.integration.pair.test_types import load

pytestmark = pytest.mark.integration

TABLES = int(os.environ.get("CDC_RANDOM_TABLES", "8"))
# Why the tables of all_types.sql that are not read are refused.
NOT_READ = {"t_ascii_members": "question mark", "t_myisam": "MyISAM", "t_memory": "MEMORY"}
if programs_of("leader")().version < (9,):
    NOT_READ |= {"t_enum": "question mark", "t_set": "question mark"}
# Keys of each type and of several columns, keys that the server does not take, and values that need care.
TRAPS = """
CREATE TABLE first_key (v INT AS (k * 2) VIRTUAL NOT NULL, k INT NOT NULL, a VARCHAR(9) NOT NULL, UNIQUE (v), UNIQUE (k, v), UNIQUE (a(3)), UNIQUE ((UPPER(a))), UNIQUE y (k))
INSERT INTO first_key (k, a) VALUES (3, 'qqqq'), (1, 'w'), (2, '')
CREATE TABLE no_key (v INT AS (k * 2) VIRTUAL NOT NULL, k INT, UNIQUE (v), UNIQUE (k))
INSERT INTO no_key (k) VALUES (1), (2), (3)
CREATE TABLE integers (n TINYINT, v BIGINT UNSIGNED, m INT, PRIMARY KEY (n, v))
INSERT INTO integers VALUES (1, 18446744073709551615, 3), (1, 3, 3), (-2, 1, 1), (0, 9, 9), (1, 9223372036854775808, 0)
CREATE TABLE `cas``es` (`a``b` INT, `sel"ect` VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, PRIMARY KEY (`sel"ect`, `a``b`))
INSERT INTO `cas``es` VALUES (1, 'ä'), (2, 'Ä'), (3, 'b'), (4, 'B'), (5, ''), (6, 'a '), (0, 'A')
CREATE TABLE times (y YEAR, t TIME(3), d DATETIME(2), ts TIMESTAMP(1) DEFAULT '0000-00-00 00:00:00', PRIMARY KEY (y, t, d, ts))
INSERT IGNORE INTO times VALUES (0, '-838:59:59', '0000-00-00', '0000-00-00 00:00:00'), (2000, '-00:00:00.5', '2001-02-31 00:00:00.1', '2001-02-28 00:00:00.1'), (2000, '-00:00:00.5', '2001-02-31 00:00:00.1', '0000-00-00'), (2000, '0', '2001-00-31 00:00:00.1', '2001-02-28 00:00:00.2'), (2155, '838:59:59', '9999-12-31 23:59:59.99', '2038-01-19 03:14:07.9'), (1901, '1:2:3.456', '2001-02-03', '1970-01-01 00:00:01')
CREATE TABLE days (d DATE, b VARBINARY(20), e DECIMAL(20,5), PRIMARY KEY (d, b, e))
INSERT INTO days VALUES ('0000-00-00', '', 0), ('2001-02-31', x'00', -1.5), ('2001-00-00', x'ff00', 3), ('2001-02-31', x'0000', 1), ('2001-02-31', x'00', 1e-5)
CREATE TABLE charsets (c CHAR(10) CHARACTER SET latin1, g VARCHAR(10) CHARACTER SET gbk, u CHAR(5) CHARACTER SET utf16, b BINARY(4), PRIMARY KEY (c, g, u, b))
INSERT INTO charsets VALUES ('a', _gbk x'b0a1', '中', x'00'), ('ä', _gbk x'b0a2', '😀', x'0001'), (_latin1 x'81', _gbk x'', 'x', x'ff'), ('A ', '', '', ''), ('a', _gbk x'b0a1', '中', x'01')
CREATE TABLE zeros (id BIGINT UNSIGNED PRIMARY KEY, s SET('a', 'b'), e ENUM('a', 'A'), f ENUM('', 'x'), z INT(5) ZEROFILL, dz DECIMAL(10,3) ZEROFILL, fz FLOAT(9,3) ZEROFILL, fd DOUBLE ZEROFILL)
INSERT INTO zeros VALUES (18446744073709551615, 3, 1, 1, 42, 1.5, 2.5, 3.5), (0, '', 2, 2, 1, 0, 0, 0), (9223372036854775808, 1, NULL, 0, 0, 0, -0e0, 0)
CREATE TABLE members (id INT PRIMARY KEY, e ENUM('a\\\\b', 'q''x', 'n\\nl', '', 'ä', '\\0z', 'per%', 'X', '{x}', 't\\t', ' c'), s SET('ä', 'X', 'q''x', '\\\\') CHARACTER SET latin1, e2 ENUM('ß', 's') COLLATE utf8mb4_general_ci)
INSERT INTO members VALUES (1, 1, 1, 1), (2, 2, 15, 2), (3, 3, 3, NULL), (4, 4, 4, 1), (5, 5, 5, 1), (6, 6, 8, 1), (7, 7, 7, 1), (8, 8, 0, 1), (9, 9, 1, 1), (10, 10, 1, 1), (11, 11, 1, 0)
CREATE TABLE large (id INT PRIMARY KEY, b LONGBLOB, c LONGTEXT)
INSERT INTO large VALUES (1, REPEAT('x', 17000000), REPEAT('y', 70000)), (3, NULL, REPEAT('ä', 100000)), (4, REPEAT('w', 16777215 - 7), NULL), (5, '', ''), (6, REPEAT('v', 250), REPEAT('u', 251))
CREATE TABLE odd_names (id INT PRIMARY KEY, `X` INT, `x0` JSON, `t` INT, `v` JSON, `{d}` INT)
INSERT INTO odd_names VALUES (1, 2, '[1, 2]', 3, JSON_ARRAY(1.5), 4)
CREATE TABLE wide (id INT AUTO_INCREMENT PRIMARY KEY, u VARCHAR(5) CHARACTER SET utf16, v VARCHAR(5) CHARACTER SET utf32, j JSON)
INSERT INTO wide (u, v) VALUES ('é😀', 'ä'), ('', ''), ('扡', 'x')
UPDATE wide SET j = JSON_ARRAY(u, v, JSON_OBJECT(u, v, 'ä', 'ö'))
CREATE TABLE documents (id INT AUTO_INCREMENT PRIMARY KEY, j JSON)
INSERT INTO documents (j) VALUES (JSON_ARRAY(CAST('"a"' AS JSON), DATE'2001-02-03', JSON_OBJECT('x', JSON_ARRAY(CAST(1 AS UNSIGNED), 5000000000, CAST(5000000000 AS SIGNED)), '', REPEAT('x', 300)))), (CAST(CAST(1.50 AS DECIMAL(9,4)) AS JSON)), (CAST(TIME'-10:11:12.5' AS JSON)), (CAST(CAST(7 AS UNSIGNED) AS JSON)), ('null'), (NULL), ('{}'), ('"base64:type15:AAA="'), (JSON_ARRAY(REPEAT(x'00', 1000))), ('4294967296'), ('-4294967297'), ('1.0')
"""  # noqa: E501


class Leader:
    """A server with what reads it in both ways."""

    def __init__(self, server: MySql) -> None:
        self.server = server
        self.settings = {"host": "127.0.0.1", "port": server.port, "user": USER, "password": PASSWORD}
        self.reader = ChunkReader(self.settings, "leader")
        self._said = inspect(self.settings, name="leader")

    def execute(self, *statements: str, database: str | None = None) -> None:
        with self.server.root(charset="utf8mb4", database=database) as connection, connection.cursor() as cursor:
            cursor.execute(LAX)
            for statement in statements:
                cursor.execute(statement)

    def definition(self, database: str, table: str) -> TableDefinition:
        return self.definitions([(database, table)])[database, table]

    def definitions(self, tables: Sequence[tuple[str, str]]) -> dict[tuple[str, str], TableDefinition]:
        with self.server.connect(charset="utf8mb4") as connection:
            return {table: read_definition(connection, *table) for table in tables}

    def tables(self, *databases: str) -> list[tuple[str, str]]:
        with self.server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN %s", (databases,)
            )
            return list(cursor.fetchall())

    def read(self, definition: TableDefinition, *, rows: int) -> list[str]:
        """All rows of a table, chunk by chunk, or as a whole, in pieces of one row or a few."""
        found: list[str] = []
        if definition.whole:
            with closing(SnapshotReader(self.settings, "leader")) as reader:
                reader.open(definition)
                while (piece := reader.piece(rows)).upto is not None:
                    found += piece.rows
            return found + piece.rows
        chunk = self.reader.read(definition, None, rows=rows, max_bytes=1 << 25)
        found += chunk.rows
        while chunk.upto is not None:
            before = chunk.upto
            chunk = self.reader.read(definition, before, rows=rows, max_bytes=1 << 25)
            assert chunk.upto != before
            assert has_key(definition, before)  # otherwise its copy would begin again for ever
            found += chunk.rows
        return found

    def emptied(self, tables: Sequence[tuple[str, str]]) -> tuple[dict[tuple[str, str], list[str]], dict[Any, str]]:
        """The rows that deleting all of ``tables`` logs, and what their records say of columns and key."""
        start = position(self.server)
        names = ["{}.{}".format(*(f"`{name.replace('`', '``')}`" for name in table)) for table in tables]
        self.execute("SET foreign_key_checks = 0", *(f"DELETE FROM {name}" for name in names))
        cache = TableCache(
            wants_table=lambda *_: True,
            collations=self._said.collations,
            allow_differences=lambda *_: None,
            equal_members=member_check(partial(count_different, self.settings, name="leader")),
        )
        rows: dict[tuple[str, str], list[str]] = {table: [] for table in tables}
        columns = {}
        for event in events(self.server, start):
            if event.type == et.TABLE_MAP:
                cache.map(event)
            elif event.type in et.ROWS:
                found = cache.rows(event)
                assert found
                rows[found.table.names] += [row.decode() for row in found.rows]
                columns.setdefault(found.table.names, found.table.columns_json + found.table.types_json)
        return rows, columns

    def check(self, definitions: dict[tuple[str, str], TableDefinition], *, rows: int, note: str = "") -> None:
        """Each table that is not refused is read as it is logged."""
        read = {table: self.read(each, rows=rows) for table, each in definitions.items() if not each.refusal}
        logged, columns = self.emptied(list(definitions))
        for table, found in read.items():
            assert Counter(found) == Counter(logged[table]), f"{table} {note}"
        for table, text in columns.items():
            columns, _, types = text.partition(',"types":')
            assert definitions[table].columns_json == columns, f"{table} {note}"
            if table in read:
                assert definitions[table].types_json == f',"types":{types}', f"{table} {note}"


@pytest.fixture
def shared(leader: MySql) -> Iterator[Leader]:
    """The leader that all tests of a worker share."""
    found = Leader(leader)
    with found.reader:
        yield found


def test_all_types(shared: Leader) -> None:
    load(shared.server)
    tables = shared.tables("cdc_types", "Cdc_Mixed", "cdc schema-with.odd$chars", "схема")
    definitions = shared.definitions(tables)
    refused = {table: each.refusal for (_, table), each in definitions.items() if each.refusal}
    assert refused.keys() == NOT_READ.keys()
    assert all(NOT_READ[table] in why for table, why in refused.items())
    shared.check(definitions, rows=2)


def test_traps(shared: Leader) -> None:
    shared.execute("CREATE DATABASE traps", "USE traps", *TRAPS.strip().splitlines())
    definitions = shared.definitions(shared.tables("traps"))
    assert not [name for (_, name), each in definitions.items() if each.refusal]
    assert [name for (_, name), each in definitions.items() if each.whole] == ["no_key"]
    assert definitions["traps", "first_key"].key == ("k",)
    shared.check(definitions, rows=1)


def test_a_generated_key_is_read_where_the_server_hides_it(shared: Leader) -> None:
    if mysql_programs().version < (8, 0, 30):
        pytest.skip("MySQL makes such keys from 8.0.30 on")
    shared.execute(
        "CREATE DATABASE hidden",
        "SET sql_generate_invisible_primary_key = ON",
        "CREATE TABLE hidden.t (a INT)",
        "INSERT INTO hidden.t VALUES (3), (NULL), (3)",
        "SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF",
    )
    try:
        shared.check(shared.definitions([("hidden", "t")]), rows=2)
    finally:
        shared.execute("SET GLOBAL show_gipk_in_create_table_and_information_schema = ON")


def test_a_definition_is_the_same_for_all_sessions(shared: Leader) -> None:
    shared.execute(
        "CREATE DATABASE shown",
        "CREATE TABLE shown.zone (id INT PRIMARY KEY, at TIMESTAMP DEFAULT '2020-01-01 00:00:00')",
        "CREATE TABLE shown.wide (id INT PRIMARY KEY, a VARCHAR(9), CHECK (a <> _utf8mb4'😀'), "
        "g VARCHAR(9) AS (CONCAT(a, _utf8mb4'😀')) STORED)",
        "INSERT INTO shown.zone VALUES (1, DEFAULT)",
        "INSERT INTO shown.wide (id, a) VALUES (1, 'b')",
        "SET GLOBAL time_zone = '+05:00'",
    )
    try:
        definitions = shared.definitions(shared.tables("shown"))
    finally:
        shared.execute("SET GLOBAL time_zone = SYSTEM")
    assert definitions["shown", "wide"].created.count("😀") == 2
    shared.check(definitions, rows=1)


def test_random_tables_and_documents(shared: Leader) -> None:
    chance = random.Random(SEED)
    note = f"CDC_SEED={SEED}"
    shared.execute("CREATE DATABASE random_rows", "CREATE TABLE random_rows.d (id INT PRIMARY KEY, j JSON, k JSON)")
    for number in range(TABLES):
        table = random_table(chance, f"t{number}", vectors=know_vectors())
        shared.execute(table.definition, *table.inserts(chance, rows=12), database="random_rows")
        definition = shared.definition("random_rows", table.name)
        refusal = definition.refusal
        if (refusal and "question" not in refusal) or (definition.whole and number % 2):
            # Most random keys are of a kind that can't be read by.
            dropped = "".join("DROP " + ("PRIMARY KEY, " if key == "PRIMARY" else f"KEY {key}, ") for key in table.keys)
            added = "ADD number INT AUTO_INCREMENT PRIMARY KEY"
            shared.execute(f"ALTER TABLE {table.name} {dropped}{added}", database="random_rows")
    values = [f"({number}, {document(chance)}, {document(chance)})" for number in range(20)]
    shared.execute(f"INSERT INTO random_rows.d VALUES {','.join(values)}")
    shared.check(shared.definitions(shared.tables("random_rows")), rows=5, note=note)


def test_a_chunk_ends_by_rows_or_bytes_or_with_the_table(shared: Leader) -> None:
    shared.execute(
        "CREATE DATABASE ends",
        "CREATE TABLE ends.t (id INT PRIMARY KEY, c TEXT)",
        "SET cte_max_recursion_depth = 5000",
        "INSERT INTO ends.t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
        "SELECT i, REPEAT('x', 1000) FROM n",
        "CREATE TABLE ends.nothing (id INT PRIMARY KEY)",
    )
    definition = shared.definition("ends", "t")
    first = shared.reader.read(definition, None, rows=1999, max_bytes=1 << 30)
    assert (len(first.rows), first.upto) == (1999, ('{"SignedInteger":1999}',))
    assert first.size == sum(map(len, first.rows))
    last = shared.reader.read(definition, first.upto, rows=10, max_bytes=1 << 30)
    assert (len(last.rows), last.upto) == (1, None)
    with ChunkReader(shared.settings, "leader") as reader:
        # How large the rows are is not known yet, so the answer is broken off.
        cut = reader.read(definition, None, rows=2000, max_bytes=100_000)
        assert 100_000 <= cut.size < 300_000
        assert cut.upto == (f'{{"SignedInteger":{len(cut.rows)}}}',)
        fitting = reader.read(definition, cut.upto, rows=2000, max_bytes=100_000)
        assert 90_000 < fitting.size <= 100_000
        rest = reader.read(definition, fitting.upto, rows=2000, max_bytes=1 << 30)
    assert cut.rows + fitting.rows + rest.rows == first.rows + last.rows
    empty = shared.reader.read(shared.definition("ends", "nothing"), None, rows=10, max_bytes=1)
    assert (empty.rows, empty.upto) == ([], None)


def test_a_table_that_was_changed_is_not_read_by_its_old_definition(shared: Leader) -> None:
    shared.execute(
        "CREATE DATABASE changed",
        "CREATE TABLE changed.t (id INT AUTO_INCREMENT PRIMARY KEY, e ENUM('a', 'b'))",
        "INSERT INTO changed.t VALUES (1, 'a')",
    )
    before = shared.definition("changed", "t")
    shared.execute("INSERT INTO changed.t VALUES (5, 'b')")
    assert len(shared.read(before, rows=10)) == 2  # the next number is no part of it
    shared.execute("ALTER TABLE changed.t MODIFY e ENUM('b', 'a')")
    with pytest.raises(TableChanged):
        shared.read(before, rows=10)
    assert len(shared.read(shared.definition("changed", "t"), rows=10)) == 2
    shared.execute("DROP TABLE changed.t")
    with pytest.raises(TableChanged):
        shared.read(before, rows=10)
    assert "no such table" in (shared.definition("changed", "t").refusal or "")
    shared.execute("CREATE TABLE u (id INT)", "CREATE VIEW t AS SELECT * FROM u", database="changed")
    for statement in ("SELECT 1", "DROP TABLE changed.u"):  # a view, and an invalid one
        shared.execute(statement)
        with pytest.raises(TableChanged):
            shared.read(before, rows=10)


def test_what_can_not_be_read_says_why(shared: Leader) -> None:
    shared.execute(
        "CREATE DATABASE denied",
        "CREATE TABLE denied.t (id INT PRIMARY KEY, h INT INVISIBLE)",
        f"CREATE TABLE denied.j (id INT PRIMARY KEY, j JSON, s SET('{'a' * 200}', '{'b' * 99}') CHARACTER SET binary)",
        "INSERT INTO denied.j VALUES (1, '[]', 0), (2, '[]', 3)",
        "UPDATE denied.j SET j = JSON_ARRAY(s) WHERE id = 2",
        "CREATE VIEW denied.v AS SELECT 1",
        "CREATE USER IF NOT EXISTS partly IDENTIFIED BY 'partly'",
        "GRANT SELECT (id) ON denied.t TO partly",
    )
    assert shared.definition("denied", "v").refusal == "it is no table but a VIEW"
    for table in ("t", "j"):
        with (
            shared.server.connect(user="partly", password="partly") as connection,
            pytest.raises(UserError, match="GRANT SELECT ON `denied`") as error,
        ):
            read_definition(connection, "denied", table)
        assert "partly" in str(error.value)
    with shared.server.connect(user="partly", password="partly", charset="utf8mb4") as connection:
        with pytest.raises(UserError):
            read_definition(connection, "denied", "t")
        with connection.cursor() as cursor:  # which is used again after an error that is not for good
            cursor.execute("SELECT @@character_set_results")
            assert cursor.fetchone() == ("utf8mb4",)
    with pytest.raises(PromiseError, match=r'after the key \{"SignedInteger":1\} of denied.j .*column j: '):
        shared.read(shared.definition("denied", "j"), rows=10)
    shared.execute("DROP USER partly")


def test_a_lost_connection_can_be_made_again(shared: Leader) -> None:
    shared.execute("CREATE DATABASE lost", "CREATE TABLE lost.t (id INT PRIMARY KEY)", "INSERT INTO lost.t VALUES (1)")
    definition = shared.definition("lost", "t")
    assert len(shared.read(definition, rows=10)) == 1
    shared.execute(f"KILL {shared.reader._connection.thread_id()}")
    with pytest.raises(Disconnected):
        shared.read(definition, rows=10)
    assert len(shared.read(definition, rows=10)) == 1


def test_a_definition_that_is_not_utf8_is_refused(shared: Leader) -> None:
    shared.execute("CREATE DATABASE not_utf8")
    default = "VARCHAR(9) CHARACTER SET gbk DEFAULT"
    shared.execute(
        f"CREATE TABLE raw (id INT PRIMARY KEY, g {default} (CONCAT(_gbk x'b0a1')))",
        f"CREATE TABLE told (id INT PRIMARY KEY, g {default} (CONVERT(x'b0a1' USING gbk)))",
        database="not_utf8",
    )
    assert "not UTF-8" in str(shared.definition("not_utf8", "raw").refusal)
    assert shared.definition("not_utf8", "told").refusal is None


def test_misplaced_rows_are_looked_for_again_once_a_statement_may_have_moved_some(shared: Leader) -> None:
    shared.execute(
        "CREATE DATABASE misplaced",
        "CREATE TABLE misplaced.x (a INT PRIMARY KEY)",
        "INSERT INTO misplaced.x VALUES (1), (20)",
        "CREATE TABLE misplaced.t (a INT PRIMARY KEY) PARTITION BY LIST (a) "
        "(PARTITION `ж` VALUES IN (1, 2), PARTITION q VALUES IN (20))",
    )
    definition, looked = shared.definition("misplaced", "t"), MisplacedRows(shared.settings)
    assert looked.refused(definition) == definition
    shared.execute("ALTER TABLE misplaced.t EXCHANGE PARTITION `ж` WITH TABLE misplaced.x WITHOUT VALIDATION")
    # The statement is in the stream, which has all questions taken back.
    assert looked.refused(definition) == definition
    looked.forget()
    assert "its partition ж has rows" in str(looked.refused(definition).refusal)
    shared.execute("ALTER TABLE misplaced.t REPAIR PARTITION ALL")
    assert looked.refused(definition) == definition
    # What is altered or gone meanwhile can't be read by this definition anyway.
    looked.forget()
    shared.execute("ALTER TABLE misplaced.t DROP PARTITION `ж`", "ALTER TABLE misplaced.t RENAME misplaced.u")
    assert looked.refused(definition) == definition


def test_tables_that_come_and_go_while_a_leader_is_listed_are_no_refusal(shared: Leader) -> None:
    name, stop = "passing_tables", threading.Event()

    def change() -> None:
        while not stop.is_set():
            shared.execute(
                "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)",
                "RENAME TABLE t TO v, u TO t, v TO u", "DROP TABLE t", "DROP TABLE u",
                database=name,
            )  # fmt: skip

    shared.execute(f"CREATE DATABASE {name}")
    changing = threading.Thread(target=change)
    changing.start()
    try:
        leader, filters = inspect(shared.settings, name="leader"), Filters(include_dbs=(name,))
        found = [Structures(shared.settings, leader, filters).read() for _ in range(40 if LONG else 20)]
    finally:
        stop.set()
        changing.join()
    assert len({len(each.tables) for each in found}) > 1


FOREIGN = """
CREATE TABLE `p` (id INT PRIMARY KEY, u INT UNIQUE)
CREATE TABLE c (id INT PRIMARY KEY, o INT, FOREIGN KEY (o) REFERENCES `p` (u))
CREATE TABLE far (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES `p` (id))
ALTER TABLE `p` CHANGE u w INT
RENAME TABLE `p` TO p2
ALTER TABLE p2 RENAME p3
ALTER TABLE c DROP FOREIGN KEY c_ibfk_1
DROP TABLE far
CREATE INDEX i ON c (o)
ALTER DATABASE CHARACTER SET latin1
"""


def test_what_is_created_is_read_again_where_a_statement_has_changed_it(shared: Leader) -> None:
    """By the effects of statements it comes to the same as by reading all of it."""
    name, chance = "read_again", random.Random(SEED)
    shared.execute(f"CREATE DATABASE {name}", *(f"CREATE TABLE {name}.same{n} (id INT PRIMARY KEY)" for n in range(9)))
    history, foreign = RandomHistory(chance, vectors=know_vectors()), FOREIGN.strip().splitlines()
    leader, filters = inspect(shared.settings, name="leader"), Filters(include_dbs=(name,))
    known, shown, tables, done = Structures(shared.settings, leader, filters), 0, 0, list[str]()

    def is_done(text: str) -> bool:
        done.append(text)
        try:
            shared.execute(text, database=name)
        except pymysql.MySQLError:
            return False
        return True

    for _ in range(TABLES * 2):
        deed = history.next()
        if deed.ddl and is_done(deed.statements[-1]):
            history.tables = deed.tables
        if foreign:
            assert is_done(foreign.pop(0))
        for each in sorted(history.tables):
            if shared.definition(name, each).refusal and is_done(f"DROP TABLE `{each}`"):
                del history.tables[each]
        effects = [each for text in done for each in classify(text, database=name, ansi_quotes=False)[1]]
        before = _shown_tables(shared.server)
        found = known.read(effects)
        shown, tables = shown + _shown_tables(shared.server) - before, tables + len(found.tables)
        assert found == Structures(shared.settings, leader, filters).read(), f"CDC_SEED={SEED} {done}"
        done.clear()
    assert 0 < shown < tables  # without what is known, each is shown twice


def _shown_tables(server: MySql) -> int:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Com_show_create_table'")
        return int(cursor.fetchone()[1])
