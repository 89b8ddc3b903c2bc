"""Stores the bytes of a large BLOB in an unnamed file, in place of its base64 text in memory."""

import os
import tempfile
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Iterator
from hashlib import sha256
from io import FileIO

from cdc.errors import UserError

__all__ = ["BlobFile", "StoredBlob", "read_at"]

_BLOCK = 3 << 18  # bytes; a multiple of three, so that the base64 of a block needs no padding


class BlobFile:
    """An unnamed file with the bytes of BLOBs, which is deleted when no BLOB refers to it any more. Raises UserError if
    the disk is full."""

    def __init__(self) -> None:
        self.size = 0
        try:
            self._file: FileIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  __del__ closes the file
        except OSError as error:
            raise _no_room(error) from None

    def append(self, data: bytes) -> None:
        self.size += len(data)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise _no_room(error) from None

    def read(self, offset: int, size: int) -> bytes:
        return read_at(self._file, offset, size)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


def read_at(file: FileIO, offset: int, size: int) -> bytes:
    """Reads ``size`` bytes from ``offset`` on; fewer at the end of the file. The position of the file does not change.

    One call of pread returns at most 2 GB, and may return less, so several calls may be needed.
    """
    parts = []
    while size and (part := os.pread(file.fileno(), size, offset)):
        parts.append(part)
        offset, size = offset + len(part), size - len(part)
    return b"".join(parts)


class StoredBlob:
    """The content of a BLOB, used in place of its base64 text. It is ``length`` bytes in a file; ``digest`` is the
    SHA-256 of these bytes in hexadecimal digits.

    Two BLOBs with the same length and digest are equal, and a BLOB is equal to the base64 text of the same bytes.
    """

    __slots__ = ("_file", "_offset", "digest", "length")

    def __init__(self, file: BlobFile, offset: int, length: int, digest: str) -> None:
        self._file = file
        self._offset = offset
        self.length = length
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):  # base64
            return -(-self.length // 3) * 4 == len(other) and self.digest == sha256(b64decode(other)).hexdigest()
        return isinstance(other, StoredBlob) and (self.length, self.digest) == (other.length, other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def base64(self, size: int) -> Iterator[bytes]:
        """Yields the content in base64, in parts of at most ``size`` characters; ``size`` must be at least four."""
        step = size // 4 * 3
        for at in range(0, self.length, step):
            yield b2a_base64(self._file.read(self._offset + at, min(step, self.length - at)), newline=False)

    def whole(self) -> str:
        """Returns the whole content in base64."""
        return b"".join(self.base64(_BLOCK)).decode("ascii")


def _no_room(error: OSError) -> UserError:
    return UserError(
        f"a large record can't be written to disk: {error.strerror}",
        code="CDC-SPOOL-FULL",
        where=tempfile.gettempdir(),
        hint="it takes up to 1 GB: set the environment variable TMPDIR to a folder with that much free space",
    )
