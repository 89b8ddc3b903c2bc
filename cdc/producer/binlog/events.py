"""Defines raw binlog events, and parses events without rows: header, Query, Rotate, Heartbeat and GTID.

The module also names the byte offsets and sizes of packets and events, for code that reads them without a parser. An
offset counts from the first byte of the event's header unless its name contains PACKET. Integers are little-endian.

Sources: MySQL protocol documentation, "MySQL Packets" and "COM_BINLOG_DUMP"; MySQL source, libs/mysql/binlog/event
(control_events.h, rows_event.h, statement_events.h, class Gtid_event) and its documentation, "Binlog Event".

``row_mode`` reads from a BEGIN event the sql_mode under which a server must compute values from the rows of the
transaction. The leader logs this mode with the BEGIN, and MySQL's own replicas apply rows under it. Modes that only
forbid values, or only change how a statement is parsed, have no effect on rows.
"""

import functools
import uuid
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.producer.binlog.event_types import GTID, GTID_TAGGED, HEARTBEAT, MARIADB_GTID
from cdc.producer.binlog.spool import Spool

__all__ = [
    "Gtid",
    "Header",
    "Inner",
    "Query",
    "RawEvent",
    "gtid",
    "header",
    "header_fields",
    "heartbeat",
    "load_query",
    "named",
    "query",
    "rotate_name",
    "row_mode",
    "server_version",
]

# A packet consists of its length (3 bytes), its sequence number (1) and its payload. A payload of the largest size
# continues in the next packet.
PACKET_HEADER_BYTES = 4
PACKET_LENGTH_MASK = 0xFFFFFF  # masks the length in the first four bytes, which are read as one integer
LARGEST_PAYLOAD = 0xFFFFFF
# The first byte of a payload in a dump is its status.
STATUS_BYTES = 1
STATUS_EVENT, STATUS_END, STATUS_ERROR = 0, 0xFE, 0xFF
PACKET_EVENT_AT = PACKET_HEADER_BYTES + STATUS_BYTES

# Every event starts with timestamp (4), type (1), server id (4), event length (4), next position (4) and flags (2). Its
# own fields follow, and then a CRC-32, unless the format description of the file announces none.
TYPE_AT = 4
LENGTH_AT = 9
NEXT_POSITION_AT = 13
HEADER_BYTES = 19
CHECKSUM_BYTES = 4

# Table map and rows events start with table id (6) and flags (2). In a table map, the names follow. In a rows event,
# the length of the extra data (2) and then the extra data follow.
TABLE_ID_BYTES = 6
TABLE_ID = slice(HEADER_BYTES, HEADER_BYTES + TABLE_ID_BYTES)
ROWS_FLAGS_AT = HEADER_BYTES + TABLE_ID_BYTES
TABLE_MAP_NAMES_AT = ROWS_FLAGS_AT + 2
ROWS_EXTRA_AT = ROWS_FLAGS_AT + 2
ROWS_EXTRA_LENGTH_BYTES = 2  # this length counts its own two bytes

# A GTID event contains flags (1), UUID (16), number (8), type of the logical clock (1), last committed (8), sequence
# number (8), and commit time in microseconds (7).
GTID_UUID_AT = HEADER_BYTES + 1
GTID_LAST_COMMITTED = slice(GTID_UUID_AT + 16 + 8 + 1, GTID_UUID_AT + 16 + 8 + 1 + 8)
GTID_SEQUENCE_NUMBER = slice(GTID_LAST_COMMITTED.stop, GTID_LAST_COMMITTED.stop + 8)

# A Query event starts with thread (4), seconds (4), length of the database name (1), error code (2) and length of the
# status variables (2).
QUERY_STATUS_VARIABLES_AT = HEADER_BYTES + 13

# A Xid event contains the number of the transaction.
XID_BYTES = 8
XID = slice(HEADER_BYTES, HEADER_BYTES + XID_BYTES)

# A Rotate event contains the position in the next file (8), and the name of that file.
ROTATE_POSITION = slice(HEADER_BYTES, HEADER_BYTES + 8)
ROTATE_FILE_AT = HEADER_BYTES + 8

