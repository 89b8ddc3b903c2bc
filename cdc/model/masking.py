"""Masks the values of a column: each value becomes NULL, or a keyed hash of itself. Pure.

A hash is computed from a value's JSON text, which is the same in a row of the binlog and in a row of a table copy. So
equal texts have equal hashes in all tables, whatever their character set is, and a change of a value is still a change
of its hash.
"""

import hmac
from base64 import b64encode
from dataclasses import dataclass, field

__all__ = ["HASH", "HASHED_BYTES", "HASHED_TEXTS", "MODES", "NULL", "Mask"]

HASH, NULL = "hash", "null"
MODES = (HASH, NULL)
HASHED_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
HASHED_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_FITS_ANY_TEXT = 63  # number of four-byte characters that fit into a TINYTEXT


@dataclass(frozen=True, slots=True)
class Mask:
    """The mask of a column: ``mode`` is HASH or NULL, ``key`` is the secret key of hashes."""

    mode: str
    key: bytes = field(default=b"", repr=False)

    def hashed(self, text: bytes, kind: str, size: int | None) -> str:
        """Returns the JSON text of the hash of a value whose JSON text is ``text``, in UTF-8. ``kind`` is the name of
        the column's type, ``size`` is the type's length in characters or bytes; it is None for a type without a length.
        """
        digest = hmac.digest(self.key, text, "sha256")
        if kind in HASHED_TEXTS:
            return f'{{"String":"{digest.hex()[: _FITS_ANY_TEXT if size is None else size]}"}}'
        stored = digest[:size]
        if kind == "binary" and size is not None:
            stored = stored.ljust(size, b"\0")
        return f'{{"Blob":"{b64encode(stored).decode()}"}}'
