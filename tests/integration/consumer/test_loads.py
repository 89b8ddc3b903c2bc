"""Rows that are loaded by LOAD DATA LOCAL are those that an INSERT would store; anything else is noticed and undone."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc.config.profile import Database
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.errors import Interrupted, Refused
from cdc.consumer.follower import session as sessions
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.plan import inserts
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import plan
from cdc.consumer.plan.statements import statements
from cdc.model.record import Record, Row, Uri
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from tests.harness.topic import number, text
from tests.unit.consumer.plan.test_statements import change

pytestmark = pytest.mark.integration

OFF = "the follower does not accept LOAD DATA LOCAL"
# Whatever could be taken for the end of a field or a row, for an escape, or for NULL.
TEXTS = st.text("'\\(),NUL\n\t\0 \"bxé", max_size=8) | st.sampled_from(["NULL", "\\N", "),(", "x'00'"])
WIDE = TEXTS | st.text("€😀日'\\", max_size=6)
DAY = {"year": st.integers(0, 9999), "month": st.integers(0, 12), "day": st.integers(0, 31)}
CLOCK = {"hour": st.integers(0, 23), "minute": st.integers(0, 59), "second": st.integers(0, 59)}
MICROS = {"subsecond": st.sampled_from([0, 1, 1000, 500_000, 999_999])}
MOMENT = st.fixed_dictionaries({"unix_time": st.integers(0, (1 << 31) - 1)} | MICROS)
MEMBERS = ["a", "'", "\\", "NULL", "1", "2", "),(", "é"]
# Columns with values that they take, as a rule: some are too long, and some of no character of latin1.
COLUMNS: dict[str, tuple[str, str, st.SearchStrategy[Any]]] = {
    "tiny": ("TINYINT", "SignedInteger", st.integers(-128, 127)),
    "big": ("BIGINT UNSIGNED", "UnsignedInteger", st.integers(0, (1 << 64) - 1)),
    "exact": ("DECIMAL(65,30)", "Decimal", st.from_regex(r"\A-?[0-9]{1,35}\.[0-9]{30}\Z")),
    "money": ("DECIMAL(12,2)", "Decimal", st.from_regex(r"\A-?[0-9]{1,9}\.[0-9]{2,3}\Z")),
    "fixed": ("CHAR(7) CHARACTER SET latin1", "String", TEXTS),
    "name": ("VARCHAR(9) CHARACTER SET utf8mb4", "String", WIDE),
    "long": ("TEXT CHARACTER SET utf16", "String", WIDE | st.integers(1, 9000).map("'é".__mul__)),
    "chinese": ("VARCHAR(20) CHARACTER SET gb18030", "String", WIDE),
    "kind": (f"ENUM({','.join(repr(each) for each in MEMBERS)})", "Enum", st.sampled_from([*MEMBERS, "3"])),
    "day": ("DATE", "Date", st.fixed_dictionaries(DAY)),
    "at": ("DATETIME(6)", "DateTime", st.fixed_dictionaries(DAY | CLOCK | MICROS)),
    "second": ("DATETIME", "DateTime", st.fixed_dictionaries(DAY | CLOCK | MICROS)),
    "moment": ("TIMESTAMP(3) NULL", "Timestamp", MOMENT),
}
ROWS = st.lists(
    st.tuples(*[
        st.just("Null") | contents.map(lambda content, tag=tag: {tag: content}) for _, tag, contents in COLUMNS.values()
    ]),
    min_size=2, max_size=5,
)  # fmt: skip


@pytest.fixture
def session(follower: MySql, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session with a follower that has an empty database loads; each row is worth loading."""
    monkeypatch.setattr(inserts, "_FEWEST", 1)
    monkeypatch.setattr(sessions, "_CHUNK", 7)
    settings = Database(ip_or_host="127.0.0.1", port=follower.port, user=USER, password=PASSWORD)
    with follower.connect() as connection, connection.cursor() as cursor, Session(settings) as session:
        cursor.execute("CREATE DATABASE loads")
        session.connect()
        yield session


