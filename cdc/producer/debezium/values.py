"""Converts values of records to the values in Debezium's messages, as Kafka Connect's JsonConverter writes them. Pure.

Debezium documents the form of each type under "Data type mappings" of its MySQL connector.
"""

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from struct import error as StructError
from struct import pack, unpack, unpack_from
from typing import Any

from cdc.config.debezium import Debezium
from cdc.model.client_text import decoded
from cdc.model.values import NULL, Value
from cdc.sql.column_types import ColumnType

__all__ = ["Convert", "converter"]

Convert = Callable[[Value], Any]

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_SRID_BYTES = 4
_CENTURY, _PIVOT = 100, 70
_POINT = 1  # the type of a point in WKB
_MILLISECONDS = 3  # the largest number of fractional digits that Debezium writes in milliseconds
_FLOAT_DIGITS = range(2, 10)
_DAY_MICROSECONDS = 86_400_000_000
# Java writes a double outside of these bounds with an exponent, and Debezium then writes all of its digits.
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


@dataclass(frozen=True, slots=True)
class _Column:
    """What a conversion depends on: the column's type, the modes in the profile, and the value of Debezium for a day
    that does not exist (``unset``): None, or zero in a column that is NOT NULL.
    """

    type: ColumnType
    modes: Debezium
    unset: int | None
    is_point: bool
    members: tuple[str, ...]


def converter(
    type_: ColumnType,
    modes: Debezium,
    *,
    nullable: bool = True,
    is_point: bool = False,
    members: tuple[str, ...] = (),
) -> Convert:
    """Returns the function that converts the values of a column. ``is_point`` is true for a column of the type POINT,
    which records do not distinguish from other geometries; ``members`` are those of an ENUM or SET whose values are
    numbers in records.
    """
    column = _Column(type_, modes, None if nullable else 0, is_point, members)

    def convert(value: Value) -> Any:
        if value == NULL:
            return None
        ((tag, content),) = value.items()
        change = _CONVERT.get(tag)
        return content if change is None else change(content, column)

    return convert


def _unsigned(content: int, column: _Column) -> Any:
    if column.type.name != "bigint":
        return content
    if column.modes.bigint_unsigned_handling_mode == "precise":
        return _number_bytes(content)
    return content - (1 << 64) if content >= 1 << 63 else content


