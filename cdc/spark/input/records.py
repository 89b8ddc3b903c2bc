"""Reads the messages of a server's topics with Spark and parses them into a DataFrame of records.

The columns of ``parse``:

    side                        leader or follower
    partition, offset           the message's position in Kafka; the partition as topic/number
    valid                       false for a message that is not a record; then the following columns may be NULL
    resource, database, table   from the URI; table is NULL for a statement
    sequence, file, position    the record's number and its binlog position (offset in bytes)
    transaction, index, last    the transaction's id, the record's index in it, whether it is the last record in it
    ts_us                       commit time in µs since 1970
    columns, key                names of columns; key is NULL for a table without a key and for a statement
    flags                       the flags of the rows event, or NULL
    rows                        array of (before, after), each an array of JSON texts, or NULL; a NULL value is ``Null``
    query                       a statement's text, or a text with the skipped event and the reason; NULL for rows
    affects                     effects of a statement or a skipped event (``Skip…``): array of (action, uri, to, like)
    chunk                       NULL except for a record that copies a part of a table: the record contains all rows
                                between the keys ``after`` (exclusive) and ``upto`` (inclusive), each an array of JSON
                                texts, NULL at the table's ends. If ``repair`` is true, the record contains the rows of
                                some keys instead. A key without a row is represented by a row with only a before image
    copying                     whether the statement or the rows belong to a table whose copy is not complete

``heads`` reads the first of these columns without parsing a record's rows.

The module also joins the messages of a record that is too large for one Kafka message (cdc.kafka.fragments).
"""

import json
from collections.abc import Collection, Mapping
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from cdc.errors import UserError
from cdc.kafka.fragments import EPOCH_HEADER as EPOCH
from cdc.kafka.fragments import FRAGMENT_HEADER
from cdc.model.position import partition_name
from cdc.service.spark_packages import kafka_connector
from cdc.spark.input.small_data import local_frame
from cdc.spark.input.spans import Span
from cdc.spark.private_names import cores

__all__ = [
    "COPYING",
    "FOLLOWER",
    "LEADER",
    "PARSING",
    "before_limits",
    "committed",
    "counting",
    "heads",
    "json_schema",
    "messages",
    "parse",
    "put_together",
    "read",
    "record_columns",
    "records_in",
    "with_new_fields",
    "with_sequences",
]

_FIELDS = ("sequence", "number", "total", "checksum")
# If a fragment is missing, the value is replaced by a value that is not a record, so that the audit reports the record.
_WHOLE = """
    size(fragments) = total AND fragments.number = transform(fragments, (f, i) -> CAST(i AS BIGINT))
    AND crc32(whole) = checksum
"""


def put_together(messages: DataFrame, span: Span) -> DataFrame:
    """Joins the fragments in ``messages`` (side, partition, offset, value, headers) to records, without headers.

    The offset of a record is the offset of its first fragment. A record whose first fragments are before the span's
    beginning is left out: retention has deleted these fragments, or an earlier audit has read the record.
    """
    mark = F.expr(f"CAST(get(filter(headers, h -> h.key = '{FRAGMENT_HEADER}'), 0).value AS STRING)")
    marked = messages.withColumn("mark", mark)
    alone = marked.where("mark IS NULL").select("side", "partition", "offset", "value")
    numbers = F.split("mark", " ")
    fragments = marked.where("mark IS NOT NULL").select(
        "side",
        "partition",
        "offset",
        "value",
        *(F.get(numbers, F.lit(place)).try_cast("bigint").alias(name) for place, name in enumerate(_FIELDS)),
    )
    if span.limit is not None:
        fragments = fragments.where(
            F.col("sequence") < span.limit
        )  # the next record may be incomplete: perhaps only its first fragments are committed
    fragment = F.struct("number", "offset", F.col("value").cast("string").alias("text"))
    grouped = fragments.groupBy("side", "partition", "sequence", "total", "checksum").agg(
        F.array_sort(F.collect_list(fragment)).alias("fragments")
    )
    first = F.col("fragments")[0]
    grouped = grouped.withColumn("whole", F.expr("CAST(array_join(fragments.text, '') AS BINARY)"))
    begins = [{"partition": partition_name(each), "begin": begin} for each, (begin, _) in span.partitions.items()]
    known = F.broadcast(local_frame(messages.sparkSession, begins, "partition STRING, begin BIGINT"))
    cut_off = (first["number"] > 0) & (first["offset"] == F.col("begin"))
    whole = grouped.join(known, "partition").where(~F.coalesce(cut_off, F.lit(False)))
    value = F.when(F.expr(_WHOLE), F.col("whole")).otherwise(F.lit(b""))
    return alone.unionByName(whole.select("side", "partition", first["offset"].alias("offset"), value.alias("value")))


