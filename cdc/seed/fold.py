"""Folds a leader's changes with Spark to the rows that its tables contain, in the order of their last changes.

In the first step, only numbers are grouped: the hash of the identity of each row, and the place of the row's last
change. Spark does this in compiled code, without sorting. In the second step, the rows at these places are read from
their records. Only records that contain a row to load pass through Python. A row's image is an array of the JSON texts
of its values, as the record contains them, or only of the leading values that the fold needs.

``spark.frames.rows`` also folds, but only one table, and lets Spark shuffle the images of its rows. This module folds
all tables of the stream together, and lets Spark shuffle only numbers (``spark.streams.row_places``).

Two identities count as the same if both of their 64-bit hashes are equal; the seeds of the hashes are random in each
run. The probability that two different rows of a table get equal hashes is 1 in 3e38 (2¹²⁸).

The module also reads the messages at given places in Kafka (partition and offset), with one bit of memory for each
message.

Each task receives bitmaps of the wanted offsets of all partitions. A bitmap for 32,768 offsets has 4 kB, so bitmaps for
a thousand million messages need 122 MB. A join on the offsets would instead write the values of all messages to disk.

The module also extracts values from the texts of records without parsing them: the leading values of all rows, and
whole rows with given numbers.

To fold rows, only the values that identify a row are needed. In most tables, that is the first value, and a regular
expression finds it in a tenth of the time in which Spark parses all values. Only records with the following properties,
called plain records, are read this way:

- The record is compact JSON with its fields in the order in which cdc-producer writes them.
- No value is a JSON document, so every text that looks like the beginning of an image is one: within a string, a
  backslash precedes each quote.
- The leading values are whole numbers, dates and times, or texts without backslashes. Such a value has only one JSON
  text, which is also the text that Spark's parser returns.

Spark parses all other records.
"""

import secrets
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc.errors import UserError
from cdc.seed.tables import Part
from cdc.spark.frames.messages import Source
from cdc.spark.input.records import json_schema, parse, record_columns
from cdc.spark.input.small_data import cached, local_frame
from cdc.spark.streams.row_places import PLACE, row_at, sequence_at, steps

__all__ = ["Line", "image_texts", "leading_values", "lines", "pattern", "values_at"]

# Characters above U+FFFF do not match, because Spark's parser writes them with backslashes.
_VALUE = r'\{"[A-Za-z]+":(?:-?[0-9]+|"[^"\\\x{10000}-\x{10FFFF}]*+"|\{[^{}\\]*+\})\}'
_OR_NULL = rf'(?:{_VALUE}|"Null")'
# Each match begins with the text before an image. The group contains the image's leading values; it is empty if one of
# these values does not match _VALUE. The ends of a chunk's range do not match, because they are objects outside of an
# array, not images.
_IMAGE = r'cols":\[(?<=[,\[]\{{"cols":\[|"(?:before|after)_cols":\[)({})?'
_HEAD_BYTES, _LARGE = 16_384, 16 << 20
_HEAD = r'^(\{"uri":.*?),"operation":\{"(Add|Update|Delete|Copy)":\{'
_FIELDS = json_schema("uri", "sequence", "bn_file", "transaction.id", "transaction.ts_us", "columns", "key", "sql_mode")
_MESSAGE = ("side", "partition", "offset", "value")
_OF_HEAD = ("uri", "sequence", "file", "position", "transaction", "ts_us", "columns", "key", "sql_mode")
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
    """Returns the regular expression that finds the first ``width`` values of each image in a record. The columns whose
    indexes are in ``known`` are never NULL.
    """
    return _IMAGE.format(",".join(_VALUE if at in known else _OR_NULL for at in range(width)))


