"""Events as a MariaDB 10.11 sent them, translated and decoded: bytes captured from a dump."""

import struct
import zlib

import pytest

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent, query
from cdc.producer.decode.changes import Begin, Commit, Refused, Rows, RowsTransaction, Statement
from cdc.producer.flavor.mariadb_events import Session, Translator, mode_bits, sql_mode
from tests.generators.binlog_events import event
from tests.harness.decoding import Leader

TIME_TRUNCATE = 1 << 32
COLLATIONS = {45: ("utf8mb4", "utf8mb4_general_ci")}
BEGIN = bytes.fromhex("0300000000000000000000000c000000000000")
STANDALONE = bytes.fromhex("02000000000000000000000029000000000000")
TABLE_MAP = b"\x16\0\0\0\0\0\1\0\1d\0\1t\0\3\3\x0f\3\2P\0\6\1\1@\2\1-\4\7\2id\1v\1u\x08\1\0"
ADDED = b"\x16\0\0\0\0\0\1\0\3\7\xf8\1\0\0\0\1a\1\0\0\0\xf8\2\0\0\0\1b\2\0\0\0"
UPDATED = b"\x16\0\0\0\0\0\1\0\3\7\7\xf8\1\0\0\0\1a\1\0\0\0\xf8\1\0\0\0\1c\1\0\0\0"
CREATE = (
    b"\5\0\0\0\0\0\0\0\1\0\0#\0\0\0\0\0\1\1\0\0 T\0\0\0\0\6\3std\4-\0-\0-\0\x81\n\0\0\0\0\0\0\0d\0"
    b"CREATE TABLE t (id INT)"
)
COMMIT = b"\5\0\0\0\0\0\0\0\1\0\0\x1a\0\0\0\0\0\1\1\0\0 T\0\0\0\0\6\3std\4-\0-\0-\0d\0COMMIT"


def translated(*events: RawEvent) -> list[RawEvent]:
    found = Translator(Session(TIME_TRUNCATE, 45)).translate(events)
    assert all(isinstance(each, RawEvent) for each in found)
    return [each for each in found if isinstance(each, RawEvent)]


def changes(*events: RawEvent) -> list[object]:
    return Leader(collations=COLLATIONS).decode(translated(*events))


def compressed(content: bytes) -> bytes:
    return bytes([0x82]) + len(content).to_bytes(2, "big") + zlib.compress(content)


@pytest.mark.parametrize("end", [event(et.XID, bytes(8)), event(et.QUERY, COMMIT)])
def test_a_transaction_of_rows_has_its_gtid(end: RawEvent) -> None:
    found = changes(event(162, BEGIN), event(19, TABLE_MAP), event(23, ADDED), event(24, UPDATED), end)
    if end.type == et.XID:
        (whole,) = found
        assert isinstance(whole, RowsTransaction)
        begin, rows = whole.begin, whole.rows
    else:
        begin, *rows, commit = found  # type: ignore[assignment]
        assert isinstance(commit, Commit)
    assert (begin.transaction, begin.gtid) == ("0-1-3", "0-1-3")
    assert begin.commit_us == 1_700_000_000_000_000
    assert begin.sql_mode == "TIME_TRUNCATE_FRACTIONAL"
    assert [(each.operation, len(each.rows), each.flags) for each in rows] == [("Add", 2, 0), ("Update", 1, 0)]


def test_compressed_rows_are_those_that_are_not() -> None:
    plain = changes(event(162, BEGIN), event(19, TABLE_MAP), event(23, ADDED), event(16, bytes(8)))
    packed = event(166, ADDED[:10] + compressed(ADDED[10:]))
    assert [whole.rows[0].rows for whole in plain if isinstance(whole, RowsTransaction)] == [
        whole.rows[0].rows
        for whole in changes(event(162, BEGIN), event(19, TABLE_MAP), packed, event(16, bytes(8)))
        if isinstance(whole, RowsTransaction)
    ]


def test_a_statement_of_its_own_has_the_variables_that_mysql_logs() -> None:
    begin, statement, commit = changes(event(162, STANDALONE), event(2, CREATE))
    assert isinstance(begin, Begin) and isinstance(commit, Commit) and isinstance(statement, Statement)
    assert begin.gtid == "0-1-2"
    assert statement.text == "CREATE TABLE t (id INT)"
    wanted = {
        "database": "d", "charset": "utf8mb4", "default_collation_for_utf8mb4": "utf8mb4_general_ci",
        "explicit_defaults_for_timestamp": True, "sql_require_primary_key": False, "foreign_key_checks": True,
        "sql_mode": "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,TIME_TRUNCATE_FRACTIONAL",
    }  # fmt: skip
    assert wanted.items() <= statement.context.items()
    head, text = CREATE[:-23], CREATE[-23:]
    (_, again) = translated(event(162, STANDALONE), event(165, head + compressed(text)))
    assert query(again).text == text


