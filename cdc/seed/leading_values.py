"""Takes the leading values of rows from the texts of their records, and whole rows by their numbers, without parsing.

To fold rows, only what they are known by is needed, which in most tables is their first value. A regular expression
finds it in a tenth of the time in which Spark parses all values. Only records that are plain are read so:

- they are compact JSON with their fields in the order in which cdc-producer writes them;
- no value is a JSON document, so that what looks like the begin of an image is one: in a string, quotes are behind
  backslashes;
- the leading values are whole numbers, dates and times, or texts without backslashes, which have one text in JSON, the
  same that Spark's parser gives for the value.

All others are for the parser.
"""

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["image_texts", "leading_values", "pattern"]

# Spark's parser gives characters above U+FFFF with backslashes.
_VALUE = r'\{"[A-Za-z]+":(?:-?[0-9]+|"[^"\\\x{10000}-\x{10FFFF}]*+"|\{[^{}\\]*+\})\}'
_OR_NULL = rf'(?:{_VALUE}|"Null")'
# The ends of a chunk, which are objects and not in an array, have values of the key and are no rows. The group does not
# match where a value is not as above: then the text that is found is empty.
_IMAGE = r'cols":\[(?<=[,\[]\{{"cols":\[|"(?:before|after)_cols":\[)({})?'
_HEAD_BYTES, _LARGE = 16_384, 16 << 20
_HEAD = r'^(\{"uri":.*?),"operation":\{"(Add|Update|Delete|Copy)":\{'
_FIELDS = """
    uri STRING, sequence BIGINT, bn_file STRUCT<fileName: STRING, offset: BIGINT>,
    transaction STRUCT<id: STRING, ts_us: BIGINT>, columns ARRAY<STRING>, key ARRAY<STRING>, sql_mode STRING
"""
_MESSAGE = ("side", "partition", "offset", "value")
_BODY = (
    "body.uri", "body.sequence", "body.bn_file.fileName AS file", "body.bn_file.offset AS position",
    "body.transaction.id AS transaction", "body.transaction.ts_us", "body.columns", "body.key", "body.sql_mode",
)  # fmt: skip
_END = "]}]}}}"
_IS_PLAIN = f"""
    size(texts) > 0 AND NOT array_contains(texts, '') AND (operation != 'Update' OR size(texts) % 2 = 0)
    AND endswith(value, CAST('{_END}' AS BINARY)) AND NOT contains(value, CAST('{{"Json' AS BINARY))
"""
_IMAGES = f"""
    IF(plain, transform(texts, t -> IF(width = 1, array(t), regexp_extract_all(t, r'{_OR_NULL}', 0))), NULL)
"""
_NO_IMAGE = "CAST(NULL AS ARRAY<STRING>)"
_ROWS = f"""
    CASE WHEN NOT plain THEN NULL
        WHEN operation = 'Update' THEN transform(sequence(0, size(images) - 1, 2),
            i -> named_struct('before', images[i], 'after', images[i + 1]))
        WHEN operation = 'Delete' THEN transform(images, v -> named_struct('before', v, 'after', {_NO_IMAGE}))
        ELSE transform(images, v -> named_struct('before', {_NO_IMAGE}, 'after', v))
    END
"""
_BEGIN, _ADDED, _NEXT = b'"rows":[', b'{"cols":[', b"]},"
_UPDATED, _AFTER, _NEXT_UPDATED = b'{"before_cols":[', b'],"after_cols":[', b']},{"before_cols":['


def pattern(known: Collection[int], width: int) -> str:
    """The regular expression that finds in a record the first ``width`` values of each image. Those of columns with the
    indexes ``known`` are never NULL."""
    return _IMAGE.format(",".join(_VALUE if at in known else _OR_NULL for at in range(width)))


def leading_values(messages: DataFrame, patterns: DataFrame, *, uris: Collection[str], upto: int) -> DataFrame:
    """The ``messages`` (side, partition, offset, value) with ``plain``: whether a record is, and then with what is read
    of it: uri, sequence, file, position, transaction, ts_us, columns, key, sql_mode, and rows as
    ``spark.input.records`` has them, with the leading values of their images alone.

    ``patterns`` has for records of the table ``uri`` from sequence ``first`` to before ``end`` their ``pattern`` and
    its ``width``, an empty one where all are for the parser, and other columns, which plain records get. Records behind
    sequence ``upto``, and those of ``uris`` that ``patterns`` does not name, are left out where they are compact JSON.
    """
    prefix = F.substring("value", 1, _HEAD_BYTES).cast("string")
    head, operation = (F.regexp_extract(prefix, _HEAD, at) for at in (1, 2))
    body = F.from_json(F.concat(F.when(F.octet_length("value") <= _LARGE, head), F.lit("}")), _FIELDS)
    headed = messages.select(*_MESSAGE, operation.alias("operation"), body.alias("body"))
    fields = headed.select(*_MESSAGE, "operation", *map(F.expr, _BODY))
    is_known = F.col("uri").isin(list(uris)) & F.col("sequence").isNotNull()
    fields = fields.withColumn("known", F.coalesce(is_known, F.lit(False)))
    # In the join: Spark would move a filter to where it has to find all that the filter is about a second time.
    within = f"known AND uri = of AND sequence >= first AND sequence < end AND sequence <= {upto}"
    found = fields.join(F.broadcast(patterns.withColumnRenamed("uri", "of")), F.expr(within), "left")
    found = found.where("NOT known OR of IS NOT NULL").drop("known", "of", "first", "end")
    texts = F.expr("IF(pattern = '', NULL, regexp_extract_all(string(value), pattern, 1))")
    told = found.withColumn("texts", texts).withColumn("plain", F.coalesce(F.expr(_IS_PLAIN), F.lit(False)))
    images = told.withColumn("images", F.expr(_IMAGES)).drop("texts", "pattern", "width")
    return images.withColumn("rows", F.expr(_ROWS)).drop("images", "operation")


def image_texts(value: bytes | None, rows: Sequence[int], *, of: int, sequence: int) -> list[str]:
    """The values after the change, as JSON separated by commas, of those ``rows`` in a plain record that has ``of``.

    Raises ValueError where it is gone (None), has another sequence or number of rows, or is not UTF-8.
    """
    if value is None or f'","sequence":{sequence},'.encode() not in value[:_HEAD_BYTES]:
        raise ValueError("it is gone, or another one, when it is read again")
    body = value[value.index(_BEGIN) + len(_BEGIN) : -len(_END)]
    if body.startswith(_UPDATED):
        images = [piece.partition(_NEXT_UPDATED)[0] for piece in body.split(_AFTER)[1:]]
    else:
        images = [piece.removesuffix(_NEXT) for piece in body.split(_ADDED)[1:]]
    if len(images) != of:
        raise ValueError(f"{len(images)} rows instead of {of}")
    return [images[row].decode() for row in rows]
