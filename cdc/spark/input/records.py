"""Both servers' topics as one DataFrame of records, up to fixed offsets, row values as the JSON text they travel in.

The columns of ``parse``:

    side                        leader or follower
    partition, offset           where in Kafka; the partition as topic/number
    valid                       false for what is not a record; then all that follows may be NULL
    resource, database, table   from the URI; table is NULL for a statement
    sequence, file, position    the record's number and its binlog position (offset in bytes)
    transaction, index, last    id, place in the transaction, whether it is the last one
    ts_us                       commit time in µs since 1970
    columns, key                names; key is NULL for a keyless table and for a statement
    flags                       those of the rows event, NULL for none
    rows                        array of (before, after), each an array of JSON texts, or NULL; a NULL value is ``Null``
    query                       a statement's text, or which event was skipped and why; NULL for rows
    affects                     what a statement does, or what was skipped (``Skip…``): array of (action, uri, to, like)
"""

import json
from collections.abc import Collection, Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from cdc.errors import UserError
from cdc.spark.input.local_frame import literal
from cdc.spark.input.spans import Span

__all__ = ["FOLLOWER", "LEADER", "as_parsed", "messages", "parse", "read", "within"]

LEADER, FOLLOWER = "leader", "follower"

_OFFSETS_A_TASK = 100_000

# A field declared STRING that holds an object keeps the object's text: any value of any type passes unread.
_SCHEMA = """
    uri STRING, sequence BIGINT, bn_file STRUCT<fileName: STRING, offset: BIGINT>,
    transaction STRUCT<id: STRING, index: INT, last: BOOLEAN, ts_us: BIGINT>,
    columns ARRAY<STRING>, key ARRAY<STRING>, flags INT,
    operation STRUCT<
        Query: STRING,
        Add: STRUCT<rows: ARRAY<STRUCT<cols: ARRAY<STRING>>>>,
        Update: STRUCT<rows: ARRAY<STRUCT<before_cols: ARRAY<STRING>, after_cols: ARRAY<STRING>>>>,
        Delete: STRUCT<rows: ARRAY<STRUCT<cols: ARRAY<STRING>>>>,
        Skipped: STRUCT<event: STRING, place: STRING, reason: STRING>>,
    affects ARRAY<STRUCT<action: STRING, uri: STRING, to: STRING, like: STRING>>,
    event STRING, broken STRING
"""
_EVENTS = "mysql_binlog_events/[0-9]+$"
# Spark's parser takes no text of more than 20 million characters, unless it is told to; MySQL's values go up to 1 GB.
_PARSING = {"columnNameOfCorruptRecord": "broken", "maxStringLen": str((1 << 31) - 1)}
_NAME = "(?:[A-Za-z0-9_.~-]|%[0-9A-Fa-f]{2})+"
_URI = f"^flv://{_NAME}/{_NAME}(/{_NAME})?$"
_ACTION = (
    "^(Create|Alter|Drop|Rename|Truncate|Skip)(Table|Database|View|Index|Procedure|Function|Library|Trigger|Event)$"
)
_ROWS = """
    CASE
        WHEN operation.Add IS NOT NULL THEN transform(operation.Add.rows,
            r -> named_struct('before', CAST(NULL AS ARRAY<STRING>), 'after', r.cols))
        WHEN operation.Delete IS NOT NULL THEN transform(operation.Delete.rows,
            r -> named_struct('before', r.cols, 'after', CAST(NULL AS ARRAY<STRING>)))
        WHEN operation.Update IS NOT NULL THEN transform(operation.Update.rows,
            r -> named_struct('before', r.before_cols, 'after', r.after_cols))
    END
"""
# An image that an operation must have shows as NULL inside rows, so each operation names the ones it needs.
_WHOLE_IMAGE = "(size({0}) = size(columns) AND NOT exists({0}, v -> v IS NULL))"
_VALID_ROWS = f"""
    table IS NOT NULL AND size(columns) > 0 AND size(rows) > 0
    AND (key IS NULL OR (size(key) > 0 AND size(array_except(key, columns)) = 0))
    AND forall(rows, r -> coalesce(
        (operation.Add IS NOT NULL OR {_WHOLE_IMAGE.format("r.before")})
        AND (operation.Delete IS NOT NULL OR {_WHOLE_IMAGE.format("r.after")}), false))
"""
_SKIPPED = "concat(operation.Skipped.event, ' at ', operation.Skipped.place, ': ', operation.Skipped.reason)"
_VALID = f"""
    is_text AND broken IS NULL AND uri_matches AND sequence >= 0
    AND bn_file.fileName IS NOT NULL AND bn_file.offset >= 0
    AND transaction.id IS NOT NULL AND transaction.index >= 0 AND transaction.last IS NOT NULL
    AND transaction.ts_us IS NOT NULL
    AND int(operation.Query IS NOT NULL) + int(operation.Add IS NOT NULL)
        + int(operation.Update IS NOT NULL) + int(operation.Delete IS NOT NULL) + int({_SKIPPED} IS NOT NULL) = 1
    AND (operation.Query IS NOT NULL OR (operation.Skipped IS NOT NULL AND size(affects) > 0) OR ({_VALID_ROWS}))
    AND (affects IS NULL OR forall(affects, a ->
        coalesce(a.action RLIKE '{_ACTION}' AND a.uri RLIKE '{_URI}' AND coalesce(a.to, a.uri) RLIKE '{_URI}'
            AND coalesce(a.like, a.uri) RLIKE '{_URI}', false)))
"""