LEADER, FOLLOWER = "leader", "follower"

_OFFSETS_A_TASK, _OFFSETS_A_CORE = 100_000, 2_000
_MOST_TASKS = 20_000  # most tasks of a stage: the driver stores which partitions each task wrote (``job.session``)

_IMAGE, _IMAGES = "STRUCT<cols: ARRAY<STRING>>", "ARRAY<STRUCT<cols: ARRAY<STRING>>>"
# If a field is declared STRING and contains an object, Spark returns the object's text. So values of all types are
# passed on without parsing.
_JSON = {
    "uri": "STRING", "sequence": "BIGINT",
    "bn_file.fileName": "STRING", "bn_file.offset": "BIGINT",
    "transaction.id": "STRING", "transaction.index": "INT",
    "transaction.last": "BOOLEAN", "transaction.ts_us": "BIGINT",
    "columns": "ARRAY<STRING>", "key": "ARRAY<STRING>", "types": "ARRAY<STRING>", "flags": "INT", "sql_mode": "STRING",
    "operation.Query": "STRING", "operation.Bytes": "STRING",
    "operation.Add.rows": _IMAGES,
    "operation.Update.rows": "ARRAY<STRUCT<before_cols: ARRAY<STRING>, after_cols: ARRAY<STRING>>>",
    "operation.Delete.rows": _IMAGES,
    "operation.Copy.piece": "BIGINT", "operation.Copy.after": _IMAGE, "operation.Copy.upto": _IMAGE,
    "operation.Copy.rows": _IMAGES,
    "operation.Repair.keys": _IMAGES, "operation.Repair.rows": _IMAGES,
    "operation.Skipped.event": "STRING", "operation.Skipped.place": "STRING", "operation.Skipped.reason": "STRING",
    "context": "STRUCT<sql_mode: STRING, charset: STRING, explicit_defaults_for_timestamp: BOOLEAN>",
    "copying": "BOOLEAN", "cascades": "BOOLEAN",
    "affects": "ARRAY<STRUCT<action: STRING, uri: STRING, to: STRING, like: STRING>>",
    "event": "STRING", "broken": "STRING",
}  # fmt: skip
"""The Spark type of each field of a record's JSON; ``broken`` contains the text of a record that is not JSON."""
_FIELDS_OF_COLUMNS = {
    "file": "bn_file.fileName", "position": "bn_file.offset",
    "transaction": "transaction.id", "index": "transaction.index", "last": "transaction.last",
    "ts_us": "transaction.ts_us",
}  # fmt: skip
"""Maps each column of ``parse`` to its field in the JSON, if the field has another name."""


def json_schema(*fields: str) -> str:
    """Returns the schema, in Spark's DDL, of these ``fields`` of a record's JSON, each with all fields inside it."""
    chosen: dict[str, Any] = {}
    for path, kind in _JSON.items():
        if any(f"{path}.".startswith(f"{field}.") for field in fields):
            *parents, name = path.split(".")
            reduce(lambda of, parent: of.setdefault(parent, {}), parents, chosen)[name] = kind
    return ", ".join(f"{name} {_type(kind)}" for name, kind in chosen.items())


def _type(kind: str | Mapping[str, Any]) -> str:
    if isinstance(kind, str):
        return kind
    return f"STRUCT<{', '.join(f'{name}: {_type(of)}' for name, of in kind.items())}>"


def record_columns(*names: str) -> list[Column]:
    """Returns the columns of ``parse`` with these ``names``, from the parsed JSON in the column ``body``."""
    return [F.col(f"body.{_FIELDS_OF_COLUMNS.get(name, name)}").alias(name) for name in names]


