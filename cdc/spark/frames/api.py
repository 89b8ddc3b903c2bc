"""Defines the functions of ``cdc.spark``, which read a leader's topics as DataFrames.

``table`` reads a table as of any moment, ``tables`` lists the tables that exist at a moment, and ``schema`` lists the
columns of a table. ``changes`` reads the changes of rows, for one table with Spark types, for all tables as the JSON
texts in the records. No server is queried, and executors do not need the package ``cdc``.
"""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.config.profile import KAFKA_ONLY, Profile, load
from cdc.config.table_globs import TABLE_FORM, table_named
from cdc.errors import UserError
from cdc.spark.ddl.lineage import END, Name, lineage
from cdc.spark.frames.history import Moment, history_of, read_history, sequence_at
from cdc.spark.frames.messages import Source
from cdc.spark.frames.rows import changed_rows, exploded, left_rows, typed_columns, typed_rows
from cdc.spark.frames.schema_history import History, existing
from cdc.spark.frames.typed import Options, spark_type
from cdc.spark.frames.versions import Plan, plan, plan_of_changes, plan_of_feed
from cdc.spark.input.records import parse
from cdc.spark.input.small_data import local_frame
from cdc.spark.input.sql_meaning import TIME_ZONE, of_session, own_session

__all__ = [
    "changes",
    "columns_of",
    "feed_of_table",
    "of_all_tables",
    "of_table",
    "schema",
    "table",
    "tables",
    "tables_of",
]

_OP = """
    CASE WHEN chunk.repair THEN 'repair' WHEN chunk IS NOT NULL THEN 'copy' WHEN before IS NULL THEN 'insert'
        WHEN after IS NULL THEN 'delete' ELSE 'update' END AS op
"""
_PLACE = (
    "sequence", "row", "IF(startswith(transaction, 'copy:'), NULL, transaction) AS gtid",
    "named_struct('file', file, 'offset', position) AS position", "timestamp_micros(ts_us) AS commit_time",
    "last AS ends_transaction",
)  # fmt: skip
_BY_NAME = """
    IF({0} IS NULL, NULL, map_from_arrays(columns, transform({0}, v -> IF(v = 'Null', NULL, v)))) AS {0}
"""


def of_table(messages: DataFrame, plan: Plan, options: Options, *, since: int, upto: int) -> DataFrame:
    """Returns the changes of one table. The columns are op, before and after (structs of the plan's columns), and the
    place in the stream (sequence, row, gtid and so on; see ``changes``).
    """
    changed = changed_rows(messages, plan, since=since, upto=upto)
    images = [f"{_struct(plan, name, options)} AS {name}" for name in ("before", "after")]
    return changed.selectExpr(_OP, *images, *_PLACE)


def of_all_tables(messages: DataFrame, *, since: int, upto: int) -> DataFrame:
    """Returns the changes of all tables. The columns are database, table, op, before and after (maps from column to
    JSON text), and the place in the stream (sequence, row, gtid and so on; see ``changes``).

    Spark raises an error for a message that is not a record.
    """
    fails = "raise_error(concat('not a record: partition ', partition, ', offset ', offset, '; see cdc-audit'))"
    within = f"IF(valid, sequence BETWEEN {since} AND {upto} AND rows IS NOT NULL, CAST({fails} AS BOOLEAN))"
    records = parse(messages)
    rows = exploded(records, within, *(name for name in records.columns if name != "rows"))
    named = rows.select("*", "image.*")
    return named.selectExpr(
        "database", "table", _OP, *(_BY_NAME.format(name) for name in ("before", "after")), *_PLACE
    )  # fmt: skip


_FEED = ("_change_type", "_commit_version", "_commit_timestamp")
# A repair changes no row of the leader. The condition is inside of the generator, since Spark would push a filter down.
_IMAGES = """
    filter(array(
        named_struct('kind', IF(after IS NULL, 'delete', 'update_preimage'), 'image', before),
        named_struct('kind', IF(before IS NULL, 'insert', 'update_postimage'), 'image', after)
    ), each -> each.image IS NOT NULL AND NOT coalesce(chunk.repair, false))
"""


def feed_of_table(messages: DataFrame, plan: Plan, options: Options, *, since: int, upto: int) -> DataFrame:
    """Returns the changes of one table in the form of a change data feed: the plan's columns, then _change_type
    (insert, update_preimage, update_postimage or delete), _commit_version (the sequence) and _commit_timestamp.

    Raises UserError if the table itself has a column of such a name.
    """
    taken = [name for name, _ in plan.columns if name.lower() in _FEED]
    if taken:
        raise UserError(
            f"the table has a column {taken[0]} itself",
            code="CDC-TABLE-ARGUMENT",
            where=f"table {'.'.join(plan.name)}",
            hint="read its changes without shape",
        )
    changed = changed_rows(messages, plan, since=since, upto=upto)
    images = changed.select("sequence", "ts_us", F.explode(F.expr(_IMAGES)).alias("each"))
    made = typed_columns(plan, "get(each.image, {})", "concat('of sequence ', sequence)", options)
    about = ("each.kind", "sequence", "timestamp_micros(ts_us)")
    return images.select(
        *(F.expr(text).alias(name) for name, text in made.items()),
        *(F.expr(text).alias(name) for name, text in zip(_FEED, about, strict=True)),
    )