# A format description contains the version of the format (2), the version of the server (50) and the time (4); its last
# byte is the checksum algorithm (0 none, 1 CRC-32).
FORMAT_VERSION = slice(HEADER_BYTES, HEADER_BYTES + 2)
FORMAT_SERVER = slice(FORMAT_VERSION.stop, FORMAT_VERSION.stop + 50)
FORMAT_CREATED = slice(FORMAT_SERVER.stop, FORMAT_SERVER.stop + 4)


header_fields = Struct("<IBIIIH").unpack_from  # unpacks the fields of class Header
_QUERY = Struct("<IIBHH")
# An Execute_load_query event contains file id (4), offsets (4 + 4) and the handling of duplicates (1) after the fields
# that a Query event has, too.
_LOAD_FIELDS_BYTES = 13
_HEARTBEAT_END, _HEARTBEAT_FILE, _HEARTBEAT_POSITION = 0, 1, 2  # the fields of a Heartbeat_v2 event


class RawEvent(NamedTuple):
    """An event that is not decoded: ``data`` starts with the header and ends before the checksum.

    ``offset`` is the event's start in ``file``, ``end`` is the start of the next event; both are 0 for an event that
    the leader generates only for the connection. If there is a ``spool``, it contains the event, and ``data`` contains
    only the first bytes.
    """

    type: int
    data: bytes
    file: str
    offset: int
    end: int
    spool: Spool | None = None

    @property
    def size(self) -> int:
        """The number of bytes of the event, without the checksum."""
        return self.spool.size if self.spool else len(self.data)

    @property
    def position(self) -> Position:
        return Position(self.file, self.offset)

    @property
    def name(self) -> str:
        """The name of this event: ``FILE:OFFSET``, and ``/NUMBER`` inside a compressed transaction."""
        return str(self.position)


class Inner(RawEvent):
    """An event inside a compressed transaction. Its position is the position of the event that contains it; ``number``
    is its number there, from 1.
    """

    number = 0

    @property
    def name(self) -> str:
        return f"{self.position}/{self.number}"


class Header(NamedTuple):
    """The common header of every event."""

    timestamp: int
    event_type: int
    server_id: int
    event_length: int
    next_event_position: int
    event_flags: int


@dataclass(frozen=True, slots=True)
class Query:
    """A Query event: the statement, its session's database and the session variables that the server logged with it."""

    database: str
    text: bytes
    variables: dict[str, Any] = field(default_factory=dict)


def header(data: bytes) -> Header:
    """Returns the header at the beginning of ``data``."""
    return Header._make(header_fields(data))


def rotate(event: RawEvent) -> Position:
    """Parses a Rotate event: returns the next file, and the offset at which the events of that file start."""
    return Position(rotate_name(event.data).decode("utf-8"), int.from_bytes(event.data[ROTATE_POSITION], "little"))


def rotate_name(data: bytes) -> bytes:
    """Returns the name of the next file, from the bytes of a Rotate event."""
    return data[ROTATE_FILE_AT:]


def server_version(event: RawEvent) -> str:
    """Parses a format description: returns the version of the server that wrote the file."""
    return event.data[FORMAT_SERVER].rstrip(b"\0").decode("ascii")


def heartbeat(event: RawEvent) -> Position:
    """Parses a heartbeat event of either version: returns the position up to which the leader's dump thread
    has read.
    """
    if event.type == HEARTBEAT:
        return Position(event.data[HEADER_BYTES:].decode("utf-8"), header(event.data).next_event_position)
    file, offset, at = "", 0, HEADER_BYTES
    while at < len(event.data):
        kind = event.data[at]
        length, at = packed_integer(event.data, at + 1)
        if kind == _HEARTBEAT_END:
            break
        content = event.data[at : at + length]
        if kind == _HEARTBEAT_FILE:
            file = content.decode("utf-8")
        elif kind == _HEARTBEAT_POSITION:
            offset, _ = packed_integer(content, 0)
        at += length
    return Position(file, offset)


def packed_integer(data: bytes, at: int) -> tuple[int, int]:
    """Reads the length-encoded integer at ``at``; returns the integer and the offset after it (MySQL protocol,
    "Length-Encoded Integer Type").
    """
    first = data[at]
    if first < 251:
        return first, at + 1
    width = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width


