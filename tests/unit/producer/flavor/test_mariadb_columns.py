"""Columns that look like BINARY, and how MariaDB shows the values of its own types."""

import json
import zlib

import pytest

from cdc.errors import PromiseError
from cdc.producer.decode.mariadb_values import inet4_text, inet6_text, uuid_text
from cdc.producer.decode.query_event import logged_statement
from cdc.producer.decode.row_codegen import column_reader
from cdc.producer.decode.table_map import (
    BLOB_COMPRESSED,
    INET4,
    INET6,
    STRING,
    UUID,
    VARCHAR_COMPRESSED,
    Column,
    Table,
    column_type,
)
from cdc.producer.flavor.mariadb_leader import OwnTypes
from cdc.sql.effects import Effect
from tests.generators.binlog_events import Log
from tests.harness.decoding import content, tables

BINARY = {63: ("binary", "binary")}


def table(*columns: Column) -> Table:
    return Table("d", "t", columns, None)


def binary(size: int) -> Column:
    return Column("a", STRING, size, False, "binary", None, "")


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("present", [("varbinary", 39), ("binary", 5), None])
def test_a_column_that_was_altered_or_dropped(size: int, present: tuple[str, int | None] | None) -> None:
    find = OwnTypes(lambda database, name: {} if present is None else {"a": present}).found
    with pytest.raises(PromiseError, match=r"column a was BINARY, or UUID or INET of MariaDB, before an ALTER.* d\.t;"):
        find(table(binary(size)))


@pytest.mark.parametrize(("size", "present"), [(16, "inet4"), (4, "uuid"), (4, "inet6")])
def test_a_column_that_has_another_length_now(size: int, present: str) -> None:
    with pytest.raises(PromiseError, match="before an ALTER"):
        OwnTypes(lambda database, name: {"a": (present, None)}).found(table(binary(size)))


@pytest.mark.parametrize(
    ("size", "present", "found"),
    [
        (16, ("binary", 16), {}), (4, ("binary", 4), {}), (16, ("uuid", None), {0: UUID}),
        (4, ("inet4", None), {0: INET4}),
        (16, ("inet6", None), {0: INET6}),
    ],
)  # fmt: skip
def test_what_a_column_is_now(size: int, present: tuple[str, int | None], found: dict[int, int]) -> None:
    assert OwnTypes(lambda database, name: {"a": present}).found(table(binary(size))) == found


def test_no_question_about_other_columns() -> None:
    def present(database: str, name: str) -> dict[str, tuple[str, int | None]]:
        pytest.fail("the leader was asked")

    assert OwnTypes(present).found(table(binary(5), Column("c", STRING, 16, False, "latin1", None, ""))) is None


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["CREATE TABLE t (a UUID)"], {0: UUID}), (["CREATE TABLE d.`t` (`b` INT(4), `a` inet6 KEY)"], {0: INET6}),
        (["CREATE TABLE t (a BINARY(16), KEY (a))"], {}), (["CREATE TABLE t (a CHAR(16)) CHARSET binary"], {}),
        (["CREATE TABLE t (a UUID)", "ALTER TABLE u ADD b INT", "DROP TABLE v"], {0: UUID}),
        # The leader is asked: it has no such table any more.
        (["CREATE TABLE IF NOT EXISTS t (a UUID)"], None), (["CREATE TABLE t (a `uuid`)"], None),
        (["CREATE TABLE t (b INT, CHECK (b > a UUID))"], None), (["CREATE TABLE t LIKE u"], None),
        (["CREATE TABLE t (a UUID)", "ALTER TABLE t MODIFY a BINARY(16)"], None),
        (["CREATE TABLE t (a UUID)", "RENAME TABLE t TO v, u TO t"], None),
        (["CREATE TABLE t (a UUID)", "DROP DATABASE d"], None), (["CREATE TABLE t (a UUID)", "who knows"], None),
        (["CREATE TABLE u (a UUID)"], None), (["CREATE TABLE t (b INT, KEY a (b), UNIQUE a2 (b))"], None),
    ],
)  # fmt: skip
def test_the_types_in_the_statement_that_created_the_table(statements: list[str], found: dict[int, int] | None) -> None:
    types = OwnTypes(lambda database, name: {})
    for statement in statements:
        types.rewritten(logged_statement(Log().query(statement, database="d"), {}))
    if found is None:
        with pytest.raises(PromiseError, match="before an ALTER"):
            types.found(table(binary(16)))
    else:
        assert types.found(table(binary(16))) == found


def test_the_leader_is_asked_again_after_a_statement_and_for_another_table_id() -> None:
    """The table map is the same whatever the column's type is."""
    answers = [{0: INET4}, {}, {0: INET4}, {}]
    cache = tables(collations=BINARY, own_types=lambda _: answers.pop(0))
    binary4 = {"types": b"\xfe", "meta": b"\xfe\x04", "names": "a"}

    def row(log: Log, number: int) -> str:
        cache.map(log.table_map(number, **binary4))
        found = cache.rows(log.images(b"\0\3\1\2\3", number=number))
        assert found is not None
        return content(found)[2][0]

    log = Log()
    assert row(log, 7) == row(log, 7) == '{"cols":[{"String":"1.2.3.0"}]}'
    assert row(log, 8) == row(log, 8) == '{"cols":[{"Blob":"AQIDAA=="}]}'
    assert len(answers) == 2
    cache.forget_allowed([Effect("AlterTable", "db", "u")])
    assert row(log, 8) == '{"cols":[{"Blob":"AQIDAA=="}]}'
    cache.forget_allowed([Effect("RenameTable", "db", "u", to=("db", "t"))])
    assert row(log, 8) == '{"cols":[{"String":"1.2.3.0"}]}'
    cache.forget_allowed()
    assert row(log, 8) == '{"cols":[{"Blob":"AQIDAA=="}]}'