def _struct(plan: Plan, image: str, options: Options) -> str:
    named = "concat('of sequence ', sequence)"
    made = typed_columns(plan, f"get({image}, {{}})", named, options)
    fields = ", ".join(f"{text} AS `{name.replace('`', '``')}`" for name, text in made.items())
    return f"IF({image} IS NULL, NULL, struct({fields}))"


# The rows are counted inside a generator (explode), since Spark pushes no filter below a generator. If a filter were
# pushed down to the scan, Spark would parse all messages once more for each field in the filter.
_COUNTED = "explode_outer(IF({}, array(struct(database, table, sequence, size(rows) AS count)), NULL))"
_SEGMENTS = "database STRING, table STRING, first BIGINT, end BIGINT, owner STRUCT<database: STRING, table: STRING>"


def columns_of(spark: SparkSession, plan: Plan, options: Options) -> DataFrame:
    """Returns one row for each column of the table: position (from 1), column, mysql_type, spark_type, and key_position
    (NULL for a column that is not in the key).
    """
    key = plan.key or ()
    rows = [
        {
            "position": at,
            "column": name,
            "mysql_type": kind,
            "spark_type": spark_type(kind, options),
            "key_position": key.index(name) + 1 if name in key else None,
        }
        for at, (name, kind) in enumerate(plan.columns, 1)
    ]
    schema = "position INT, column STRING, mysql_type STRING, spark_type STRING, key_position INT"
    return local_frame(spark, rows, schema)


def tables_of(source: Source, history: History, sequence: int) -> DataFrame:
    """Returns one row for each table: database, table, changes (the number of rows in the records that count for the
    table), and the first and the last sequence of these records.
    """
    found = existing(history, sequence)
    spark = source.spark
    segments = [
        {
            **_table_name(each.database, each.table),
            "first": each.first,
            "end": each.end,
            "owner": _table_name(*each.owner),
        }
        for each in lineage(found, history.upto(sequence))
        if each.owner is not None and each.owner in found
    ]
    names = {(str(each["database"]), str(each["table"])) for each in segments}
    counts = F.expr(_COUNTED.format(f"valid AND rows IS NOT NULL AND sequence <= {sequence}")).alias("record")
    records = parse(source.of_tables(names)).select(counts).where("record IS NOT NULL").select("record.*")
    within = F.broadcast(local_frame(spark, segments, _SEGMENTS))
    owned = records.join(within, ["database", "table"]).where("sequence >= first AND sequence < end")
    counted = owned.groupBy("owner").agg(
        F.sum("count").alias("changes"), F.min("sequence").alias("first"), F.max("sequence").alias("last")
    )
    counted = counted.select("owner.*", "changes", "first", "last")
    there = local_frame(spark, [_table_name(*name) for name in sorted(found)], "database STRING, table STRING")
    return there.join(counted, ["database", "table"], "left").fillna(0, ["changes"]).orderBy("database", "table")


def _table_name(database: str, table: str) -> Mapping[str, str]:
    return {"database": database, "table": table}


def table(
    spark: SparkSession,
    profile: str | Path | Profile,
    name: str,
    *,
    at: Moment = None,
    **choices: str,
) -> DataFrame:
    """Reads the table ``name`` (DATABASE.TABLE) as it is now or, if ``at`` is given, as it was at that moment, with the
    columns of that moment.

    ``profile`` is the profile of the leader's cdc-producer. ``at`` is a sequence, a GTID, or a time (in the session's
    time zone if the text names no zone); a time means the newest transaction that was complete at that time.
    docs/tables.md lists the Spark type of each MySQL type. ``choices`` are the options in ``typed.Options``, such as
    ``zero_dates``.

    Raises UserError if the table does not exist at that moment, or if the stream does not contain all of its rows and
    columns. If a value can't be converted, Spark raises an error that names the row.
    """
    options = Options(**choices)
    source = _source(spark, profile)
    sequence = sequence_at(source, at)
    table_name = source.stored(_name(name))
    wanted = plan(history_of(source, table_name), table_name, sequence, cut=source.cut)
    messages = source.of_tables({each.name for each in wanted.stretches})
    changed = changed_rows(messages, wanted, since=0, upto=sequence)
    return of_session(typed_rows(left_rows(changed, wanted), wanted, options), spark)


