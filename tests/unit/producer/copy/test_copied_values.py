"""Rows and values of a copied table without a server: packets, documents, members and literals of keys."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.producer.copy.chunk_reader import ChunkRows
from cdc.producer.copy.definition import CopiedColumn, TableDefinition, table_text
from cdc.producer.copy.keys import key_literals
from cdc.producer.copy.row_text import document_json
from cdc.sql.column_types import shown_members

COLUMNS = (
    CopiedColumn("id", "int", nullable=False),
    CopiedColumn("text", "varchar", nullable=True, charset="utf8mb4"),
    CopiedColumn("bytes", "blob", nullable=False),
)
TABLE = TableDefinition("d", "t", COLUMNS, ("id",), "PRIMARY", "", "")
CODE = ChunkRows.of(TABLE)
lengths = st.sampled_from([0, 1, 249, 250, 251, 252, 255, 256, 65535, 65536, 70000])
rows = st.lists(st.tuples(st.integers(-(1 << 31), 1 << 31), st.none() | lengths, lengths), max_size=4)


def sized(data: bytes | None) -> bytes:
    """A column of a row as it is sent (MySQL source documentation, "Length-Encoded Integer Type")."""
    if data is None:
        return b"\xfb"
    if len(data) < 251:
        return bytes([len(data)]) + data
    if len(data) < 1 << 16:
        return b"\xfc" + len(data).to_bytes(2, "little") + data
    return b"\xfd" + len(data).to_bytes(3, "little") + data


def packet(payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + b"\7" + payload


def payload(row: Sequence[int | None]) -> bytes:
    number, text, data = row
    return sized(str(number).encode()) + sized(None if text is None else b"x" * text) + sized(b"\0" * (data or 0))


def wanted(row: Sequence[int | None]) -> list[object]:
    number, text, _ = row
    return [{"SignedInteger": number}, "Null" if text is None else {"String": "x" * text}]


@given(rows, st.floats(0, 1))
def test_the_rows_of_complete_packets_are_read_wherever_the_data_end(
    told: list[tuple[int, int, int]], cut: float
) -> None:
    packets = [packet(payload(row)) for row in told]
    end = packet(b"\xfe\0\0\2\0")
    data = b"".join([*packets, end])
    data = data[: round(len(data) * cut)]
    found: list[str] = []
    at = CODE.rows(data, data.decode("latin1"), 0, len(data), found)
    complete = 0
    while complete < len(packets) and sum(map(len, packets[: complete + 1])) <= len(data):
        complete += 1
    assert at == sum(map(len, packets[:complete]))
    assert [json.loads(row)["cols"][:2] for row in found] == [wanted(row) for row in told[:complete]]
    assert [CODE.row(each, each.decode("latin1")) for each in map(payload, told[:complete])] == found


def test_a_row_of_other_columns_is_refused() -> None:
    for broken in (payload((1, 2, 3)) + b"\0", sized(b"1") + sized(b"x") + b"\xfb"):
        data = packet(broken)
        with pytest.raises(ValueError):
            CODE.rows(data, data.decode("latin1"), 0, len(data), [])


def test_a_statement_names_everything_in_quotes() -> None:
    key = (CopiedColumn("a`b", "int", nullable=False, zerofill=True),)
    code = ChunkRows.of(TableDefinition("d`", "t", key, ("a`b",), "k`", "", ""))
    assert code.statement(("1",), 7) == (
        "SELECT CAST(t.`a``b` AS UNSIGNED) FROM `d```.`t` AS t FORCE INDEX (`k```) "
        "WHERE (t.`a``b` > 1) ORDER BY t.`a``b` LIMIT 7"
    )


def test_rows_come_in_the_order_of_the_whole_key() -> None:
    columns = tuple(CopiedColumn(name, "int", nullable=False) for name in ("a", "b", "c"))
    code = ChunkRows.of(TableDefinition("d", "t", columns, ("c", "a"), "PRIMARY", "", ""))
    assert code.statement(None, 7).endswith(" ORDER BY t.`c`, t.`a` LIMIT 7")


NONE = b"0;"


@pytest.mark.parametrize(
    ("kind", "members", "elements", "text", "wanted"),
    [
        (b"OBJECT", NONE, NONE, '{"a": [1, -1.0, 1e300, "é"], "": null}', '{"Json":{"a":[1,-1.0,1e+300,"é"],"":null}}'),
        (b"INTEGER", NONE, NONE, "4294967295", '{"Json":4294967295}'),
        (b"INTEGER", NONE, NONE, "4294967296", '{"JsonTyped":{"SignedInteger":4294967296}}'),
        (b"UNSIGNED INTEGER", NONE, NONE, "4294967296", '{"Json":4294967296}'),
        (b"UNSIGNED INTEGER", NONE, NONE, "7", '{"JsonTyped":{"UnsignedInteger":7}}'),
        (b"DECIMAL", NONE, NONE, "1.50", '{"JsonTyped":{"Decimal":"1.50"}}'),
        # All elements of an outer array are numbered before those of the arrays in it.
        (
            b"ARRAY", b"1;2 DATE", b"1;4 TIME", '[[1.0, "-01:02:03.500000"], {"a": "ä", "b": "2001-02-03"}]',
            ('{"JsonTyped":{"array":[{"array":[1.0,{"Time":{"negative":true,"hour":1,"minute":2,"second":3,'
             '"subsecond":500000}}]},{"object":{"a":"ä","b":{"Date":{"year":2001,"month":2,"day":3}}}}]}}'),
        ),
        (
            b"ARRAY", NONE, b"1;1 DECIMAL", '[1.5, 7, -7, 1.0, 1e30, "a", true, null]',
            '{"JsonTyped":{"array":[{"Decimal":"1.5"},7,-7,1.0,1e+30,"a",true,null]}}',
        ),
        # The zone of a TIMESTAMP is that of the session that made the document.
        (
            b"OBJECT", b"2;1 DATETIME;2 TIMESTAMP", NONE,
            '{"a": "2001-02-03 04:05:06.000000", "b": "2011-12-13 14:15:16.070000"}',
            ('{"JsonTyped":{"object":{"a":{"DateTime":{"year":2001,"month":2,"day":3,"hour":4,"minute":5,"second":6,'
             '"subsecond":0}},"b":{"LocalTimestamp":{"year":2011,"month":12,"day":13,"hour":14,"minute":15,"second":16,'
             '"subsecond":70000}}}}}'),
        ),
        (
            b"ARRAY", NONE, b"2;1 BLOB;2 BLOB", '["base64:type15:/w==", "\\u0000a"]',
            '{"JsonTyped":{"array":[{"Opaque":{"type":15,"base64":"/w=="}},{"Opaque":{"type":253,"base64":"AGE="}}]}}',
        ),
    ],
)  # fmt: skip
def test_documents(kind: bytes, members: bytes, elements: bytes, text: str, wanted: str) -> None:
    assert document_json(kind, members, elements, text.encode()) == wanted


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (NONE, None),  # a document that the server can't show
        (None, b"{}"),  # a list longer than max_allowed_packet
        (b"2;1 DATE", b"{}"),  # a list that was cut
        (b"1;1 VECTOR", b'{"a": "base64:type242:AAAA"}'),
        (b"1;1 MOMENT", b'{"a": "2001-02-03 04:05:06"}'),  # a type of a later server
    ],
)
def test_a_document_that_is_not_shown_exactly_is_refused(members: bytes | None, text: bytes | None) -> None:
    with pytest.raises(ValueError):
        document_json(b"OBJECT", members, NONE, text)


def test_members_are_read_as_the_server_writes_them() -> None:
    assert shown_members(r"enum('a\\b','q''x','n\nl','','\0z',')','a,b','\'')") == (
        "a\\b", "q'x", "n\nl", "", "\0z", ")", "a,b", "'",
    )  # fmt: skip


def test_the_next_number_is_no_part_of_a_definition() -> None:
    def table(options: str) -> str:
        return f"CREATE TABLE `t` (\n  `a` int COMMENT ' AUTO_INCREMENT=3 '\n) ENGINE=InnoDB{options}"

    assert table_text(table(" AUTO_INCREMENT=7 COMMENT='x'")) == table_text(table(" COMMENT='x'"))
    assert table_text(table(" AUTO_INCREMENT=7")) == table("")
    parts = "\n/*!50100 PARTITION BY RANGE (`a`)\n(PARTITION p0 VALUES LESS THAN (9) ENGINE = InnoDB) */"
    assert table_text(table(" AUTO_INCREMENT=7 COMMENT='x'" + parts)) == table(" COMMENT='x'" + parts)


@pytest.mark.parametrize(
    ("column", "value", "literal"),
    [
        (("int", ""), '{"SignedInteger":-5}', "-5"),
        (("decimal", ""), '{"Decimal":"-0.10"}', "-0.10"),
        (("year", ""), '{"Year":0}', "'0000'"),
        (("varchar", "latin1"), '{"String":"ä\'"}', "_latin1 x'e427'"),
        (("varchar", "utf8mb4"), '{"String":"ä"}', "_utf8mb4 x'c3a4'"),
        (("varchar", "gbk"), '{"Text":{"charset":"gbk","base64":"sKE="}}', "_gbk x'b0a1'"),
        (("varbinary", "binary"), '{"Blob":""}', "x''"),
        (("date", ""), '{"Date":{"year":0,"month":2,"day":31}}', "'0000-02-31'"),
        (("time", ""), '{"Time":{"negative":true,"hour":838,"minute":5,"second":9,"subsecond":7}}',
         "'-838:05:09.000007'"),
        (("timestamp", ""), '{"Timestamp":{"unix_time":0,"subsecond":0}}', "'0000-00-00 00:00:00'"),
        (("timestamp", ""), '{"Timestamp":{"unix_time":86401,"subsecond":5}}', "'1970-01-02 00:00:01.000005'"),
    ],
)  # fmt: skip
def test_literals_of_keys(column: tuple[str, str], value: str, literal: str) -> None:
    kind, charset = column
    assert key_literals([CopiedColumn("k", kind, nullable=False, charset=charset)], [value]) == (literal,)


@pytest.mark.parametrize("value", ['{"Decimal":"1; DROP"}', '{"Enum":"a"}', '"Null"', '{"SignedInteger":null}', "1"])
def test_what_is_no_value_of_a_key_makes_no_literal(value: str) -> None:
    with pytest.raises(ValueError):
        key_literals([CopiedColumn("k", "int", nullable=False)], [value])


@pytest.mark.parametrize(
    ("kind", "charset", "value"),
    [
        ("varbinary", "binary", '{"Blob":"AA\'!=="}'),
        ("varchar", "gbk", '{"Text":{"charset":"gbk","base64":"AA\'!=="}}'),
    ],
)
def test_bytes_that_are_not_base64_make_no_literal(kind: str, charset: str, value: str) -> None:
    with pytest.raises(ValueError):
        key_literals([CopiedColumn("k", kind, nullable=False, charset=charset)], [value])
