"""Reads GTID events: the name and the commit time of the transaction that follows.

Layouts: MySQL source documentation, "Binlog Event" (libs/mysql/binlog/event, class Gtid_event). Integers are
little-endian.
"""

import functools
import uuid
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from cdc.errors import PromiseError
from cdc.producer.binlog.event_types import GTID, GTID_TAGGED
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.layout import GTID_UUID_AT, HEADER_BYTES, TYPE_AT

__all__ = ["Gtid", "gtid", "named"]

_FIELDS = Struct("<16sq17xQ").unpack_from  # UUID, number, 17 bytes of the logical clock, commit time (7 of 8 bytes)
_COMMIT_US = (1 << 55) - 1
_new_gtid = tuple.__new__  # Gtid(…) itself takes twice as long


class Gtid(NamedTuple):
    """A transaction's name (None where GTIDs are off) and its commit time on this server in µs."""

    gtid: str | None
    commit_us: int


def gtid(event: RawEvent) -> Gtid:
    """Read a GTID event of any kind."""
    try:
        return named(event[1])
    except StructError:
        raise PromiseError(
            "the leader does not log commit times",
            where=str(event.position),
            hint="the leader must be MySQL 8.0 or newer",
        ) from None


def named(data: bytes) -> Gtid:
    """Read the bytes of a GTID event of any kind. Raises struct.error where it has no commit time."""
    kind = data[TYPE_AT]
    if kind == GTID_TAGGED:
        return _tagged(data)
    source, number, commit_us = _FIELDS(data, GTID_UUID_AT)
    # The top bit of the 7-byte time says that the original server's time follows; the rest is this server's time.
    return _new_gtid(Gtid, (f"{_uuid(source)}:{number}" if kind == GTID else None, commit_us & _COMMIT_US))


def _tagged(data: bytes) -> Gtid:
    """Read a GTID event with a tag, in the format of MySQL's serialization library: fields, each after its number.

    Source: MySQL source, libs/mysql/serialization (readme) and class Gtid_event, define_fields: 0 flags, 1 UUID, 2
    number, 3 tag, 4 last_committed, 5 sequence_number, 6 commit time on this server, then fields not needed here.
    """
    at = HEADER_BYTES
    for _ in range(3):  # format version, size, last field that must not be ignored
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
    """An integer of MySQL's serialization library, and the offset after it.

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
