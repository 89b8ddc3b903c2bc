"""Finds the cause of each drifted row, and evidence for it in one line, from the logs and the statements of both sides.

    foreign write           a follower transaction that did not come through the consumer changed the row last, or
                            emptied its table
    skipped sequence        an operator skipped the leader's last change of the row on the follower (--skip)
    conflict converged      the consumer removed the row, since it shared a unique key with a row of the leader
    before-image mismatch   a before image differs from the last logged image: the row was changed with the binlog off
    schema drift            only one side has a statement: the tables differ, or the follower changed the row by itself
                            (a trigger, a foreign key) in a transaction of the consumer
    missing apply           none of these: the follower has applied later changes, but its log lacks this change

Only the last change counts, since after each change that the consumer applies, the row equals the leader's row: a
foreign write that the leader has overwritten since is not the cause. A keyless row is identified only by its content,
so for such a row any of these changes counts.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.model.names import Uri
from cdc.spark.ddl.definitions import Unmatched
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.small_data import beside
from cdc.spark.lag.transit import matched

__all__ = ["CONFLICT", "FOREIGN", "MISMATCH", "MISSING", "SCHEMA", "SKIPPED", "with_causes"]

FOREIGN, SKIPPED, CONFLICT = "foreign write", "skipped sequence", "conflict converged"
MISMATCH, SCHEMA, MISSING = "before-image mismatch", "schema drift", "missing apply"

_STATEMENTS = (
    "database STRING, table STRING, statements "
    "ARRAY<STRUCT<side: STRING, sequence: BIGINT, alters: BOOLEAN, cause: STRING, evidence: STRING>>"
)
# SQL for the sequence of the row's last change on the leader. If neither the leader's log nor a chunk contains the row,
# this is the sequence at which the copy began, since the leader did not have the row then.
_SAID = "coalesce(leader_last.sequence, began)"
# SQL that is true if both sides changed the row, and the follower's last change has no mark
# (``streams.consumer_notes``): the consumer made that change.
_CHANGED_BY_BOTH = f"""
    {_SAID} IS NOT NULL AND follower_last IS NOT NULL
    AND coalesce(follower_marked.sequence != follower_last.sequence, true)
"""
_LAST_ON_FOLLOWER = "(NOT keyed OR follower_marked.sequence = follower_last.sequence)"
_LAST_ON_LEADER = "(NOT keyed OR leader_marked.sequence = leader_last.sequence)"
_AFTER_FOLLOWER = "(NOT keyed OR coalesce(leader_marked.at > follower_last.sequence, true))"
# A conflict explains nothing if the leader changed the row after the conflict, since the consumer had to apply that
# change.
_BY_CONFLICT = f"{_LAST_ON_FOLLOWER} AND (NOT keyed OR coalesce(leader_last.sequence <= follower_marked.at, true))"
_EXPLAINS = """
    IF(s.alters,
        (s.side = 'follower' AND kind != 'missing' AND follower_last.sequence > s.sequence)
        OR (s.side = 'leader' AND kind != 'extra' AND leader_last.sequence > s.sequence)
        OR (NOT keyed AND (kind = 'missing' AND follower_last IS NULL OR kind = 'extra' AND leader_last IS NULL)),
        (kind = 'missing' AND follower_last IS NULL) OR (kind = 'extra' AND leader_last IS NULL))
