"""The folders of a lake's tables: names of MySQL as names of files that every system and every reader takes. Pure.

Letters, digits, ``_`` and ``-`` stay; any other character is ``~`` and its code in hexadecimal digits, and ``~`` again.
None begins with ``_`` or ``.``, which readers of Parquet leave out, and none has ``.``, ``=`` or ``%``, which mean
something in paths: such names are free for files of the lake's own.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Sequence

__all__ = ["encoded", "folder", "quoted", "unfit", "version_folder"]

_OTHER = re.compile(r"[^A-Za-z0-9_-]|^_")
_LONGEST = 120  # characters of a name of MySQL as it is encoded; longer ones end with a hash


def folder(database: str, table: str) -> str:
    """The folder of a table, below that of the lake."""
    return f"{encoded(database)}/{encoded(table)}"


def encoded(name: str) -> str:
    """The name of a folder for the ``name`` of a database or table."""
    text = _OTHER.sub(lambda match: f"~{ord(match[0]):x}~", name)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}~~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def version_folder(version: int) -> str:
    """The folder of the rows that a version of a table of plain Parquet wrote, below that of the table."""
    return f"_v{version}"


def quoted(name: str) -> str:
    """The name of a column in Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def unfit(columns: Sequence[str], reserved: Collection[str], in_files: Callable[[str], str] = str) -> str:
    """Why a format can't have these ``columns``, empty where it can: some are ``reserved``, or two are one name to
    Spark or as they are written ``in_files``."""
    if taken := [name for name in columns if name.lower() in reserved]:
        return f"the format has columns of its own that are called so: {', '.join(taken)}"
    for written in (str.lower, _ignoring_case, in_files):
        first: dict[str, str] = {}
        for name in columns:
            if (other := first.setdefault(written(name), name)) != name:
                return f"the names of two columns become one: {other}, {name}"
    return ""


def _ignoring_case(name: str) -> str:
    """What is the same of two names that Java's ``equalsIgnoreCase``, and so Spark, takes for one: ``ı`` is ``i``."""
    upper = (each.upper() if len(each.upper()) == 1 else each for each in name)
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in upper)
