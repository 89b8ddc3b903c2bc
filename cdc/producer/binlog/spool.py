"""Keeps an event that is too large for memory on disk, in an unnamed file, which is deleted with the last reference to
the event.

A compressed transaction (binlog_transaction_compression) is one event of up to 1 GB, and so is a row with a LONGBLOB.
No part of an event may be used before its checksum, which comes last, has been compared.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO
from typing import BinaryIO
from zlib import crc32

from cdc.errors import UserError
from cdc.large_rows import read_at

__all__ = ["Spool"]

# The CRC-32 of any bytes that are followed by their own CRC-32 is this number.
_RIGHT_SUM = 0x2144DF1C


class Spool:
    """An event that is arriving; ``head`` are its first bytes, ``size`` is the number of bytes that have arrived so
    far.

    Raises UserError if the disk is full.
    """

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.size = 0
        self._sum = 0
        with _disk_full_reported():
            # The file has no buffer: the rest of a buffer would be written only when the file is closed, and the disk
            # may be full then.
            self._file: FileIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  closed by the code that reads it

    def write(self, part: bytes | memoryview) -> None:
        """Appends ``part``."""
        self._sum = crc32(part, self._sum)
        self.size += len(part)
        rest = memoryview(part)
        with _disk_full_reported():
            while rest:
                rest = rest[self._file.write(rest) :]

    def end(self, *, checksum_bytes: int) -> bool:
        """Removes the checksum from the complete event. Returns whether the checksum was right; True if there is no
        checksum."""
        self.size -= checksum_bytes
        with _disk_full_reported():
            self._file.truncate(self.size)
        return not checksum_bytes or self._sum == _RIGHT_SUM

    def read(self, offset: int, size: int) -> bytes:
        """Reads up to ``size`` bytes from ``offset`` on. The file that ``open`` returned keeps its position."""
        return read_at(self._file, offset, size)

    def open(self) -> BinaryIO:
        """Opens the event as a file, which can be read only once: closing the file deletes the event."""
        self._file.seek(0)
        return BufferedReader(self._file)

    def close(self) -> None:
        """Deletes the event."""
        self._file.close()

    def __del__(self) -> None:
        # If the disk was full, the file perhaps does not exist.
        if hasattr(self, "_file"):
            self._file.close()


@contextmanager
def _disk_full_reported() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"a large event of the leader can't be written to disk: {error.strerror}",
            code="CDC-EVENT-SPOOL-FULL",
            where=tempfile.gettempdir(),
            hint="a row or a compressed transaction takes up to 1 GB: "
            "set the environment variable TMPDIR to a folder with that much free space",
        ) from None
