"""Every value that a record can hold is stored bit for bit, and is found again in a table without a key."""

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc.consumer.literals.image_keys import float_text
from cdc.consumer.literals.values import literal
from cdc.model.charset import latin1_decode
from cdc.sandbox.server.mysql import MySql
from tests.harness.topic import Stage, number

pytestmark = pytest.mark.integration

# What an application would write on the leader, in a lax session; the second text is SQL, the third the record's value.
LAX = "SET SESSION sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone='+00:00'"
ALL_BYTES = bytes(range(256))


def blob(data: bytes) -> str:
    return base64.b64encode(data).decode()


def moment(year: int, month: int, day: int, hour: int, minute: int, second: int, subsecond: int) -> dict[str, int]:
    parts = {"year": year, "month": month, "day": day, "hour": hour, "minute": minute, "second": second}
    return parts | {"subsecond": subsecond}


def clock(negative: bool, hour: int, minute: int, second: int, subsecond: int) -> dict[str, Any]:
    return {"negative": negative, "hour": hour, "minute": minute, "second": second, "subsecond": subsecond}


CASES: list[tuple[str, str, Any]] = [
    ("TINYINT", "-128", {"SignedInteger": -128}),
    ("BIGINT", "-9223372036854775808", {"SignedInteger": -9223372036854775808}),
    ("BIGINT UNSIGNED", "18446744073709551615", {"UnsignedInteger": 18446744073709551615}),
    ("DECIMAL(65,30)", "-12345678901234567890123456789012345.000000000000000000000000000001",
     {"Decimal": "-12345678901234567890123456789012345.000000000000000000000000000001"}),
    ("DECIMAL(5,2)", "0", {"Decimal": "0.00"}),
    ("FLOAT", "0.1", {"Float": 0.10000000149011612}),
    ("FLOAT", "1.401298464324817e-45", {"Float": 1.401298464324817e-45}),
    ("FLOAT(7,3)", "1234.567", {"Float": 1234.5670166015625}),
    ("DOUBLE", "-0e0", {"Double": -0.0}),
    ("DOUBLE", "5e-324", {"Double": 5e-324}),
    ("DOUBLE", "1.7976931348623157e308", {"Double": 1.7976931348623157e308}),
    ("DOUBLE(20,5)", "12345678901234.56789", {"Double": 12345678901234.568}),
    ("BIT(1)", "1", {"Bit": 1}),
    ("BIT(64)", "18446744073709551615", {"Bit": 18446744073709551615}),
    ("YEAR", "0", {"Year": 0}),
    ("YEAR", "2155", {"Year": 2155}),
    ("DATE", "'0000-00-00'", {"Date": {"year": 0, "month": 0, "day": 0}}),
    ("DATE", "'2001-00-00'", {"Date": {"year": 2001, "month": 0, "day": 0}}),
    ("DATE", "'2001-02-31'", {"Date": {"year": 2001, "month": 2, "day": 31}}),
    ("DATETIME", "'0000-00-00 00:00:00'", {"DateTime": moment(0, 0, 0, 0, 0, 0, 0)}),
    ("DATETIME(6)", "'9999-12-31 23:59:59.999999'", {"DateTime": moment(9999, 12, 31, 23, 59, 59, 999999)}),
    ("DATETIME(3)", "'2024-02-29 01:02:03.004'", {"DateTime": moment(2024, 2, 29, 1, 2, 3, 4000)}),
    ("TIMESTAMP", "'0000-00-00 00:00:00'", {"Timestamp": {"unix_time": 0, "subsecond": 0}}),
    ("TIMESTAMP(6)", "'1970-01-01 00:00:01.000001'", {"Timestamp": {"unix_time": 1, "subsecond": 1}}),
    ("TIMESTAMP", "'2038-01-19 03:14:07'", {"Timestamp": {"unix_time": 2147483647, "subsecond": 0}}),
    ("TIME", "'-838:59:59'", {"Time": clock(True, 838, 59, 59, 0)}),
    ("TIME(6)", "'-00:00:00.500000'", {"Time": clock(True, 0, 0, 0, 500000)}),
    ("TIME(1)", "'12:00:00.9'", {"Time": clock(False, 12, 0, 0, 900000)}),
    ("CHAR(10)", "'a  '", {"String": "a"}),
    ("VARCHAR(20)", "'a  '", {"String": "a  "}),
    ("VARCHAR(20)", "''", {"String": ""}),
    ("VARCHAR(20)", "_utf8mb4 x'f09f90b900275c0a22'", {"String": "🐹\0'\\\n\""}),
    ("VARCHAR(20) CHARACTER SET utf8mb3", "'žluť'", {"String": "žluť"}),
    ("VARCHAR(256) CHARACTER SET latin1", f"_latin1 x'{ALL_BYTES.hex()}'", {"String": latin1_decode(ALL_BYTES)}),
    ("VARCHAR(20) CHARACTER SET ascii", "'plain'", {"String": "plain"}),
    ("VARCHAR(20) CHARACTER SET sjis", "_sjis x'835c5c'",
     {"Text": {"charset": "sjis", "base64": blob(b"\x83\x5c\x5c")}}),
    ("VARCHAR(20) CHARACTER SET utf16", "_utf16 x'00410042'", {"Text": {"charset": "utf16", "base64": "AEEAQg=="}}),
    ("VARCHAR(20) CHARACTER SET gb18030", "_gb18030 x'81308130'",
     {"Text": {"charset": "gb18030", "base64": blob(b"\x81\x30\x81\x30")}}),
    ("MEDIUMTEXT", "REPEAT('ab''\\\\', 50000)", {"String": "ab'\\" * 50000}),
    ("BINARY(4)", "x'01'", {"Blob": blob(b"\x01\0\0\0")}),
    ("VARBINARY(300)", f"x'{ALL_BYTES.hex()}'", {"Blob": blob(ALL_BYTES)}),
    ("BLOB", "''", {"Blob": ""}),
    ("ENUM('a','', 'it''s')", "'it''s'", {"Enum": "it's"}),
    ("ENUM('a','')", "''", {"Enum": ""}),
    ("ENUM('a','')", "0", {"Enum": 0}),
    ("ENUM('a','b') CHARACTER SET sjis", "2", {"Enum": 2}),
    ("SET('a','b','c')", "''", {"Set": []}),
    ("SET('a','b','c')", "'a,c'", {"Set": ["a", "c"]}),
    ("SET('a','b','c') CHARACTER SET sjis", "6", {"Set": 6}),
    ("SET('','a')", "1", {"Set": 1}),
    ("SET('','a')", "0", {"Set": 0}),
    ("JSON", "'null'", {"Json": None}),
    ("JSON", "'{\"a\": [1, 1.0, -0.0, 1e22, 18446744073709551615, true, \"it''s \\\\\"\\\\\\\\\"]}'",
     {"Json": {"a": [1, 1.0, -0.0, 1e22, 18446744073709551615, True, "it's \"\\"]}}),
    ("GEOMETRY", "ST_GeomFromText('POINT(1 2)', 4326)",
     {"Geometry": blob(struct.pack("<IBI2d", 4326, 1, 1, 2.0, 1.0))}),
    ("VARCHAR(5)", "NULL", "Null"),
]  # fmt: skip


