"""Decides from the types of a column on both servers whether the follower may store another value than the leader's
without an error. Pure.

Strict mode refuses a number that is out of range, a text that is too long, and a character that the follower's
character set lacks. But it rounds digits and fractions of seconds, cuts trailing spaces off, fills BINARY up with
zeros, and reads a number as a year, a date or the position of a member. MySQL's own replication refuses such columns,
too (``replica_type_conversions``).
"""

from collections.abc import Mapping

from cdc.model.charset import bytes_of_character
from cdc.sql.column_types import ColumnType, read_type

__all__ = ["fits", "misfits"]

# The number of bits of each integer type.
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
# The number of bits of the integers that a column of this type stores exactly; it refuses larger ones, or rounds them.
_EXACT = {**dict.fromkeys((*_INTEGERS, "decimal"), 64), "double": 53}
# The maximum number of bytes in a column of this type.
_TEXTS = {f"{size}text": 2**bits - 1 for size, bits in (("tiny", 8), ("", 16), ("medium", 24), ("long", 32))}
_BLOBS = {name.replace("text", "blob"): size for name, size in _TEXTS.items()}
_BMP = "\uffff"  # the last character of utf8mb3
# The server replaces some characters that these sets lack by others: 晡 by 晙 in cp932, and some characters above
# U+FFFF by ASCII characters in tis620.
_SUBSTITUTING = ("cp932", "tis620")
_SECONDS = ("time", "datetime", "timestamp")
_GEOMETRIES = frozenset({
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
    "geometrycollection",
})  # fmt: skip


# The types of a follower's columns for MariaDB's UUID, INET4 and INET6. A text of one of these types may have room in a
# column of another, so two of them fit only if they are equal.
_OF_MARIADB = frozenset(f"{kind} character set ascii" for kind in ("char(36)", "varchar(15)", "varchar(39)"))


def misfits(there: Mapping[str, str], here: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Returns the columns that may store another value than the leader's, each with its types on the leader and on the
    follower. ``there`` are the types of the leader's columns, ``here`` those of the follower's columns that are not
    generated.

    A column that only one server has is no misfit, because the follower refuses the row, or gives the column its
    default. The case of column names is ignored.
    """
    own = {name.lower(): kind for name, kind in here.items()}
    found = {name: (kind, own.get(name.lower(), kind)) for name, kind in there.items()}
    return {
        name: types for name, types in found.items() if not fits(*types) or (name not in here and _rounds(types[1]))
    }


def fits(there: str, here: str) -> bool:
    """Whether a column of the type ``here`` stores each value of a column of the type ``there``, or refuses it. Both
    types are written as in records; a type that is not known fits.
    """
    if there == here or {there, here} <= _OF_MARIADB:
        return there == here
    try:
        return _fits(read_type(there), read_type(here))
    except ValueError:
        return True


def _rounds(kind: str) -> bool:
    """Whether a column has the type FLOAT(M,D) or DOUBLE(M,D). The consumer keeps the server from rounding the values
    of such a column (``TableSchema.rounded``), but only if the column's name has the same case as in the records.
    """
    return kind.startswith(("float(", "double(")) and "," in kind


def _fits(there: ColumnType, here: ColumnType) -> bool:
    match there.name:
        case name if name in _INTEGERS:
            return _INTEGERS[name] <= _EXACT.get(here.name, 0)
        case "decimal":
            if here.name in _INTEGERS:
                return there.numbers[1:] == (0,)
            return here.name == "decimal" and here.numbers[1:] >= there.numbers[1:]
        case "float":
            return here.name in ("float", "double")
        case name if name in _SECONDS:
            return here.name == name and here.numbers >= there.numbers
        case "date":
            return here.name in ("date", "datetime")
        case "char":
            return here.name in ("char", "varchar", *_TEXTS) and _keeps_characters(there, here)
        case name if name == "varchar" or name in _TEXTS:
            return _keeps_characters(there, here) and _keeps_spaces(there, here, "varchar", _TEXTS)
        case "binary" if here.name == "binary":
            return here.numbers == there.numbers
        case name if name in ("binary", "varbinary") or name in _BLOBS:
            return _keeps_spaces(there, here, "varbinary", _BLOBS)
        case "enum" | "set":
            return here.name == there.name and _same_members(there, here)
        case "geometry":
            return here.name in _GEOMETRIES
        case "bit" | "year":
            return here.name == there.name or here.name in _INTEGERS
        case "double" | "json" | "vector":
            return here.name == there.name
    return True


def _keeps_characters(there: ColumnType, here: ColumnType) -> bool:
    """Whether the column refuses each character that its character set lacks."""
    return here.charset == there.charset or here.charset not in _SUBSTITUTING


def _keeps_spaces(there: ColumnType, here: ColumnType, varying: str, sizes: Mapping[str, int]) -> bool:
    """Whether a column of the type ``varying`` or of a type in ``sizes`` has room for the longest value of ``there``.
    The server cuts off spaces for which there is no room.

    Two types in ``sizes`` are compared by these sizes alone, so that a TEXT may have a wider character set on the
    follower.
    """
    if there.name in sizes and here.name in sizes:
        return sizes[there.name] <= sizes[here.name]
    longest = sizes.get(there.name) or there.numbers[0]
    if here.name == varying:
        return longest <= here.numbers[0]
    return longest <= sizes.get(here.name, 0) // bytes_of_character(here.charset or "binary")


def _same_members(there: ColumnType, here: ColumnType) -> bool:
    """Whether each member of the leader's column has the same position in the follower's column.

    If not, the follower may store another member without an error. Some records contain the position of a member
    instead of its text. Also, the server may read a text that is not a member as a position, or as a member that
    differs from the text only in case.

    The follower's list of members contains question marks in place of the characters that utf8mb3 lacks. So these
    characters of the leader's members are replaced before the comparison.
    """
    if there.members is None or here.members is None:
        return True
    members = tuple("".join("?" if letter > _BMP else letter for letter in member) for member in there.members)
    return here.members[: len(members)] == members
