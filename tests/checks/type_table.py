"""The table of docs/types.md: what becomes of each type in all_types.sql, by the functions that make it so.

The value in a record and its JSON come from the binlog's decoder, the type in records from its table maps and from
copies, the type in Spark from ``cdc.spark.frames``, the SELECT from the code that reads copied rows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdc.model.charset import bytes_of_character
from cdc.producer.copy.definition import CopiedColumn, shown_type
from cdc.producer.copy.row_text import column_text
from cdc.producer.decode.row_codegen import column_reader
from cdc.producer.decode.table_map import Column, column_type
from cdc.spark.frames.typed import Options, spark_type
from cdc.sql.column_types import read_type

__all__ = ["Kind", "kinds", "lake_type", "table"]

SQL = Path(__file__).parents[1] / "data" / "all_types.sql"
HEAD = ("| MySQL | a value in a record | Spark | lake | copy: `SELECT` |", "|---|---|---|---|---|")
INTEGERS = {"tinyint": (1, 1), "smallint": (2, 2), "mediumint": (9, 3), "int": (3, 4), "bigint": (8, 8)}
BLOBS = {"tiny": 1, "": 2, "medium": 3, "long": 4}
GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
)  # fmt: skip
# What a type is called that has another name in information_schema.
SAME = {"bool": "tinyint", "real": "double"}
NAMES = (
    *INTEGERS, *SAME, *(f"{size}{kind}" for size in BLOBS for kind in ("text", "blob")), *GEOMETRIES, "decimal",
    "float", "double", "bit", "varchar", "char", "varbinary", "binary", "enum", "set", "datetime", "date", "timestamp",
    "time", "year", "json", "vector",
)  # fmt: skip
COLUMN = re.compile(
    rf"[(,]\s*(?:`(?:[^`]|``)+`|\w+)\s+({'|'.join(NAMES)})\b(?:\s*\(([^()]*)\))?"
    r"((?:\s+(?:unsigned|zerofill|character set \w+))*)",
    re.IGNORECASE,
)
# Rows of the page, in this order: a type comes with the ones that it is alike.
ORDER = (
    "bool", "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "real", "bit", "year",
    "date", "datetime", "timestamp", "time", "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "binary",
    "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "enum", "set", "json", *GEOMETRIES, "vector",
)  # fmt: skip
# 2026-11-26 12:30:45 as the binlog has it.
DAY = (2026 * 13 + 11) << 5 | 26
CLOCK = 12 << 12 | 30 << 6 | 45


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of a column as it is written in SQL: ``numbers`` are those in brackets."""

    name: str
    numbers: tuple[int, ...]
    words: frozenset[str]
    charset: str

    @property
    def real_name(self) -> str:
        """As in information_schema."""
        if self.name == "float" and len(self.numbers) == 1:
            return "float" if self.numbers[0] <= 24 else "double"
        return SAME.get(self.name, self.name)

    @property
    def shown(self) -> str:
        """For the page, with letters in place of numbers and members."""
        digits = ("", "(n)", "(m,d)")[len(self.numbers)]
        if self.name == "float" and len(self.numbers) == 1:
            digits = "(n ≤ 24)" if self.real_name == "float" else "(n > 24)"
        elif self.name == "decimal":
            digits = "(p ≤ 38,s)" if self.numbers[0] <= 38 else "(p > 38,s)"
        elif self.name == "bit":
            digits = "(n ≤ 63)" if self.numbers[0] < 64 else "(64)"
        name = self.name.upper() + ("" if self.name in (*INTEGERS, "enum", "set") else digits)
        return " ".join([name, *(word.upper() for word in ("unsigned", "zerofill") if word in self.words)])