_SCHEMA = json_schema(
    *("uri", "sequence", "bn_file", "transaction", "columns", "key", "flags", "sql_mode", "operation.Query"),
    *(f"operation.{name}" for name in ("Add", "Update", "Delete", "Copy", "Repair", "Skipped")),
    *("copying", "affects", "event", "broken"),
)
_EVENTS = "mysql_binlog_events/[0-9]+$"
# By default Spark's parser rejects texts of more than 20 million characters; MySQL's values have up to 1 GB.
PARSING = {"columnNameOfCorruptRecord": "broken", "maxStringLen": str((1 << 31) - 1)}
_HEAD_BYTES = 4096
_HEAD = (
    r'^\{"uri":"[^"]*","sequence":[0-9]+,"bn_file":\{[^}]*\},'
    r'"transaction":\{"id":"[^"]*","index":[0-9]+,"last":(?:true|false),"ts_us":-?[0-9]+\}'
)
_SEQUENCE = _HEAD.replace('"sequence":[0-9]+', '"sequence":([0-9]+)')
COPYING = "copy:"
"""The prefix of the transaction ids that a producer invents for table copies; the server has no such transactions."""
_SEQUENCE_OF_LEADER = _SEQUENCE.replace('"id":"', f'"id":"(?!{COPYING})')
_NAME = "(?:[A-Za-z0-9_.~-]|%[0-9A-Fa-f]{2})+"
_URI = f"^flv://{_NAME}/{_NAME}(/{_NAME})?$"
_ACTION = (
    "^(Create|Alter|Drop|Rename|Truncate|Maintain|Skip)"
    "(Table|Database|View|Index|Procedure|Function|Library|Trigger|Event)$"
)
_ROWS = """
    CASE
        WHEN body.operation.Add IS NOT NULL THEN transform(body.operation.Add.rows,
            r -> named_struct('before', CAST(NULL AS ARRAY<STRING>), 'after', r.cols))
        WHEN body.operation.Copy IS NOT NULL THEN transform(body.operation.Copy.rows,
            r -> named_struct('before', CAST(NULL AS ARRAY<STRING>), 'after', r.cols))
        WHEN body.operation.Repair IS NOT NULL THEN concat(
            transform(
                array_except(body.operation.Repair.keys.cols,
                    transform(body.operation.Repair.rows,
                        r -> transform(body.key, k -> get(r.cols, int(array_position(body.columns, k)) - 1)))),
                cols -> named_struct(
                    'before', transform(body.columns, c ->
                        coalesce(get(cols, int(array_position(body.key, c)) - 1), 'Null')),
                    'after', CAST(NULL AS ARRAY<STRING>))),
            transform(body.operation.Repair.rows,
                r -> named_struct('before', CAST(NULL AS ARRAY<STRING>), 'after', r.cols)))
        WHEN body.operation.Delete IS NOT NULL THEN transform(body.operation.Delete.rows,
            r -> named_struct('before', r.cols, 'after', CAST(NULL AS ARRAY<STRING>)))
        WHEN body.operation.Update IS NOT NULL THEN transform(body.operation.Update.rows,
            r -> named_struct('before', r.before_cols, 'after', r.after_cols))
    END
"""
# If a record lacks an image, or a value of an image, ``rows`` contains NULL in its place. So the images that the
# record's operation requires are checked.
_WHOLE_IMAGE = "(size({0}) = size(columns) AND NOT exists({0}, v -> v IS NULL))"
# A chunk contains the rows after the key ``after``, up to and including the key ``upto``; NULL means the beginning or
# the end of the table. The chunks of a table without a key are numbered pieces (``piece``): their ``after`` and
# ``upto`` are keys without columns, or NULL.
_WHOLE_KEY = (
    "(operation.Copy.{0} IS NULL OR (size(operation.Copy.{0}.cols) = IF(operation.Copy.piece IS NULL, size(key), 0)"
    " AND NOT exists(operation.Copy.{0}.cols, v -> v IS NULL)))"
)
_VALID_REPAIR = """
    size(rows) > 0 AND size(key) > 0 AND size(operation.Repair.keys) > 0
    AND forall(operation.Repair.keys, k -> coalesce(
        size(k.cols) = size(key) AND NOT exists(k.cols, v -> v IS NULL OR v = 'Null'), false))
    AND forall(operation.Repair.rows, r -> coalesce(
        size(r.cols) = size(columns) AND NOT exists(r.cols, v -> v IS NULL), false))
"""
_VALID_CHUNK = f"""
    size(rows) >= 0 AND {_WHOLE_KEY.format("after")} AND {_WHOLE_KEY.format("upto")}
    AND IF(operation.Copy.piece IS NULL, size(key) > 0, (operation.Copy.piece = 0) = (operation.Copy.after IS NULL))
"""
_VALID_ROWS = f"""
    get(names, 4) IS NOT NULL AND size(columns) > 0
    AND CASE WHEN operation.Repair IS NOT NULL THEN {_VALID_REPAIR} WHEN operation.Copy IS NOT NULL THEN {_VALID_CHUNK}
        ELSE size(rows) > 0 END
    AND (key IS NULL OR (size(key) > 0 AND size(array_except(key, columns)) = 0))
    AND (operation.Repair IS NOT NULL OR forall(rows, r -> coalesce(
        (operation.Add IS NOT NULL OR operation.Copy IS NOT NULL OR {_WHOLE_IMAGE.format("r.before")})
        AND (operation.Delete IS NOT NULL OR {_WHOLE_IMAGE.format("r.after")}), false)))
"""
_CHUNK = """
    IF(operation.Copy IS NULL AND operation.Repair IS NULL, NULL,
        named_struct('after', operation.Copy.after.cols, 'upto', operation.Copy.upto.cols,
            'repair', operation.Repair IS NOT NULL))
"""
_SKIPPED = "concat(operation.Skipped.event, ' at ', operation.Skipped.place, ': ', operation.Skipped.reason)"
_VALID = f"""
    is_text AND broken IS NULL AND uri_matches AND sequence >= 0
    AND bn_file.fileName IS NOT NULL AND bn_file.offset >= 0
    AND transaction.id IS NOT NULL AND transaction.index >= 0 AND transaction.last IS NOT NULL
    AND transaction.ts_us IS NOT NULL
    AND int(operation.Query IS NOT NULL) + int(operation.Add IS NOT NULL)
        + int(operation.Update IS NOT NULL) + int(operation.Delete IS NOT NULL) + int(operation.Copy IS NOT NULL)
        + int(operation.Repair IS NOT NULL)
        + int({_SKIPPED} IS NOT NULL) = 1
    AND (operation.Query IS NOT NULL OR (operation.Skipped IS NOT NULL AND size(affects) > 0) OR ({_VALID_ROWS}))
    AND (affects IS NULL OR forall(affects, a ->
        coalesce(a.action RLIKE '{_ACTION}' AND a.uri RLIKE '{_URI}' AND coalesce(a.to, a.uri) RLIKE '{_URI}'
            AND coalesce(a.like, a.uri) RLIKE '{_URI}', false)))
"""