def added(session: Session, table: str, columns: list[str], rows: list[list[Any]], *, load: bool) -> Statement:
    record = change("Add", rows[0], columns="")
    uri = Uri("srv", "loads", table)
    made = Record(**{name: getattr(record.record, name) for name in Record.__dataclass_fields__} | {
        "uri": uri, "columns": tuple(columns), "key": ("id",), "rows": tuple(Row(None, row) for row in rows)
    })  # fmt: skip
    tables = SchemaCache(session, Triggers(session, drop=False, passes=lambda _: True), passes=lambda _: True)
    steps = plan([made], schema=tables.shape)
    loadable = tables.loadable if load else lambda _: {}
    (statement,) = statements(steps, generated=tables.generated, loadable=loadable)
    return statement


def loaded_rows(session: Session, definition: str, *rows: list[Any], columns: str = "id v") -> int:
    """How many of the rows the session says are loaded into the table; -1 where it refuses. They are rolled back."""
    session.run([b"CREATE TABLE loads.t " + definition.encode()])
    load = added(session, "t", columns.split(), list(rows), load=True)
    assert load.data is not None
    found = count(session, load)
    session.run([b"ROLLBACK"])
    return found


def count(session: Session, statement: Statement) -> int:
    """How many rows the session says are stored; -1 where the server refuses the statement."""
    session.send([b"DO 1", statement.sql, b"DO 2"], {} if statement.data is None else {1: statement.data})
    try:
        return session.receive()[1]
    except Refused:
        return -1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_loaded_rows_are_those_that_an_insert_stores(session: Session, rows: list[list[Any]]) -> None:
    definition = ", ".join(f"`{name}` {kind}" for name, (kind, _, _) in COLUMNS.items())
    for table in ("inserted", "loaded"):
        session.run([f"CREATE TABLE IF NOT EXISTS loads.{table} (id INT PRIMARY KEY, {definition})".encode()])
    rows = [[number(key), *row] for key, row in enumerate(rows)]
    names = ["id", *COLUMNS]
    insert = added(session, "inserted", names, rows, load=False)
    load = added(session, "loaded", names, rows, load=True)
    assert load.sql.startswith(b"LOAD DATA LOCAL") and load.data is not None
    inserted, loaded = count(session, insert), count(session, load)
    assert loaded <= len(rows)
    if inserted < len(rows):
        assert loaded < len(rows), "what an INSERT refuses was loaded"
    if loaded == len(rows):
        (_, first), (_, other) = session.rows("CHECKSUM TABLE loads.inserted, loads.loaded")
        assert first == other
        shown = [session.rows(f"SELECT * FROM loads.{table} ORDER BY id") for table in ("inserted", "loaded")]
        assert shown[0] == shown[1] and len(shown[0]) == len(rows)
    session.run([b"ROLLBACK"])


TWO = [[number(1), text("a")], [number(2), text("b")]]


@pytest.mark.parametrize(
    ("definition", "rows"),
    [
        ("(id INT PRIMARY KEY, v TEXT)", [*TWO, [number(1), text("a")]]),
        ("(id INT PRIMARY KEY, v VARCHAR(9), UNIQUE (v))", [*TWO, [number(3), text("b")]]),
        ("(id INT PRIMARY KEY, v VARCHAR(3))", [*TWO, [number(3), text("long")]]),
        ("(id TINYINT PRIMARY KEY, v TEXT)", [*TWO, [number(300), text("c")]]),
        ("(id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET latin1)", [*TWO, [number(3), text("日")]]),
        ("(id INT PRIMARY KEY, v ENUM('a','b'))", [[number(1), {"Enum": "a"}], [number(3), {"Enum": "c"}]]),
        ("(id INT PRIMARY KEY, v TEXT, CHECK (id < 3))", [*TWO, [number(3), text("c")]]),
        ("(id INT PRIMARY KEY, v TEXT) PARTITION BY LIST (id) (PARTITION p VALUES IN (1,2))",
         [*TWO, [number(3), text("c")]]),
    ],
)  # fmt: skip
def test_what_an_insert_refuses_is_not_counted_as_loaded(
    session: Session, definition: str, rows: list[list[Any]]
) -> None:
    """Not even where the session keeps no warnings, and has its messages in another language."""
    session.run([b"SET SESSION max_error_count=0, sql_notes=0, lc_messages='ja_JP'"])
    assert loaded_rows(session, definition, *rows) in range(len(rows))


def test_a_missing_parent_is_noticed(session: Session) -> None:
    session.run([b"CREATE TABLE loads.parent (id INT PRIMARY KEY)"])
    child = "(id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES parent (id))"
    step = [[number(1), "Null"], [number(2), number(7)]]
    assert loaded_rows(session, child, *step) in (-1, 0, 1)


