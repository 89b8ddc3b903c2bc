"""Tables that the producer copies into the stream: what the follower has becomes what the chunks say."""

from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sql.key_range import range_condition
from tests.harness.programs import refused, run_well
from tests.harness.topic import Body, Stage, number, text

pytestmark = pytest.mark.integration

COLUMNS = ["id", "name"]


def pair(key: int, name: str) -> list[Body]:
    return [number(key), text(name)]


def table(stage: Stage, *rows: tuple[int, str], more: str = "") -> str:
    path = stage.create_table("t", f"(id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20){more})")
    stage.apply()
    for row in rows:
        stage.execute(f"INSERT INTO t (id, name) VALUES {row}", "COMMIT")
    return path


def chunk(stage: Stage, path: str, *rows: list[Body], **ends: Any) -> list[Body]:
    return stage.topic.chunk(path, COLUMNS, *rows, key=["id"], **ends)


def test_rows_that_are_missing_different_and_extra(stage: Stage) -> None:
    """A row that is equal is not written again; what is behind the last chunk of all goes, too."""
    path = table(stage, (1, "a"), (2, "old"), (3, "gone"), (9, "same"), (12, "ahead"), (99, "gone"))
    stage.topic.send(
        chunk(stage, path, pair(1, "a"), pair(2, "b"), pair(4, "d"), pair(12, "moved"), upto=[number(5)]),
        chunk(stage, path, after=[number(5)], upto=[number(8)]),
        chunk(stage, path, pair(9, "same"), pair(12, "moved"), after=[number(8)]),
    )
    log = stage.apply()
    assert stage.execute("SELECT * FROM t") == [(1, "a"), (2, "b"), (4, "d"), (9, "same"), (12, "moved")]
    assert "missing=1 different=2 extra=1" in log
    assert "table copied" in log
    assert "rows=6 missing=1 different=2 extra=2" in log
    assert stage.execute("SELECT * FROM conflicts", database="cdc") == []
    ((inserted,),) = stage.execute("INSERT INTO t (name) VALUES ('new')", "COMMIT", "SELECT MAX(id) FROM t")
    assert inserted == 100


DAYS = [{"year": year, "month": 1, "day": 1} for year in (1000, 1999, 2038, 9999)]
TIMES = [day | {"hour": 23, "minute": 59, "second": n, "subsecond": 5 * n} for n, day in enumerate(DAYS)]
CI, LATIN, BIN = "utf8mb4_0900_ai_ci", "latin1_swedish_ci", "utf8mb4_bin"
# A key's type, its values in their order, and its collation.
KINDS: list[tuple[str, str, list[Any], str | None]] = [
    ("BIGINT", "SignedInteger", [-(2**63), -1, 5, 2**63 - 1], None),
    ("BIGINT UNSIGNED", "UnsignedInteger", [0, 2**63 - 1, 2**63, 2**64 - 1], None),
    ("DECIMAL(30,10)", "Decimal", ["-3.0000000001", "-3.0000000000", "0.0000000000", "12345678901234567890.5"], None),
    ("DATETIME(6)", "DateTime", TIMES, None),
    ("DATE", "Date", DAYS, None),
    ("BINARY(2)", "Blob", ["AAA=", "AGE=", "YQA=", "//8="], None),
    ("VARBINARY(5)", "Blob", ["", "AA==", "YQ==", "//8="], None),
    ("VARCHAR(9) COLLATE utf8mb4_0900_ai_ci", "String", ["", "A", "\u00e4 b", "B", "Zz", "Zz "], CI),
    ("VARCHAR(9) COLLATE utf8mb4_bin", "String", ["A", "B", "a", "b'\\", "\u00e4"], BIN),
    ("CHAR(9) CHARACTER SET latin1", "String", ["", "a", "B", "\u00e9", "z"], LATIN),
    ("DOUBLE", "Double", [-1.5e300, -0.1, 0.1, 1e300], None),
]


