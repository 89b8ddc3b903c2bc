"""Writes the SQL condition for the rows in a range of keys, or with some keys. Pure.

MySQL uses no index to compare rows of values, ``(a, b) > (1, 2)``, but it reads a chain of comparisons as ranges of an
index (manual, "Range Optimization of Row Constructor Expressions").
"""

from collections.abc import Iterable, Sequence

__all__ = ["keys_condition", "misplaced_rows", "range_condition"]


def range_condition(columns: Sequence[str], after: Sequence[str] | None, through: Sequence[str] | None) -> str:
    """Returns the condition for rows whose key comes after ``after`` and not after ``through``, in the order of the key
    ``columns``.

    All arguments are SQL: quoted names, and a literal for each name. None means no bound. Raises ValueError if a bound
    does not have one value for each column.
    """
    conditions = []
    if after is not None:
        conditions.append(_chain(columns, after, ">", ">"))
    if through is not None:
        conditions.append(_chain(columns, through, "<", "<="))
    return " AND ".join(conditions) or "TRUE"


def _chain(columns: Sequence[str], bound: Sequence[str], strictly: str, at_last: str) -> str:
    *pairs, (column, literal) = zip(columns, bound, strict=True)
    condition = f"{column} {at_last} {literal}"
    for column, literal in reversed(pairs):
        condition = f"{column} {strictly} {literal} OR {column} = {literal} AND ({condition})"
    return f"({condition})"


def keys_condition(columns: Sequence[str], keys: Iterable[Sequence[str]]) -> str:
    """Returns the condition that a row has one of ``keys`` in ``columns``. ``keys`` must not be empty; all arguments
    are SQL."""
    rows = [" AND ".join(f"{column} = {value}" for column, value in zip(columns, key, strict=True)) for key in keys]
    return f"({' OR '.join(rows)})"


def misplaced_rows(
    table: str, partition: str, columns: Sequence[str], *, index: str = "", nullable: bool = False
) -> str:
    """Returns the SELECT that finds a row in ``partition`` that belongs in another partition; all names are SQL.

    ``columns`` are the columns of a key; with a ``nullable`` key the SELECT finds only rows without NULLs in the key. A
    condition on the key never finds a misplaced row, even if the query names the partition of that row, because the
    server does not read partitions in which the key cannot be. So the SELECT looks up each row by its key in the
    partition from which the row was read, and returns rows that are not found.
    """
    source = f"{table} PARTITION ({partition})"
    same = " AND ".join(f"b.{name} = a.{name}" for name in columns)
    unequal = "".join(f" AND a.{name} IS NOT NULL" for name in columns) if nullable else ""
    return (
        f"SELECT 1 FROM {source} AS a {index} LEFT JOIN {source} AS b {index} ON {same} "
        f"WHERE b.{columns[0]} IS NULL{unequal} LIMIT 1"
    )