def test_a_compiled_decoder_and_large_rows_read_the_same_types() -> None:
    cache = tables(collations=BINARY, own_types=lambda _: {0: INET4})
    log = Log()
    cache.map(log.table_map(7, types=b"\xfe", meta=b"\xfe\x04", names="a"))
    many = log.images(*[b"\0\1\x7f"] * 500)
    (first, second) = (cache.rows(many), cache.rows(log.images(b"\0\1\x7f")))
    assert first is not None and second is not None
    assert {*content(first)[2], *content(second)[2]} == {'{"cols":[{"String":"127.0.0.0"}]}'}
    (column,) = second.table.large_columns()
    assert column.read(b"\1\x7f", 0) == ('{"String":"127.0.0.0"}', 2)


@pytest.mark.parametrize(
    ("logged", "shown"),
    [
        ("", "::"), ("00000000000000000000000000000001", "::1"), ("00000000000000000000ffff01020304", "::ffff:1.2.3.4"),
        ("00000000000000000000000001020304", "::1.2.3.4"), ("00000000000000000000000100020003", "::1:2:3"),
        ("0001000000000002", "1:0:0:2::"), ("000100000002000000000003", "1:0:2::3:0:0"),
        ("000000000001", "0:0:1::"), ("00010000000000020000000000030000", "1::2:0:0:3:0"),
        ("0000000000000000000000000000ffff", "::ffff"), ("00000000000000000000fffe01020304", "::fffe:102:304"),
        ("0001000200030004000500060007", "1:2:3:4:5:6:7::"), ("00000002000300040005000600070008", "::2:3:4:5:6:7:8"),
        ("00000001000000010000000100000001", "::1:0:1:0:1:0:1"), ("00000000000000000000000000010000", "::0.1.0.0"),
        ("00010002000300040005000601020304", "1:2:3:4:5:6:102:304"), ("000000000000000000010000", "::1:0:0:0"),
        ("00010000000000040005000000000008", "1::4:5:0:0:8"),
        ("20010db8000000000000ff0000428329", "2001:db8::ff00:42:8329"),
        ("00010002000300040005000600070008", "1:2:3:4:5:6:7:8"),
    ],
)  # fmt: skip
def test_an_inet6_as_mariadb_10_11_and_11_8_show_it(logged: str, shown: str) -> None:
    assert inet6_text(bytes.fromhex(logged)) == shown


def test_zero_bytes_at_the_end_are_not_logged() -> None:
    assert uuid_text(bytes.fromhex("0011223344551677")) == "00112233-4455-1677-0000-000000000000"
    assert inet4_text(b"\x01\x02") == "1.2.0.0"
    with pytest.raises(ValueError, match="a value of 4 bytes has 5"):
        inet4_text(b"12345")


PLAIN = b"ab" * 100
RAW = zlib.compressobj(wbits=-15)
STREAMS = [b"\0" + PLAIN, b"\x81\xc8" + zlib.compress(PLAIN), b"\x8a\0\xc8" + RAW.compress(PLAIN) + RAW.flush()]
TEXT = Column("", BLOB_COMPRESSED, 2, charset="utf8mb4")


@pytest.mark.parametrize("stored", STREAMS)
def test_a_compressed_value(stored: bytes) -> None:
    read = column_reader(TEXT)
    shown = json.dumps({"String": PLAIN.decode()}, separators=(",", ":"))
    assert read(len(stored).to_bytes(2, "little") + stored, 0) == (shown, len(stored) + 2)
    assert read(b"\0\0", 0) == ('{"String":""}', 2)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (b"\x91\xc8" + zlib.compress(PLAIN), "the unknown compression 9"),
        (b"\x81\xc7" + zlib.compress(PLAIN), "decompressed to 200 bytes, not 199"),
        (b"\x81\xc9" + zlib.compress(PLAIN), "decompressed to 200 bytes, not 201"),
        (b"\x81\xc8" + zlib.compress(PLAIN) + b"x", "decompressed to"),
        (b"\x81\xc8xx", "can't be decompressed"),
    ],
)
def test_a_compressed_value_that_can_not_be_read(stored: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        column_reader(TEXT)(len(stored).to_bytes(2, "little") + stored, 0)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (Column("", UUID, 16), "char(36) character set ascii"),
        (Column("", INET4, 4), "varchar(15) character set ascii"),
        (Column("", INET6, 16), "varchar(39) character set ascii"), (TEXT, "text character set utf8mb4"),
        (Column("", VARCHAR_COMPRESSED, 1201, charset="utf8mb4"), "varchar(300) character set utf8mb4"),
        (Column("", VARCHAR_COMPRESSED, 256), "varbinary(255)"), (Column("", BLOB_COMPRESSED, 4), "longblob"),
    ],
)  # fmt: skip
def test_the_type_in_records_is_the_followers(column: Column, shown: str) -> None:
    assert column_type(column) == shown


def test_the_length_of_a_varchar_with_its_first_byte() -> None:
    one, two = (Column("", VARCHAR_COMPRESSED, size) for size in (255, 256))
    assert column_reader(one)(b"\2\0x", 0) == ('{"Blob":"eA=="}', 3)
    assert column_reader(two)(b"\2\0\0x", 0) == ('{"Blob":"eA=="}', 4)