"""


def _case(cause: str, *evidence: str) -> str:
    return f"named_struct('cause', '{cause}', 'evidence', concat({', '.join(evidence)}))"


def _position(change: str) -> str:
    return f"{change}.file, ':', {change}.position"


def _foreign() -> str:
    time = "date_format(timestamp_micros(follower_marked.ts_us), 'yyyy-MM-dd HH:mm:ss')"
    did = """
        CASE kind WHEN 'different' THEN concat('changed ', array_join(columns, ', '))
            WHEN 'missing' THEN 'removed it' ELSE 'added it' END
    """
    transaction = "'follower transaction ', follower_marked.transaction"
    return _case(FOREIGN, transaction, "' at '", _position("follower_marked"), "', '", time, "' UTC: '", did)


def _broken(side: str) -> str:
    change = f"{side}_broken"
    return _case(
        MISMATCH, "'the change at '", _position(change), f"' (sequence ', {change}.sequence, ')'",
        f"' found other values than the log of the {side} had left: something changed it with the binlog off'",
    )  # fmt: skip


def _cause() -> str:
    """Returns the SQL CASE for the cause and the evidence of a drifted row. The column ``statement`` contains the
    statement that explains the drift, or NULL."""
    sequence, note = "leader_marked.sequence", "leader_marked.note"
    skipped = _case(SKIPPED, "'record '", sequence, "' was skipped by an operator: '", note)
    removed = _case(
        CONFLICT, "'removed by the consumer at '", _position("follower_marked"), "': '", "follower_marked.note"
    )
    unfound = _case(
        MISMATCH, "'the consumer did not find it (leader sequence '", sequence, "': '", note, "'), '",
        r"'though the follower\'s log has it: its binlog was off when that changed'",
    )  # fmt: skip
    itself = _case(
        SCHEMA, r"'the consumer\'s transaction at '", _position("follower_last"),
        r"' changed it, and the leader did not: a trigger or foreign key of the follower\'s did'",
    )  # fmt: skip
    overwritten = _case(
        SCHEMA, r"'the consumer\'s transaction at '", _position("follower_last"),
        r"' applied the leader\'s change at '", _position("leader_last"), "' (sequence '", "leader_last.sequence",
        r"') and left another row: something on the follower changed it in that transaction (a trigger?)'",
    )  # fmt: skip
    missing = _case(
        MISSING, r"'the leader\'s change at '", _position("leader_last"), "' (sequence '", "leader_last.sequence",
        r"') is not in the follower\'s log, which is past it'",
    )  # fmt: skip
    return f"""
        CASE
            WHEN leader_marked.kind = 'skipped' AND {_LAST_ON_LEADER} AND {_AFTER_FOLLOWER} THEN {skipped}
            WHEN follower_marked.kind = 'foreign' AND {_LAST_ON_FOLLOWER} THEN {_foreign()}
            WHEN follower_marked.kind = 'conflict' AND follower_image IS NULL AND {_BY_CONFLICT} THEN {removed}
            WHEN leader_marked.kind = 'conflict' AND {_LAST_ON_LEADER} AND {_AFTER_FOLLOWER} THEN {unfound}
            WHEN statement IS NOT NULL THEN named_struct('cause', statement.cause, 'evidence', statement.evidence)
            WHEN follower_broken.sequence = follower_last.sequence THEN {_broken("follower")}
            WHEN leader_broken.sequence = leader_last.sequence THEN {_broken("leader")}
            WHEN leader_last IS NULL AND follower_last.sequence < applied_at THEN {_unnamed()}
            WHEN leader_last IS NULL THEN {itself}
            WHEN follower_last.sequence >= applied_at THEN {overwritten}
            ELSE {missing}
        END
    """


def _unnamed() -> str:
    return _case(
        MISSING, r"'the copy of the leader\'s table that begins with sequence '", "began",
        "' does not name the row, which the follower has had since '", _position("follower_last"),
    )  # fmt: skip


def with_causes(
    drifted: DataFrame,
    statements: Sequence[Unmatched],
    tables: Collection[tuple[str, str]],
    transactions: DataFrame | None = None,
) -> DataFrame:
    """Adds the columns ``cause`` and ``evidence`` to the ``drifted`` rows of a comparison.

    ``statements`` are the statements that only one side has, ``tables`` are the (database, table) of all tables with
    rows in either topic. Without ``transactions`` (``streams.transactions``) a change that the follower applied with
    another result counts as missing.
    """
    drifted = _with_applied_at(drifted, transactions)
    spark = drifted.sparkSession
    by_table = _by_table(spark, statements, tables)
    joined = drifted.join(beside(by_table), ["database", "table"], "left")
    joined = joined.withColumn("statement", F.expr(f"try_element_at(filter(statements, s -> {_EXPLAINS}), -1)"))
    return joined.withColumn("found", F.expr(_cause())).select("*", "found.cause", "found.evidence")


def _with_applied_at(drifted: DataFrame, transactions: DataFrame | None) -> DataFrame:
    """Adds the column ``applied_at``, a sequence in the follower's topic. It is the start of the transaction in which
    the consumer applied the leader's last change of the row, or in which it began to copy the row's table. It is NULL
    if there is no such transaction, or if another client made the follower's last change.
    """
    nothing = F.lit(None).cast("bigint").alias("applied_at")
    changed = drifted.where(_CHANGED_BY_BOTH)
    if transactions is None or changed.isEmpty():
        return drifted.select("*", nothing)
    mark = F.struct("since", F.col("ts_us").alias("at_us"), F.col("start.sequence").alias("begins"))
    applied = transactions.where("kind = 'applied'").select("since", "upto", mark.alias("mark"))
    items = changed.select(F.expr(_SAID).alias("sequence"), F.struct(*drifted.columns).alias("item"))
    found = matched(items, {"by": applied}).select("item.*", F.col("by.begins").alias("applied_at"))
    return found.unionByName(drifted.where(f"NOT ({_CHANGED_BY_BOTH})").select("*", nothing))


def _by_table(spark: SparkSession, statements: Sequence[Unmatched], tables: Collection[tuple[str, str]]) -> DataFrame:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in statements:
        for action, database, table in _touched(each, tables):
            alters = action in ("AlterTable", "CreateIndex", "DropIndex")
            line = {"side": each.side, "sequence": each.sequence, "alters": alters}
            line |= {"cause": _cause_of(each, action), "evidence": each.evidence}
            found.setdefault((database, table), []).append(line)
    rows = [{"database": name[0], "table": name[1], "statements": lines} for name, lines in found.items()]
    return local_frame(spark, rows, _STATEMENTS)


def _touched(statement: Unmatched, tables: Collection[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yields (action, database, table) for each table that the statement changed."""
    for act in statement.acts:
        for uri in (act.uri, act.to):
            if uri:
                database, table = Uri.parse(uri)[1:]
                if table is not None:
                    yield act.action, database, table
                elif act.action == "DropDatabase":
                    yield from ((act.action, *name) for name in tables if name[0] == database)


def _cause_of(statement: Unmatched, action: str) -> str:
    if statement.skipped:
        return SKIPPED
    if action != "TruncateTable":
        return SCHEMA
    return FOREIGN if statement.side == "follower" else MISSING