def leading_values(messages: DataFrame, patterns: DataFrame, *, uris: Collection[str], upto: int) -> DataFrame:
    """Extracts the leading values of plain records (see the module's docstring) from ``messages``, which has the
    columns side, partition, offset and value. The new column ``plain`` is true for a plain record. For plain records,
    the columns uri, sequence, file, position, transaction, ts_us, columns, key and sql_mode are added, and rows in the
    form of ``spark.input.records``, but with only the leading values of each image.

    Each row of ``patterns`` contains the ``pattern`` and its ``width`` for the records of the table ``uri`` with
    sequences from ``first`` up to but not including ``end``; the pattern is empty if all these records must be parsed.
    Further columns of ``patterns`` are added to plain records. Records of ``uris`` to which no row of ``patterns``
    applies, and records after sequence ``upto``, are left out if their sequence can be read without parsing.
    """
    prefix = F.substring("value", 1, _HEAD_BYTES).cast("string")
    head, operation = (F.regexp_extract(prefix, _HEAD, at) for at in (1, 2))
    body = F.from_json(F.concat(F.when(F.octet_length("value") <= _LARGE, head), F.lit("}")), _FIELDS)
    headed = messages.select(*_MESSAGE, operation.alias("operation"), body.alias("body"))
    fields = headed.select(*_MESSAGE, "operation", *record_columns(*_OF_HEAD))
    is_known = F.col("uri").isin(list(uris)) & F.col("sequence").isNotNull()
    fields = fields.withColumn("known", F.coalesce(is_known, F.lit(False)))
    # The condition is part of the join, because Spark would move a separate filter to a place where it must compute the
    # columns a second time.
    within = f"known AND uri = of AND sequence >= first AND sequence < end AND sequence <= {upto}"
    found = fields.join(F.broadcast(patterns.withColumnRenamed("uri", "of")), F.expr(within), "left")
    found = found.where("NOT known OR of IS NOT NULL").drop("known", "of", "first", "end")
    texts = F.expr("IF(pattern = '', NULL, regexp_extract_all(string(value), pattern, 1))")
    told = found.withColumn("texts", texts).withColumn("plain", F.coalesce(F.expr(_IS_PLAIN), F.lit(False)))
    images = told.withColumn("images", F.expr(_IMAGES)).drop("texts", "pattern", "width")
    return images.withColumn("rows", F.expr(_ROWS)).drop("images", "operation")


def image_texts(value: bytes | None, rows: Sequence[int], *, of: int, sequence: int) -> list[str]:
    """Extracts the after-images of some rows of a plain record. Returns for each row the JSON texts of its values,
    separated by commas. ``rows`` are the numbers of these rows in the record; the record contains ``of`` rows.

    Raises ValueError if the record was deleted (``value`` is None), has another ``sequence`` or another number of rows,
    or is not UTF-8.
    """
    if value is None or f'","sequence":{sequence},'.encode() not in value[:_HEAD_BYTES]:
        raise ValueError("it was deleted, or is another record, when it is read again")
    body = value[value.index(_BEGIN) + len(_BEGIN) : -len(_END)]
    if body.startswith(_UPDATED):
        images = [piece.partition(_NEXT_UPDATED)[0] for piece in body.split(_AFTER)[1:]]
    else:
        images = [piece.removesuffix(_NEXT) for piece in body.split(_ADDED)[1:]]
    if len(images) != of:
        raise ValueError(f"{len(images)} rows instead of {of}")
    return [images[row].decode() for row in rows]


# Offsets in Kafka begin at 0, but the numbers in Spark's bitmaps begin at 1.
_BUCKET, _BIT = "bitmap_bucket_number(offset + 1)", "bitmap_bit_position(offset + 1)"
_IS_SET = f"getbit(CAST(conv(hex(substr(bits, int({_BIT} div 8) + 1, 1)), 16, 10) AS BIGINT), int({_BIT} % 8)) = 1"


def values_at(messages: DataFrame, places: DataFrame) -> DataFrame:
    """Selects from ``messages`` (partition, offset, value) the messages whose partition and offset are in ``places``.
    Each message is selected once.
    """
    wanted = places.groupBy(F.col("partition").alias("of"), F.expr(_BUCKET).alias("bucket"))
    bitmaps = wanted.agg(F.expr(f"bitmap_construct_agg({_BIT})").alias("bits"))
    within = F.expr(f"partition = of AND {_BUCKET} = bucket AND {_IS_SET}")
    return messages.join(F.broadcast(bitmaps), within, "left_semi").select("partition", "offset", "value")


