"""Converts values of MariaDB's own types: decompresses COMPRESSED columns, and formats UUID, INET4 and INET6. Pure.

The binlog contains a UUID, INET4 or INET6 as the bytes of a BINARY column, without the zero bytes at their end. The
texts are those that MariaDB shows.
"""

import itertools
import zlib

__all__ = ["inet4_text", "inet6_text", "inflated", "uuid_text"]


def inflated(stored: bytes) -> bytes:
    """Decompresses a value of a COMPRESSED column of MariaDB.

    Its first byte is 0 in front of a plain value, else it contains the method (zlib: 8), a bit for a stream without
    zlib's header, and the number of bytes of the length that follows. The empty value has no first byte.
    """
    if not stored or not stored[0]:
        return stored[1:]
    method, is_raw, width = stored[0] >> 4, stored[0] & 8, stored[0] & 7
    if method != zlib.DEFLATED:
        raise ValueError(f"a value has the unknown compression {method}")
    size, stream = (
        int.from_bytes(stored[1 : 1 + width], "big"),
        zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS),
    )
    try:
        plain = stream.decompress(stored[1 + width :], size + 1)
    except zlib.error as error:
        raise ValueError(f"a value can't be decompressed: {error}") from None
    if len(plain) != size or stream.unused_data:
        raise ValueError(f"a value was decompressed to {len(plain)} bytes, not {size}")
    return plain


def uuid_text(data: bytes) -> str:
    """Returns the text of a UUID. The binlog has its bytes in the order of the text, whatever the version of the UUID
    is.
    """
    text = _filled(data, 16).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def inet4_text(data: bytes) -> str:
    """Returns the text of an INET4."""
    return ".".join(map(str, _filled(data, 4)))


def inet6_text(data: bytes) -> str:
    """Returns the text of an INET6. The longest run of zero groups becomes ``::``, even if it is a single group; of
    several equally long runs, the first one does.
    """
    address = _filled(data, 16)
    groups = [f"{int.from_bytes(address[at : at + 2], 'big'):x}" for at in range(0, 16, 2)]
    start, length = _gap(groups)
    if not length:
        return ":".join(groups)
    if start == 0 and (length == 6 or (length == 5 and groups[5] == "ffff")):
        return f"::{'ffff:' if length == 5 else ''}{inet4_text(address[12:])}"
    return f"{':'.join(groups[:start])}::{':'.join(groups[start + length :])}"


def _gap(groups: list[str]) -> tuple[int, int]:
    """Returns the start and the length of the longest run of zero groups; if several are equally long, of the first."""
    start = length = at = 0
    for zero, run in itertools.groupby(groups, key="0".__eq__):
        size = len(list(run))
        if zero and size > length:
            start, length = at, size
        at += size
    return start, length


def _filled(data: bytes, size: int) -> bytes:
    if len(data) > size:
        raise ValueError(f"a value of {size} bytes has {len(data)}")
    return data.ljust(size, b"\0")