_SQL_MODES = {
    0: "REAL_AS_FLOAT", 1: "PIPES_AS_CONCAT", 2: "ANSI_QUOTES", 3: "IGNORE_SPACE", 5: "ONLY_FULL_GROUP_BY",
    6: "NO_UNSIGNED_SUBTRACTION", 7: "NO_DIR_IN_CREATE", 18: "ANSI", 19: "NO_AUTO_VALUE_ON_ZERO",
    20: "NO_BACKSLASH_ESCAPES", 21: "STRICT_TRANS_TABLES", 22: "STRICT_ALL_TABLES", 23: "NO_ZERO_IN_DATE",
    24: "NO_ZERO_DATE", 25: "ALLOW_INVALID_DATES", 26: "ERROR_FOR_DIVISION_BY_ZERO", 27: "TRADITIONAL",
    29: "HIGH_NOT_PRECEDENCE", 30: "NO_ENGINE_SUBSTITUTION", 31: "PAD_CHAR_TO_FULL_LENGTH",
    32: "TIME_TRUNCATE_FRACTIONAL", 33: "INTERPRET_UTF8_AS_UTF8MB4",
}  # fmt: skip
_NO_FOREIGN_KEY_CHECKS, _RELAXED_UNIQUE_CHECKS = 1 << 26, 1 << 27


# Maps bits to the modes that only MariaDB has; ``cdc.producer.flavor`` moves MariaDB's modes to these bits.
MARIADB_MODES = {
    48: "IGNORE_BAD_TABLE_OPTIONS", 49: "POSTGRESQL", 50: "ORACLE", 51: "MSSQL", 52: "DB2", 53: "MAXDB",
    54: "MYSQL323", 55: "MYSQL40", 56: "EMPTY_STRING_IS_NULL", 57: "SIMULTANEOUS_ASSIGNMENT",
}  # fmt: skip


def _sql_mode(bits: int, where: str) -> str:
    unknown = [bit for bit in range(64) if bits >> bit & 1 and bit not in _SQL_MODES]
    if unknown and unknown[0] in MARIADB_MODES:
        raise PromiseError(
            f"a statement has MariaDB's sql_mode {MARIADB_MODES[unknown[0]]}, which MySQL does not have",
            code="CDC-MARIADB-STATEMENT",
            where=where,
            hint="do on the follower by hand what it did, and skip it; give sessions that change tables another "
            "sql_mode",
        )
    if unknown:
        raise PromiseError(f"unknown sql_mode bit {unknown[0]} of a statement", code="CDC-EVENT-UNKNOWN", where=where)
    return ",".join(name for bit, name in _SQL_MODES.items() if bits >> bit & 1)


def query(event: RawEvent) -> Query:
    """Parses a Query event. Raises PromiseError for a session variable that this program does not know."""
    _, _, schema_length, error_code, vars_length = _QUERY.unpack_from(event.data, HEADER_BYTES)
    start = HEADER_BYTES + _QUERY.size
    variables = _variables(event.data[start : start + vars_length], str(event.position))
    schema_at = start + vars_length
    database = event.data[schema_at : schema_at + schema_length].decode("utf-8")
    if error_code:
        variables["error_code"] = error_code
    return Query(database, event.data[schema_at + schema_length + 1 :], variables)


def load_query(event: RawEvent) -> RawEvent:
    """Converts an Execute_load_query event to a Query event, without the fields about the loaded data."""
    fields_at = HEADER_BYTES + _QUERY.size
    return event._replace(data=event.data[:fields_at] + event.data[fields_at + _LOAD_FIELDS_BYTES :])