_PARTS = """
    part INT, owner INT, owned STRING, name STRING, uri STRING, database STRING, table STRING, first BIGINT, end BIGINT,
    names ARRAY<STRING>, shape INT, numbers ARRAY<INT>, refused STRING, pattern STRING, width INT
"""
_RECORD = (
    "partition", "offset", "plain", "part", "owner", "owned", "name", "shape", "numbers", "names", "refused", "columns",
    "sequence", "file", "position", "transaction", "ts_us", "sql_mode", "key", "rows",
)  # fmt: skip
_SEEDS = (secrets.randbits(63), secrets.randbits(63))
_WHY = "IF(names = columns, refused, 'its columns differ from the known columns')"
_FAILS = (
    f"raise_error(concat('record ', sequence, ', table ', name, ': ', {_WHY}, '; start cdc-producer again, which "
    "writes them with the next row of the table, or copy the table again'))"
)
# The generator (posexplode) itself checks whether the rows can be read. Spark might run a check in a separate filter
# too early, on records that are left out later, because the sequence of the record is not in the range of the Part.
_CHECKED = f"""
    posexplode(IF(refused = '' AND names = columns, rows,
        CAST({_FAILS} AS ARRAY<STRUCT<before: ARRAY<STRING>, after: ARRAY<STRING>>>)))
"""
_STEP = "named_struct('id', {}, 'bare', {}, 'place', {}, 'adds', {}, 'n', {})"
_KEYED = steps(
    "NOT (old.a = new.a AND old.b = new.b)",
    removed=_STEP.format("old", "false", "place", "false", "0L"),
    added=_STEP.format("new", "false", "place + 1", "true", "0L"),
    both=_STEP.format("coalesce(new, old)", "false", "IF(new IS NULL, place, place + 1)", "new IS NOT NULL", "0L"),
)
# In a table without a key, equal rows can't be distinguished. So they are counted, and all that remain are loaded at
# one place: where the last of the equal rows was added.
_BARE = f"""
    array({_STEP.format("old", "true", "-1L", "false", "-1L")},
        {_STEP.format("new", "true", "place + 1", "true", "1L")})
"""
_LOST = (
    "raise_error(concat('a row of table ', owned, ' was deleted that the stream does not have: "
    "copy the table again (cdc-producer --copy)'))"
)
# The row with the highest number in an AUTO_INCREMENT column is kept, even if it was deleted, because the follower must
# number later rows from this number on.
_DIGITS = "regexp_extract(image.after[i], '^[{]\"[A-Za-z]+\":([0-9]+)', 1)"
_NUMBER = f"IF({_DIGITS} = '', NULL, coalesce(try_cast({_DIGITS} AS BIGINT), {(1 << 63) - 1}L))"
# Number and place are combined into one value, so that the row with the highest number is found without sorting.
_NUMBERED = f"CAST({_NUMBER} AS DECIMAL(19, 0)) * {1 << 63}BD + {PLACE}"
_PARTITION_BYTES = 32 << 20
_BYTES = "coalesce(octet_length(value), aggregate(texts, 0L, (sum, text) -> sum + octet_length(text)))"
_TEXTS = """
    transform(found, k -> array_join(transform(rows[k.row].after, v -> IF(v = 'Null', '"Null"', v)), ','))
"""


class Line(NamedTuple):
    """Rows whose last change is in the same record. ``texts`` is the JSON of each row, ``rows`` are the numbers of
    these rows in the record.

    ``is_left`` is true for rows that remain. It is false for rows that are kept because they have the highest number of
    an AUTO_INCREMENT column; these rows may have been deleted later.
    """

    sequence: int
    part: int
    is_left: bool
    file: str
    position: int
    transaction: str
    ts_us: int
    mode: str | None
    key: list[str] | None
    rows: list[int]
    texts: list[str]


def lines(source: Source, parts: Sequence[Part], *, after: int, upto: int) -> Iterator[Line]:
    """Yields the rows of ``parts`` that remain after sequence ``upto`` and whose last change is after sequence
    ``after``, in the order of their last changes.

    Spark raises an error if a message is not a record, or if the stream lacks rows.
    """
    if not parts:
        return
    records = _records(source, parts, upto)
    kept = _left(_changes(records, _shapes(parts)))
    if any(part.numbers for part in parts):
        kept = kept.unionByName(_highest(records))
    grouped = kept.where(f"sequence > {after}").groupBy("sequence", "is_left")
    found = cached(grouped.agg(F.array_sort(F.collect_list("kept")).alias("found")))
    # ``found`` is computed before Spark plans the join. If it is small, Spark then broadcasts it.
    found.count()
    for row in _sorted(_chosen(source, parts, records, found)).toLocalIterator(prefetchPartitions=True):
        *told, plain, parsed, of, value = row
        images = _images(value, row["row"], of=of, sequence=row["sequence"]) if plain else parsed
        yield Line._make([*told, [f'{{"cols":[{image}]}}' for image in images]])


