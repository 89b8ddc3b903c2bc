"""Writes rows of tables with columns FLOAT(M,D) or DOUBLE(M,D). The SQL copies each number from another column, because
the server does not round a copied number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from cdc.consumer.literals.rounded import Rounded, number_table, to_copy
from cdc.consumer.literals.values import DEFAULT, identifier, literal, table_name
from cdc.consumer.plan.planner import Change
from cdc.model.record import Record, Row
from cdc.model.values import Value

__all__ = ["apart", "copying_insert", "copying_update"]


def apart(change: Change, rounded: Mapping[str, Rounded]) -> list[Change]:
    """Splits the update of a row without a key into a deletion and an insertion, if numbers must be copied; returns any
    other change unchanged.

    The update must be split, because an UPDATE that copies numbers can't be limited to one of several equal rows.
    """
    record, (before, after) = change
    if record.key is not None or record.operation != "Update" or rounded.keys().isdisjoint(record.columns):
        return [change]
    gone, come = replace(record, operation="Delete"), replace(record, operation="Add")
    return [Change(gone, Row(before, None)), Change(come, Row(None, after))]


def copying_insert(change: Change, written: Sequence[int], rounded: Mapping[str, Rounded]) -> bytes:
    """Writes the INSERT of an after-image, in the columns ``written``. Raises ValueError for an invalid value."""
    record, image = change.record, change.row.after or []
    # DEFAULT is left out, since a query can't select it.
    written = [index for index in written if image[index] is not DEFAULT]
    texts, source = _copied(record, image, written, rounded)
    names = ",".join(identifier(record.columns[index]) for index in written)
    return f"INSERT INTO {table_name(record.uri)} ({names}) SELECT {','.join(texts)} FROM {source}".encode()


def copying_update(change: Change, written: Sequence[int], rounded: Mapping[str, Rounded], *, where: str) -> bytes:
    """Writes the UPDATE that changes a row with a key to its after-image, in the columns ``written``."""
    record = change.record
    texts, source = _copied(record, change.row.after or [], written, rounded)
    table = table_name(record.uri)
    values = ",".join(
        f"{table}.{identifier(record.columns[index])}={text}" for index, text in zip(written, texts, strict=True)
    )
    return f"UPDATE {table} JOIN {source} SET {values} WHERE {where}".encode()


def _copied(
    record: Record, image: list[Value], written: Sequence[int], rounded: Mapping[str, Rounded]
) -> tuple[list[str], str]:
    """Returns the SQL expressions of an image's values, and a derived table. Some of the expressions take numbers from
    the derived table.
    """
    alias = "n" if (record.uri.table or "").lower() != "n" else "m"
    # In conditions, column names are not qualified. So the names of the derived table's columns must differ from the
    # table's: no column of the table may begin with the prefix.
    prefix = next(
        text for text in (f"c{number}_" for number in count())
        if not any(name.lower().startswith(text) for name in record.columns)
    )  # fmt: skip
    numbers: list[tuple[Rounded, str]] = []
    texts: list[str] = []
    for index in written:
        column = rounded.get(record.columns[index])
        number = to_copy(image[index]) if column is not None else None
        if column is None or number is None:
            texts.append(literal(image[index]))
        else:
            texts.append(f"{alias}.{prefix}{len(numbers)}")
            numbers.append((column, number))
    source = number_table(numbers, prefix=prefix) if numbers else "(SELECT 1)"
    return texts, f"{source} AS {alias}"
