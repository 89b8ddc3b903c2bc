"""Values of a typed DataFrame in the exact form in which a server's are shown (``checks.exact``)."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from cdc.sql.column_types import read_type
from tests.checks.exact import Shown, from_record

__all__ = ["compared", "server_row", "typed_row"]

_TEXT = ("utf8mb4", "utf8mb3", "ascii", "latin1")


def compared(types: Sequence[str]) -> list[bool]:
    """Which columns of these types can be compared: of some members the server shows the numbers."""
    return [_is_compared(each) for each in types]


def _is_compared(text: str) -> bool:
    kind = read_type(text)
    if kind.name not in ("enum", "set"):
        return True
    return kind.members is not None and kind.charset in _TEXT and not (kind.name == "set" and "" in kind.members)


def typed_row(row: Sequence[Any], types: Sequence[str]) -> tuple[Shown, ...]:
    """A row of ``table(…, zero_dates="string", typed_json="record")``, without what is not compared."""
    return tuple(_shown(value, each) for value, each in zip(row, types, strict=True) if _is_compared(each))


def server_row(row: Sequence[Shown], types: Sequence[str]) -> tuple[Shown, ...]:
    """A row as ``checks.exact`` has it, in the form of ``typed_row``."""
    return tuple(_from_server(value, each) for value, each in zip(row, types, strict=True) if _is_compared(each))


def _from_server(value: Shown, text: str) -> Shown:
    name = read_type(text).name
    if name == "decimal" and value is not None:
        return str(Decimal(str(value)).normalize())  # ZEROFILL shows zeros in front
    return "" if name == "enum" and value == "#0" else value  # the error value, which is the empty text


def _shown(value: Any, text: str) -> Shown:
    name = read_type(text).name
    if value is None:
        return None
    if name in ("datetime", "date"):
        return str(value)
    if name == "timestamp":
        return _timestamp(value)
    if name == "time":
        return _time(value)
    if name == "json":
        tree = json.loads(value) if value.startswith('{"JsonTyped":') else {"Json": json.loads(value)}
        return from_record(tree)
    if name == "decimal":
        return str(Decimal(value).normalize())
    if name == "set":
        return ",".join(value).encode().hex().upper()
    if isinstance(value, str):
        return value.encode().hex().upper()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex().upper()
    return int(value) if isinstance(value, Decimal) else value


def _timestamp(text: str) -> str:
    if text.startswith("0000"):
        return "@0.000000"
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return f"@{delta.days * 86_400 + delta.seconds}.{delta.microseconds:06d}"


def _time(value: timedelta) -> str:
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    seconds = value.days * 86_400 + value.seconds
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{value.microseconds:06d}"
