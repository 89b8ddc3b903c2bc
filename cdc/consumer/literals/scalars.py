"""Writes the scalar values of records as SQL literals; sends large BLOBs to the server in parts, as user variables.

The session must have backslash escapes, the character set utf8mb4, and the time zone +00:00 (see ``session``), so that
only quotes and backslashes need escaping. The MySQL manual describes the syntax ("Literal Values"). A TIMESTAMP is
written as its UTC date and time.
"""

import base64
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cdc.large_rows import StoredBlob
from cdc.model.values import Value

__all__ = ["SCALARS", "StagedBlob", "Variables", "from_base64", "hexadecimal", "quoted", "timestamp_text"]

_DAY_SECONDS = 86_400
# Looking a number's text up in this table is twice as fast as formatting it.
_TWO_DIGITS = tuple(f"{number:02d}" for number in range(60))


def timestamp_text(unix_time: int) -> str:
    """Writes seconds since 1970 as ``YYYY-MM-DD HH:MM:SS`` in UTC, without the fraction; 0 is MySQL's zero timestamp.

    Raises OSError, OverflowError, TypeError or ValueError for an invalid number.
    """
    if unix_time == 0:
        # A 0 can't be the epoch, because TIMESTAMPs begin one second later. The zero timestamp has no fraction.
        return "0000-00-00 00:00:00"
    day, seconds = divmod(unix_time, _DAY_SECONDS)
    minutes = seconds // 60
    return (
        f"{_timestamp_date(day)} {_TWO_DIGITS[minutes // 60]}:{_TWO_DIGITS[minutes % 60]}:{_TWO_DIGITS[seconds % 60]}"
    )


@lru_cache(maxsize=30_000)  # TIMESTAMPs end in 2038, so there are fewer days than maxsize
def _timestamp_date(day: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(day * _DAY_SECONDS))


_LARGE = 1_000_000  # characters
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_CHARSET = re.compile(r"[a-z0-9_]+")
# The ``%`` operator is the fastest way to format several numbers.
_DATETIME = "'%(year)04d-%(month)02d-%(day)02d %(hour)02d:%(minute)02d:%(second)02d'"
_DATETIME_MICROS = _DATETIME[:-1] + ".%(subsecond)06d'"
_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def quoted(text: str) -> str:
    """Writes text as a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def hexadecimal(data: bytes) -> str:
    """Writes bytes as a hexadecimal literal."""
    return f"x'{data.hex()}'"


def from_base64(content: str) -> str:
    """Writes base64 as a hexadecimal literal of its bytes. Raises ValueError for invalid base64."""
    return hexadecimal(base64.b64decode(content, validate=True))


@dataclass(frozen=True, slots=True)
class StagedBlob:
    """A BLOB whose content is already on the server, as the value of the SQL ``expression``."""

    expression: str


def _blob(content: str | StoredBlob | StagedBlob) -> str:
    """Returns the SQL for a BLOB: normally a hexadecimal literal of its bytes. A large BLOB is sent in base64 and
    decoded by the server, so that this program needs no second copy of its text.
    """
    if isinstance(content, StagedBlob):
        return content.expression
    if isinstance(content, StoredBlob):
        content = content.whole()
    if len(content) < _LARGE:
        return from_base64(content)
    # Base64 is checked here, since the server would store NULL for invalid base64.
    if len(content) % 4 or not _BASE64.fullmatch(content):
        raise ValueError("not base64")
    return f"FROM_BASE64('{content}')"


def _integer(content: int) -> str:
    return str(int(content))


def _double(content: float) -> str:
    # repr() writes the shortest text that is read as the same double. A literal with an exponent is a DOUBLE; a literal
    # without an exponent would be a DECIMAL.
    text = repr(float(content))
    return text if "e" in text else text + "e0"


def _decimal(content: str) -> str:
    if not _DECIMAL.fullmatch(content):
        raise ValueError(f"not a decimal: {content[:80]!r}")
    return content


def _text(content: dict[str, str]) -> str:
    if not _CHARSET.fullmatch(content["charset"]):
        raise ValueError(f"not a character set: {content['charset'][:80]!r}")
    return f"_{content['charset']} {from_base64(content['base64'])}"


def _enum(content: str | int) -> str:
    return quoted(content) if isinstance(content, str) else str(int(content))


def _set(content: list[str] | int) -> str:
    return quoted(",".join(content)) if isinstance(content, list) else str(int(content))


def _clock(parts: dict[str, int]) -> str:
    fraction = f".{parts['subsecond']:06d}" if parts["subsecond"] else ""
    return f"{parts['hour']:02d}:{parts['minute']:02d}:{parts['second']:02d}{fraction}"


def _day(parts: dict[str, int]) -> str:
    return f"{parts['year']:04d}-{parts['month']:02d}-{parts['day']:02d}"


def _date(content: dict[str, int]) -> str:
    return f"'{_day(content)}'"


def _datetime(content: dict[str, int]) -> str:
    return (_DATETIME_MICROS if content["subsecond"] else _DATETIME) % content


def _time(content: dict[str, int]) -> str:
    return f"'{'-' if content['negative'] else ''}{_clock(content)}'"


def _timestamp(content: dict[str, int]) -> str:
    seconds, fraction = content["unix_time"], content["subsecond"]
    text = timestamp_text(seconds)
    return f"'{text}.{fraction:06d}'" if fraction and seconds else f"'{text}'"


SCALARS: dict[str, Callable[[Any], str]] = {
    "SignedInteger": _integer,
    "UnsignedInteger": _integer,
    "Bit": _integer,
    "Year": _integer,
    "Float": _double,
    "Double": _double,
    "Decimal": _decimal,
    "String": quoted,
    "Text": _text,
    "Enum": _enum,
    "Set": _set,
    "Blob": _blob,
    "Date": _date,
    "Time": _time,
    "DateTime": _datetime,
    "Timestamp": _timestamp,
    "Geometry": from_base64,
    "Vector": from_base64,
}


# Sends large BLOBs to the follower in parts. Each part is a user variable; the statement that stores the row
# concatenates the variables.
#
# So neither this program's memory nor a packet ever contains a whole BLOB. The server accepts a BLOB of up to
# max_allowed_packet bytes.

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
