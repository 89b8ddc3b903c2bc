"""Lists of rows for statements of many rows, cut where a statement would be too large. Pure."""

from collections.abc import Iterator, Sequence

from cdc.consumer.literals.row_text import row_texts
from cdc.consumer.literals.values import identifier, table_name
from cdc.consumer.plan.packets import PACKET_BYTES
from cdc.consumer.plan.planner import AddedChanges, Change, Step
from cdc.consumer.plan.rendered_rows import SUBQUERY, AddedRows
from cdc.model.record import Record

__all__ = ["chunks", "row_lists", "written_places"]

# Some documents are subqueries, of which the server takes fewer than 2000 in one statement, and 500 at its best pace.
_SUBQUERY_BYTES = PACKET_BYTES // 500


def written_places(record: Record, generated: frozenset[str]) -> list[int]:
    """The places of the columns that are written: not those that the follower computes itself."""
    return [index for index, column in enumerate(record.columns) if column not in generated]


def row_lists(
    step: Step, generated: frozenset[str], size: int, *, tail: bytes
) -> Iterator[tuple[Sequence[Change], bytes]]:
    """INSERTs of the after-images of at most ``size`` bytes each, and what they insert."""
    record = step.record
    written = written_places(record, generated)
    names = ",".join(identifier(record.columns[index]) for index in written)
    head = f"INSERT INTO {table_name(record.uri)} ({names}) VALUES ".encode()
    size -= len(head) + len(tail)
    if isinstance(step.changes, AddedChanges) and len(written) == len(record.columns):
        runs = _joined(step.changes.records, size=size)
    else:
        runs = _made(step, written, size)
    for changes, texts in runs:
        yield changes, head + texts + tail


def _made(step: Step, written: list[int], size: int) -> Iterator[tuple[Sequence[Change], bytes]]:
    """The after-images' texts, and what they are of, in runs of at most ``size`` bytes, a row at least."""
    images = [after for _, (_, after) in step.changes if after is not None]
    if len(images) < len(step.changes):
        raise ValueError("a row without an after-image")
    texts = row_texts(images, written)
    sql = f"({'),('.join(texts)})".encode()
    if len(sql) < size and SUBQUERY not in sql:
        yield step.changes, sql
        return
    del sql  # one row can be as large as a message, so few copies are kept
    rows = [f"({text})".encode() for text in texts]
    del texts
    for changes, parts in chunks(step.changes, rows, size=size, count=len(rows)):
        yield changes, b",".join(parts)


def _joined(records: Sequence[Record], *, size: int) -> Iterator[tuple[Sequence[Change], bytes]]:
    """As ``_made``, of records that have their texts."""
    run: list[Record] = []
    texts: list[bytes] = []
    total = 0
    for record in records:
        assert isinstance(record.rows, AddedRows)
        text = record.rows.text
        if run and total + len(text) >= size:
            yield AddedChanges(run), b",".join(texts)
            run, texts, total = [], [], 0
        if len(text) >= size:
            changes = AddedChanges([record]).made()
            yield from _made(Step(record.operation, changes), list(range(len(record.columns))), size)
            continue
        run.append(record)
        texts.append(text)
        total += len(text) + 1
    if run:
        yield AddedChanges(run), b",".join(texts)


def chunks(
    changes: Sequence[Change], everything: Sequence[bytes], *, size: int, count: int, between: int = 1
) -> Iterator[tuple[Sequence[Change], Sequence[bytes]]]:
    """Changes with their texts, ``everything``, in runs of at most ``size`` bytes and ``count`` rows, one row at least.

    A subquery counts for more bytes than it has.
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
