"""Builds the rows of one table from its messages: the changes of rows, in the columns of one moment, and the rows that
remain at that moment.

The module only builds Spark expressions: no row passes through Python. A row's **image** is an array of the JSON texts
of its values, in the order of the plan's columns. In place of a value that is not certain, it contains the reason
(``typed.DOUBT``).
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.frames.alteration import Origin
from cdc.spark.frames.column_sql import NULL
from cdc.spark.frames.typed import DOUBT, Options, literal, typed
from cdc.spark.frames.versions import Plan, Stretch
from cdc.spark.input.records import parse

__all__ = ["NAMED", "changed_rows", "exploded", "last_images", "left_rows", "typed_columns", "typed_rows"]

NAMED = "array_join(known, ', ')"
"""The SQL of a text that names a row in errors: the values by which the row is ``known``. It is evaluated only for
errors: for each row it would take about 1 µs of CPU."""

_ORDER_BITS = 23  # bits for the number of a row in its record; see streams.row_places
_STEPS = """
    IF(old IS NOT NULL AND new IS NOT NULL AND old != new,
        array(named_struct('known', old, 'adds', false), named_struct('known', new, 'adds', true)),
        array(named_struct('known', coalesce(new, old), 'adds', new IS NOT NULL)))
"""
# The numbers of rows that a change adds and removes, for a table without a key. A repair counts 0, since it changes no
# row of the leader. (Only a table with a key can be repaired; it may have lost the key since.)
_COUNT = "IF(coalesce(chunk.repair, false), 0L, 1L)"
_BOTH = f"array(named_struct('image', before, 'n', -{_COUNT}), named_struct('image', after, 'n', {_COUNT}))"


def changed_rows(messages: DataFrame, plan: Plan, *, since: int, upto: int) -> DataFrame:
    """Returns the changed rows in the records of ``messages`` from sequence ``since`` through ``upto``.

    The columns sequence, transaction, last, file, position, ts_us and chunk are the same as in the record. ``row`` is
    the number of the row in the record. ``old`` and ``new`` are the values that identify the row before and after the
    change (NULL in a table without a key). ``before`` and ``after`` are the images. Spark raises an error that names
    the record if a record is not valid.
    """
    within = f"sequence BETWEEN {since} AND {upto}"
    number = " ".join(f"WHEN {_within(each)} THEN {_checked(each, at)}" for at, each in enumerate(plan.stretches))
    invalid = (
        "raise_error(concat('not a record of rows: partition ', partition, ', offset ', offset, '; see cdc-audit'))"
    )
    stretch = f"CASE WHEN NOT valid THEN CAST({invalid} AS INT) WHEN NOT {within} THEN NULL {number} END"
    records = parse(messages).withColumn("stretch", F.expr(stretch))
    rows = exploded(
        records, "stretch IS NOT NULL",
        *("stretch", "sequence", "transaction", "last", "file", "position", "ts_us", "chunk", "columns"),
    )  # fmt: skip
    images = {name: _of_stretch(plan, f"image.{name}", _image) for name in ("before", "after")}
    known = dict.fromkeys(("old", "new"), "CAST(NULL AS ARRAY<STRING>)")
    if plan.keyed:
        known = {name: _of_stretch(plan, f"image.{of}", _known) for name, of in (("old", "before"), ("new", "after"))}
    return rows.select(
        *("sequence", "transaction", "last", "file", "position", "ts_us", "chunk", "row"),
        *(F.expr(text).alias(name) for name, text in (known | images).items()),
    )


def exploded(records: DataFrame, condition: str, *columns: str) -> DataFrame:
    """Returns the rows of the parsed ``records`` that fulfil ``condition``: the record's ``columns``, with ``row`` and
    ``image`` of each row.

    Spark pushes a filter down to the scan of messages, together with all expressions in the filter. So it would parse
    each record in the scan, and once more for the record's rows. An inner explode implies such a filter. So this
    explode is an outer one: Spark does not push a filter on its result down.
    """
    rows = F.expr(f"posexplode_outer(IF({condition}, rows, NULL))")
    return records.select(*columns, rows.alias("row", "image")).where("row IS NOT NULL")


def last_images(changed: DataFrame) -> DataFrame:
    """Selects two columns for each changed row: ``known`` identifies the row, and ``image`` is the row's last image, or
    NULL if the row was deleted. The table must have a key.
    """
    kept = changed.select(
        F.expr(f"shiftleft(sequence, {_ORDER_BITS + 1}) + 2L * row").alias("place"),
        "after",
        F.explode(F.expr(_STEPS)).alias("step"),
    )
    kept = kept.select(
        F.expr("xxhash64(step.known)").alias("hash"),
        F.col("step.known").alias("known"),
        F.expr("IF(step.adds, after, NULL)").alias("image"),
        F.expr("place + int(step.adds)").alias("place"),
    )
    # The hash comes first, since comparing numbers costs less than comparing arrays.
    return kept.groupBy("hash", "known").agg(F.max_by("image", "place").alias("image"))


def left_rows(changed: DataFrame, plan: Plan) -> DataFrame:
    """Selects the rows that remain after all changes. The result contains at least the columns ``image`` and ``known``;
    ``known`` names the row in errors.
    """
    if plan.keyed:
        return last_images(changed).where("image IS NOT NULL")
    counted = changed.select(F.explode(F.expr(_BOTH)).alias("step")).select("step.*").where("image IS NOT NULL")
    counted = counted.groupBy(F.expr("xxhash64(image)").alias("hash"), "image").agg(F.sum("n").alias("n"))
    lost = "raise_error('a row was deleted that the stream does not have: copy the table again (cdc-producer --copy)')"
    times = F.expr(f"IF(n < 0, CAST({lost} AS INT), int(n))")
    repeated = counted.where("n != 0").select("image", F.explode(F.array_repeat(F.lit(1), times)))
    return repeated.select("image", F.col("image").alias("known"))


def typed_rows(rows: DataFrame, plan: Plan, options: Options) -> DataFrame:
    """Converts the images of ``rows``, the result of ``left_rows``, to the plan's columns with Spark types."""
    texts = rows.select("known", *(F.expr(f"get(image, {at})").alias(f"v{at}") for at in range(len(plan.columns))))
    made = typed_columns(plan, "v{}", NAMED, options)
    return texts.select(*(F.expr(text).alias(name) for name, text in made.items()))