def _variables(data: bytes, where: str) -> dict[str, Any]:
    """Parses the status variables of a Query event (the Q_* codes of class Query_event, in ascending order)."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(data):
        code, at = data[at], at + 1
        if code in _FIXED:
            name, width = _FIXED[code]
            found[name] = int.from_bytes(data[at : at + width], "little")
            at += width
        elif code == 2:  # the catalog: its length, its name and a zero byte
            at += 2 + data[at]
        elif code in (5, 6):
            if code == 5:
                found["time_zone"] = data[at + 1 : at + 1 + data[at]].decode("utf-8")
            at += 1 + data[at]
        elif code == 11:  # the invoker's user and host; if they matter, the text contains them as DEFINER
            at += 1 + data[at]
            at += 1 + data[at]
        elif code == 12:
            found["databases"], at = _database_names(data, at)
        else:
            raise PromiseError(f"unknown session variable {code} of a statement", code="CDC-EVENT-UNKNOWN", where=where)
    return _named(found, where)


_FIXED = {
    0: ("flags2", 4), 1: ("sql_mode", 8), 3: ("auto_increment", 4), 4: ("charsets", 6), 7: ("lc_time_names", 2),
    8: ("database_collation", 2), 9: ("table_map_for_update", 8), 10: ("source_data_written", 4),
    13: ("microseconds", 3), 16: ("explicit_defaults_for_timestamp", 1), 17: ("ddl_xid", 8),
    18: ("default_collation_for_utf8mb4", 2), 19: ("sql_require_primary_key", 1), 20: ("default_table_encryption", 1),
    21: ("flags3", 1),
}  # fmt: skip


def _database_names(data: bytes, at: int) -> tuple[list[str], int]:
    names: list[str] = []
    count, at = data[at], at + 1
    # The count 254 means that the names are not logged: there are too many names, or a foreign key refers to a table.
    for _ in range(0 if count == 254 else count):
        end = data.index(0, at)
        names.append(data[at:end].decode("utf-8"))
        at = end + 1
    return names, at


def _named(found: dict[str, Any], where: str) -> dict[str, Any]:
    if "sql_mode" in found:
        found["sql_mode"] = _sql_mode(found["sql_mode"], where)
    if "flags2" in found:
        flags = found.pop("flags2")
        found["foreign_key_checks"] = not flags & _NO_FOREIGN_KEY_CHECKS
        found["unique_checks"] = not flags & _RELAXED_UNIQUE_CHECKS
    if "auto_increment" in found:
        packed = found.pop("auto_increment")
        found["auto_increment_increment"], found["auto_increment_offset"] = packed & 0xFFFF, packed >> 16
    if "charsets" in found:
        packed = found.pop("charsets")
        found["charset"], found["collation"], found["server_collation"] = (
            packed & 0xFFFF, packed >> 16 & 0xFFFF, packed >> 32,
        )  # fmt: skip
    return found


_FIELDS = Struct("<16sq17xQ").unpack_from  # UUID, number, 17 bytes of the logical clock, commit time (7 of 8 bytes)
_MARIADB_GTID = Struct("<QI").unpack_from
_COMMIT_US = (1 << 55) - 1
_new_gtid = tuple.__new__  # the constructor Gtid(…) takes twice as long


class Gtid(NamedTuple):
    """A transaction's GTID (None if GTIDs are off) and its commit time on this server in µs."""

    gtid: str | None
    commit_us: int


def gtid(event: RawEvent) -> Gtid:
    """Parses a GTID event of any kind."""
    try:
        return named(event[1])
    except StructError:
        raise PromiseError(
            "the leader does not log commit times",
            code="CDC-EVENT-NO-GTID",
            where=str(event.position),
            hint="the leader must be MySQL 8.0 or newer",
        ) from None


def named(data: bytes) -> Gtid:
    """Parses the bytes of a GTID event of any kind. Raises struct.error if it has no commit time."""
    kind = data[TYPE_AT]
    if kind != GTID:
        if kind == GTID_TAGGED:
            return _tagged(data)
        if kind == MARIADB_GTID:
            return _of_mariadb(data)
    source, number, commit_us = _FIELDS(data, GTID_UUID_AT)
    # The top bit of the 7-byte time means that the original server's time follows; the rest is this server's time.
    return _new_gtid(Gtid, (f"{_uuid(source)}:{number}" if kind == GTID else None, commit_us & _COMMIT_US))


def _of_mariadb(data: bytes) -> Gtid:
    """Parses MariaDB's GTID event: sequence number (8), domain (4), flags (1). The server id and the time, in seconds,
    are in the event's header.
    """
    time, _, server, _, _, _ = header_fields(data)
    number, domain = _MARIADB_GTID(data, HEADER_BYTES)
    return Gtid(f"{domain}-{server}-{number}", time * 1_000_000)


