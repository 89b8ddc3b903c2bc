"""Writes what the commits to lake tables contain: their metadata, and the MERGE of changed rows. Pure."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from cdc.lake.folder import quoted
from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import Plan

__all__ = ["Note", "Written", "definition", "merge_statement"]

_KEY = "cdc_lake"
_FORMAT = 1  # is increased if cdc computes rows in another way, so that all tables are written again


@dataclass(frozen=True, slots=True)
class Note:
    """The metadata of a version of a lake table. The version equals the leader's table ``database``.``table`` after
    ``sequence``, which is the last sequence of ``transaction``.

    Two versions have the same ``definition`` if they have the same columns, key and options.
    """

    database: str
    table: str
    sequence: int
    transaction: str
    definition: str

    def text(self) -> str:
        """Writes the note as JSON, for the metadata of a commit."""
        return json.dumps({_KEY: asdict(self)}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """Reads the note from the metadata of a commit; None if the metadata contain no note."""
        try:
            return cls(**json.loads(text or "{}")[_KEY])
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class Written:
    """The newest version of a table, with the note that cdc-lake wrote; ``note`` is None if another writer has changed
    the table since then.
    """

    version: int
    note: Note | None


def definition(plan: Plan, options: Options) -> str:
    """Computes a digest of everything that determines the rows of the plan's table, except the stream."""
    key = plan.stretches[-1].key if plan.stretches else ()
    known = (_FORMAT, plan.columns, key, options.zero_dates, options.on_alter, options.typed_json)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]


# Writes the MERGE statement that applies changed rows to a table with a key.


def merge_statement(table: str, net: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Writes the MERGE of the rows in ``net`` into ``table``. ``net`` has the columns c0, c1, … and gone: c0, c1, … are
    the table's ``columns`` in order, and gone is true for a deleted row.
    """
    source = {name: f"s.c{at}" for at, name in enumerate(columns)}
    same = " AND ".join(f"t.{quoted(name)} = {source[name]}" for name in key)
    sets = ", ".join(f"t.{quoted(name)} = {value}" for name, value in source.items())
    names, values = ", ".join(map(quoted, source)), ", ".join(source.values())
    return (
        f"MERGE INTO {table} AS t USING {net} AS s ON {same} WHEN MATCHED AND s.gone THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({names}) VALUES ({values})"
    )
