"""The functions of ``cdc.spark``: a leader's tables as of any moment, from its topics, as DataFrames.

Nothing is asked of a server, and executors need nothing of ``cdc``.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from cdc.config.profile import KAFKA_ONLY, Profile, load
from cdc.errors import UserError
from cdc.spark.ddl.lineage import END, Name
from cdc.spark.frames.catalog import columns_of, tables_of
from cdc.spark.frames.changes import of_all_tables, of_table
from cdc.spark.frames.history import history_of, read_history
from cdc.spark.frames.messages import Source
from cdc.spark.frames.moments import Moment, sequence_at
from cdc.spark.frames.rows import changed_rows, left_rows, typed_rows
from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import plan, plan_of_changes
from cdc.spark.input.sql_meaning import of_session, own_session

__all__ = ["changes", "schema", "table", "tables"]


def table(
    spark: SparkSession,
    profile: str | Path | Profile,
    name: str,
    *,
    at: Moment = None,
    **choices: str,
) -> DataFrame:
    """The table ``name`` (DATABASE.TABLE) as it is now or, with ``at``, as it was then, with its columns of then.

    ``profile`` is that of the leader's cdc-producer. ``at`` is a sequence, a GTID, or a time (in the session's time
    zone where the text names none), which means the newest transaction that was complete then. docs/tables.md says
    which type each MySQL type becomes. ``choices`` are ``zero_dates`` and others, see ``typed.Options``.

    Raises UserError where there is no such table then, or where the stream does not tell all of its rows and columns.
    Spark raises an error that names the row where a value can't be had.
    """
    options = Options(**choices)
    source = _source(spark, profile)
    sequence = sequence_at(source, at)
    wanted = plan(history_of(source, _name(name)), _name(name), sequence, cut=source.cut)
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
    **choices: str,
) -> DataFrame:
    """A line for each row that was changed, of the table ``name`` or of all: after ``since`` (else from the beginning)
    up to ``upto`` (else now).

    Columns: op (insert, update, delete, copy, repair), before, after, sequence, row (its number in the record), gtid,
    position (file, offset), commit_time, ends_transaction (in the record that does). Of one table before and after are
    structs of its columns as they are at ``upto``; of all tables, maps from column to the JSON text in the record,
    after the columns database and table. With ``stream`` it is a stream for Structured Streaming, without ``upto``,
    with the columns of now; Spark fails at rows that have others. ``choices`` are those of ``table``.

    Raises UserError as ``table`` does, but not where rows are missing.
    """
    options = Options(**choices)
    source = _source(spark, profile)
    first = 0 if since is None else sequence_at(source, since) + 1
    sequence = sequence_at(source, upto)
    last = END if stream else sequence
    if stream and upto is not None:
        raise UserError("a stream has no end", where="upto", hint="leave it out, or stream=True")
    if name is None:
        messages = source.stream_of(None) if stream else source.of_all()
        return of_session(of_all_tables(messages, since=first, upto=last), spark)
    wanted = plan_of_changes(history_of(source, _name(name)), _name(name), sequence)
    names = {each.name for each in wanted.stretches}
    messages = source.stream_of(names) if stream else source.of_tables(names)
    return of_session(of_table(messages, wanted, options, since=first, upto=last), spark)


def schema(
    spark: SparkSession,
    profile: str | Path | Profile,
    name: str,
    *,
    at: Moment = None,
    **choices: str,
) -> DataFrame:
    """The columns that the table ``name`` has at ``at``, now without it: position, column, mysql_type, spark_type,
    key_position. Raises UserError where there is no such table then, or its columns are not known."""
    source = _source(spark, profile)
    wanted = plan_of_changes(history_of(source, _name(name)), _name(name), sequence_at(source, at))
    return columns_of(spark, wanted, Options(**choices))


def tables(spark: SparkSession, profile: str | Path | Profile, *, at: Moment = None) -> DataFrame:
    """The tables that there are at ``at``, now without it: database, table, changes (rows in its records), first, last.

    ``first`` and ``last`` are sequences, NULL for a table of which no row was logged. Raises UserError.
    """
    source = _source(spark, profile)
    return of_session(tables_of(source, read_history(source), sequence_at(source, at)), spark)


def _source(spark: SparkSession, profile: str | Path | Profile) -> Source:
    """The topics, read in a session with settings of our own but for the time zone, in which the user names times."""
    own, zone = own_session(spark), "spark.sql.session.timeZone"
    own.conf.set(zone, spark.conf.get(zone) or "UTC")
    return Source.of(own, _profile(profile))


def _profile(profile: str | Path | Profile) -> Profile:
    return profile if isinstance(profile, Profile) else load(Path(profile), servers=KAFKA_ONLY)


def _name(name: str) -> Name:
    """Database and table. Raises UserError where the text does not name both."""
    database, dot, table = name.partition(".")
    if not (database and dot and table):
        raise UserError(f"not a table: {name!r}", hint="DATABASE.TABLE")
    return database, table
