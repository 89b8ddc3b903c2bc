"""Sends large BLOBs to the follower in parts. Each part is a user variable; the statement that stores the row
concatenates the variables.

So neither this program's memory nor a packet ever contains a whole BLOB. The server accepts a BLOB of up to
max_allowed_packet bytes.
"""

from collections.abc import Iterator

from cdc.consumer.literals.scalars import StagedBlob
from cdc.large_rows import StoredBlob
from cdc.model.values import Value

__all__ = ["Variables"]

_AROUND = 100  # the length in bytes of the statement that sets a variable, without the value


class Variables:
    """Puts the large BLOBs of some rows into user variables, with statements of at most ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self._part = max(4, (size - _AROUND) // 4 * 4)  # characters of base64 in one variable
        self._blobs: list[StoredBlob] = []

    def image(self, image: list[Value]) -> list[Value]:
        """Returns the image with variables in place of StoredBlobs. From now on ``statements`` also yields the
        statements that set these variables.
        """
        return [self._value(value) for value in image]

    def _value(self, value: Value) -> Value:
        blob = value.get("Blob") if isinstance(value, dict) else None
        if not isinstance(blob, StoredBlob):
            return value
        self._blobs.append(blob)
        names = ",".join(self._names(len(self._blobs) - 1))
        # If the result has more than max_allowed_packet bytes, CONCAT returns NULL with only a warning. That NULL must
        # not be stored. So for NULL the server evaluates the subquery, which raises an error because it returns two
        # rows.
        return {"Blob": StagedBlob(f"COALESCE(CONCAT({names}),(SELECT 1 UNION SELECT 2))")}

    def _names(self, number: int) -> list[str]:
        parts = -(-self._blobs[number].length // (self._part // 4 * 3))
        return [f"@cdc_{number}_{part}" for part in range(parts)]

    def statements(self) -> Iterator[bytes]:
        """Yields the statements that set all variables."""
        for number, blob in enumerate(self._blobs):
            for name, content in zip(self._names(number), blob.base64(self._part), strict=True):
                yield b"SET %b=FROM_BASE64('%b')" % (name.encode(), content)

    def emptying(self) -> Iterator[bytes]:
        """Yields the statement that frees the server's memory of the variables; yields nothing if there are no
        variables.
        """
        names = [name for number in range(len(self._blobs)) for name in self._names(number)]
        if names:
            yield f"SET {','.join(f'{name}=NULL' for name in names)}".encode()