def _chosen(source: Source, parts: Sequence[Part], records: DataFrame, found: DataFrame) -> DataFrame:
    """Selects the rows to load from ``records``. ``found`` contains the sequence and the row number of each of them.

    The columns are the fields of a Line up to its rows, ``plain``, the texts of parsed records, the number of rows in
    the record, and the value of plain records. To add the values, the messages are read once more.
    """
    texts = F.expr(f"IF(plain, NULL, {_TEXTS})").alias("texts")
    chosen = cached(
        records.join(found, "sequence").select(
            "sequence", "part", "is_left", "file", "position", "transaction", "ts_us", "sql_mode", "key", "found.row",
            "plain", texts, F.size("rows").alias("of"), "partition", "offset",
        )
    )  # fmt: skip
    if chosen.where("plain").isEmpty():
        return chosen.drop("partition", "offset").withColumn("value", F.lit(None).cast("binary"))
    values = values_at(source.of_tables({part.name for part in parts}), chosen.where("plain"))
    return chosen.join(values, ["partition", "offset"], "left").drop("partition", "offset")


def _images(value: bytes | None, rows: Sequence[int], *, of: int, sequence: int) -> list[str]:
    try:
        return image_texts(None if value is None else bytes(value), rows, of=of, sequence=sequence)
    except ValueError as error:
        raise UserError(
            f"the record is not as cdc-producer wrote it: {error}",
            code="CDC-SEED-RECORD-INVALID",
            where=f"sequence {sequence}",
            hint="something else writes to this topic or deletes its records; see cdc-audit",
        ) from None


def _sorted(chosen: DataFrame) -> DataFrame:
    """Sorts the rows by sequence, in partitions that are small enough for the driver to fetch one after another."""
    chosen = cached(chosen)
    [size] = chosen.agg(F.coalesce(F.sum(F.expr(_BYTES)), F.lit(0))).collect()
    count = int(size[0]) // _PARTITION_BYTES + 1
    return chosen.repartitionByRange(count, "sequence").sortWithinPartitions("sequence", F.desc("is_left"))


def _records(source: Source, parts: Sequence[Part], upto: int) -> DataFrame:
    """Reads the records with rows.

    Plain records contain only the leading values of their rows; other records contain the result of ``parse``. Each
    record has columns about its part: ``part`` (the part's number), ``owner`` and ``owned`` (a number and the name of
    the table to which the rows belong now), ``shape`` (a number for the columns that identify a row), ``numbers``,
    ``names`` (of the columns), and ``refused``.
    """
    uris = {part.name: source.uri(part.name) for part in parts}
    owners = {owner: at for at, owner in enumerate(sorted({part.owner for part in parts}))}
    shapes = _shapes(parts)
    told = [
        {**_told(at, part), "uri": uris[part.name], "owner": owners[part.owner], "shape": shapes.index(_known(part))}
        for at, part in enumerate(parts)
    ]
    within = local_frame(source.spark, told, _PARTS)
    found = leading_values(source.of_tables(uris), within, uris=uris.values(), upto=upto)
    # The records are cached, because Spark would otherwise search for the values again at each use.
    found = cached(found.withColumn("value", F.expr("IF(plain, NULL, value)")))
    bare = shapes.index(None) if None in shapes else -1
    parsed = _parsed(found.where("NOT plain").drop("plain"), within.drop("uri", "pattern", "width"), upto, bare=bare)
    parsed = parsed.withColumn("plain", F.lit(False))
    return found.where("plain").select(*_RECORD).unionByName(parsed.select(*_RECORD))


def _parsed(messages: DataFrame, within: DataFrame, upto: int, *, bare: int) -> DataFrame:
    """Parses records. Leaves out repairs of tables without a key, whose ``shape`` is ``bare``."""
    invalid = "raise_error(concat('not a record: partition ', partition, ', offset ', offset, '; see cdc-audit'))"
    records = parse(messages.select("side", "partition", "offset", "value"), also=["sql_mode"])
    records = records.withColumn("database", F.expr(f"IF(valid, database, CAST({invalid} AS STRING))"))
    # The records are cached, because Spark would otherwise parse a record again for each of its fields and rows, and
    # once more for a filter.
    records = cached(records).where(f"sequence <= {upto} AND size(rows) > 0")
    found = records.join(F.broadcast(within), ["database", "table"]).where("sequence >= first AND sequence < end")
    return found.where(f"NOT (shape = {bare} AND coalesce(chunk.repair, false))")