def test_keys_of_any_type(stage: Stage) -> None:
    """Each chunk ends with one key, and names every other one: the follower's rows with the others are gone."""
    tables = [
        (f"k{n}", kind, [{tag: value} for value in values], name) for n, (kind, tag, values, name) in enumerate(KINDS)
    ]
    for table, kind, keys, _ in tables:
        path = stage.create_table(table, f"(k {kind} PRIMARY KEY, v INT)")
        stage.topic.send([stage.topic.add(path, ["k", "v"], *[[key, number(0)] for key in keys], key=["k"])])
    stage.apply()
    before = [stage.execute(f"SELECT * FROM {table} ORDER BY k") for table, *_ in tables]
    for table, _, keys, collation in tables:
        for n, key in enumerate(keys):
            more = {"after": [keys[n - 1]] if n else None, "upto": [key] if key != keys[-1] else None}
            rows = [[key, number(0)]] if n % 2 == 0 else []
            path = f"{stage.name}/{table}"
            stage.topic.send(stage.topic.chunk(path, ["k", "v"], *rows, key=["k"], collations=[collation], **more))
    log = stage.apply()
    for rows, (table, kind, keys, _) in zip(before, tables, strict=True):
        assert len(rows) == len(keys), kind
        assert stage.execute(f"SELECT * FROM {table} ORDER BY k") == rows[::2], kind
        assert f"rows={len(rows[::2])} missing=0 different=0 extra={len(rows[1::2])}" in log


