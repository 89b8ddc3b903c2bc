"""Tables whose rows the logs do not tell from their beginning: those older than both, and those that were copied into
the leader's stream. Of the latter, what the copy, and the follower's log, say of their rows.

From the copy's beginning on the leader's stream tells all of the table's rows. So a row that it does not name is none
of the leader's, whatever was logged before, and whether it was ever deleted: the fold's ``net`` does not matter.

The consumer writes only rows that are not as the copy states them, so the follower's log does not have the others. It
knows them from before, or it does not:

- The follower began from a copy itself (``consumer.start``): its log lacks the rows that this one held.
- ALTER TABLE changed rows, or the keys by which they are known, without a record: the follower's image is from before,
  the leader's from after that.

These rows are **unknown**: they are counted, but not compared. Of a table whose copy is not complete no row is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.ddl.lineage import Name
from cdc.spark.ddl.table_copies import TableCopy
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.small_data import beside, in_one_part

__all__ = ["KIND_OF_COPIED", "NO_COPIES", "Copied", "with_copies"]

_FIELDS = {"began": "BIGINT", "complete": "BOOLEAN", "altered": "BOOLEAN", "alters": "INT", "older": "BOOLEAN"}
_ROWS = ", ".join(f"{name} {kind}" for name, kind in {"database": "STRING", "table": "STRING", **_FIELDS}.items())
_STATED = (
    "(leader_image IS NOT NULL AND leader_marked.kind = 'chunk' AND leader_marked.sequence = leader_last.sequence)"
)
_UNKNOWN = f"""
    coalesce(keyed AND CASE
        WHEN {_STATED} AND follower_last IS NULL THEN unlogged
        WHEN {_STATED} AND follower_image IS NOT NULL
            THEN leader_image != follower_image AND follower_era < leader_era
        ELSE copied AND leader_last IS NULL AND follower_image IS NOT NULL AND follower_era < -alters
    END, false)
"""
# Of a row that neither side has by its log: a chunk stated it and the leader deleted it since, the follower did not.
KIND_OF_COPIED = "IF(unlogged AND follower_last IS NULL AND leader_marked.kind = 'chunk', 'extra', NULL)"


@dataclass(frozen=True, slots=True)
class Copied:
    """The tables that were copied, or are about to be, and whether the follower ``began`` from a copy of the leader.

    ``older`` are tables that both sides may have had before their streams begin.
    """

    tables: Mapping[Name, TableCopy] = field(default_factory=dict)
    began: bool = False
    older: frozenset[Name] = frozenset()


NO_COPIES = Copied()


def with_copies(joined: DataFrame, copied: Copied) -> DataFrame:
    """Rows with both sides' columns of a fold, and what is known of their tables.

    ``comparable`` are all rows but those of a table whose copy is not complete, ``copied`` those of one whose copy is.
    ``began`` is the leader's sequence at which that began. ``unlogged``: the follower may have rows of the table that
    its log lacks. ``unknown`` rows are not compared. ``older``: both sides may have had rows before their logs.
    """
    if rows := list(_known(copied)):
        known = beside(local_frame(joined.sparkSession, rows, _ROWS))
        joined = in_one_part(joined.join(known, ["database", "table"], "left"))
    else:
        joined = joined.withColumns({name: F.lit(None).cast(kind) for name, kind in _FIELDS.items()})
    known_of = joined.withColumns({
        "comparable": F.expr("coalesce(complete, true)"),
        "copied": F.expr("coalesce(complete, false)"),
        "unlogged": F.expr("coalesce(altered, false)") | F.lit(copied.began),
    }).drop("complete", "altered")  # fmt: skip
    return known_of.withColumn("unknown", F.expr(_UNKNOWN)).drop("alters")


def _known(copied: Copied) -> Iterator[dict[str, Any]]:
    """What is known of each table of which not all is usual."""
    for name in {*copied.tables, *copied.older}:
        copy = asdict(copied.tables[name]) if name in copied.tables else {}
        yield {"database": name[0], "table": name[1], "older": name in copied.older, **copy}