def kinds() -> list[Kind]:
    """The types of all columns in all_types.sql, each once."""
    text = re.sub("^--.*$", "", SQL.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = re.sub(r"'(?:[^'\\]|''|\\.)*'", "'a'", text, flags=re.DOTALL)
    found = {}
    for statement in re.findall(r"CREATE TABLE .*?;\n", text, re.DOTALL):
        default = re.search(r"DEFAULT CHARSET (\w+);", statement)
        for name, inside, words in COLUMN.findall(statement):
            charset = re.search(r"character set (\w+)", words, re.IGNORECASE)
            numbers = tuple(map(int, re.findall(r"\d+", inside)))
            named = charset[1] if charset else default[1] if default else "utf8mb4"
            kind = _kind(name.lower(), numbers, words.lower(), named)
            found[kind] = None
    return sorted(found, key=lambda kind: (ORDER.index(kind.name), sorted(kind.words), kind.numbers))


def _kind(name: str, numbers: tuple[int, ...], words: str, charset: str) -> Kind:
    is_text = name.endswith(("char", "text"))
    if is_text and charset == "binary":
        return Kind(name.replace("char", "binary").replace("text", "blob"), numbers, frozenset(), "binary")
    charset = charset if is_text or name in ("enum", "set") else "binary"
    return Kind(name, numbers, frozenset(words.split()) & {"unsigned", "zerofill"}, charset)


def logged(kind: Kind) -> Column:
    """The column as a table map has it."""
    name, numbers = kind.real_name, kind.numbers
    first, wide = (numbers or (1,))[0], bytes_of_character(kind.charset)
    if name in INTEGERS:
        field, meta = INTEGERS[name][0], 0
    elif name.endswith(("text", "blob")):
        field, meta = 252, BLOBS[name[:-4]]
    elif name in GEOMETRIES:
        field, meta = 255, 4
    else:
        field, meta = {
            "decimal": (246, first << 8 | numbers[-1] if name == "decimal" else 0), "float": (4, 4), "double": (5, 8),
            "bit": (16, first // 8 << 8 | first % 8), "year": (13, 0), "date": (10, 0), "json": (245, 4),
            "datetime": (18, first if numbers else 0), "timestamp": (17, first if numbers else 0),
            "time": (19, first if numbers else 0), "char": (254, first * wide), "varchar": (253, first * wide),
            "binary": (254, first), "varbinary": (253, first), "enum": (247, 1), "set": (248, 1), "vector": (242, 4),
        }[name]  # fmt: skip
    members = (b"a", b"b") if name in ("enum", "set") else ()
    return Column("c", field, meta, "unsigned" in kind.words, kind.charset, members)


def copied(kind: Kind) -> CopiedColumn:
    """The column as a copy of its table knows it."""
    name, numbers = kind.real_name, kind.numbers
    full = name + (f"({','.join(map(str, numbers))})" if numbers else "")
    full += "('a','b')" if name in ("enum", "set") else ""
    full = " ".join([full, *(word for word in ("unsigned", "zerofill") if word in kind.words)])
    return CopiedColumn(
        "c", name, True, "unsigned" in kind.words, "zerofill" in kind.words,
        name in ("float", "double") and len(numbers) == 2, kind.charset, numbers[0] if numbers else 0,
        numbers[-1] if numbers else 0, ("a", "b") if name in ("enum", "set") else (),
        sql_type=shown_type(name, full, kind.charset),
    )  # fmt: skip


def samples(kind: Kind) -> Iterator[bytes]:
    """Values of the type as the binlog has them: one for each tag that they can have in a record."""
    name, column = kind.real_name, logged(kind)
    fraction = bytes((column.meta + 1) // 2)
    if name in INTEGERS:
        yield (1).to_bytes(INTEGERS[name][1], "little")
    elif name == "bit":
        yield (1).to_bytes((kind.numbers[0] + 7) // 8, "big")
    elif name == "decimal":
        yield b"\x80" + bytes(40)
    elif name in ("float", "double"):
        yield bytes(8)
    elif name == "year":
        yield bytes([126])
    elif name == "date":
        yield (2026 << 9 | 11 << 5 | 26).to_bytes(3, "little")
    elif name == "datetime":
        yield ((DAY << 17 | CLOCK) + (1 << 39)).to_bytes(5, "big") + fraction
    elif name == "time":
        yield (CLOCK + (1 << 23)).to_bytes(3, "big") + fraction
    elif name == "timestamp":
        yield (1795696245).to_bytes(4, "big") + fraction
    elif name in ("enum", "set"):
        yield b"\x01"
    elif name == "json":
        yield b"\x03\0\0\0" + b"\x05\x01\0"
        yield b"\x0b\0\0\0" + b"\x0f\x0a\x08" + (DAY << 17 << 24).to_bytes(8, "little")
    else:
        length = {254: 2 if column.meta > 255 else 1, 253: 2 if column.meta > 255 else 1}.get(column.type, column.meta)
        yield (1).to_bytes(length, "little") + b"a"
        if kind.charset == "ascii":
            yield (1).to_bytes(length, "little") + b"\xff"


def lake_type(record_type: str, form: str) -> str:
    """The type of a lake's column in a ``form`` of lakes, in Spark's DDL."""
    of_spark = spark_type(record_type, Options())
    if of_spark == "INTERVAL DAY TO SECOND":
        return "BIGINT"
    return "INT" if form == "iceberg" and of_spark in ("TINYINT", "SMALLINT") else of_spark


def cells(kind: Kind) -> tuple[str, ...]:
    """All but the first cell of the type's row, with letters in place of its numbers."""
    record_type, column = column_type(logged(kind)), copied(kind)
    assert column.sql_type == record_type, "a copy tells another type than the binlog"
    read = column_reader(logged(kind)._replace(meta=1) if kind.name == "binary" else logged(kind))
    values = ", ".join(f"`{read(data, 0)[0]}`" for data in samples(kind))
    in_spark = spark_type(record_type, Options())
    lake, iceberg = lake_type(record_type, "delta"), lake_type(record_type, "iceberg")
    lakes = "the same" if lake == in_spark else f"`{lake}`, microseconds"
    lakes += f"; Iceberg: `{iceberg}`" if iceberg != lake else ""
    selected = column_text(column, "c", "x", {}).selected
    shown = f"`{selected[0]}`" if len(selected) == 1 else f"`{selected[-1]}`, with the types of all its members"
    if kind.name == "decimal":
        values = re.sub(r'"0\.?0*"', '"0.00"', values)
        in_spark = re.sub(r"DECIMAL\(\d+,\d+\)", "DECIMAL(p,s)", in_spark)
        shown = re.sub(r"DECIMAL\(\d+,\d+\)", "DECIMAL(p,s)", shown)
    values = re.sub(f'"charset":"{kind.charset}"', '"charset":"…"', values)
    in_spark = f"`{in_spark}`"
    if kind.name in ("enum", "set") and read_type(record_type).members is None:
        in_spark += "; an error for such a value, since no record has its text"
    return values, in_spark, lakes, shown


def table() -> list[str]:
    """The lines of the table: types of which all cells are the same share a row."""
    rows: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for kind in kinds():
        names, charsets = rows.setdefault(cells(kind), ([], []))
        name = kind.shown
        if name not in names:
            names.append(name)
        if kind.charset not in charsets:
            charsets.append(kind.charset)
    return [*HEAD, *(_row(names, charsets, made) for made, (names, charsets) in rows.items())]


def _row(names: list[str], charsets: list[str], made: tuple[str, ...]) -> str:
    named = ", ".join(f"`{name}`" for name in names)
    if charsets != ["binary"]:
        named += f" in {', '.join(sorted(charsets))}"
    return f"| {named} | {' | '.join(made)} |"
