"""Generates the SQL and the lines of code by which a SELECT's column becomes the JSON text that the binlog's rows have.

What the leader sends is text, which is taken apart as little as possible: most numbers go into the JSON as they are.
The lines work on ``d``, the bytes that arrived, and on ``t``, the same as latin1 text. ``X`` stands for the column's
variable, in the lines and in ``text``, the JSON text as the source of an f-string.
"""

from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from cdc.model.charset import text_decoder
from cdc.producer.decode.column_code import not_ascii
from cdc.producer.table_rows.definition import CopiedColumn
from cdc.producer.table_rows.documents import document_json, document_sql
from cdc.producer.table_rows.temporal_texts import CLOCKS, DATES, DATETIME_DAYS, TIMES

__all__ = ["ColumnText", "column_text", "constants"]


@dataclass(frozen=True, slots=True)
class ColumnText:
    """How a column is selected and formatted.

    ``selected`` are its SQL expressions; the first one is NULL where the value is. ``source`` is ``d`` or ``t``, of
    which ``X`` is a part. Of several expressions, ``X`` is the list of their bytes.
    """

    selected: tuple[str, ...]
    source: str
    lines: tuple[str, ...]
    text: str


def constants() -> dict[str, Any]:
    """A new namespace with what the lines use."""
    return {
        "b64": b2a_base64, "quote": encode_basestring, "clocks": CLOCKS, "dates": DATES, "days": DATETIME_DAYS,
        "times": TIMES,
    }  # fmt: skip


def column_text(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    """The code of ``column`` with the variable ``x``; ``name`` is SQL. It adds to ``constants``."""
    return _TYPES[column.type](column, name, x, constants)


def _integer(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    # ZEROFILL would show zeros in front.
    selected = f"CAST({name} AS UNSIGNED)" if column.zerofill else name
    tag = "UnsignedInteger" if column.unsigned else "SignedInteger"
    return ColumnText((selected,), "t", (), f'{{{{"{tag}":{{X}}}}}}')


def _float(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    # Of a FLOAT, and of rounded and zero-filled columns, the leader shows other digits than of the double they are.
    plain = column.type == "double" and not column.rounded and not column.zerofill
    tag = "Double" if column.type == "double" else "Float"
    return ColumnText((name if plain else f"{name} * 1e0",), "t", ("X = float(X)",), f'{{{{"{tag}":{{X!r}}}}}}')


def _decimal(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    selected = f"CAST({name} AS DECIMAL({column.precision},{column.digits}))" if column.zerofill else name
    return ColumnText((selected,), "t", (), '{{"Decimal":"{X}"}}')


def _bit(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    return ColumnText((name,), "d", ("X = int.from_bytes(X, 'big')",), '{{"Bit":{X}}}')


def _year(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    return ColumnText((name,), "t", ("X = int(X)",), '{{"Year":{X}}}')


def _date(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    return ColumnText((name,), "t", (), "{dates[X]}")


def _fraction(column: CopiedColumn, start: str) -> str:
    """The expression of the microseconds, whose digits begin at ``start``."""
    return f"{{int(X[{start}:]) * {10 ** (6 - column.digits)}}}" if column.digits else "0"


def _time(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    whole = f"X[:-{column.digits + 1}]" if column.digits else "X"
    fraction = _fraction(column, f"-{column.digits}")
    return ColumnText((name,), "t", (), f'{{{{"Time":{{{{{{times[{whole}]}},"subsecond":{fraction}}}}}}}}}')


def _datetime(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    text = f'{{{{"DateTime":{{{{{{days[X[:10]]}},{{clocks[X[11:19]]}},"subsecond":{_fraction(column, "20")}}}}}}}}}'
    return ColumnText((name,), "t", (), text)


def _timestamp(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    # Of a TIMESTAMP this is the stored number, whatever the time zone is.
    whole = f"X[:-{column.digits + 1}]" if column.digits else "X"
    fraction = _fraction(column, f"-{column.digits}")
    text = f'{{{{"Timestamp":{{{{"unix_time":{{{whole}}},"subsecond":{fraction}}}}}}}}}'
    lines = (f"if X == '0': X = '0.{'0' * column.digits}'",) if column.digits else ()
    return ColumnText((f"UNIX_TIMESTAMP({name})",), "t", lines, text)


def _text(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    if column.charset in ("utf8mb4", "utf8mb3"):
        return ColumnText((name,), "d", ("X = quote(X.decode())",), '{{"String":{X}}}')
    decode = text_decoder(column.charset)
    if decode is None:
        text = f'{{{{"Text":{{{{"charset":"{column.charset}","base64":"{{X}}"}}}}}}}}'
        return ColumnText((name,), "d", ("X = b64(X, newline=False).decode()",), text)
    if column.charset == "ascii":
        constants["not_ascii"] = not_ascii
        line = "X = '{\"String\":%s}' % quote(X.decode()) if X.isascii() else not_ascii(X)"
        return ColumnText((name,), "d", (line,), "{X}")
    constants[f"text_{column.charset}"] = decode
    return ColumnText((name,), "d", (f"X = quote(text_{column.charset}(X))",), '{{"String":{X}}}')


def _bytes(tag: str) -> Callable[[CopiedColumn, str, str, dict[str, Any]], ColumnText]:
    def code(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
        text = f'{{{{"{tag}":"{{X}}"}}}}'
        return ColumnText((name,), "d", ("X = b64(X, newline=False).decode()",), text)

    return code


def _members(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    selected, lines = f"CAST({name} AS UNSIGNED)", ("X = int(X)",)
    texts = [encode_basestring(member) for member in column.members]
    if column.type == "enum":
        constants[f"enum_{x}"] = ["0", *texts]
        return ColumnText((selected,), "t", lines, f'{{{{"Enum":{{enum_{x}[X]}}}}}}' if texts else '{{"Enum":{X}}}')
    if not texts:
        return ColumnText((selected,), "t", lines, '{{"Set":{X}}}')
    constants[f"set_{x}"] = [(1 << bit, text) for bit, text in enumerate(texts)]
    join = f"X = ','.join([m for b, m in set_{x} if X & b])"
    return ColumnText((selected,), "t", (*lines, join), '{{"Set":[{X}]}}')


def _json(column: CopiedColumn, name: str, x: str, constants: dict[str, Any]) -> ColumnText:
    constants[f"document_{x}"] = partial(_document, column.name)
    return ColumnText(document_sql(name), "d", (f"X = document_{x}(*X)",), "{X}")


def _document(name: str, *selected: bytes) -> str:
    try:
        return document_json(*selected)
    except ValueError as error:
        raise ValueError(f"column {name}: {error}") from None


_SAME: dict[Callable[[CopiedColumn, str, str, dict[str, Any]], ColumnText], str] = {
    _integer: "tinyint smallint mediumint int bigint",
    _float: "float double",
    _text: "char varchar tinytext text mediumtext longtext",
    _bytes("Blob"): "binary varbinary tinyblob blob mediumblob longblob",
    _bytes("Geometry"): "geometry point linestring polygon multipoint multilinestring multipolygon geomcollection "
    "geometrycollection",
    _bytes("Vector"): "vector",
    _members: "enum set",
    _decimal: "decimal", _bit: "bit", _year: "year", _date: "date", _time: "time", _datetime: "datetime",
    _timestamp: "timestamp", _json: "json",
}  # fmt: skip
_TYPES = {name: code for code, names in _SAME.items() for name in names.split()}