def changes(
    spark: SparkSession,
    profile: str | Path | Profile,
    name: str | None = None,
    *,
    since: Moment = None,
    upto: Moment = None,
    stream: bool = False,
    shape: str = "images",
    **choices: str,
) -> DataFrame:
    """Reads the changes of the rows of table ``name``, or of all tables, after ``since`` (by default from the
    beginning) through ``upto`` (by default now). The result contains one row for each changed row.

    The columns are op (insert, update, delete, copy, repair), before, after, sequence, row (the number of the row in
    its record), gtid, position (file, offset), commit_time, and ends_transaction (true in the last record of a
    transaction). For one table, before and after are structs of the table's columns as of ``upto``; for all tables,
    they are maps from column to the JSON text in the record, and the columns database and table come first. With
    ``stream`` the result is a stream for Structured Streaming, without ``upto``, with the table's present columns;
    Spark raises an error at rows that have other columns. ``choices`` are the options of ``table``.

    With ``shape="cdf"`` the result has the form of a change data feed, as of Delta Lake: the table's columns,
    _change_type, _commit_version and _commit_timestamp, and two rows for an update. Applied to the table as of
    ``since`` (by default to an empty table) it makes the table as of ``upto``, as docs/tables.md describes.

    Raises UserError if the table does not exist at ``upto``, if its columns are not known, or if a change data feed
    can't make the table.
    """
    options = Options(**choices)
    source = _source(spark, profile)
    first = 0 if since is None else sequence_at(source, since) + 1
    sequence = sequence_at(source, upto)
    last = END if stream else sequence
    if stream and upto is not None:
        raise UserError(
            "a stream has no end", code="CDC-TABLE-ARGUMENT", where="upto", hint="leave it out, or stream=True"
        )
    if shape != "images":
        _require_feed(shape, name, stream=stream)
        begin = None if since is None else first - 1
        return of_session(_feed(source, _name(str(name)), options, since=begin, upto=sequence), spark)
    if name is None:
        messages = source.stream_of(None) if stream else source.of_all()
        return of_session(of_all_tables(messages, since=first, upto=last), spark)
    table_name = source.stored(_name(name))
    wanted = plan_of_changes(history_of(source, table_name), table_name, sequence)
    names = {each.name for each in wanted.stretches}
    messages = source.stream_of(names) if stream else source.of_tables(names)
    return of_session(of_table(messages, wanted, options, since=first, upto=last), spark)


def _require_feed(shape: str, name: str | None, *, stream: bool) -> None:
    """Raises UserError if ``changes`` has no such ``shape``, or none for all tables or for a stream."""
    if shape != "cdf" or name is None or stream:
        # A TRUNCATE or an ALTER would not be noticed in a stream: they change rows without a record of each.
        raise UserError(
            f"no such changes: shape {shape!r} of {name or 'all tables'}{', as a stream' if stream else ''}",
            code="CDC-TABLE-ARGUMENT",
            hint='the shape "cdf" is of one table, without stream; or leave out shape, for before and after',
        )


def _feed(source: Source, name: Name, options: Options, *, since: int | None, upto: int) -> DataFrame:
    table_name = source.stored(name)
    wanted = plan_of_feed(history_of(source, table_name), table_name, upto, since=since, cut=source.cut)
    messages = source.of_tables({each.name for each in wanted.stretches})
    return feed_of_table(messages, wanted, options, since=0 if since is None else since + 1, upto=upto)


def schema(
    spark: SparkSession,
    profile: str | Path | Profile,
    name: str,
    *,
    at: Moment = None,
    **choices: str,
) -> DataFrame:
    """Lists the columns of the table ``name`` as of ``at``, by default now. Each row contains position, column,
    mysql_type, spark_type and key_position.

    Raises UserError if the table does not exist at ``at``, or if its columns are not known.
    """
    source = _source(spark, profile)
    table_name = source.stored(_name(name))
    wanted = plan_of_changes(history_of(source, table_name), table_name, sequence_at(source, at))
    return columns_of(spark, wanted, Options(**choices))


def tables(spark: SparkSession, profile: str | Path | Profile, *, at: Moment = None) -> DataFrame:
    """Lists the tables that exist as of ``at``, by default now. Each row contains database, table, changes (the number
    of rows in the table's records), first and last.

    ``first`` and ``last`` are sequences, NULL for a table without logged rows. Raises UserError.
    """
    source = _source(spark, profile)
    return of_session(tables_of(source, read_history(source), sequence_at(source, at)), spark)


def _source(spark: SparkSession, profile: str | Path | Profile) -> Source:
    """Opens the topics in a Spark session with the settings that cdc needs. The session's time zone stays the user's,
    since the times that the user gives are in it.
    """
    own = own_session(spark)
    own.conf.set(TIME_ZONE, spark.conf.get(TIME_ZONE) or "UTC")
    return Source.of(own, _profile(profile))


def _profile(profile: str | Path | Profile) -> Profile:
    return profile if isinstance(profile, Profile) else load(Path(profile), servers=KAFKA_ONLY)


def _name(name: str) -> Name:
    """Splits ``name`` into database and table. Raises UserError if it does not contain both."""
    found = table_named(name)
    if found is None:
        raise UserError(f"not a table: {name!r}", code="CDC-TABLE-ARGUMENT", hint=TABLE_FORM)
    return found
