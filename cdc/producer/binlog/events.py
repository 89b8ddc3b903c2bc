"""Raw binlog events, and readers of those without rows: header, Query, Rotate and Heartbeat.

Layouts: MySQL source documentation, "Binlog Event" (libs/mysql/binlog/event). Integers are little-endian.
"""

from dataclasses import dataclass, field
from struct import Struct
from typing import Any, NamedTuple

from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.producer.binlog.event_types import HEARTBEAT
from cdc.producer.binlog.layout import HEADER_BYTES, ROTATE_FILE_AT, ROTATE_POSITION
from cdc.producer.binlog.spool import Spool

__all__ = [
    "Header",
    "Inner",
    "Query",
    "RawEvent",
    "header",
    "header_fields",
    "heartbeat",
    "load_query",
    "query",
    "rotate_name",
]

header_fields = Struct("<IBIIIH").unpack_from  # those of class Header
_QUERY = Struct("<IIBHH")
_LOAD_FIELDS_BYTES = 13  # of an Execute_load_query event: file id (4), offsets (4 + 4), duplicates handling (1)
_HEARTBEAT_END, _HEARTBEAT_FILE, _HEARTBEAT_POSITION = 0, 1, 2  # the fields of a Heartbeat_v2 event


class RawEvent(NamedTuple):
    """An event that is not decoded: ``data`` starts with the header and ends before the checksum.

    ``offset`` is its start in ``file`` and ``end`` the start of the next; both are 0 for an event that the leader makes
    up for the connection. Where there is a ``spool``, it holds the event, and ``data`` only the first bytes.
    """

    type: int
    data: bytes
    file: str
    offset: int
    end: int
    spool: Spool | None = None

    @property
    def size(self) -> int:
        """Its bytes, without the checksum."""
        return self.spool.size if self.spool else len(self.data)

    @property
    def position(self) -> Position:
        return Position(self.file, self.offset)

    @property
    def name(self) -> str:
        """Identifies this event: ``FILE:OFFSET``, and ``/NUMBER`` inside a compressed transaction."""
        return str(self.position)


class Inner(RawEvent):
    """An event inside a compressed transaction, whose position it has; ``number`` counts it there from 1."""

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
    """The header that ``data`` begins with."""
    return Header._make(header_fields(data))


def rotate(event: RawEvent) -> Position:
    """The next file, and the offset at which its events start."""
    return Position(rotate_name(event.data).decode("utf-8"), int.from_bytes(event.data[ROTATE_POSITION], "little"))


def rotate_name(data: bytes) -> bytes:
    """The name of the next file, from the bytes of a Rotate event."""
    return data[ROTATE_FILE_AT:]


def heartbeat(event: RawEvent) -> Position:
    """How far the leader's dump thread has read, from a heartbeat of either version."""
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
    """A length-encoded integer at ``at``, and the offset after it (MySQL protocol, "Length-Encoded Integer Type")."""
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


def _sql_mode(bits: int, where: str) -> str:
    unknown = [bit for bit in range(64) if bits >> bit & 1 and bit not in _SQL_MODES]
    if unknown:
        raise PromiseError(f"unknown sql_mode bit {unknown[0]} of a statement", where=where)
    return ",".join(name for bit, name in _SQL_MODES.items() if bits >> bit & 1)


def query(event: RawEvent) -> Query:
    """Read a Query event. Raises PromiseError for a session variable that this program does not know."""
    _, _, schema_length, error_code, vars_length = _QUERY.unpack_from(event.data, HEADER_BYTES)
    start = HEADER_BYTES + _QUERY.size
    variables = _variables(event.data[start : start + vars_length], str(event.position))
    schema_at = start + vars_length
    database = event.data[schema_at : schema_at + schema_length].decode("utf-8")
    if error_code:
        variables["error_code"] = error_code
    return Query(database, event.data[schema_at + schema_length + 1 :], variables)


def load_query(event: RawEvent) -> RawEvent:
    """An Execute_load_query event as a Query event: without the fields about its data."""
    fields_at = HEADER_BYTES + _QUERY.size
    return event._replace(data=event.data[:fields_at] + event.data[fields_at + _LOAD_FIELDS_BYTES :])


def _variables(data: bytes, where: str) -> dict[str, Any]:
    """The status variables of a Query event (Query_event's Q_* codes, in growing order)."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(data):
        code, at = data[at], at + 1
        if code in _FIXED:
            name, width = _FIXED[code]
            found[name] = int.from_bytes(data[at : at + width], "little")
            at += width
        elif code == 2:  # catalog, with a closing zero byte
            at += 2 + data[at]
        elif code in (5, 6):
            if code == 5:
                found["time_zone"] = data[at + 1 : at + 1 + data[at]].decode("utf-8")
            at += 1 + data[at]
        elif code == 11:  # the invoker's user and host, in the text as DEFINER where it matters
            at += 1 + data[at]
            at += 1 + data[at]
        elif code == 12:
            found["databases"], at = _database_names(data, at)
        else:
            raise PromiseError(f"unknown session variable {code} of a statement", where=where)
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
    for _ in range(0 if count == 254 else count):  # 254 stands for "too many to list", or a foreign key's
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
