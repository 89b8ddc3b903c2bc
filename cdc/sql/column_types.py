"""Reads and writes column types in SQL, with character sets. A table's records contain the types once after each change
of the table. Pure.

Display widths of integers and digits of FLOAT and DOUBLE are omitted, because they change no value, and a table map
does not contain them.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["ColumnType", "character_type", "members_type", "read_type", "shown_members", "types_json"]

_TYPE = re.compile(r"(?P<name>[a-z]+)(?:\((?P<inside>(?:'(?:[^']|'')*'|[^'()])*)\))?(?P<words>[a-z0-9_ ]*)")
_MEMBER = re.compile(r"'((?:[^']|'')*)'")
_SHOWN = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column type. It has a ``name``, the ``numbers`` in brackets, the ``members`` of an ENUM or SET if they are
    known, and the ``charset`` of text.
    """

    name: str
    numbers: tuple[int, ...] = ()
    members: tuple[str, ...] | None = None
    unsigned: bool = False
    charset: str | None = None


def read_type(text: str) -> ColumnType:
    """Parses a type from a record. Raises ValueError for a ``text`` that no record contains."""
    found = _TYPE.fullmatch(text)
    if found is None:
        raise ValueError(f"not a column's type: {text[:80]}")
    name, inside, words = found["name"], found["inside"], found["words"].split()
    charset = words[-1] if "character" in words else None
    if name in ("enum", "set"):
        members = None if inside is None else tuple(each.replace("''", "'") for each in _MEMBER.findall(inside))
        return ColumnType(name, members=members, charset=charset)
    numbers = tuple(map(int, inside.split(","))) if inside else ()
    return ColumnType(name, numbers, unsigned="unsigned" in words, charset=charset)


def character_type(name: str, charset: str) -> str:
    """Writes the type of a text column with its character set."""
    return f"{name} character set {charset}"


def members_type(name: str, members: Iterable[str] | None, charset: str) -> str:
    """Writes an ENUM or SET type with its members. If ``members`` is None, because the members cannot be decoded
    exactly, they are omitted.
    """
    listed = "" if members is None else "({})".format(",".join("'{}'".format(m.replace("'", "''")) for m in members))
    return f"{name}{listed} character set {charset}"


def types_json(types: Iterable[str]) -> str:
    """Returns the JSON of a record's column types, which is inserted after the column names."""
    return f',"types":{json.dumps(list(types), ensure_ascii=False)}'


def shown_members(column_type: str) -> tuple[str, ...]:
    """Parses the members of an ENUM or SET in a column type that the server shows."""
    texts = _SHOWN.findall(column_type)
    return tuple(
        re.sub(r"\\(.)|''", lambda at: _ESCAPES.get(at[1], at[1]) if at[1] else "'", text, flags=re.DOTALL)
        for text in texts
    )