def read(spark: SparkSession, span: Span, *, options: dict[str, str], side: str) -> DataFrame:
    """Reads the records of one server's topics between the offsets of ``span``, and adds the server's ``side``.

    The columns are side, partition, offset and value. Raises UserError if Spark has no Kafka connector.
    """
    if not span.partitions:
        return local_frame(spark, [], "side STRING, partition STRING, offset BIGINT, value BINARY")
    options = options | {"includeHeaders": "true"} if span.fragmented else options
    partition = F.concat_ws("/", "topic", "partition")
    return records_in(messages(spark, span, options=options).withColumn("partition", partition), span, side=side)


def records_in(messages: DataFrame, span: Span, *, side: str) -> DataFrame:
    """Returns the records in the ``messages`` of ``side``, which have the names of their partitions, with the columns
    of ``read``."""
    ours = F.lit(side).alias("side"), "partition", "offset", "value"
    return put_together(messages.select(*ours, "headers"), span) if span.fragmented else messages.select(*ours)


def messages(spark: SparkSession, span: Span, *, options: dict[str, str]) -> DataFrame:
    """Reads the committed messages between the offsets of ``span``, with Spark's columns for Kafka.

    ``span`` must contain partitions. Messages of a producer that had been replaced, and the marks that show this, are
    left out (cdc.kafka.fragments). Raises UserError if Spark has no Kafka connector.
    """
    return counting(committed(spark, span, options=options), span)


