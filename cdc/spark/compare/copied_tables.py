"""Decides which rows can be compared in tables whose log is incomplete: tables older than both streams, and tables that
were copied into the leader's stream.

From the copy's beginning on, the leader's stream contains all rows of the table. So a row that does not appear in the
stream after this beginning is not on the leader, whatever older records and the fold's count of its images (``net``)
show.

The consumer writes only rows that differ from the copy, so the follower's log lacks the other rows of the copy. An
earlier part of the log contains them, with two exceptions:

- The follower began with a base copy (``consumer.start``): its log lacks the rows of the base copy.
- ALTER TABLE changed rows, or the columns of the key, without a record: the follower's image is older than the ALTER,
  the leader's image is newer. If the ALTER gave the table its key, the follower's image has no key at all. An ALTER
  that only the follower ran does not count: it would hide a foreign write before it.

These rows are **unknown**: they are counted, but not compared. No row of a table whose copy is incomplete is compared.

If the follower's capture began late (``ddl.late_capture``), a copy in the follower's topic states all rows of the
follower's table. So a row that does not appear there is not on the follower, and the exceptions do not hold, unless the
follower altered the table between its own copy and the leader's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.ddl.late_capture import NOT_LATE, LateTables
from cdc.spark.ddl.lineage import Name
from cdc.spark.ddl.table_copies import TableCopy
from cdc.spark.input.small_data import beside, in_one_part, local_frame

__all__ = ["KIND_OF_COPIED", "NO_COPIES", "Copied", "with_copies"]

_FIELDS = {
    "began": "BIGINT", "complete": "BOOLEAN", "altered": "BOOLEAN", "alters": "INT", "older": "BOOLEAN",
    "captured_at": "BIGINT", "captured_altered": "BOOLEAN", "own_alters": "ARRAY<BIGINT>",
}  # fmt: skip
_ROWS = ", ".join(f"{name} {kind}" for name, kind in {"database": "STRING", "table": "STRING", **_FIELDS}.items())
_STATED = (
    "(leader_image IS NOT NULL AND leader_marked.kind = 'chunk' AND leader_marked.sequence = leader_last.sequence)"
)
# ALTERs that only the follower ran explain no difference: the leader's image is not newer than these.
_ERA = """(
    follower_era + size(filter(coalesce(own_alters, CAST(array() AS ARRAY<BIGINT>)), s -> s > follower_last.sequence))
)"""
_UNKNOWN = f"""
    coalesce(CASE
        WHEN NOT coalesce(captured_altered, true) THEN false
        WHEN NOT keyed THEN copied AND leader_last IS NULL AND follower_net != 0 AND {_ERA} < -alters
        WHEN {_STATED} AND follower_last IS NULL THEN unlogged
        WHEN {_STATED} AND follower_image IS NOT NULL
            THEN leader_image != follower_image AND {_ERA} < leader_era
        ELSE copied AND leader_last IS NULL AND follower_image IS NOT NULL AND {_ERA} < -alters
    END, false)
"""
# SQL for the kind of drift of a row in a copied table, if neither side's fold contains the row. The row is extra if a
# chunk contained it, the leader deleted it later, and the follower's log contains no change of it: then the follower
# did not delete it.
KIND_OF_COPIED = "IF(unlogged AND follower_last IS NULL AND leader_marked.kind = 'chunk', 'extra', NULL)"


@dataclass(frozen=True, slots=True)
class Copied:
    """The tables that were or will be copied. ``began`` is true if the follower began with a base copy of the leader.

    ``older`` are tables that both sides may have had before their streams begin. ``late`` are the tables that a late
    capture of the follower makes comparable or not. ``own_alters`` are the follower's sequences of the ALTERs that it
    alone ran, by table.
    """

    tables: Mapping[Name, TableCopy] = field(default_factory=dict)
    began: bool = False
    older: frozenset[Name] = frozenset()
    late: LateTables = NOT_LATE
    own_alters: Mapping[Name, Sequence[int]] = field(default_factory=dict)

    @property
    def incomplete(self) -> frozenset[Name]:
        """The tables that are not compared."""
        return frozenset({*self.late.unjudged, *(name for name, copy in self.tables.items() if not copy.complete)})


NO_COPIES = Copied()


def with_copies(joined: DataFrame, copied: Copied) -> DataFrame:
    """Adds facts about each row's table to ``joined``, whose rows have both sides' columns of a fold.

    ``comparable`` is false for rows of a table whose copy is incomplete, ``copied`` is true for rows of a table whose
    copy is complete. ``began`` is the leader's sequence at which the copy began. ``unlogged`` is true if the follower
    may have rows of the table that its log lacks. ``unknown`` is true if the logs do not show whether the row is the
    same on both sides. ``older`` is true if both sides may have had rows of the table before their logs begin.
    ``captured_at`` is the leader's sequence at which a late capture began that has copied the follower's table.
    """
    if rows := list(_known(copied)):
        known = beside(local_frame(joined.sparkSession, rows, _ROWS))
        joined = in_one_part(joined.join(known, ["database", "table"], "left"))
    else:
        joined = joined.withColumns({name: F.lit(None).cast(kind) for name, kind in _FIELDS.items()})
    known_of = joined.withColumns({
        "comparable": F.expr("coalesce(complete, true)"),
        "copied": F.expr("coalesce(complete, false)"),
        "unlogged": F.expr("coalesce(altered AND coalesce(captured_altered, true), false)") | F.lit(copied.began),
    }).drop("complete", "altered")  # fmt: skip
    return known_of.withColumn("unknown", F.expr(_UNKNOWN)).drop("alters", "captured_altered", "own_alters")


def _known(copied: Copied) -> Iterator[dict[str, Any]]:
    """Yields the facts about each table that was or will be copied, or that may be older than both streams."""
    late = copied.late
    for name in {*copied.tables, *copied.older, *late.unjudged, *late.captured}:
        facts: dict[str, Any] = asdict(copied.tables[name]) if name in copied.tables else {}
        if captured := late.captured.get(name):
            facts |= {"captured_at": captured.at, "captured_altered": captured.altered}
        if name in copied.own_alters:
            facts["own_alters"] = list(copied.own_alters[name])
        if name in late.unjudged:
            facts["complete"] = False
        yield {"database": name[0], "table": name[1], "older": name in copied.older, **facts}
