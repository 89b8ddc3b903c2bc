"""Translates the events of a MariaDB leader into the events that a MySQL leader would have logged. Pure.

After this translation, the producer handles both kinds of leader alike, except for the GTID event, which keeps
MariaDB's form. A replica with ``mariadb_slave_capability`` 4 receives these events from MariaDB:

- A GTID event begins a transaction, unless a flag marks it as the GTID of a single statement. A BEGIN or an XA START is
  inserted after it, with the leader's global sql_mode, since MariaDB logs no sql_mode with rows.
- Rows events have version 1, without the extra data of version 2; they may be compressed.
- Query events may be compressed. Some of their status variables and flags have other numbers. MariaDB does not log the
  default collation of utf8mb4, so it is added from the leader's setting.
- Events about the log itself (GTID list, binlog checkpoint) and the texts of statements that changed rows are left out.

Layouts: MariaDB's documentation, "Replication Protocol" (events 160 to 171), and the events that a MariaDB server was
seen to send.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import (
    HEADER_BYTES,
    MARIADB_MODES,
    ROWS_EXTRA_AT,
    ROWS_FLAGS_AT,
    TYPE_AT,
    RawEvent,
    packed_integer,
)
from cdc.producer.binlog.packets import SimpleTransaction

__all__ = ["Session", "Translator", "mode_bits", "sql_mode"]

_ANNOTATE_ROWS, _BINLOG_CHECKPOINT, _GTID_LIST = 160, 161, 163
_LEFT_OUT = frozenset({_ANNOTATE_ROWS, _BINLOG_CHECKPOINT, _GTID_LIST})
_QUERY_COMPRESSED = 165
# Maps MariaDB's types of rows events to MySQL's types, and to whether they are compressed.
_ROWS = {
    23: (et.WRITE_ROWS, False), 24: (et.UPDATE_ROWS, False), 25: (et.DELETE_ROWS, False),
    166: (et.WRITE_ROWS, True), 167: (et.UPDATE_ROWS, True), 168: (et.DELETE_ROWS, True),
}  # fmt: skip
_NO_EXTRA = b"\x02\x00"  # the length of empty extra data in a rows event: it counts its own two bytes
_ROWS_FLAGS = 0x0F  # the flags that MySQL has, too
# MariaDB sets the flag _UNCHECKED if it has not checked constraints. The decoder refuses an event with _UNKNOWN_FLAG.
_UNCHECKED, _UNKNOWN_FLAG = 0x80, 0x8000

_GTID = Struct("<QIB").unpack_from
_STANDALONE, _GROUP_COMMIT, _PREPARED_XA, _COMPLETED_XA = 0x01, 0x02, 0x40, 0x80
_GTID_BYTES, _COMMIT_ID_BYTES = 13, 8
_TWO_PHASE_ALTER = 0x02 | 0x04 | 0x08  # flags in the second byte: the event starts, commits or rolls back an ALTER
_XID = Struct("<IBB").unpack_from  # format, and the lengths of the xid's two parts

_QUERY = Struct("<IIBHH")
_BEGIN = b"BEGIN"
_EXPLICIT_DEFAULTS = 1 << 24  # in flags2: explicit_defaults_for_timestamp
_FLAGS2 = 1 << 14 | 1 << 19 | 1 << 26 | 1 << 27  # the flags with the same meaning in MySQL
_DROPPED_MODES = 1 << 13 | 1 << 14 | 1 << 15 | 1 << 28  # NO_KEY_OPTIONS and similar modes, NO_AUTO_CREATE_USER
_SAME_MODES = sum(1 << bit for bit in (0, 1, 2, 3, 5, 6, 7, *range(18, 28), 29, 30, 31))
_OWN_MODES = dict(zip((4, 8, 9, 10, 11, 12, 16, 17, 32, 33), sorted(MARIADB_MODES), strict=True))
_ROUND_FRACTIONAL, _TRUNCATE_FRACTIONAL = 34, 32  # the bit of MariaDB's mode, and of MySQL's mode
# The names of MariaDB's modes in the order of their bits.
_MODES = (
    "REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "IGNORE_BAD_TABLE_OPTIONS",
    "ONLY_FULL_GROUP_BY", "NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "POSTGRESQL", "ORACLE", "MSSQL", "DB2",
    "MAXDB", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40", "ANSI",
    "NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE", "ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL", "NO_AUTO_CREATE_USER",
    "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH", "EMPTY_STRING_IS_NULL",
    "SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL",
)  # fmt: skip
_SECONDS_PART, _DDL_XID, _COLLATIONS = 128, 129, 131
# Maps the codes of the status variables that are passed on unchanged to the sizes of their values.
_SIZES = {3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4}
_MICROSECONDS, _EXPLICIT, _UTF8MB4, _REQUIRE_KEY = 13, 16, 18, 19  # MySQL's numbers of these variables


class Session(NamedTuple):
    """The leader's settings that its events do not contain: ``modes``, the bits of the global sql_mode in MySQL's
    order, and ``utf8mb4``, the number of the default collation of utf8mb4.
    """

    modes: int
    utf8mb4: int


class Translator:
    """Translates one leader's events; ``session`` contains the leader's settings."""

    def __init__(self, session: Session) -> None:
        self._begin = _begin_head(session.modes)
        self._phase = False  # whether the next statement is a phase of a two-phase ALTER TABLE
        self._more = bytes([_UTF8MB4]) + session.utf8mb4.to_bytes(2, "little") + bytes([_REQUIRE_KEY, 0])
        self._readers: dict[int, Callable[[RawEvent], Iterable[RawEvent]]] = {
            et.MARIADB_GTID: self._gtid,
            et.QUERY: self._query,
            _QUERY_COMPRESSED: self._compressed_query,
            **dict.fromkeys(_ROWS, _rows),
            **dict.fromkeys(_LEFT_OUT, _nothing),
        }

    def translate(self, events: Iterable[RawEvent | SimpleTransaction]) -> list[RawEvent | SimpleTransaction]:
        """Translates ``events`` into MySQL's events. An event that can't be translated is replaced by an event that the
        decoder refuses."""
        found: list[RawEvent | SimpleTransaction] = []
        for event in events:
            reader = self._readers.get(event[0])
            if reader is None or not isinstance(event, RawEvent):
                found.append(event)
                continue
            try:
                found += [*reader(event)]
            except (ValueError, LookupError, StructError, zlib.error):
                found.append(event._replace(type=et.MARIADB_UNREADABLE))
        return found

    def _gtid(self, event: RawEvent) -> Iterator[RawEvent]:
        data = event.data
        _, _, flags = _GTID(data, HEADER_BYTES)
        at = HEADER_BYTES + _GTID_BYTES + (_COMMIT_ID_BYTES if flags & _GROUP_COMMIT else 0)
        xid = b""
        if flags & (_PREPARED_XA | _COMPLETED_XA):
            form, gtrid, bqual = _XID(data, at)
            at += 6
            parts = data[at : at + gtrid], data[at + gtrid : at + gtrid + bqual]
            at += gtrid + bqual
            xid = b"X'%s',X'%s',%d" % (parts[0].hex().encode(), parts[1].hex().encode(), form)
        self._phase = bool(data[at : at + 1]) and bool(data[at] & _TWO_PHASE_ALTER)
        yield event
        if flags & _PREPARED_XA:
            yield event._replace(type=et.QUERY, data=self._begin + b"XA START " + xid)
        elif not flags & _STANDALONE:
            yield event._replace(type=et.QUERY, data=self._begin + _BEGIN)

    def _query(self, event: RawEvent) -> Iterator[RawEvent]:
        if self._phase:
            self._phase = False
            yield event._replace(type=et.MARIADB_PHASE)
            return
        data = event.data
        thread, seconds, schema, error, size = _QUERY.unpack_from(data, HEADER_BYTES)
        at = HEADER_BYTES + _QUERY.size
        variables = _variables(data[at : at + size]) + self._more
        head = _QUERY.pack(thread, seconds, schema, error, len(variables))
        yield event._replace(data=data[:HEADER_BYTES] + head + variables + data[at + size :])

    def _compressed_query(self, event: RawEvent) -> Iterator[RawEvent]:
        _, _, schema, _, size = _QUERY.unpack_from(event.data, HEADER_BYTES)
        at = HEADER_BYTES + _QUERY.size + size + schema + 1
        plain = _typed(event.data[:at], et.QUERY) + _decompressed(event.data[at:])
        yield from self._query(event._replace(type=et.QUERY, data=plain))


def _nothing(_: RawEvent) -> tuple[()]:
    return ()


def _rows(event: RawEvent) -> Iterator[RawEvent]:
    data = event.data
    kind, is_compressed = _ROWS[event.type]
    rest = data[ROWS_EXTRA_AT:]
    if is_compressed:
        columns, at = packed_integer(rest, 0)
        at += (columns + 7) // 8 * (2 if kind in et.UPDATES else 1)
        rest = rest[:at] + _decompressed(rest[at:])
    head = data[:TYPE_AT] + bytes([kind]) + data[TYPE_AT + 1 : ROWS_FLAGS_AT]
    flags = int.from_bytes(data[ROWS_FLAGS_AT:ROWS_EXTRA_AT], "little") & ~_UNCHECKED
    if flags & ~_ROWS_FLAGS:
        flags |= _UNKNOWN_FLAG  # the bits of these flags have another meaning in MySQL
    yield event._replace(type=kind, data=head + flags.to_bytes(2, "little") + _NO_EXTRA + rest)


def _typed(data: bytes, kind: int) -> bytes:
    return data[:TYPE_AT] + bytes([kind]) + data[TYPE_AT + 1 :]


def _decompressed(data: bytes) -> bytes:
    """Decompresses the content of an event. Raises ValueError for content in another form.

    The first byte contains the algorithm and the number of bytes of the next field. That field contains the size of the
    decompressed content; a zlib stream follows.
    """
    first = data[0]
    algorithm, size = first >> 4 & 7, first & 7
    if not first & 0x80 or algorithm:
        raise ValueError(f"the compression {first:#x} is not known")
    content = zlib.decompress(data[1 + size :])
    if len(content) != int.from_bytes(data[1 : 1 + size], "big"):
        raise ValueError("it has another size than it says")
    return content


def _begin_head(modes: int) -> bytes:
    """Builds the bytes of a Query event up to its text, for a session with this sql_mode and without a database."""
    variables = bytes([0, 0, 0, 0, 0, 1]) + modes.to_bytes(8, "little")
    return bytes(TYPE_AT) + bytes([et.QUERY]) + bytes(HEADER_BYTES - TYPE_AT - 1) + (
        _QUERY.pack(0, 0, 0, 0, len(variables)) + variables + b"\0"
    )  # fmt: skip


def mode_bits(modes: str) -> int:
    """Returns the bits of an sql_mode of MariaDB that is given by names. A name that no server has gets a bit that
    ``sql_mode`` refuses."""
    unknown = len(_MODES)
    return sum(1 << (_MODES.index(mode) if mode in _MODES else unknown) for mode in set(modes.split(",")) - {""})


def sql_mode(bits: int) -> int:
    """Converts the bits of an sql_mode of MariaDB to MySQL's bits; modes that MySQL does not have get the bits in
    ``MARIADB_MODES``.

    MariaDB truncates fractions of a second by default, and has a mode that rounds them; MySQL rounds them by default,
    and has a mode that truncates them.
    """
    found: int = bits & _SAME_MODES
    for bit, other in _OWN_MODES.items():
        found |= (bits >> bit & 1) << other
    if not bits >> _ROUND_FRACTIONAL & 1:
        found |= 1 << _TRUNCATE_FRACTIONAL
    known = _SAME_MODES | _DROPPED_MODES | 1 << _ROUND_FRACTIONAL | sum(1 << bit for bit in _OWN_MODES)
    return found | (1 << 63 if bits & ~known else 0)  # the decoder refuses a bit that no server has


def _variables(data: bytes) -> bytes:
    """Converts the status variables of a Query event to MySQL's form. Variables that only MariaDB has are left out; an
    unknown variable is passed on, so that the decoder refuses it."""
    flags2, modes, others = 0, 0, b""
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code == 0:
            flags2 = int.from_bytes(data[at : at + 4], "little")
            at += 4
        elif code == 1:
            modes = sql_mode(int.from_bytes(data[at : at + 8], "little"))
            at += 8
        elif code in _SIZES:
            others += data[at - 1 : at + _SIZES[code]]
            at += _SIZES[code]
        elif code in (5, 6):
            end = at + 1 + data[at]
            others += data[at - 1 : end]
            at = end
        elif code == 11:  # the invoker's user and host
            end = at + 1 + data[at]
            at = end + 1 + data[end]
        elif code == _SECONDS_PART:
            others += bytes([_MICROSECONDS]) + data[at : at + 3]
            at += 3
        elif code == _COLLATIONS and not data[at]:
            at += 1  # the session has no collations of its own for character sets
        elif code == _DDL_XID:  # left out: MySQL's DDL XID has another meaning
            at += 8
        else:
            # The decoder refuses an unknown variable. A number below 128 may mean another variable in MySQL, so an
            # unknown variable with such a number gets the number 255.
            others += bytes([code if code >= _SECONDS_PART else 255]) + data[at:]
            break
    explicit = bytes([_EXPLICIT, 1 if flags2 & _EXPLICIT_DEFAULTS else 0])
    head = b"\0" + (flags2 & _FLAGS2).to_bytes(4, "little") + b"\1" + modes.to_bytes(8, "little")
    return head + explicit + others