def _number_bytes(number: int) -> str:
    """Returns base64 of the shortest two's complement of ``number``, as of Java's BigInteger."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return b64encode(number.to_bytes(length, "big", signed=True)).decode("ascii")


def _decimal(content: str, column: _Column) -> Any:
    mode = column.modes.decimal_handling_mode
    if mode == "string":
        return content
    if mode == "double":
        return float(content)
    return _number_bytes(int(content.replace(".", "")))


def _bit(content: int, column: _Column) -> Any:
    (width,) = column.type.numbers or (1,)
    if width == 1:
        return bool(content)
    return b64encode(content.to_bytes((width + 7) // 8, "little")).decode("ascii")


def _float(content: float, column: _Column) -> float:
    """Returns the double with the shortest decimal text that stands for the same 24 bits, as Java writes a float."""
    bits = pack("<f", content)
    for digits in _FLOAT_DIGITS:
        text = float(f"{content:.{digits}g}")
        try:
            if pack("<f", text) == bits:
                return text
        except OverflowError:
            continue  # the largest float, rounded up
    return content


def _blob(content: str, column: _Column) -> str:
    mode = column.modes.binary_handling_mode
    if mode in ("bytes", "base64"):
        return content
    data = b64decode(content)
    return data.hex() if mode == "hex" else urlsafe_b64encode(data).decode("ascii")


def _text(content: Mapping[str, str], column: _Column) -> str:
    return decoded(b64decode(content["base64"]), content["charset"])


def _year(parts: Mapping[str, int], column: _Column) -> int:
    """Returns the year; one of two digits is of 1970 to 2069, as Debezium takes it."""
    year = parts["year"]
    if year >= _CENTURY or not column.modes.enable_time_adjuster or not year:
        return year
    return year + (1900 if year >= _PIVOT else 2000)


def _date(parts: Mapping[str, int], column: _Column) -> int | None:
    try:
        return (date(_year(parts, column), parts["month"], parts["day"]) - _EPOCH_DAY).days
    except ValueError:
        return column.unset


def _datetime(parts: Mapping[str, int], column: _Column) -> int | None:
    try:
        clock = parts["hour"], parts["minute"], parts["second"]
        day = datetime(_year(parts, column), parts["month"], parts["day"], *clock)
    except ValueError:
        return column.unset
    micros = (day - _EPOCH) // _MICROSECOND + parts["subsecond"]
    digits = column.type.numbers[0] if column.type.numbers else 0
    in_millis = digits <= _MILLISECONDS or column.modes.time_precision_mode == "connect"
    return micros // 1000 if in_millis else micros


def _time(parts: Mapping[str, Any], column: _Column) -> int | None:
    seconds: int = (parts["hour"] * 60 + parts["minute"]) * 60 + parts["second"]
    micros: int = seconds * 1_000_000 + parts["subsecond"]
    micros = -micros if parts["negative"] else micros
    if column.modes.time_precision_mode != "connect":
        return micros
    # Kafka Connect's Time is a time of a day, up to midnight after it.
    return micros // 1000 if 0 <= micros <= _DAY_MICROSECONDS else column.unset


def _timestamp(parts: Mapping[str, int], column: _Column) -> str | None:
    digits = column.type.numbers[0] if column.type.numbers else 0
    text = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=parts["unix_time"])).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{parts['subsecond']:06d}"[: digits + 1] if digits else ""
    return f"{text}{fraction}Z"


def _set(content: Any, column: _Column) -> Any:
    if isinstance(content, list):
        return ",".join(content)
    if not column.members:
        return _member_number(content, column)
    return ",".join(name for at, name in enumerate(column.members) if content >> at & 1)


def _enum(content: int | str, column: _Column) -> int | str:
    if content == 0:
        return ""  # the error value
    if isinstance(content, str):
        return content
    return column.members[content - 1] if column.members else _member_number(content, column)


def _member_number(number: int, column: _Column) -> int | str:
    """Returns the number of a member whose text is not known; as a text if messages have schemas."""
    return str(number) if column.modes.schemas_enable else number


def _geometry(content: str, column: _Column) -> dict[str, Any]:
    stored = b64decode(content)
    (srid,), wkb = unpack_from("<I", stored), stored[_SRID_BYTES:]
    found: dict[str, Any] = {"wkb": b64encode(wkb).decode("ascii"), "srid": srid or None}
    try:
        if column.is_point and unpack_from("<I", wkb, 1)[0] == _POINT:
            x, y = unpack_from("<dd" if wkb[0] else ">dd", wkb, 5)
            return {"x": x, "y": y} | found
    except StructError:
        pass  # a geometry that is no whole WKB keeps its bytes
    return found


def _vector(content: str, column: _Column) -> list[float]:
    data = b64decode(content)
    return [_float(number, column) for number in unpack(f"<{len(data) // 4}f", data)]


def _json(content: Any, column: _Column) -> str:
    return _document(content, typed=False)


def _json_typed(content: Any, column: _Column) -> str:
    return _document(content, typed=True)


def _document(node: Any, *, typed: bool) -> str:
    """Writes a JSON document without blanks. Each double has all of its digits."""
    if isinstance(node, float):
        return _double_text(node)
    if isinstance(node, list):
        return f"[{','.join(_document(each, typed=typed) for each in node)}]"
    if not isinstance(node, dict):
        return _plain(node)
    if not typed:
        return _object(node, typed=False)
    ((tag, content),) = node.items()
    return _TYPED.get(tag, _plain)(content)


def _plain(node: Any) -> str:
    """Writes a member without members, with Debezium's escapes: their hexadecimal digits are in upper case."""
    text = json.dumps(node, ensure_ascii=False)
    return _ESCAPE.sub(lambda found: f"\\u{found[0][2:].upper()}" if found[0][1] == "u" else found[0], text)


def _object(members: Mapping[str, Any], *, typed: bool) -> str:
    texts = (f"{_plain(key)}:{_document(each, typed=typed)}" for key, each in members.items())
    return f"{{{','.join(texts)}}}"


def _double_text(number: float) -> str:
    if number == 0 or _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        return repr(number)
    return format(Decimal(number), "f")


def _clock(parts: Mapping[str, Any]) -> str:
    fraction = f".{parts['subsecond']:06d}" if parts["subsecond"] else ""
    sign = "-" if parts.get("negative") else ""
    return f"{sign}{parts['hour']:02d}:{parts['minute']:02d}:{parts['second']:02d}{fraction}"


def _day(parts: Mapping[str, int]) -> str:
    return f"{parts['year']:04d}-{parts['month']:02d}-{parts['day']:02d}"


def _moment(parts: Mapping[str, int]) -> str:
    return f'"{_day(parts)} {_clock(parts)}"'


_TYPED: dict[str, Callable[[Any], str]] = {
    "array": lambda nodes: _document(nodes, typed=True),
    "object": lambda nodes: _object(nodes, typed=True),
    "SignedInteger": str,
    "UnsignedInteger": str,
    "Decimal": str,
    "Date": lambda parts: f'"{_day(parts)}"',
    "Time": lambda parts: f'"{_clock(parts)}"',
    "DateTime": _moment,
    "LocalTimestamp": _moment,
    "Opaque": lambda content: f'"{content["base64"]}"',
}
_CONVERT: dict[str, Callable[[Any, _Column], Any]] = {
    "UnsignedInteger": _unsigned,
    "Decimal": _decimal,
    "Bit": _bit,
    "Float": _float,
    "Blob": _blob,
    "Text": _text,
    "Date": _date,
    "DateTime": _datetime,
    "Time": _time,
    "Timestamp": _timestamp,
    "Set": _set,
    "Enum": _enum,
    "Geometry": _geometry,
    "Vector": _vector,
    "Json": _json,
    "JsonTyped": _json_typed,
}