def test_seconds_have_their_fraction() -> None:
    variables = b"\0\0\0\0\1\1" + bytes(8) + b"\x80\x40\xe2\1"
    data = struct.pack("<IIBHH", 5, 0, 0, 0, len(variables)) + variables + b"\0DROP TABLE d.t"
    (_, found) = translated(event(162, STANDALONE), event(2, data))
    assert query(found).variables["microseconds"] == 123456


def test_the_number_of_a_group_commit_is_no_phase_of_an_alter() -> None:
    gtid = BEGIN[:12] + bytes([BEGIN[12] | 2]) + b"\x02" + bytes(7)
    found = translated(event(162, gtid), event(2, CREATE))
    assert [each.type for each in found] == [162, et.QUERY, et.QUERY]


def test_flags_that_mysql_does_not_have_are_left_out() -> None:
    rows = ADDED[:6] + b"\x87" + ADDED[7:]  # constraints were not checked, and neither were foreign and unique keys
    (whole,) = changes(event(162, BEGIN), event(19, TABLE_MAP), event(23, rows), event(16, bytes(8)))
    assert isinstance(whole, RowsTransaction)
    assert [each.flags for each in whole.rows] == [6]


@pytest.mark.parametrize("kind", [160, 161, 163])
def test_events_about_the_log_are_left_out(kind: int) -> None:
    assert translated(event(kind, bytes(10))) == []


@pytest.mark.parametrize("kind", [164, 172, 169, 21])
def test_an_event_that_is_not_known_reaches_the_decoder_which_refuses_it(kind: int) -> None:
    assert [each.type for each in translated(event(kind, bytes(10)))] == [kind]


def test_what_can_not_be_read_is_refused_at_its_place() -> None:
    """What comes before it is not lost."""
    rows = event(166, ADDED[:10] + b"\x82\0\1no zlib")
    found = changes(event(162, BEGIN), event(19, TABLE_MAP), event(23, ADDED), rows, event(16, bytes(8)))
    assert [type(each) for each in found] == [Begin, Rows, Refused, Commit]


def test_a_phase_of_an_alter_is_refused() -> None:
    phase = STANDALONE[:13] + b"\2" + STANDALONE[14:]
    begin, refused, commit = changes(event(162, phase), event(2, CREATE))
    assert isinstance(refused, Refused)
    assert "binlog_alter_two_phase" in str(refused.error)
    assert isinstance(begin, Begin) and isinstance(commit, Commit)


def test_a_variable_that_is_not_known_stops_the_statement() -> None:
    variables = b"\0\0\0\0\1\1" + bytes(8) + b"\x0c\0\0"  # of MySQL, where it names databases
    data = struct.pack("<IIBHH", 5, 0, 0, 0, len(variables)) + variables + b"\0DROP TABLE d.t"
    _, refused, _ = changes(event(162, STANDALONE), event(2, data))
    assert isinstance(refused, Refused)
    assert "unknown session variable 255" in str(refused.error)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(0, TIME_TRUNCATE), (1 << 34, 0), (1 << 28, TIME_TRUNCATE), (1 << 21, 1 << 21 | TIME_TRUNCATE)],
)
def test_modes_are_those_of_mysql(theirs: int, ours: int) -> None:
    assert sql_mode(theirs) == ours


def test_modes_are_given_by_their_names() -> None:
    assert mode_bits("") == 0
    assert mode_bits("REAL_AS_FLOAT,ORACLE,TIME_ROUND_FRACTIONAL") == 1 | 1 << 9 | 1 << 34
    assert sql_mode(mode_bits("A_NEW_ONE")) >> 63  # the decoder refuses it


@pytest.mark.parametrize("bit", [4, 8, 9, 10, 11, 12, 16, 17, 32, 33])
def test_modes_that_mysql_does_not_have_are_refused_by_name(bit: int) -> None:
    variables = b"\0\0\0\0\1\1" + (1 << bit).to_bytes(8, "little")
    data = struct.pack("<IIBHH", 5, 0, 0, 0, len(variables)) + variables + b"\0DROP TABLE d.t"
    _, refused, _ = changes(event(162, STANDALONE), event(2, data))
    assert isinstance(refused, Refused)
    assert "a statement has MariaDB's sql_mode " in str(refused.error)