def _tagged(data: bytes) -> Gtid:
    """Parses a GTID event with a tag, in the format of MySQL's serialization library: each field follows its number.

    Source: MySQL source, libs/mysql/serialization (readme) and class Gtid_event, define_fields: 0 flags, 1 UUID, 2
    number, 3 tag, 4 last_committed, 5 sequence_number, 6 commit time on this server; the later fields are not needed
    here.
    """
    at = HEADER_BYTES
    for _ in range(3):  # skips the format version, the size, and the last field that must not be ignored
        _, at = serialized_integer(data, at)
    source, tag, number, commit_us = b"", "", 0, 0
    field = 0
    while field < 6:
        field, at = serialized_integer(data, at)
        if field == 1:
            digits = []
            for _ in range(16):
                digit, at = serialized_integer(data, at)
                digits.append(digit)
            source = bytes(digits)
        elif field == 3:
            length, at = serialized_integer(data, at)
            tag, at = data[at : at + length].decode("ascii"), at + length
        else:
            value, at = serialized_integer(data, at)
            if field == 2:
                number = value >> 1  # the lowest bit is the sign
            elif field == 6:
                commit_us = value
    return Gtid(f"{_uuid(source)}:{tag}:{number}", commit_us)


def serialized_integer(data: bytes, at: int) -> tuple[int, int]:
    """Reads an integer in the encoding of MySQL's serialization library; returns the integer and the offset after it.

    The number of low bits set in the first byte is the number of further bytes, and the value starts after the first
    bit that is not set.
    """
    more = (~data[at] & (data[at] + 1)).bit_length() - 1
    end = at + more + 1
    if more >= 8:
        return int.from_bytes(data[at + 1 : end], "little"), end
    return int.from_bytes(data[at:end], "little") >> more + 1, end


@functools.lru_cache(maxsize=1000)
def _uuid(source: bytes) -> str:
    return str(uuid.UUID(bytes=source))


# Maps bits to the modes that affect rows (MySQL source, sql/system_variables.h), in the order in which records list
# modes.
_EFFECTIVE = {
    6: "NO_UNSIGNED_SUBTRACTION", 23: "NO_ZERO_IN_DATE", 24: "NO_ZERO_DATE", 25: "ALLOW_INVALID_DATES",
    31: "PAD_CHAR_TO_FULL_LENGTH", 32: "TIME_TRUNCATE_FRACTIONAL",
}  # fmt: skip
_DEFAULT = "NO_ZERO_IN_DATE,NO_ZERO_DATE"  # MySQL's default
_MAX_KNOWN = 1000
# A Query event's status variables start with flags2 (code 0, then 4 bytes) and sql_mode (code 1, then 8 bytes).
_START = slice(QUERY_STATUS_VARIABLES_AT, QUERY_STATUS_VARIABLES_AT + 14)
_FLAGS2, _SQL_MODE = 0, 1
_SECOND_CODE_AT, _SQL_MODE_AT = 5, 6
_known: dict[bytes, str | None] = {}


def row_mode(event: bytes) -> str | None:
    """Parses the bytes of a Query event, and returns the names of the SQL modes that affect rows. Returns None if these
    modes are MySQL's default.

    Raises PromiseError, ValueError or LookupError for bytes that are not a Query event.
    """
    head = event[_START]
    try:
        return _known[head]
    except KeyError:
        pass
    if head[0] != _FLAGS2 or head[_SECOND_CODE_AT] != _SQL_MODE:  # no known server writes another order
        names = query(RawEvent(event[TYPE_AT], event, "", 0, 0)).variables.get("sql_mode", _DEFAULT).split(",")
        return _text([name for name in _EFFECTIVE.values() if name in names])
    if len(_known) >= _MAX_KNOWN:
        _known.clear()
    bits = int.from_bytes(head[_SQL_MODE_AT:], "little")
    mode = _known[head] = _text([name for bit, name in _EFFECTIVE.items() if bits >> bit & 1])
    return mode


def _text(names: list[str]) -> str | None:
    text = ",".join(names)
    return None if text == _DEFAULT else text
