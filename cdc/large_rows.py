"""Represents records that are too large for memory, for the programs that read them."""

import os
import tempfile
from base64 import b64decode
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO, FileIO
from typing import Any

import orjson

from cdc.errors import UserError

__all__ = ["BlobFile", "LargeRecord", "LargeRecordWriter", "StoredBlob", "read_at"]

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


# Represents a record that is too large for memory. Its text is in memory, and the bytes of its large BLOBs are in a
# file.
#
# A BLOB is decoded into the file only if encoding its bytes again returns the same base64 text. So nothing is lost,
# even if the text is not valid base64.

_LARGE = 1_000_000  # characters of base64; shorter BLOBs stay in the text
# A JSON string can't contain this text, because its quotes would be escaped with backslashes.
_BEGIN = b'{"Blob":"'
_ROWS = frozenset({"Add", "Update", "Delete"})


class LargeRecord:
    """The message of a record. ``text`` contains a mark in place of each BLOB in ``blobs``; ``len`` returns the size of
    the message.

    ``blobs`` are pairs: the offset in ``text`` at which a BLOB's mark ends, and the BLOB. ``is_ambiguous`` is true if a
    value in the text looks like a mark itself.
    """

    def __init__(self, text: bytes, blobs: list[tuple[int, StoredBlob]], size: int, *, is_ambiguous: bool) -> None:
        self._is_ambiguous = is_ambiguous
        self.text = text
        self._blobs = blobs
        self._size = size

    def __len__(self) -> int:
        return self._size

    def whole(self) -> bytes:
        """Returns the complete message, with the BLOBs in base64."""
        found, at = BytesIO(), 0
        for number, (end, blob) in enumerate(self._blobs):
            found.write(self.text[at : end - len(_mark(number))])
            for part in blob.base64(_BLOCK):
                found.write(part)
            at = end
        found.write(self.text[at:])
        return found.getvalue()

    def body(self) -> dict[str, Any] | None:
        """Parses the record; the BLOBs in the result are StoredBlobs.

        Returns None unless each BLOB is a value in a row of a table with a key, and does not belong to the key. Raises
        ValueError, KeyError, TypeError and AttributeError if the text is not a record.
        """
        body: dict[str, Any] = orjson.loads(self.text)
        (operation, content), *_ = body["operation"].items()
        if self._is_ambiguous or operation not in _ROWS or not body.get("key") or "copying" in body:
            return None
        in_key = {body["columns"].index(name) for name in body["key"]}
        waiting = {_mark(number).decode(): blob for number, (_, blob) in enumerate(self._blobs)}
        for row in content["rows"]:
            for image in row.values():
                for index, value in enumerate(image):
                    if isinstance(value, dict) and value.get("Blob") in waiting and index not in in_key:
                        value["Blob"] = waiting.pop(value["Blob"])
        return None if waiting else body


def _mark(number: int) -> bytes:
    return b"#%d" % number


class LargeRecordWriter:
    """Builds a LargeRecord from the parts of a record's text. Pass the parts to ``add``; then ``record`` returns the
    LargeRecord.

    Raises UserError if the disk is full.
    """

    def __init__(self) -> None:
        self._text = BytesIO()
        self._blobs: list[tuple[int, StoredBlob]] = []
        self._size = 0
        self._is_ambiguous = False
        self._rest = b""  # the end of the text so far, which may be the first part of _BEGIN
        self._blob: _Blob | None = None
        self._file: BlobFile | None = None

    def add(self, part: bytes) -> None:
        """Appends ``part`` to the text."""
        self._size += len(part)
        data, at = self._rest + part, 0
        while True:
            if self._blob is None:
                found = data.find(_BEGIN, at)
                if found < 0:
                    end = max(at, len(data) - len(_BEGIN) + 1)
                    self._text.write(data[at:end])
                    self._rest = data[end:]
                    return
                self._text.write(data[at : found + len(_BEGIN)])
                at = found + len(_BEGIN)
                self._file = self._file or BlobFile()
                self._blob = _Blob(self._file)
            end = data.find(b'"', at)
            self._blob.add(data[at : end if end >= 0 else len(data)])
            if end < 0:
                self._rest = b""
                return
            self._end_blob(self._blob)
            self._blob, at = None, end

    def _end_blob(self, blob: "_Blob") -> None:
        stored = blob.stored()
        if stored is None:
            self._is_ambiguous = self._is_ambiguous or blob.text.startswith(b"#")
            self._text.write(blob.text)
            return
        self._text.write(_mark(len(self._blobs)))
        self._blobs.append((self._text.tell(), stored))

    def record(self) -> LargeRecord:
        """Returns the record. Must be called after the last ``add``."""
        if self._blob is not None:  # the BLOB has no end, so the text is not JSON; the parser will report this
            self._end_blob(self._blob)
            self._blob = None
        self._text.write(self._rest)
        self._rest = b""
        return LargeRecord(self._text.getvalue(), self._blobs, self._size, is_ambiguous=self._is_ambiguous)


class _Blob:
    """A BLOB whose base64 text is still being added. ``text`` contains the whole BLOB if the BLOB is short or its text
    is not valid base64.
    """

    def __init__(self, file: BlobFile) -> None:
        self.text = bytearray()  # the part of the BLOB's text that is not in the file (yet)
        self._file = file
        self._begin = file.size
        self._digest = sha256()
        self._is_stored = False
        self._in_memory = False

    def add(self, part: bytes) -> None:
        self.text += part
        if not self._in_memory and len(self.text) >= (_BLOCK if self._is_stored else _LARGE):
            self._store(len(self.text) // 4 * 4)

    def _store(self, length: int) -> None:
        encoded = bytes(self.text[:length])
        try:
            data = a2b_base64(encoded)
        except Error:
            data = b""
        # Base64 with padding in the middle is not valid either: encoding its bytes again returns a different text.
        if (self._file.size - self._begin) % 3 or b2a_base64(data, newline=False) != encoded:
            self._give_up()
            return
        self._is_stored = True
        self._digest.update(data)
        self._file.append(data)
        del self.text[:length]

    def _give_up(self) -> None:
        self._in_memory = True
        if self._is_stored:
            whole = StoredBlob(self._file, self._begin, self._file.size - self._begin, "").whole()
            self.text = bytearray(whole.encode() + self.text)
            self._is_stored = False

    def stored(self) -> StoredBlob | None:
        """Returns the BLOB if it is in the file; None if it is in ``text``. Must be called after the last ``add``."""
        if self._is_stored and self.text:
            self._store(len(self.text))
        if not self._is_stored:
            return None
        return StoredBlob(self._file, self._begin, self._file.size - self._begin, self._digest.hexdigest())
