"""Turns added rows into the text of INSERT statements, split where a statement would be too large."""

from collections.abc import Iterator, Sequence

from cdc.consumer.literals.row_text import row_texts
from cdc.consumer.literals.values import identifier, table_name
from cdc.consumer.plan.packets import PACKET_BYTES
from cdc.consumer.plan.planner import Change, RenderedChanges, Step
from cdc.consumer.plan.rendered_rows import SUBQUERY, RenderedRows
from cdc.model.record import Record

__all__ = ["chunks", "inserts", "written_indexes"]

# Some documents are subqueries; the server accepts fewer than 2000 in one statement, and is fastest with 500.
_SUBQUERY_BYTES = PACKET_BYTES // 500


def written_indexes(record: Record, generated: frozenset[str]) -> list[int]:
    """The indexes of the columns that are written: all but those that the follower computes itself."""
    return [index for index, column in enumerate(record.columns) if column not in generated]


def inserts(
    step: Step, generated: frozenset[str], size: int, *, tail: bytes
) -> Iterator[tuple[Sequence[Change], bytes]]:
    """INSERTs of the after-images, each followed by ``tail`` and at most ``size`` bytes long, with their changes.

    A single row may be larger. Raises ValueError for a row without an after-image or with a value without a literal.
    """
    record = step.record
    written = written_indexes(record, generated)
    names = ",".join(identifier(record.columns[index]) for index in written)
    head = f"INSERT INTO {table_name(record.uri)} ({names}) VALUES ".encode()
    size -= len(head) + len(tail)
    if isinstance(step.changes, RenderedChanges) and len(written) == len(record.columns):
        runs = _joined(step.changes.records, size=size)
    else:
        runs = _rendered(step, written, size)
    for changes, texts in runs:
        yield changes, head + texts + tail


def _rendered(step: Step, written: list[int], size: int) -> Iterator[tuple[Sequence[Change], bytes]]:
    """Runs of at most ``size`` bytes, at least one row each: the changes and the text of their after-images."""
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
    """As ``_rendered``, for records with ``RenderedRows``."""
    run: list[Record] = []
    texts: list[bytes] = []
    total = 0
    for record in records:
        assert isinstance(record.rows, RenderedRows)
        text = record.rows.text
        if run and total + len(text) >= size:
            yield RenderedChanges(run), b",".join(texts)
            run, texts, total = [], [], 0
        if len(text) >= size:
            changes = RenderedChanges([record]).computed()
            yield from _rendered(Step(record.operation, changes), list(range(len(record.columns))), size)
            continue
        run.append(record)
        texts.append(text)
        total += len(text) + 1
    if run:
        yield RenderedChanges(run), b",".join(texts)


def chunks(
    changes: Sequence[Change], everything: Sequence[bytes], *, size: int, count: int, between: int = 1
) -> Iterator[tuple[Sequence[Change], Sequence[bytes]]]:
    """Runs of changes with their texts, ``everything``, of at most ``size`` bytes and ``count`` rows, at least one row.

    ``between`` bytes are added for each text. A subquery counts for more bytes than it has.
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