def _told(at: int, part: Part) -> dict[str, Any]:
    database, table = part.name
    width = 0 if part.known is None or part.refused else max([*part.known, *part.numbers]) + 1
    return {
        "part": at, "owned": ".".join(part.owner), "name": ".".join(part.name), "database": database, "table": table,
        "first": part.first, "end": part.end, "names": part.columns, "numbers": part.numbers, "refused": part.refused,
        "pattern": pattern(part.known or (), width) if width else "", "width": width,
    }  # fmt: skip


def _known(part: Part) -> tuple[int, ...] | None:
    """Returns the indexes of the columns that identify a row, or None if a row is identified only by all columns
    together. The tuple is empty if the rows of the part can't be read.
    """
    return part.known if not part.refused else ()


def _shapes(parts: Sequence[Part]) -> list[tuple[int, ...] | None]:
    return sorted({_known(part) for part in parts}, key=lambda known: (known is None, known or ()))


def _changes(records: DataFrame, shapes: Sequence[tuple[int, ...] | None]) -> DataFrame:
    """Returns an output row for each identity that a row had before or after a change.

    The columns are owner, owned, bare (true if the table has no key), id (two hashes), place, adds (true if the row has
    this id from this place on), and n. In a table without a key, n is the number of rows with this id that the change
    adds; it is -1 if the change removes a row.
    """
    rows = records.select("owner", "owned", "shape", "sequence", F.expr(_CHECKED).alias("row", "image"))
    bare = F.col("shape") == shapes.index(None) if None in shapes else F.lit(False)
    known = rows.select(
        "owner", "owned", bare.alias("bare"), _identity("image.before", shapes).alias("old"),
        _identity("image.after", shapes).alias("new"), F.expr(PLACE).alias("place"),
    )  # fmt: skip
    changed = known.select("owner", "owned", F.explode(F.expr(f"IF(bare, {_BARE}, {_KEYED})")).alias("step"))
    return changed.select("owner", "owned", "step.*").where("id IS NOT NULL")


def _identity(image: str, shapes: Sequence[tuple[int, ...] | None]) -> Column:
    """Computes two hashes of the values that identify a row, from its image; NULL if there is no image."""
    hashes = []
    for seed in _SEEDS:
        cases = ""
        for at, known in enumerate(shapes):
            values = [image] if known is None else [f"{image}[{index}]" for index in known]
            cases += f" WHEN {at} THEN xxhash64({', '.join([f'{seed}L', *values])})"
        hashes.append(f"CASE shape{cases} END")
    return F.expr(f"IF({image} IS NULL, NULL, named_struct('a', {hashes[0]}, 'b', {hashes[1]}))")


def _left(changes: DataFrame) -> DataFrame:
    """Finds the rows that remain; the columns are sequence, is_left (true) and kept (a struct of the row's number)."""
    grouped = changes.groupBy("owner", "owned", "bare", F.col("id.a"), F.col("id.b")).agg(
        F.max(F.expr("2L * place + int(adds)")).alias("newest"), F.sum("n").alias("n")
    )
    times = f"CASE WHEN NOT bare THEN int(newest & 1) WHEN n < 0 THEN CAST({_LOST} AS INT) ELSE int(n) END"
    found = grouped.select(F.expr("shiftright(newest, 1)").alias("place"), F.expr(times).alias("times"))
    return _kept(found.select("place", F.explode(F.expr("array_repeat(true, times)")).alias("is_left")))


def _highest(records: DataFrame) -> DataFrame:
    """Finds the row with the highest number of each AUTO_INCREMENT column. The columns are the same as in ``_left``;
    is_left is false.
    """
    rows = records.select("owner", "numbers", "sequence", F.expr(_CHECKED).alias("row", "image"))
    rows = rows.where("image.after IS NOT NULL")
    columns = rows.select("owner", "sequence", "row", "image", F.posexplode("numbers").alias("at", "i")).where("i >= 0")
    found = columns.groupBy("owner", "at").agg(F.max(F.expr(_NUMBERED)).alias("highest")).where("highest IS NOT NULL")
    place = F.expr(f"CAST(highest % {1 << 63}BD AS BIGINT)").alias("place")
    return _kept(found.select(place, F.lit(False).alias("is_left")))


def _kept(found: DataFrame) -> DataFrame:
    row = F.struct(F.expr(row_at("place")).alias("row")).alias("kept")
    return found.select(F.expr(sequence_at("place")).alias("sequence"), "is_left", row)
