"""A value as the server shows it and as a record has it, both in one exact form, so that they can be compared."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from cdc.model.values import NULL, Value

__all__ = ["Shown", "cell", "from_record", "from_server"]

Shown = str | int | float | None

_AS_TEXT = ("utf8mb4", "utf8mb3", "ascii", "latin1")  # other character sets travel as bytes


def cell(name: str, kind: str, full_kind: str, charset: str | None) -> str:
    """The expression that shows a column of this data type; ``full_kind`` is its column_type."""
    name = "`{}`".format(name.replace("`", "``"))
    if kind in ("enum", "set"):
        return _members(name, kind, full_kind, charset)
    if charset in _AS_TEXT:
        return f"HEX(CONVERT({name} USING utf8mb4))"
    if kind in ("time", "datetime"):
        return f"CAST(CAST({name} AS {kind}(6)) AS CHAR)"
    if kind == "timestamp":
        return f"CONCAT('@', CAST(UNIX_TIMESTAMP(CAST({name} AS DATETIME(6))) AS DECIMAL(20,6)))"
    simple = {"float": "{0}+0e0", "double": "{0}", "bit": "{0}+0", "year": "{0}+0"}
    simple |= {"date": "CAST({0} AS CHAR)", "decimal": "CAST({0} AS CHAR)", "json": "CONCAT('json ', {0})"}
    return name if kind.endswith("int") and "point" not in kind else simple.get(kind, "HEX({0})").format(name)


def _members(name: str, kind: str, full_kind: str, charset: str | None) -> str:
    text = f"HEX(CONVERT({name} USING utf8mb4))"
    if charset not in _AS_TEXT or (kind == "set" and ("(''" in full_kind or ",''" in full_kind)):
        return f"CONCAT('#', CAST({name} AS UNSIGNED))"
    return f"IF({name}+0=0,'#0',{text})" if kind == "enum" else text


def from_server(shown: Any) -> Shown:
    """What the server answered for a ``cell``."""
    if isinstance(shown, bytes):
        shown = shown.decode()
    if isinstance(shown, str) and shown.startswith("json "):
        return _document(json.loads(shown.removeprefix("json ")))
    return shown


def from_record(value: Value) -> Shown:
    """The value of a record."""
    if value == NULL:
        return None
    ((tag, content),) = value.items()
    return _FORMS[tag](content)


def _document(content: Any) -> str:
    return json.dumps(content, sort_keys=True)


def _day(parts: dict[str, int]) -> str:
    return f"{parts['year']:04d}-{parts['month']:02d}-{parts['day']:02d}"


def _clock(parts: dict[str, int]) -> str:
    return f"{parts['hour']:02d}:{parts['minute']:02d}:{parts['second']:02d}.{parts['subsecond']:06d}"


def _time(parts: dict[str, Any]) -> str:
    return ("-" if parts["negative"] else "") + _clock(parts)


def _moment(parts: dict[str, int]) -> str:
    return f"{_day(parts)} {_clock(parts)}"


def _hex(text: str) -> str:
    return text.encode().hex().upper()


def _bytes(content: str) -> str:
    return base64.b64decode(content).hex().upper()


def _node(node: Any) -> Any:
    """A node of a typed document as JSON text shows it."""
    if not isinstance(node, dict):
        return node
    ((tag, content),) = node.items()
    if tag == "array":
        return [_node(member) for member in content]
    if tag == "object":
        return {key: _node(member) for key, member in content.items()}
    if tag == "Opaque":
        lines = "\n".join(re.findall(".{1,76}", content["base64"]))  # as the server breaks them
        return f"base64:type{content['type']}:{lines}"
    if tag == "Decimal":
        return json.loads(content)
    return _moment(content) if tag == "LocalTimestamp" else _FORMS[tag](content)


_FORMS: dict[str, Callable[[Any], Shown]] = {
    **dict.fromkeys(["SignedInteger", "UnsignedInteger", "Bit", "Year", "Float", "Double", "Decimal"], lambda it: it),
    **dict.fromkeys(["Blob", "Geometry", "Vector"], _bytes),
    "String": _hex,
    "Text": lambda content: _bytes(content["base64"]),
    "Enum": lambda content: _hex(content) if isinstance(content, str) else f"#{content}",
    "Set": lambda content: _hex(",".join(content)) if isinstance(content, list) else f"#{content}",
    "Date": _day,
    "Time": _time,
    "DateTime": _moment,
    "Timestamp": lambda parts: f"@{parts['unix_time']}.{parts['subsecond']:06d}",
    "Json": _document,
    "JsonTyped": lambda tree: _document(_node(tree)),
}
