"""Binlog events as bytes, laid out as MySQL writes them: the input of decoding tests, without a server.

An event is a header (time, type, server id, length, position of its end, flags), a body by its type, and four bytes of
checksum, which are counted in its length but are not kept in a RawEvent. ``Log`` writes one event behind the other, as
a leader does: ``opened()`` is a log in which a transaction has begun, and ``Log().transaction(1, 2)`` one whole
transaction that adds two rows to the table ``db.t (id INT)``.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import zstandard

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.packets import SIMPLE_TRANSACTION, SimpleTransaction

FILE = "binlog.000001"
SOURCE = bytes.fromhex("3e11fa4771ca11e19e33c80aa9429562")
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TIME = 1_700_000_000
COMMIT_US = 1_700_000_000_000_005
NO_ZEROS_AND_TRUNCATED = 1 << 23 | 1 << 24 | 1 << 32  # bits of sql_mode
SIGNED, KEY_ON_FIRST = b"\1\1\0", b"\x08\1\0"  # fields of a table map
_CHECKSUM = 4


def event_bytes(kind: int, body: bytes = b"", *, end: int = 0, length: int | None = None) -> bytes:
    """An event up to its checksum; the header holds the low 32 bits of its ``end``."""
    length = 19 + len(body) + _CHECKSUM if length is None else length
    return struct.pack("<IBIIIH", TIME, kind, 1, length, end % (1 << 32), 0) + body


def event(kind: int, body: bytes = b"", *, offset: int = 400, file: str = FILE) -> RawEvent:
    """An event alone, at this place of its file; one that is in no file is at 0 and has no end."""
    end = offset + 19 + len(body) + _CHECKSUM if offset else 0
    return RawEvent(kind, event_bytes(kind, body, end=end), file, offset, end)


def prepare_body(gtrid: bytes, bqual: bytes = b"b", *, number: int = 1, one_phase: int = 0) -> bytes:
    """The body of an XA_prepare event."""
    return struct.pack("<BIII", one_phase, number, len(gtrid), len(bqual)) + gtrid + bqual


def payload_body(content: bytes, *, size: int | None = None) -> bytes:
    """The body of a Transaction_payload event; ``size`` is the size of its events before compression that it claims."""
    said = b"" if size is None else b"\3\4\xfd" + size.to_bytes(3, "little")
    return b"\2\1\0" + said + b"\0" + zstandard.ZstdCompressor().compress(content)


@dataclass
class Log:
    """Writes events one after the other, as a leader does."""

    at: int = 4
    events: list[RawEvent | SimpleTransaction] = field(default_factory=list)

    def add(self, kind: int, body: bytes = b"") -> RawEvent:
        self.events.append(added := event(kind, body, offset=self.at))
        self.at = added.end
        return added

    def gtid(self, number: int = 1, *, kind: int = et.GTID) -> RawEvent:
        return self.add(kind, b"\1" + SOURCE + struct.pack("<q17xQ", number, COMMIT_US))

    def query(self, text: str, *, database: str = "db", mode: int = 0, error: int = 0, more: bytes = b"") -> RawEvent:
        """A Query event; ``more`` are further status variables."""
        variables = struct.pack("<BIBQ", 0, 0, 1, mode) + more
        name = database.encode()
        head = struct.pack("<IIBHH", 1, 0, len(name), error, len(variables))
        return self.add(et.QUERY, head + variables + name + b"\0" + text.encode("utf-8", "surrogateescape"))

    def load(self, text: str, *, mode: int = 0, of_file: int = 0) -> RawEvent:
        """A statement with the file that it reads; each byte of the file's number and places is ``of_file``."""
        data = self.query(text, mode=mode).data
        self.at = self.events.pop().offset
        return self.add(et.EXECUTE_LOAD_QUERY, data[19:32] + bytes([of_file]) * 13 + data[32:])

    def begin(self, mode: int = 0) -> RawEvent:
        return self.query("BEGIN", mode=mode)

    def table_map(
        self, number: int = 7, *, table: str = "t", types: bytes = b"\3", names: Sequence[str] = ("id",),
        meta: bytes = b"", nullable: int = 0, optional: bytes = SIGNED,
    ) -> RawEvent:  # fmt: skip
        """The map of a table of ``db``: the types of its columns and their names; ``meta`` is the metadata of the
        types, ``nullable`` a bit for each column, ``optional`` fields come before that of the names.
        """
        named = b"".join(bytes([len(each)]) + each.encode() for each in names)
        head = struct.pack("<IHH", number, 0, 1) + b"\2db\0" + bytes([len(table)]) + table.encode() + b"\0"
        columns = bytes([len(types)]) + types + bytes([len(meta)]) + meta + bytes([nullable])
        return self.add(et.TABLE_MAP, head + columns + optional + b"\4" + bytes([len(named)]) + named + KEY_ON_FIRST)

    def images(self, *images: bytes, number: int = 7, kind: int = et.WRITE_ROWS, width: int = 1) -> RawEvent:
        """Rows of ``width`` columns, all of which are in each image."""
        bitmaps = bytes([(1 << width) - 1]) * (2 if kind in et.UPDATES else 1)
        head = struct.pack("<IHHH", number, 0, 1, 2) + bytes([width])
        return self.add(kind, head + bitmaps + b"".join(images))

    def rows(self, *values: int, number: int = 7, kind: int = et.WRITE_ROWS) -> RawEvent:
        """Rows of one INT; for an update each value before, and after it."""
        images = [b"\0" + struct.pack("<i", value) for value in values]
        if kind == et.PARTIAL_UPDATE_ROWS:
            images[1::2] = [b"\0" + after for after in images[1::2]]  # value options
        return self.images(*images, number=number, kind=kind)

    def heartbeat(self) -> RawEvent:
        return self.add(et.HEARTBEAT, FILE.encode())

    def xid(self) -> RawEvent:
        return self.add(et.XID, bytes(8))

    def transaction(self, *values: int, mode: int = 0, number: int = 7, table: str = "t") -> "Log":
        self.gtid()
        self.begin(mode)
        self.table_map(number, table=table)
        self.rows(*values, number=number)
        self.xid()
        return self

    def prepare(self, *, one_phase: int = 0) -> RawEvent:
        return self.add(et.XA_PREPARE, prepare_body(b"a", one_phase=one_phase))

    def simple(self) -> SimpleTransaction:
        """The last five events as one value."""
        five = [each.data for each in self.events[-5:] if isinstance(each, RawEvent)]
        found = SimpleTransaction(SIMPLE_TRANSACTION, five[0], five[1], five[2], five[3], five[4], FILE, self.at)
        self.events[-5:] = [found]
        return found

    def compressed(self, inner: "Log", *, size: int | None = None) -> RawEvent:
        """The events of ``inner`` except their GTIDs, in one event; they have no checksums there."""
        parts = [event_bytes(each.type, each.data[19:], length=len(each.data)) for each in inner.events
                 if isinstance(each, RawEvent) and each.type != et.GTID]  # fmt: skip
        content = b"".join(parts)
        return self.add(et.TRANSACTION_PAYLOAD, payload_body(content, size=len(content) if size is None else size))


def opened(number: int = 1, *, mode: int = 0) -> Log:
    """A log in which a transaction has begun."""
    log = Log()
    log.gtid(number)
    log.begin(mode)
    return log