def test_numbers_are_kept_as_they_are(session: Session) -> None:
    """Zero in an AUTO_INCREMENT column is no request for the next number; an invisible column is named."""
    session.run([b"CREATE TABLE loads.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9) INVISIBLE)"])
    load = added(session, "t", ["id", "v"], [[number(0), text("a")], [number(7), "Null"]], load=True)
    assert count(session, load) == 2
    assert session.rows("SELECT id, v FROM loads.t") == [(0, "a"), (7, None)]


def test_which_columns_can_be_loaded(session: Session) -> None:
    """A NULL in a TIMESTAMP that does not take it would become the time, without a warning."""
    columns = (
        "a INT NOT NULL, b BIGINT UNSIGNED, c YEAR, d JSON, e VARBINARY(9), f TIMESTAMP NOT NULL, g TIMESTAMP NULL, "
        "h FLOAT, i SET('a'), j BIT, k POINT, l TIME"
    )
    session.run([f"CREATE TABLE loads.t ({columns})".encode()])
    tables = SchemaCache(session, Triggers(session, drop=False, passes=lambda _: True), passes=lambda _: True)
    loadable = tables.loadable(Uri("srv", "loads", "t"))
    whole = {"SignedInteger", "UnsignedInteger"}
    expected = {"a": whole, "b": {*whole, "Null"}, "f": {"Timestamp"}, "g": {"Timestamp", "Null"}}
    assert loadable == dict.fromkeys("abcdefghijkl", frozenset()) | expected


def test_the_data_are_all_there_or_none_are(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is lost in the middle of the data."""
    session.run([b"CREATE TABLE loads.t (id INT PRIMARY KEY, v TEXT)"])
    load = added(session, "t", ["id", "v"], [[number(each), text("a" * 100)] for each in range(1000)], load=True)
    sent: list[bytes] = []
    connection: Any = session._connection
    write = connection.write_packet

    def write_some(data: bytes) -> None:
        sent.append(data)
        if len(sent) == 200:
            connection._sock.shutdown(socket.SHUT_WR)
        write(data)

    monkeypatch.setattr(connection, "write_packet", write_some)
    session.send([load.sql], {0: load.data or b""})
    with pytest.raises(Interrupted):
        session.receive()
    session.connect()
    assert session.rows("SELECT COUNT(*) FROM loads.t") == [(0,)]


def test_records_are_read_ahead_until_the_server_has_the_data(session: Session) -> None:
    """It asks for them once it has executed what comes before; only then may another session be spoken to."""
    session.run([b"CREATE TABLE loads.t (id INT PRIMARY KEY, v TEXT)"])
    load, calls = added(session, "t", ["id", "v"], TWO, load=True), []
    assert load.data is not None
    prefetch = Prefetch(lambda: bool(calls.append("read ahead")))
    prefetch.send(session, [b"DO SLEEP(0.1)", load.sql], {1: load.data})
    assert calls and session.fed(0.0)
    assert prefetch.receive(session) == [0, len(TWO)]


def test_no_file_is_read_for_a_server_that_asks_for_one(session: Session, tmp_path: Path) -> None:
    """The server asks for it by answering a statement that has no data; none but the ones sent along are for it."""
    session.run([b"CREATE TABLE loads.t (v TEXT)"])
    (tmp_path / "secret").write_text("secret")
    statement = f"LOAD DATA LOCAL INFILE '{tmp_path / 'secret'}' INTO TABLE loads.t".encode()
    with pytest.raises(RuntimeError, match="local_infile option is false"):
        session.run([statement])
    session.connect()
    session.send([statement], {0: b"ours"})
    assert session.receive() == [1]
    assert session.rows("SELECT v FROM loads.t") == [("ours",)]


def test_a_follower_that_takes_none_any_more(session: Session, follower: MySql) -> None:
    session.run([b"CREATE TABLE loads.t (id INT PRIMARY KEY, v TEXT)"])
    load = added(session, "t", ["id", "v"], TWO, load=True)
    with follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL local_infile = OFF")
        try:
            assert count(session, load) == -1
            session.reset()
            assert session.local_infile
            session.connect()
            assert not session.local_infile
            assert not added(session, "t", ["id", "v"], TWO, load=True).data
        finally:
            cursor.execute("SET GLOBAL local_infile = ON")
