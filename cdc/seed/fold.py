"""The rows that are left of a leader's tables, in the order of their last changes, folded on Spark.

No row goes through Python before it is one that is loaded. A row's image is an array of the JSON texts of its values,
as the record has them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.seed.tables import Part
from cdc.spark.frames.messages import Source
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.one_part import cached
from cdc.spark.input.records import parse

__all__ = ["Line", "lines"]

_PARTS = """
    part INT, owner INT, database STRING, table STRING, first BIGINT, end BIGINT,
    names ARRAY<STRING>, known ARRAY<INT>, numbers ARRAY<INT>, refused STRING
"""
_ORDER_BITS = 23  # rows of a record, as in streams.row_digests
_LINE = "named_struct('head', head, 'part', part, 'row', row, 'mode', sql_mode, 'key', key, 'image', image.after)"
_KNOWN = "IF(image.{0} IS NULL, NULL, transform(known, i -> image.{0}[i]))"
_STEP = "named_struct('known', {}, 'bare', {}, 'place', {}, 'adds', {}, 'n', {})"
# A row that gets another key is one row that goes and one that comes.
_KEYED = f"""
    IF(old IS NOT NULL AND new IS NOT NULL AND old != new,
        array({_STEP.format("old", "false", "place", "false", "0L")},
            {_STEP.format("new", "false", "place + 1", "true", "0L")}),
        array({_STEP.format("coalesce(new, old)", "false", "place + 1", "new IS NOT NULL", "0L")}))
"""
# Without a key equal rows are counted, and loaded where the last of them came.
_BARE = f"""
    filter(array({_STEP.format("image.before", "true", "-1L", "false", "-1L")},
        {_STEP.format("image.after", "true", "place + 1", "true", "1L")}), s -> s.known IS NOT NULL)
"""
# The row with the highest number of a column is kept, too: the follower must know the number when the row is gone.
_DIGITS = "regexp_extract(image.after[i], '^[{]\"[A-Za-z]+\":([0-9]+)', 1)"
_NUMBER = f"IF({_DIGITS} = '', -1L, coalesce(try_cast({_DIGITS} AS BIGINT), 9223372036854775807L))"
_NUMBERS = f"""
    filter(transform(IF(image.after IS NULL, array(), coalesce(numbers, array())), (i, at) ->
        {_STEP.format("array(concat('number ', at))", "false", f"IF(i < 0, -1L, {_NUMBER})", "true", "0L")}),
        s -> s.place >= 0)
"""
_LOST = (
    "raise_error(concat('a row was deleted that the stream does not have, of table ', name, "
    "': copy the table again (cdc-producer --copy)'))"
)
_COLS = """concat('{"cols":[', array_join(transform(image, v -> IF(v = 'Null', '"Null"', v)), ','), ']}')"""


class Line(NamedTuple):
    """Rows whose last change is in one record: ``texts`` are the JSON of each, ``rows`` their numbers in the record.

    ``is_left``: they are left; else it is a row with the highest number of a column, which may be gone.
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
    """The rows of ``parts`` that are left after sequence ``upto`` and whose last change was behind ``after``, by the
    sequences of these changes.

    Spark raises an error where a message is no record, or the stream lacks rows.
    """
    if not parts:
        return
    rows = _rows(source, parts, upto)
    left = _left(rows)
    left = left.where(f"row.head.sequence > {after}")
    texts = left.select(
        "is_left", "row.head", "row.part", "row.mode", "row.key", "row.row", F.expr(_COLS).alias("text")
    )
    grouped = texts.groupBy("head.sequence", "part", "is_left").agg(
        *(F.first(f"head.{each}").alias(each) for each in ("file", "position", "transaction", "ts_us")),
        F.first("mode").alias("mode"), F.first("key").alias("key"),
        F.array_sort(F.collect_list(F.struct("row", "text"))).alias("found"),
    )  # fmt: skip
    ordered = grouped.orderBy("sequence", F.desc("is_left")).select(
        "sequence", "part", "is_left", "file", "position", "transaction", "ts_us", "mode", "key", "found.row",
        "found.text",
    )  # fmt: skip
    for row in ordered.toLocalIterator(prefetchPartitions=True):
        yield Line(*row)


