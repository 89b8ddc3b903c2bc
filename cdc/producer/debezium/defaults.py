"""Converts the default values of columns, as a server shows them, to values as records contain them. Pure."""

import re
from base64 import b64encode
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from cdc.model.values import Value
from cdc.sql.column_types import ColumnType, read_type

__all__ = ["ColumnDefault", "default_value"]

_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_CLOCK = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_NAME = re.compile("[a-z]*")
_BITS = re.compile(r"b'([01]*)'")
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_MEMBERS = frozenset({"enum", "set"})
_WITHOUT_NUMBERS = _INTEGERS | _MEMBERS | {"float", "double", "year"}
_BINARIES = frozenset({"binary", "varbinary"})


class ColumnDefault(NamedTuple):
    """The default of a column: its ``text`` as information_schema shows it, and the column's type there
    (COLUMN_TYPE). ``is_now`` is true for CURRENT_TIMESTAMP.
    """

    type: str
    text: str
    is_now: bool = False


def default_value(record_type: str, default: ColumnDefault) -> Value | None:
    """Returns the default of a column that has the type ``record_type`` in records; None if it has another type by now,
    or if the text is not a constant of this type.
    """
    kind = read_type(record_type)
    if _core(record_type, kind) != _core(default.type, kind):
        return None
    if default.is_now:
        # Debezium takes the beginning of 1970 for the time of the statement.
        zero = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "subsecond": 0}
        return {"DateTime": zero} if kind.name == "datetime" else {"Timestamp": {"unix_time": 0, "subsecond": 0}}
    try:
        return _value(kind, default.text)
    except (ValueError, InvalidOperation):
        return None


def _core(text: str, kind: ColumnType) -> tuple[str, bool]:
    """Returns the parts of a type that must be the same in records and on the server: its name with its numbers if
    records have them, and whether it is unsigned.
    """
    if kind.name in _WITHOUT_NUMBERS:
        return _NAME.match(text)[0], kind.name not in _MEMBERS and " unsigned" in text  # type: ignore[index]
    return text.partition(" character set ")[0].removesuffix(" zerofill"), False


def _value(kind: ColumnType, text: str) -> Value | None:
    name = kind.name
    if name in _INTEGERS:
        return {"UnsignedInteger" if kind.unsigned else "SignedInteger": int(text)}
    if name == "decimal":
        return {"Decimal": f"{Decimal(text):.{kind.numbers[1]}f}"}
    if name in ("float", "double"):
        return {name.capitalize(): float(text)}
    if name == "year":
        return {"Year": int(text)}
    if name == "bit":
        found = _BITS.fullmatch(text)
        return {"Bit": int(found[1] or "0", 2)} if found else None
    if name in _BINARIES:
        return {"Blob": b64encode(text.encode("ascii")).decode("ascii")}
    return _moment(name, text) if name in ("date", "datetime", "timestamp", "time") else _text(kind, text)


def _text(kind: ColumnType, text: str) -> Value | None:
    # The server shows a question mark for a letter that utf8mb3 lacks.
    if "?" in text:
        return None
    if kind.name == "enum":
        return {"Enum": text}
    if kind.name == "set":
        return {"Set": text.split(",") if text else []}
    return {"String": text} if kind.name in ("char", "varchar") else None


def _moment(name: str, text: str) -> Value | None:
    if name == "time":
        if (clock := _CLOCK.fullmatch(text)) is None:
            return None
        parts = dict(zip(("hour", "minute", "second"), map(int, clock.groups()[1:4]), strict=True))
        return {"Time": {"negative": bool(clock[1]), "subsecond": _subsecond(clock[5]), **parts}}
    found = (_DAY if name == "date" else _MOMENT).fullmatch(text)
    if found is None:
        return None
    names = ("year", "month", "day", "hour", "minute", "second")
    whole = dict(zip(names, map(int, found.groups()[:6]), strict=False))
    if name == "date":
        return {"Date": whole}
    moment = whole | {"subsecond": _subsecond(found[7])}
    return {"DateTime": moment} if name == "datetime" else _unix(moment)


def _unix(moment: dict[str, int]) -> Value | None:
    """Returns the value of a TIMESTAMP. Zero is the beginning of 1970, as in records."""
    year, month, day, hour, minute, second, micros = moment.values()
    seconds = 0
    if month:
        seconds = (datetime(year, month, day, hour, minute, second) - datetime(1970, 1, 1)) // timedelta(seconds=1)
    return {"Timestamp": {"unix_time": seconds, "subsecond": micros}}


def _subsecond(digits: str | None) -> int:
    return int((digits or "").ljust(6, "0"))