def read(spark: SparkSession, span: Span, *, options: dict[str, str], side: str) -> DataFrame:
    """The messages of one server's topics between the offsets of ``span``, committed ones only; not yet parsed.

    Columns: side, partition, offset, value. Raises UserError where Spark has no Kafka connector.
    """
    if not span.partitions:
        return literal(spark, [], "side STRING, partition STRING, offset BIGINT, value BINARY")
    place = F.concat_ws("/", "topic", "partition").alias("partition")
    return messages(spark, span, options=options).select(F.lit(side).alias("side"), place, "offset", "value")


def messages(spark: SparkSession, span: Span, *, options: dict[str, str]) -> DataFrame:
    """The committed messages between the offsets of ``span``, which must name some, with Spark's columns for Kafka.

    Raises UserError where Spark has no Kafka connector.
    """
    first, end = (_offsets(span, which) for which in (0, 1))
    # One partition is one task by default, and a topic has few partitions: read long ones in parts, side by side.
    parts = max(len(span.partitions), span.size // _OFFSETS_A_TASK)
    reader = spark.read.format("kafka").options(**options).option("kafka.isolation.level", "read_committed")
    reader = reader.option("assign", json.dumps({name: sorted(ends) for name, ends in first.items()}))
    reader = reader.option("startingOffsets", json.dumps(first)).option("endingOffsets", json.dumps(end))
    try:
        return reader.option("minPartitions", str(parts)).load()
    except AnalysisException as error:
        raise UserError(
            f"Spark has no Kafka connector ({str(error).splitlines()[0][:120]})",
            hint=f"spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}",
        ) from None


def _offsets(span: Span, which: int) -> dict[str, dict[int, int]]:
    """Each topic's partitions with their first offset (0) or the one after the last (1)."""
    found: dict[str, dict[int, int]] = {}
    for (topic, number), ends in span.partitions.items():
        found.setdefault(topic, {})[number] = ends[which]
    return found


def within(records: DataFrame, spans: Mapping[str, Span]) -> DataFrame:
    """Those of ``records`` that come before the limits of ``spans``, which are per side."""
    for side, span in spans.items():
        if span.limit is not None:
            beyond = (F.col("side") == side) & (F.col("sequence") >= span.limit)
            records = records.where(~F.coalesce(beyond, F.lit(False)))
    return records


def parse(messages: DataFrame, *, events_of: Collection[str] = ()) -> DataFrame:
    """The records in ``messages`` (side, partition, offset, value), with the columns this module's docstring lists.

    The binlog's other events in ``mysql_binlog_events`` are no records, and left out; ``events_of`` are the sides with
    such a topic among those of their records. Anywhere else they are in a place that something else wrote to.
    """
    text = F.col("value").cast("string")
    body = F.from_json(text, _SCHEMA, _PARSING)
    # JSON text is UTF-8; the parser would read on over what is not.
    sound = F.is_valid_utf8(text).alias("is_text")
    fields = messages.select("side", "partition", F.col("offset").alias("at"), sound, body.alias("body"))
    there = F.col("side").isin(list(events_of)) & F.col("partition").rlike(_EVENTS)
    fields = fields.select("side", "partition", "at", "is_text", "body.*")
    fields = fields.where(F.expr("event IS NULL OR sequence IS NOT NULL") | ~there)
    fields = fields.withColumn("uri_matches", F.col("uri").rlike(_URI))
    names = F.when(F.col("uri_matches"), F.transform(F.split("uri", "/"), F.url_decode))
    fields = fields.withColumn("names", names).withColumn("rows", F.expr(_ROWS))
    fields = fields.withColumn("table", F.expr("get(names, 4)"))
    return fields.select(
        "side",
        "partition",
        F.col("at").alias("offset"),
        F.coalesce(F.expr(_VALID), F.lit(False)).alias("valid"),
        F.expr("get(names, 2)").alias("resource"),
        F.expr("get(names, 3)").alias("database"),
        "table",
        "sequence",
        F.col("bn_file.fileName").alias("file"),
        F.col("bn_file.offset").alias("position"),
        F.col("transaction.id").alias("transaction"),
        F.col("transaction.index").alias("index"),
        F.col("transaction.last").alias("last"),
        F.col("transaction.ts_us").alias("ts_us"),
        "columns",
        "key",
        "flags",
        "rows",
        F.coalesce("operation.Query", F.expr(_SKIPPED)).alias("query"),
        "affects",
    )


def as_parsed(kept: StructType) -> StructType:
    """The columns of records that were ``kept`` by an audit, with what has come to be parsed since: NULL in those."""
    for field in kept.fields:
        affect = field.dataType.elementType if isinstance(field.dataType, ArrayType) else None
        if field.name == "affects" and isinstance(affect, StructType) and "like" not in affect.names:
            affect.add("like", "string")
    return kept
