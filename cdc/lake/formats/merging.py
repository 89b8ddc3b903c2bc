"""Writes the MERGE statement that applies changed rows to a table with a key. Pure."""

from collections.abc import Sequence

from cdc.lake.folder import quoted

__all__ = ["merge_statement"]


def merge_statement(table: str, net: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Writes the MERGE of the rows in ``net`` into ``table``. ``net`` has the columns c0, c1, … and gone; c0, c1, … are
    the table's ``columns`` in order.
    """
    source = {name: f"s.c{at}" for at, name in enumerate(columns)}
    same = " AND ".join(f"t.{quoted(name)} = {source[name]}" for name in key)
    sets = ", ".join(f"t.{quoted(name)} = {value}" for name, value in source.items())
    names, values = ", ".join(map(quoted, source)), ", ".join(source.values())
    return (
        f"MERGE INTO {table} AS t USING {net} AS s ON {same} WHEN MATCHED AND s.gone THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({names}) VALUES ({values})"
    )
