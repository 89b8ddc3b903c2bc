"""Writes the statements that insert rows. Many rows are inserted with LOAD DATA LOCAL, which costs the server about
half as much as INSERT.

The data of LOAD DATA are the text of the rows as an INSERT would contain it. The options of LOAD DATA describe the
literals: a field is in quotes, with backslash escapes, or is NULL. A line ends with the text that separates two rows.
So only values whose literals are numbers or quoted text may be loaded, and only into columns that store the same value
from the text as from the literal (``TAGS``).

With LOCAL, as with IGNORE, LOAD DATA changes values that it cannot store, and only warns about them. So the session
subtracts the number of warnings from the number of stored rows (``session.stored_rows``), and a batch with a warning
fails.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cdc.consumer.literals.row_text import Tags, tagged_row_texts
from cdc.consumer.literals.values import identifier, table_name
from cdc.consumer.plan.packets import PACKET_BYTES, Statement
from cdc.consumer.plan.planner import Change, RenderedChanges, Step
from cdc.consumer.plan.rendered_rows import SUBQUERY, RenderedRows
from cdc.model.record import Record
from cdc.model.values import NULL

__all__ = ["Run", "additions", "chunks", "insert_head", "inserts", "loadable_tags", "runs", "written_indexes"]

# Some JSON documents are written as subqueries. The server accepts fewer than 2000 subqueries in one statement, and is
# fastest with 500.
_SUBQUERY_BYTES = PACKET_BYTES // 500


def written_indexes(record: Record, generated: frozenset[str]) -> list[int]:
    """Returns the indexes of the columns to write: all columns except those that the follower computes itself."""
    return [index for index, column in enumerate(record.columns) if column not in generated]


class Run(NamedTuple):
    """Successive changes that one statement inserts. ``texts`` are their after-images in SQL, each in parentheses,
    separated by commas. ``tags`` contains, for each column, the types of its values (tags in records).
    """

    changes: Sequence[Change]
    texts: bytes
    tags: Sequence[Tags]


def inserts(
    step: Step, generated: frozenset[str], size: int, *, tail: bytes
) -> Iterator[tuple[Sequence[Change], bytes]]:
    """Yields INSERTs of the after-images; each INSERT is yielded with the changes that it inserts. An INSERT ends with
    ``tail`` and has at most ``size`` bytes.

    Only an INSERT of a single row may be larger. Raises ValueError for a row without an after-image, and for a value
    without a literal.
    """
    record = step.record
    written = written_indexes(record, generated)
    head = insert_head(record, written)
    for run in runs(step, written, size - len(head) - len(tail)):
        yield run.changes, head + run.texts + tail


def insert_head(record: Record, written: list[int]) -> bytes:
    """Returns the beginning of an INSERT into these columns, up to its rows."""
    names = ",".join(identifier(record.columns[index]) for index in written)
    return f"INSERT INTO {table_name(record.uri)} ({names}) VALUES ".encode()


def runs(step: Step, written: list[int], size: int) -> Iterator[Run]:
    """Divides the changes of a step into runs of at most ``size`` bytes; a single row may be larger. Raises the errors
    of ``inserts``.
    """
    if isinstance(step.changes, RenderedChanges) and len(written) == len(step.record.columns):
        return _joined(step.changes.records, size=size)
    return _rendered(step, written, size)


def _rendered(step: Step, written: list[int], size: int) -> Iterator[Run]:
    images = [after for _, (_, after) in step.changes if after is not None]
    if len(images) < len(step.changes):
        raise ValueError("a row without an after-image")
    texts, tags = tagged_row_texts(images, written)
    if len(texts) > 1 or len(texts[0]) < size:
        sql = f"({'),('.join(texts)})".encode()
        if len(sql) < size and SUBQUERY not in sql:
            yield Run(step.changes, sql, tags)
            return
        del sql
    # A row can be as large as a message, so each text is popped from the end of the list once it is used.
    texts.reverse()
    rows = [_in_parentheses(texts) for _ in images]
    for changes, parts in chunks(step.changes, rows, size=size, count=len(rows)):
        yield Run(changes, b",".join(parts), tags)


def _in_parentheses(texts: list[str]) -> bytes:
    """Removes the last text from the list, and returns it in parentheses."""
    text = texts.pop().encode()
    return b"(%b)" % text


def _joined(records: Sequence[Record], *, size: int) -> Iterator[Run]:
    """Divides records with ``RenderedRows`` into runs; ``_rendered`` divides other changes."""
    run: list[Record] = []
    texts: list[bytes] = []
    tags: list[Sequence[Tags]] = []
    total = 0
    for record in records:
        assert isinstance(record.rows, RenderedRows)
        text = record.rows.text
        if run and total + len(text) >= size:
            yield Run(RenderedChanges(run), b",".join(texts), _all_tags(tags))
            run, texts, tags, total = [], [], [], 0
        if len(text) >= size:
            changes = RenderedChanges([record]).computed()
            yield from _rendered(Step(record.operation, changes), list(range(len(record.columns))), size)
            continue
        run.append(record)
        texts.append(text)
        tags.append(record.rows.tags)
        total += len(text) + 1
    if run:
        yield Run(RenderedChanges(run), b",".join(texts), _all_tags(tags))


def _all_tags(tags: Sequence[Sequence[Tags]]) -> list[Tags]:
    """Returns, for each column, the tags of its values in all records."""
    return [frozenset().union(*found) for found in zip(*tags, strict=True)]


def chunks(
    changes: Sequence[Change], everything: Sequence[bytes], *, size: int, count: int, between: int = 1
) -> Iterator[tuple[Sequence[Change], Sequence[bytes]]]:
    """Divides changes, and their texts ``everything``, into runs of at most ``size`` bytes and ``count`` rows; a single
    row may be larger.

    The size of a text is its length plus ``between``, plus a fixed number of bytes for each subquery in it.
    """
    whole = sum(map(len, everything)) + between * len(everything)
    if len(everything) <= count and whole < size and not any(SUBQUERY in content for content in everything):
        yield changes, everything
        return
    run: list[Change] = []
    texts: list[bytes] = []
    total = 0
    for change, content in zip(changes, everything, strict=True):
        length = len(content) + _SUBQUERY_BYTES * content.count(SUBQUERY)
        if texts and (total + length >= size or len(texts) >= count):
            yield run, texts
            run, texts, total = [], [], 0
        run.append(change)
        texts.append(content)
        total += length + between
    if texts:
        yield run, texts


# With fewer rows, LOAD DATA does not pay: in an additional round trip the server requests the data, and this takes
# longer than LOAD DATA saves.
_FEWEST = 500
_INTEGER = frozenset({"SignedInteger", "UnsignedInteger"})
_STRING = frozenset({"String"})
# The types of columns (DATA_TYPE in information_schema) that LOAD DATA may fill, each with the types of the values in
# records (tags) that it may load. Such a column stores the same value from a literal and from the literal's text. YEAR
# does not: 0 is the year 0, but '0' is 2000. For other types, the literal is not plain text.
TAGS: Mapping[str, Tags] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _INTEGER),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _STRING),
    "decimal": frozenset({"Decimal"}),
    "enum": frozenset({"Enum"}),
    "date": frozenset({"Date"}),
    "datetime": frozenset({"DateTime"}),
    "timestamp": frozenset({"Timestamp"}),
}
_FORMAT = (
    r"CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\'' ESCAPED BY '\\' "
    "LINES TERMINATED BY '),('"
)


def loadable_tags(data_type: str, *, nullable: bool) -> Tags:
    """Returns the types of the values (tags in records) that LOAD DATA may load into a column; empty if it must not
    load any value.

    NULL is among them only if the column is nullable, because LOAD DATA turns a NULL for a TIMESTAMP NOT NULL into the
    current time, without a warning.
    """
    tags = TAGS.get(data_type.lower(), frozenset())
    return tags | {NULL} if tags and nullable else tags


def additions(step: Step, generated: frozenset[str], size: int, loadable: Mapping[str, Tags]) -> Iterator[Statement]:
    """Yields the statements that insert the rows of a step. Each statement, including its data, has at most ``size``
    bytes, or inserts a single row.

    ``loadable`` contains the columns that LOAD DATA may fill, each with the types (tags in records) of the values that
    it may load. All other rows are inserted with INSERT. Raises the errors of ``inserts``.
    """
    record = step.record
    written = written_indexes(record, generated)
    head = insert_head(record, written)
    load = _load(record, written) if loadable and written and step.modes is None and not step.flags else b""
    allowed = [loadable.get(record.columns[index], frozenset()) for index in written]
    for changes, texts, tags in runs(step, written, size - max(len(head), len(load))):
        if load and len(changes) >= _FEWEST and _all_within(tags, allowed):
            # The data lack the first and the last parenthesis, because lines end with the text between two rows.
            yield Statement(load, len(changes), changes, data=texts[1:-1])
        else:
            yield Statement(head + texts, len(changes), changes)


def _load(record: Record, written: Sequence[int]) -> bytes:
    """Returns the beginning of a LOAD DATA. The file name in it has no meaning, because no file is read."""
    names = ",".join(identifier(record.columns[index]) for index in written)
    return f"LOAD DATA LOCAL INFILE 'cdc' INTO TABLE {table_name(record.uri)} {_FORMAT} ({names})".encode()


def _all_within(tags: Sequence[Tags], allowed: Sequence[Tags]) -> bool:
    return all(found <= permitted for found, permitted in zip(tags, allowed, strict=True))