def test_every_value_is_stored_as_the_leader_stored_it(stage: Stage) -> None:
    columns = [f"c{place}" for place in range(len(CASES))]
    definition = ", ".join(f"{column} {case[0]} NULL" for column, case in zip(columns, CASES, strict=True))
    path = stage.create_table("t", f"({definition})")
    image = [value for _, _, value in CASES]
    stage.topic.send([stage.topic.add(path, columns, image)])
    assert "conflicts=0" in stage.apply()
    values = ", ".join(text for _, text, _ in CASES)
    stage.execute(LAX, "CREATE TABLE expected LIKE t", f"INSERT INTO expected VALUES ({values})")
    (found,), (expected,) = stage.execute("SELECT * FROM t"), stage.execute("SELECT * FROM expected")
    for case, mine, theirs in zip(CASES, found, expected, strict=True):
        assert mine == theirs, case
    # What SELECT shows is not all there is: the checksum is over the stored bytes.
    sums = stage.execute("CHECKSUM TABLE t, expected")
    assert sums[0][1] == sums[1][1] != 0


def test_every_value_is_found_again_without_a_key(stage: Stage) -> None:
    columns, topic = ["c", "n"], stage.topic
    for place, (kind, _, value) in enumerate(CASES):
        path = stage.create_table(f"t{place}", f"(c {kind} NULL, n INT)")
        add = topic.add(path, columns, [value, number(1)], [value, number(2)])
        update = topic.update(path, columns, ([value, number(1)], [value, number(3)]))
        delete = topic.delete(path, columns, [value, number(2)])
        topic.send([add], [update], [delete])
    logged = stage.apply()
    assert "conflicts=0" in logged, logged
    for place in range(len(CASES)):
        assert stage.execute(f"SELECT n FROM t{place}") == [(3,)], CASES[place]
    # Many rows at once are found in another way, and so are those of which the table has more than go.
    added, changed = [], []
    for place, (_, _, value) in enumerate(CASES):
        path = f"{stage.name}/t{place}"
        rows = [[each, number(n)] for n in (4, 4, 5, 6, 7) for each in (value, "Null")]
        added.append([topic.add(path, columns, row) for row in rows])
        # In strict mode no statement stores an ENUM's error value, so it does not come back.
        back = value if value != {"Enum": 0} else "Null"
        update = topic.update(path, columns, (["Null", number(5)], [back, "Null"]))
        gone = [[value, number(n)] for n in (3, 4, 5, 6)] + [["Null", number(n)] for n in (4, 6)]
        changed.append([update, *(topic.delete(path, columns, row) for row in gone)])
    topic.send(*added)
    stage.apply()
    topic.send(*changed)
    logged = stage.apply()
    assert "conflicts=0" in logged, logged
    assert "one by one" not in logged, logged
    assert "row by row" not in logged, logged
    for place, (_, _, value) in enumerate(CASES):
        back = value if value != {"Enum": 0} else "Null"
        here = [(value, 4), (value, 7), ("Null", 4), ("Null", 7), (back, 0)]
        expected = sorted((int(each == "Null"), n) for each, n in here)
        found = stage.execute(f"SELECT c IS NULL, COALESCE(n, 0) FROM t{place} ORDER BY 1, 2")
        assert found == expected, CASES[place]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("FLOAT", {"Float": 0.10000000149011612}),
        ("DOUBLE", {"Double": 0.1}),
        ("YEAR", {"Year": 0}),
        ("ENUM('a','b')", {"Enum": "b"}),
        ("SET('a','b')", {"Set": ["a", "b"]}),
        ("SET('','a')", {"Set": 1}),
        ("ENUM('a','')", {"Enum": ""}),
        ("DATE", {"Date": {"year": 0, "month": 0, "day": 0}}),
        ("TIMESTAMP(6)", {"Timestamp": {"unix_time": 1, "subsecond": 5}}),
        ("BINARY(3)", {"Blob": blob(b"\x01\0\0")}),
        ("VARCHAR(9) CHARACTER SET latin1", {"String": "é "}),
    ],
)
def test_every_key_finds_its_row(follower: MySql, kind: str, value: Any) -> None:
    with follower.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS key_finds_its_row")
        cursor.execute("USE key_finds_its_row")
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute("SET sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'")
        cursor.execute(f"CREATE TABLE t (k {kind} PRIMARY KEY)")
        cursor.execute(f"INSERT INTO t VALUES ({literal(value)})")
        for condition in (f"k={literal(value)}", f"(k) IN (({literal(value)}))"):
            cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL SELECT * FROM t WHERE {condition}")
            assert cursor.fetchone()[4] in ("const", "range", "index"), condition
            assert cursor.execute(f"SELECT * FROM t WHERE {condition}") == 1


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=50)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | DOUBLES | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FLOATS, DOUBLES, TEXTS, st.binary(max_size=50), DOCUMENTS)
@pytest.mark.newer("8.0 takes one double in ten for its neighbour")
def test_the_server_reads_literals_exactly(
    follower: MySql, single: float, double: float, text: str, data: bytes, document: Any
) -> None:
    values = [{"Float": single}, {"Double": double}, {"String": text}, {"Blob": blob(data)}, {"Json": document}]
    a, b, c, d, e = map(literal, values)
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode=''")
        shown = f"CAST(CAST(CAST({a} AS FLOAT) AS JSON) AS CHAR), CAST(CAST({b} AS JSON) AS CHAR), CAST({e} AS CHAR)"
        cursor.execute(f"SELECT CAST({a} AS FLOAT)+0e0, {b}, {c}, {d}, {shown}")
        *found, one, other, shown = cursor.fetchone()
    assert found == [single, double, text, data]
    # By these texts rows without a key are found.
    assert [one, other] == [float_text(single), float_text(double)]
    # As text, since Python too says 1 = 1.0 = True and 0.0 = -0.0.
    assert as_text(json.loads(shown)) == as_text(document)