def _rows(source: Source, parts: Sequence[Part], upto: int) -> DataFrame:
    """A line for each row of the records: part, owner, name, known (the indexes), numbers, head, sql_mode, key, row,
    image."""
    owners = {owner: at for at, owner in enumerate(sorted({part.owner for part in parts}))}
    within = local_frame(source.spark, [_told(at, part, owners) for at, part in enumerate(parts)], _PARTS)
    messages = source.of_tables({part.name for part in parts})
    invalid = "raise_error(concat('not a record: partition ', partition, ', offset ', offset, '; see cdc-audit'))"
    records = parse(messages, also=["sql_mode"])
    records = records.withColumn("database", F.expr(f"IF(valid, database, CAST({invalid} AS STRING))"))
    # Otherwise Spark would parse a record again for each field and each row of it.
    records = cached(records.where(f"sequence <= {upto} AND size(rows) > 0"))
    found = records.join(F.broadcast(within), ["database", "table"]).where("sequence >= first AND sequence < end")
    why = "IF(names = columns, refused, 'it has other columns than were told')"
    fails = (
        f"raise_error(concat('record ', sequence, ', table ', database, '.', table, ': ', {why}, '; start cdc-producer "
        "again, which tells them with the next row of the table, or copy the table again'))"
    )
    checked = f"IF(refused = '' AND names = columns, rows, CAST({fails} AS ARRAY<STRUCT<before: ARRAY<STRING>, after: ARRAY<STRING>>>))"  # noqa: E501
    head = F.struct("sequence", "file", "position", "transaction", "ts_us").alias("head")
    return found.select(
        "part", "owner", F.concat_ws(".", "database", "table").alias("name"), "known", "numbers", head, "sql_mode",
        "key", F.posexplode(F.expr(checked)).alias("row", "image"),
    )  # fmt: skip


def _told(at: int, part: Part, owners: dict[tuple[str, str], int]) -> dict[str, Any]:
    database, table = part.name
    return {
        "part": at, "owner": owners[part.owner], "database": database, "table": table, "first": part.first,
        "end": part.end, "names": part.columns, "known": part.known if not part.refused else [],
        "numbers": part.numbers, "refused": part.refused,
    }  # fmt: skip


def _left(rows: DataFrame) -> DataFrame:
    """is_left, row and image of the rows that are left, and of those with the highest numbers."""
    known = rows.select(
        "*",
        F.expr(_KNOWN.format("before")).alias("old"),
        F.expr(_KNOWN.format("after")).alias("new"),
        F.expr(f"shiftleft(head.sequence, {_ORDER_BITS + 1}) + 2L * row").alias("place"),
    )
    steps = F.explode(F.expr(f"concat(IF(known IS NULL, {_BARE}, {_KEYED}), {_NUMBERS})")).alias("step")
    each = known.select("owner", "name", F.expr(_LINE).alias("line"), steps).select("owner", "name", "line", "step.*")
    # The hash first, since to compare numbers costs less than arrays.
    each = each.withColumn("hash", F.expr("xxhash64(known)"))
    found = each.groupBy("hash", "owner", "bare", "known").agg(
        F.max_by(F.expr("IF(adds, line, NULL)"), "place").alias("row"),
        F.sum("n").alias("n"),
        F.first("name").alias("name"),
    )
    times = F.expr(f"CASE WHEN NOT bare THEN int(row IS NOT NULL) WHEN n < 0 THEN CAST({_LOST} AS INT) ELSE int(n) END")
    repeated = found.select("row", "bare", "known", F.explode(F.array_repeat(F.lit(1), times)))
    is_left = F.expr("bare OR NOT startswith(known[0], 'number ')").alias("is_left")
    return repeated.select(is_left, "row", F.col("row.image").alias("image"))
