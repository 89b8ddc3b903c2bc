"""Reads the schema history of a stream: DDL, table copies and column types. Also finds the sequence that a stream has
reached at a given time or GTID.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdc.errors import UserError
from cdc.model.gtid import given_gtid
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import BEGINS_COPY, CASCADES, ENDS_COPY, Act, Name, table_name
from cdc.spark.frames.messages import Source
from cdc.spark.frames.schema_history import History, Statement, Told
from cdc.spark.input.records import COPYING, PARSING, json_schema
from cdc.sql.effects import MAINTAIN

__all__ = ["Moment", "history_of", "read_history", "sequence_at"]

_SCHEMA = json_schema(
    *("uri", "sequence", "bn_file", "transaction", "columns", "key", "types", "flags", "copying", "cascades"),
    *(
        "operation.Query",
        "operation.Bytes",
        "operation.Copy.after",
        "operation.Copy.upto",
        "context",
        "affects",
        "event",
        "broken",
    ),
)
_LOGS_CASCADES = 16  # flag of a rows event of a server that logs cascades; the producer's copies and repairs lack it


def history_of(source: Source, name: Name) -> History:
    """Reads the history of one table, under all names that it may have had.

    Raises UserError for a message that is not a record.
    """
    names = {name}
    while True:
        history = read_history(source, names)
        renamed = [act for act in history.acts if act.action == "RenameTable" and act.to]
        former = {table_name(act.uri) for act in renamed if act.to and table_name(act.to) in names}
        if former <= names:
            return history
        names |= {each for each in former if each is not None}


def read_history(
    source: Source, names: Collection[Name] | None = None, *, messages: DataFrame | None = None
) -> History:
    """Reads the history of ``source``; if ``names`` is given, the result contains at least the history of these tables.
    ``messages`` is the result of ``Source.of_statements`` if it was read before.

    Raises UserError for a message that is not a record.
    """
    body = F.from_json(F.col("value").cast("string"), _SCHEMA, PARSING).alias("body")
    found = source.of_statements(names) if messages is None else messages
    found = found.select("partition", "offset", body).select("partition", "offset", "body.*")
    # Rows are filtered in Python, since Spark would push a filter, with the parser, down to the scan of all messages.
    of_records = (row for row in found.collect() if row["event"] is None or row["sequence"] is not None)
    rows = [row for row in of_records if row["sequence"] is None or row["sequence"] <= source.newest]
    for row in rows:
        if row["broken"] is not None or row["uri"] is None or row["sequence"] is None or row["transaction"] is None:
            raise UserError(
                "a message of the topic is no record",
                code="CDC-TABLE-NO-RECORD",
                where=f"partition {row['partition']}, offset {row['offset']}",
                hint="something else writes to this topic: end it, and audit with cdc-audit",
            )
    rows.sort(key=lambda row: int(row["sequence"]))
    told = tuple(_told(row) for row in rows if row["types"] is not None)
    silent = source.silent_cascades or any(
        not (row["flags"] or 0) & _LOGS_CASCADES for row in rows if row["types"] is not None and row["affects"] is None
        and not row["transaction"]["id"].startswith(COPYING)
    )  # fmt: skip
    statements = {int(row["sequence"]): _statement(row) for row in rows if row["affects"] is not None}
    return History(tuple(act for row in rows for act in _acts(row)), statements, told, silent)


def _told(row: Row) -> Told:
    name = table_name(row["uri"])
    assert name is not None
    columns = tuple(zip(row["columns"], row["types"], strict=True))
    return Told(name, int(row["sequence"]), columns, tuple(row["key"]) if row["key"] else None)


def _statement(row: Row) -> Statement:
    context: dict[str, Any] = row["context"].asDict() if row["context"] is not None else {}
    mode = frozenset((context.get("sql_mode") or "").split(","))
    query, exact = row["operation"]["Query"] or "", row["operation"]["Bytes"] is None
    timestamps = context.get("explicit_defaults_for_timestamp")
    return Statement(query, mode, context.get("charset") or "", timestamps is not False, exact)


def _acts(row: Row) -> Iterator[Act]:
    sequence, place = int(row["sequence"]), (row["transaction"]["id"], row["bn_file"]["fileName"])
    described = (*place, int(row["bn_file"]["offset"]), int(row["transaction"]["ts_us"]))
    if row["affects"] is not None:
        text = row["operation"]["Query"] or ""
        for number, each in enumerate(row["affects"]):
            if each["action"] == MAINTAIN:  # maintenance changes no columns and no rows
                continue
            names = (each["action"], each["uri"], each["to"], each["like"])
            yield Act(sequence, number, *names, *described, text, bool(row["copying"]))
    elif row["operation"] is not None and row["operation"]["Copy"] is not None:
        uri = str(Uri.parse(row["uri"]))
        if row["operation"]["Copy"]["after"] is None:
            yield Act(sequence, 0, BEGINS_COPY, uri, None, None, *described, CASCADES if row["cascades"] else "")
        if row["operation"]["Copy"]["upto"] is None:
            yield Act(sequence, 1, ENDS_COPY, uri, None, None, *described)


# Finds the sequence of a moment: the last sequence of the newest transaction that the leader had committed at that
# moment.

Moment = int | str | datetime | None
"""A moment of the stream: a sequence, a GTID, a time as text in the session's time zone, or None for now."""


def sequence_at(source: Source, at: Moment) -> int:
    """Returns the last sequence of the newest transaction that was complete at ``at``; -1 if there is no such
    transaction.

    If ``at`` is a sequence inside a transaction, the result is the end of the previous transaction. A time is compared
    with the leader's commit times: the result is the newest transaction, in the order of the stream, that did not
    commit later than this time, even if an earlier transaction committed later. Raises UserError for a GTID that the
    stream does not contain, a negative sequence, or a text that is neither a GTID nor a time.
    """
    if at is None or (isinstance(at, int) and at >= source.newest):
        return source.newest
    if isinstance(at, int) and at < 0:
        raise UserError(f"no moment of the stream: {at}", code="CDC-TABLE-ARGUMENT", hint="the first sequence is 0")
    heads = source.heads().where("last")
    if isinstance(at, str) and given_gtid(at):
        # The pattern itself ignores the case, because the first call of Spark's ``lower`` in a JVM takes 1.4 s.
        found = heads.where(F.col("transaction").rlike(f"(?i)^{at}$")).agg(F.max("sequence")).first()
        if found is None or found[0] is None:
            raise UserError(
                f"the stream has no transaction {at}",
                code="CDC-TABLE-ARGUMENT",
                hint="a transaction without records is not in the stream",
            )
        return int(found[0])
    if isinstance(at, int):
        heads = heads.where(F.col("sequence") <= at)
    else:
        heads = heads.where(F.col("ts_us") <= _microseconds(source, at))
    found = heads.agg(F.max("sequence")).first()
    return -1 if found is None or found[0] is None else int(found[0])


def _microseconds(source: Source, at: str | datetime) -> int:
    """Converts a time to µs since 1970; a time without a zone is in the session's time zone. Raises UserError for any
    other text."""
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise UserError(
            f"no moment of the stream: {at!r}",
            code="CDC-TABLE-ARGUMENT",
            hint="a sequence, a GTID, or a time such as '2026-11-01 12:00:00', with +00:00 or without",
        ) from None
    if moment.tzinfo is None:  # Spark parses the text: it knows time zones that Python lacks, such as +02:00
        found = source.spark.sql(f"SELECT unix_micros(CAST(TIMESTAMP_NTZ '{moment}' AS TIMESTAMP))").first()
        assert found is not None
        return int(found[0])
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