def test_rows_while_their_table_is_copied(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """They become what the records say, without a conflict; a row that is in the way comes back with its key."""
    stage = Stage.make(tmp_path, follower, kafka, name="while_copied", consumer={"on_conflict": "stop"})
    path = table(stage, (2, "x"), (5, "b"), (9, "seven"), more=", UNIQUE (name)")
    other = stage.create_table("u", "(id INT PRIMARY KEY, name VARCHAR(20))")
    topic, rows = stage.topic, {"key": ["id"], "copying": True}
    topic.send(
        chunk(stage, path, pair(1, "b"), pair(2, "two"), upto=[number(3)]),
        [topic.update(path, COLUMNS, (pair(6, "old"), pair(6, "seven")), **rows)],
        [topic.delete(path, COLUMNS, pair(8, "gone"), pair(2, "two"), **rows)],
        [topic.add(path, COLUMNS, pair(5, "five"), **rows)],
        [topic.add(other, COLUMNS, pair(1, "one"), key=["id"])],
        chunk(stage, path, pair(5, "five"), pair(6, "seven"), pair(9, "nine"), after=[number(3)]),
    )
    log = stage.apply()
    assert stage.execute("SELECT * FROM t ORDER BY id") == [(1, "b"), (5, "five"), (6, "seven"), (9, "nine")]
    assert "rows removed for rows of a table that is being copied" in log
    assert "row removed for a row of a table that is being copied" in log
    assert stage.execute("SELECT * FROM conflicts", database="cdc") == []
    topic.send([
        topic.update(path, COLUMNS, (pair(9, "old"), pair(9, "nine")), **rows),
        topic.update(other, COLUMNS, (pair(9, "old"), pair(9, "nine")), key=["id"]),
    ])  # fmt: skip
    assert f"conflict: Update of id=9 in flv://{stage.name}/{stage.name}/u" in refused(
        "cdc-consumer", stage.profile, "--until-current", status=3
    )


def test_tables_with_foreign_keys(stage: Stage) -> None:
    """A child may come before its parent; all is checked again, and cascades, after the copy."""
    parent = stage.create_table("parent", "(id INT PRIMARY KEY)")
    child = stage.create_table(
        "child", "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"
    )
    stage.apply()
    stage.execute("INSERT INTO parent VALUES (2), (3)", "INSERT INTO child VALUES (20, 2), (30, 3)", "COMMIT")
    topic, key, both = stage.topic, {"key": ["id"]}, ["id", "p"]
    kept = [number(30), number(3)]
    topic.send(
        topic.chunk(child, both, [number(10), number(1)], [number(11), number(1)], kept, **key),
        topic.chunk(parent, ["id"], [number(1)], [number(3)], upto=[number(5)], **key),
        [topic.delete(parent, ["id"], [number(4)], **key, flags=16, copying=True)],
        topic.chunk(parent, ["id"], after=[number(5)], **key),
        [topic.delete(parent, ["id"], [number(1)], **key)],
    )
    stage.apply()
    assert stage.execute("SELECT id FROM parent") == [(3,)]
    assert stage.execute("SELECT id FROM child") == [(30,)]
    sequence = topic.next_sequence
    topic.send([topic.delete(parent, ["id"], [number(3)], **key, copying=True)])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert "which this leader does not log" in line
    run_well("cdc-consumer", stage.profile, "--until-current", "--skip", str(sequence))
    assert stage.execute("SELECT id FROM child") == [(30,)]


def test_a_key_of_two_columns_in_a_collation_without_case(stage: Stage) -> None:
    path = stage.create_table("t", "(a VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, b INT, v INT, PRIMARY KEY (a, b))")
    stage.apply()
    stage.execute(
        "INSERT INTO t VALUES ('a', 1, 0), ('ABC', 1, 0), ('\u00c4', 7, 0), ('b', 2, 0), ('B', 3, 0)", "COMMIT"
    )

    def row(a: str, b: int) -> list[Body]:
        return [text(a), number(b), number(0)]

    named = {"key": ["a", "b"], "collations": ["utf8mb4_0900_ai_ci", None]}
    stage.topic.send(
        stage.topic.chunk(path, ["a", "b", "v"], row("a", 1), upto=row("A", 6)[:2], **named),
        stage.topic.chunk(
            path, ["a", "b", "v"], row("abc", 1), row("B", 2), after=row("A", 6)[:2], upto=row("B", 2)[:2], **named
        ),
    )
    stage.apply()
    assert stage.execute("SELECT * FROM t") == [("a", 1, 0), ("abc", 1, 0), ("B", 2, 0), ("B", 3, 0)]
    (plan,) = stage.execute(
        "INSERT INTO t SELECT 'c', n, 0 FROM (WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
        "WHERE n < 999) SELECT n FROM r) x", "ANALYZE TABLE t",
        "EXPLAIN FORMAT=TRADITIONAL DELETE FROM t WHERE " + range_condition(["a", "b"], ["'C'", "2"], ["'c'", "9"]),
    )  # fmt: skip
    assert (plan[4], plan[6]) == ("range", "PRIMARY")


def test_a_table_that_is_ordered_otherwise_is_refused(stage: Stage) -> None:
    """Or might be: its ranges would have other rows."""
    named = {"key": ["k"], "after": [text("A")]}
    cases = [
        ("VARCHAR(9) COLLATE utf8mb4_bin", {"collations": ["utf8mb4_0900_ai_ci"]}, "orders by utf8mb4_0900_ai_ci, the"),
        ("VARCHAR(9)", {}, "does not say how the leader orders it"),
        ("VARBINARY(9)", {"collations": ["utf8mb4_bin"]}, "which is of the type varbinary here"),
        ("ENUM('B', 'A')", {"after": [{"Enum": "B"}]}, "have no order that a range could name"),
        ("VARCHAR(9), v INT", {}, "has other columns or another key"),
    ]
    for n, (kind, more, reason) in enumerate(cases):
        path = stage.create_table(f"t{n}", f"(k {kind}, PRIMARY KEY (k))")
        stage.apply()
        stage.execute(f"INSERT INTO t{n} (k) VALUES ('B')", "COMMIT")
        sequence = stage.topic.next_sequence
        stage.topic.send(stage.topic.chunk(path, ["k"], **(named | more)))
        assert reason in refused("cdc-consumer", stage.profile, "--until-current", status=3)
        run_well("cdc-consumer", stage.profile, "--until-current", "--skip", str(sequence))
        assert len(stage.execute(f"SELECT * FROM t{n}")) == 1


def test_rows_that_are_one_on_the_follower(stage: Stage) -> None:
    """None of them may take the place of another."""
    path = stage.create_table("t", "(k VARCHAR(9) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY)")
    stage.topic.send(stage.topic.chunk(path, ["k"], [text("a")], [text("A")], key=["k"], collations=["utf8mb4_bin"]))
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert "have the same value of a unique key on the follower: of 2 rows 1 are not there" in line
    assert stage.execute("SELECT * FROM t") == []


def test_tables_that_are_left_out_or_renamed(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    name = "copied_elsewhere"
    filters = {"exclude_tables": [f"{name}.left_out"]}
    stage = Stage.make(tmp_path, follower, kafka, name=name, renames={name: f"{name}_2"}, filters=filters)
    paths = [stage.create_table(table, "(id INT PRIMARY KEY, name VARCHAR(9))") for table in ("t", "left_out")]
    stage.apply()
    there = f"{name}_2"
    stage.execute("CREATE TABLE left_out (id INT)", "INSERT INTO left_out VALUES (7)", "COMMIT", database=there)
    stage.topic.send(*[chunk(stage, path, pair(1, "a")) for path in paths])
    stage.apply()
    assert stage.execute("SELECT * FROM t", database=there) == [(1, "a")]
    assert stage.execute("SELECT * FROM left_out", database=there) == [(7,)]