def as_text(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


def test_a_document_says_which_member_has_which_type(follower: MySql) -> None:
    """What JSON text can't tell apart, JSON_TYPE can."""
    clock = {"hour": 4, "minute": 5, "second": 6, "subsecond": 7}
    moment = {"year": 2001, "month": 2, "day": 3} | clock
    members = {
        "INTEGER": 5, "UNSIGNED INTEGER": {"UnsignedInteger": 5}, "DECIMAL": {"Decimal": "5"}, "DOUBLE": 5.0,
        "STRING": "2001-02-03", "DATE": {"Date": {"year": 2001, "month": 2, "day": 3}},
        "TIME": {"Time": {"negative": False} | clock}, "DATETIME": {"DateTime": moment},
        "TIMESTAMP": {"LocalTimestamp": moment}, "BIT": {"Opaque": {"type": 16, "base64": "AQM="}},
        "BLOB": {"Opaque": {"type": 254, "base64": "AAE="}}, "NULL": None, "BOOLEAN": True,
    }  # fmt: skip
    text = literal({"JsonTyped": {"array": list(members.values())}})
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode='', time_zone='+00:00'")
        types = [f"JSON_TYPE(JSON_EXTRACT(d,'$[{place}]'))" for place in range(len(members))]
        cursor.execute(f"SELECT {','.join(types)} FROM (SELECT {text} AS d) x")
        assert list(cursor.fetchone()) == list(members)


@pytest.mark.parametrize("kind", [249, 250, 251, 252, 15, 253, 254, 16])
@pytest.mark.parametrize("size", [2, 8, 200, 70_000])
def test_bytes_in_a_document_keep_their_type_and_length(follower: MySql, kind: int, size: int) -> None:
    if size > {16: 8, 254: 255, 249: 255}.get(kind, size):
        pytest.skip("the type has no values of this length")
    data = b"\x81\x00" * (size // 2)
    text = literal({"JsonTyped": {"Opaque": {"type": kind, "base64": blob(data)}}})
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode='STRICT_ALL_TABLES'")
        cursor.execute(f"SELECT CAST({text} AS CHAR), JSON_STORAGE_SIZE({text}), JSON_TYPE({text})")
        shown, stored, type_ = cursor.fetchone()
    assert type_ == ("BIT" if kind == 16 else "BLOB")
    assert stored == 2 + len(data) + (1 if size < 128 else 2 if size < 16384 else 3)
    if kind != 253:  # of which the server shows the bytes as text
        assert shown.replace("\\n", "") == f'"base64:type{kind}:{blob(data)}"'