def typed_columns(plan: Plan, value: str, named: str, options: Options) -> dict[str, str]:
    """Maps the names of the plan's columns to the SQL that converts their values. ``value`` is a format string: with
    the index of a column, it becomes the SQL of the JSON text of a value in that column. ``named`` is the SQL of a text
    that names the row in errors.
    """
    return {
        name: typed(value.format(at), kind, where=_where(plan, name, named), options=options)
        for at, (name, kind) in enumerate(plan.columns)
    }


def _where(plan: Plan, column: str, named: str) -> str:
    table = ".".join(plan.name)
    return f"concat({literal(f'table {table}, column {column}, row ')}, left({named}, 200))"


def _within(stretch: Stretch) -> str:
    database, table = map(literal, stretch.name)
    end = stretch.end - 1
    return f"database = {database} AND table = {table} AND sequence BETWEEN {stretch.first} AND {end}"


def _checked(stretch: Stretch, number: int) -> str:
    """Returns SQL that yields ``number``, the stretch's index in the plan, for a record of the ``stretch``. The SQL
    raises an error if the record's rows can't be read.
    """
    if stretch.columns is None:
        return f"IF(size(rows) > 0, {_fails('no record contains the types of its columns')}, {number})"
    names = f"array({', '.join(map(literal, stretch.columns))})"
    return f"IF(size(rows) > 0 AND columns != {names}, {_fails('its columns differ from the known columns')}, {number})"


def _of_stretch(plan: Plan, image: str, make: Callable[[Stretch, str], str]) -> str:
    """Applies ``make`` to ``image`` for each stretch. Returns the SQL that selects the result for the stretch of the
    image's record; NULL if there is no image.
    """
    made = {at: make(stretch, image) for at, stretch in enumerate(plan.stretches) if stretch.columns is not None}
    if set(made.values()) == {image}:
        return image
    whens = " ".join(f"WHEN stretch = {at} THEN {text}" for at, text in made.items())
    if len(set(made.values())) == 1:  # nearly always true: a CASE for each row would double the cost
        whens = f"ELSE {next(iter(made.values()))}"
    return f"CASE WHEN {image} IS NULL THEN CAST(NULL AS ARRAY<STRING>) {whens} END"


def _fails(why: str) -> str:
    hint = "start cdc-producer again, which writes them with the next row of the table, or copy the table again"
    return f"CAST(raise_error(concat('record ', sequence, ': {why}; {hint}')) AS INT)"


def _image(stretch: Stretch, image: str) -> str:
    columns = stretch.columns or ()
    if [each.name for each in stretch.origins] == list(columns) and not any(o.null_doubt for o in stretch.origins):
        return image
    return f"array({', '.join(_value(each, columns, image) for each in stretch.origins)})"


def _value(origin: Origin, columns: tuple[str, ...], image: str) -> str:
    if origin.doubt:
        return literal(DOUBT + origin.doubt)
    if origin.name is None:
        return literal(origin.value or NULL)
    value = f"{image}[{columns.index(origin.name)}]"
    if not origin.null_doubt:
        return value
    return f"IF({value} = '{NULL}', {literal(DOUBT + origin.null_doubt)}, {value})"


def _known(stretch: Stretch, image: str) -> str:
    columns = stretch.columns or ()
    return f"array({', '.join(f'{image}[{columns.index(name)}]' for name in stretch.key)})"
