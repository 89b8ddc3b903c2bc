"""Recognises the RENAME by which a schema change tool puts a new version of a table in its place, and finds the setting
for its names. Pure.
"""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Swap", "swap"]

_Name = tuple[str, str]


class Swap(NamedTuple):
    """The ``table`` whose place ``new`` took, as (database, name), and the setting that lets the tool's names pass."""

    table: _Name
    new: _Name
    setting: str


def swap(renames: Iterable[tuple[_Name, _Name]]) -> Swap | None:
    """The swap that a statement with these renames, each from one name to another, performs; None if it is no swap.

    A swap moves a table away and another one to its name; all are in one database, under names that contain the
    table's.
    """
    before = {after: name for name, after in renames}
    both = before.keys() & set(before.values())
    if len(both) != 1:
        return None
    ((database, table),) = both
    others = sorted((before.keys() | set(before.values())) - both)
    if not all(there == database and table in name for there, name in others):
        return None
    patterns = (f'"{name.replace(table, "{table}", 1)}"' for _, name in others)
    return Swap((database, table), before[database, table], f"filters.shadow_tables = [{', '.join(patterns)}]")