def committed(spark: SparkSession, span: Span, *, options: dict[str, str]) -> DataFrame:
    """Reads all committed messages between the offsets of ``span``; see ``messages``."""
    first, end = (_offsets(span, which) for which in (0, 1))
    # By default Spark reads a partition in one task, and topics have few partitions. So long spans are split into more
    # parts, which are read in parallel. Shorter spans, which may contain many rows, are split into at most one part for
    # each core.
    at_once = min(span.size // _OFFSETS_A_CORE, cores(spark))
    parts = max(len(span.partitions), min(span.size // _OFFSETS_A_TASK, _MOST_TASKS), at_once)
    reader = spark.read.format("kafka").options(**options).option("kafka.isolation.level", "read_committed")
    reader = reader.option("assign", json.dumps({name: sorted(ends) for name, ends in first.items()}))
    reader = reader.option("startingOffsets", json.dumps(first)).option("endingOffsets", json.dumps(end))
    try:
        return reader.option("minPartitions", str(parts)).load()
    except AnalysisException as error:
        raise UserError(
            f"Spark has no Kafka connector ({str(error).splitlines()[0][:120]})",
            code="CDC-AUDIT-NO-CONNECTOR",
            hint=f"spark-submit --packages {kafka_connector(spark.version)}",
        ) from None


def counting(messages: DataFrame, span: Span) -> DataFrame:
    """Removes from ``messages`` the messages of a producer that had been replaced, and the marks that show this
    (cdc.kafka.fragments). The messages need headers if the span has marks."""
    if not span.marks:
        return messages
    stamp = f"CAST(CAST(get(filter(headers, h -> h.key = '{EPOCH}'), 0).value AS STRING) AS BIGINT)"
    known = [f"named_struct('epoch', {mark.epoch}L, 'at', {mark.offset}L)" for mark in span.marks if mark.offset >= 0]
    is_void = f"exists(array({', '.join(known)}), m -> m.epoch > coalesce({stamp}, 0) AND m.at < offset)"
    return messages.where(f"NOT (value IS NULL AND {stamp} IS NOT NULL)" + (f" AND NOT {is_void}" if known else ""))


def _offsets(span: Span, which: int) -> dict[str, dict[int, int]]:
    """Maps each topic and partition to its first offset (``which`` is 0), or to the offset after its last (``which`` is
    1).
    """
    found: dict[str, dict[int, int]] = {}
    for (topic, number), ends in span.partitions.items():
        found.setdefault(topic, {})[number] = ends[which]
    return found


def before_limits(records: DataFrame, spans: Mapping[str, Span]) -> DataFrame:
    """Selects the ``records`` whose sequence is below the limit of their side's span."""
    for side, span in spans.items():
        if span.limit is not None:
            beyond = (F.col("side") == side) & (F.col("sequence") >= span.limit)
            records = records.where(~F.coalesce(beyond, F.lit(False)))
    return records


def parse(messages: DataFrame, *, events_of: Collection[str] = (), also: Collection[str] = ()) -> DataFrame:
    """Parses the records in ``messages`` (side, partition, offset, value) into the columns that the module's docstring
    lists, and into the fields of the JSON that ``also`` names.

    ``events_of`` are the sides that have a topic ``mysql_binlog_events``. This topic also contains binlog events that
    belong to no record. They are left out; in any other topic they count as records that are not valid.
    """
    # All columns are computed in few steps, since Spark analyzes the whole plan again at each step.
    fields = _fields(messages, events_of)
    return fields.select(
        "side",
        "partition",
        F.col("at").alias("offset"),
        F.coalesce(F.expr(_VALID), F.lit(False)).alias("valid"),
        F.expr("get(names, 2)").alias("resource"),
        F.expr("get(names, 3)").alias("database"),
        F.expr("get(names, 4)").alias("table"),
        "sequence",
        *(F.col(_FIELDS_OF_COLUMNS[name]).alias(name) for name in _FIELDS_OF_COLUMNS),
        "columns",
        "key",
        "flags",
        "rows",
        F.coalesce("operation.Query", F.expr(_SKIPPED)).alias("query"),
        "affects",
        F.expr(_CHUNK).alias("chunk"),
        F.coalesce("copying", F.lit(False)).alias("copying"),
        *also,
    )


def heads(messages: DataFrame, *names: str) -> DataFrame:
    """Adds the columns ``names`` of ``parse`` to the ``messages``. Only sequence and the columns of the record's place
    and transaction are allowed, since they are at the beginning of a record. They are NULL if a message is not JSON;
    nothing else in the record is checked.

    Only the beginning of the text is parsed, except if a record does not have the form in which cdc-producer writes it.
    """
    head = F.regexp_extract(F.substring("value", 1, _HEAD_BYTES).cast("string"), _HEAD, 0)
    # A bracket after the transaction makes the head complete JSON.
    text = F.when(head != "", F.concat(head, F.lit("}"))).otherwise(F.col("value").cast("string"))
    schema = json_schema(*(_FIELDS_OF_COLUMNS.get(name, name) for name in names))
    return messages.select("*", F.from_json(text, schema).alias("body")).select(
        *messages.columns, *record_columns(*names)
    )


def with_sequences(messages: DataFrame) -> DataFrame:
    """Adds the column ``sequence`` as ``heads`` does, at a fifth of the cost: from most records a regular expression
    takes it, without the parser of JSON. ``copied`` is true for the records of a copy or a repair, whose transaction is
    none of the leader's.
    """
    head = F.substring("value", 1, _HEAD_BYTES).cast("string")
    digits = F.regexp_extract(head, _SEQUENCE_OF_LEADER, 1)
    found = messages.withColumn("digits", digits)
    others = F.when(F.col("digits") == "", F.regexp_extract(head, _SEQUENCE, 1))
    text = F.when((F.col("digits") == "") & (others == ""), F.col("value").cast("string"))
    parsed = F.from_json(text, json_schema("sequence", "transaction.id"))
    sequence = F.coalesce(F.col("digits").try_cast("bigint"), others.try_cast("bigint"), parsed["sequence"])
    copied = F.contains(head, F.lit(f'"id":"{COPYING}')) | F.startswith(parsed["transaction"]["id"], F.lit(COPYING))
    copied = (F.col("digits") == "") & F.coalesce(copied, F.lit(False))
    return found.withColumns({"sequence": sequence, "copied": copied}).drop("digits")


def _fields(messages: DataFrame, events_of: Collection[str]) -> DataFrame:
    """Parses the messages' JSON into fields. Leaves out binlog events that belong to no record (see ``parse``). ``at``
    is a message's offset.

    ``uri_matches`` is true if the URI is valid, ``names`` are the parts of the URI, and ``rows`` are the rows of the
    operation.
    """
    text = F.col("value").cast("string")
    body = F.from_json(text, _SCHEMA, PARSING)
    # JSON text must be UTF-8, but the parser ignores invalid bytes.
    is_text = F.is_valid_utf8(text).alias("is_text")
    parsed = messages.select("side", "partition", F.col("offset").alias("at"), is_text, body.alias("body"))
    uri_matches = f"body.uri RLIKE '{_URI}'"
    fields = parsed.select(
        "side", "partition", "at", "is_text", "body.*",
        F.expr(uri_matches).alias("uri_matches"),
        F.expr(f"IF({uri_matches}, transform(split(body.uri, '/'), name -> url_decode(name)), NULL)").alias("names"),
        F.expr(_ROWS).alias("rows"),
    )  # fmt: skip
    if not events_of:
        return fields
    in_events_topic = F.col("side").isin(list(events_of)) & F.col("partition").rlike(_EVENTS)
    return fields.where(F.expr("event IS NULL OR sequence IS NOT NULL") | ~in_events_topic)


def with_new_fields(saved: StructType) -> StructType:
    """Adds fields to ``saved``, the schema of the records or rows that an earlier audit saved: the fields that later
    versions of cdc added. These fields will be NULL.
    """
    for field in saved.fields:
        affect = field.dataType.elementType if isinstance(field.dataType, ArrayType) else None
        if field.name == "affects" and isinstance(affect, StructType) and "like" not in affect.names:
            affect.add("like", "string")
    if "affects" in saved.names and "chunk" not in saved.names:
        keys = ArrayType(StringType())
        saved.add("chunk", StructType([StructField("after", keys), StructField("upto", keys)]))
        saved.add("copying", BooleanType())
    for side in (LEADER, FOLLOWER):
        if f"{side}_marked" in saved.names and f"{side}_found" not in saved.names:
            image = ArrayType(StructType([StructField("column", StringType()), StructField("value", StringType())]))
            saved.add(f"{side}_found", image).add(f"{side}_stood", image)
    for field in saved.fields:
        if field.name == "chunk" and isinstance(field.dataType, StructType) and "repair" not in field.dataType.names:
            field.dataType.add("repair", BooleanType())
    return saved
