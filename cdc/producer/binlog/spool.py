"""An event that is too large to be held in memory: on disk until it has been read, in a file that has no name.

A compressed transaction (binlog_transaction_compression) is one event of up to 1 GB, and nothing of it may be used
before its checksum, which comes last, is known to be right.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO
from typing import BinaryIO
from zlib import crc32

from cdc.errors import UserError

__all__ = ["Spool"]

# The CRC-32 of anything that ends with its own CRC-32.
_SOUND = 0x2144DF1C


class Spool:
    """One event as it arrives; ``head`` are its first bytes, ``size`` is how many it has so far.

    Raises UserError where the disk has no room for it.
    """

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.size = 0
        self._sum = 0
        with _room():
            # Without a buffer, whose rest would be written when it is closed, after the disk is full.
            self._file: FileIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  whoever reads it closes it

    def write(self, part: bytes | memoryview) -> None:
        """Add what follows."""
        self._sum = crc32(part, self._sum)
        self.size += len(part)
        rest = memoryview(part)
        with _room():
            while rest:
                rest = rest[self._file.write(rest) :]

    def end(self, *, checksum_bytes: int) -> bool:
        """The event is whole: leave its checksum out. Returns whether it was right, where there is one."""
        self.size -= checksum_bytes
        with _room():
            self._file.truncate(self.size)
        return not checksum_bytes or self._sum == _SOUND

    def open(self) -> BinaryIO:
        """The event, to be read once: when the file is closed, it is gone."""
        self._file.seek(0)
        return BufferedReader(self._file)

    def close(self) -> None:
        """Nobody will read it."""
        self._file.close()


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"no room for a compressed transaction of the leader: {error.strerror}",
            where=tempfile.gettempdir(),
            hint="it takes up to 1 GB: set the environment variable TMPDIR to a folder that has it",
        ) from None
