"""Tables that the producer copies into the stream: what the follower has becomes what the chunks say."""

import re
from pathlib import Path
from typing import Any

import pytest

from cdc.sql.key_range import range_condition
from tests.harness.topic import Body, Stage, number, text
from tests.harness.wait import until
from tests.harness.warm_start import WarmProcess

pytestmark = pytest.mark.integration


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


def test_a_chunk_for_a_range_with_few_rows_is_written_as_a_whole_and_told_exactly(stage: Stage) -> None:
    """So it is where rows were changed before their chunk came. The chunks have enough rows for LOAD DATA."""
    path = stage.create_table("t", "(k VARCHAR(9) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v INT, w DOUBLE, j JSON)")
    stage.apply()
    names, count = ["k", "v", "w", "j"], 600

    def row(n: int, v: int = 0) -> list[Body]:
        return [text(f"r{n:04}"), number(v), {"Double": n / 7}, {"Json": {"n": n}}]

    there = "INSERT INTO t SELECT CONCAT(IF(n < 40, 'r', 'R'), LPAD(n, 4, '0')), {}, n / 7e0, JSON_OBJECT('n', n) "
    numbers = "FROM (WITH RECURSIVE r (n) AS (SELECT {} UNION ALL SELECT n + 1 FROM r WHERE n < {}) SELECT n FROM r) x"
    # 40 equal rows, 30 others, among them 10 whose key differs in its case only, and 20 that the leader does not have.
    stage.execute(
        there.format(0) + numbers.format(0, 39), there.format(1) + numbers.format(50, 59),
        "INSERT INTO t SELECT CONCAT('r', LPAD(n, 4, '0')), 5, 0, NULL " + numbers.format(100, 119),
        "INSERT INTO t SELECT CONCAT('r', LPAD(n, 4, '0'), 'x'), 0, 0, NULL " + numbers.format(200, 219), "COMMIT",
    )  # fmt: skip
    named = {"key": ["k"], "collations": [CI]}
    stage.topic.send(stage.topic.chunk(path, names, *map(row, range(count)), upto=[text("r0599")], **named))
    # The second chunk's last rows are outside of its range, and there already.
    second = [*map(row, range(count, 2 * count)), row(7), row(8, 8)]
    stage.topic.send(stage.topic.chunk(path, names, *second, after=[text("r0599")], **named))
    log = stage.apply()
    assert "missing=540 different=20 extra=30" in log
    expected = [(f"r{n:04}", 8 if n == 8 else 0, n / 7, n) for n in range(2 * count)]
    assert stage.execute("SELECT k, v, w, j->'$.n' + 0 FROM t ORDER BY k") == expected


def _waits(stage: Stage) -> bool:
    """Whether a transaction on the follower waits for a row."""
    with stage.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'")
        return bool(cursor.fetchone() == (1,))


def test_rows_that_someone_else_deletes_while_a_chunk_is_applied(stage: Stage, tmp_path: Path) -> None:
    """They are counted, and gone when the chunk would delete them. So the chunk is planned again."""
    path = stage.create_table("t", "(k INT PRIMARY KEY, v INT)")
    stage.apply()
    stage.execute("INSERT INTO t VALUES (5, 5), (7, 7)", "COMMIT")
    stage.topic.send(stage.topic.chunk(path, ["k", "v"], [number(1), number(1)], key=["k"], upto=[number(9)]))
    with stage.follower.connect(database=stage.name, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM t WHERE k = 5")
        with (tmp_path / "log").open("wb") as log:
            process = WarmProcess("cdc-consumer", str(stage.profile), "--until-current", stderr=log.fileno())
        until(lambda: _waits(stage), what="the wait for the row")
        connection.commit()
    assert process.wait() == 0, (tmp_path / "log").read_text()
    assert stage.execute("SELECT * FROM t") == [(1, 1)]


def test_few_rows_in_a_range_of_integers_are_told_exactly(stage: Stage) -> None:
    kinds = {"a": "INT(9) ZEROFILL", "b": "BIGINT UNSIGNED", "c": "DECIMAL(20)"}
    paths = [stage.create_table(table, f"(a {kind}, b SMALLINT, v INT, PRIMARY KEY (a, b))")
             for table, kind in kinds.items()]  # fmt: skip
    stage.apply()
    # Two equal rows, one other, and one that the leader does not have.
    there = "VALUES (3, -3, 0), (599, -599, 0), (5, -5, 1), (5, 5, 0)"
    stage.execute(*(f"INSERT INTO {table} {there}" for table in kinds), "COMMIT")
    rows = [[number(n), number(-n), number(0)] for n in range(600)]
    for path in paths:
        stage.topic.send(stage.topic.chunk(path, ["a", "b", "v"], *rows, key=["a", "b"]))
    log = stage.apply()
    assert len(re.findall("table copied .* missing=597 different=1 extra=1", log)) == len(kinds)
    for table in kinds:
        assert stage.execute(f"SELECT COUNT(*), SUM(a + b), SUM(v) FROM {table}") == [(600, 0, 0)]
