"""Reduces the rows of records to the net effect on each row: its image before them and its image after them.

In a table without a key rows are identified by their content alone, so there the net effect consists of the images that
are removed and the images that are added, each as often as the records name it.

A leader that logs the changes of its foreign keys reads a row before it deletes the row, and logs the deletion after
these changes. So for a row that refers to itself, or to a row deleted with it, the leader logs that SET NULL has
changed the row and then that it was deleted with its former values, or that it was deleted twice (found with MySQL 9.7;
MySQL's own replicas stop at the second event).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cdc.model.record import Record, Row, Uri
from cdc.model.values import Value

__all__ = ["Image", "NetEffect", "as_left", "net_effects", "net_images", "row_identity"]

Image = list[Value]
NetEffect = tuple[Record, Image | None, Image | None, Image]
Recorded = tuple[Record, Image]  # an image, and the record that names it
# Values of other types are compared by their text: -0.0 is not 0.0, and a document can't be the key of a dict.
_HASHABLE = frozenset({"SignedInteger", "UnsignedInteger", "String"})

# The flags of a rows event that a foreign key has caused: foreign keys are not checked, and the leader logs all their
# changes.
_CASCADED = 0x12


def as_left(records: Sequence[Record]) -> Sequence[Record]:
    """Returns the records; each deleted row has the values that it had at its deletion, and is deleted once."""
    operations = {record.operation for record in records if record.flags & _CASCADED == _CASCADED}
    if operations <= {"Add"} or all(record.operation != "Delete" for record in records):
        return records
    found: list[Record] = []
    transaction, deletions = "", _Deletions()
    try:
        for record in records:
            if record.transaction != transaction:
                transaction, deletions = record.transaction, _Deletions()
            found.append(deletions.corrected(record))
    except (ValueError, AttributeError, TypeError):
        return records  # a key with an invalid value is reported when its literal is rendered
    return [record for record in found if record.rows]


class _Deletions:
    """Remembers which changes foreign keys have made to rows in a transaction, by table and former image, and the
    deleted rows.
    """

    def __init__(self) -> None:
        self._changed: dict[tuple[Uri, str], Image] = {}
        self._gone: set[tuple[Uri, object]] = set()

    def corrected(self, record: Record) -> Record:
        """Notes the record's changes and returns the record. The rows of a deletion have the values that foreign keys
        had set and, if the table has a key, no row is deleted twice."""
        identity = row_identity(record) if record.key is not None else repr
        rows: list[Row] = []
        for before, after in record.rows:
            image = before
            if after is not None:
                self._changed.pop((record.uri, repr(after)), None)
                self._gone.discard((record.uri, identity(after)))
                if before is not None and record.flags & _CASCADED == _CASCADED:
                    self._changed[record.uri, repr(before)] = after
            elif before is not None:
                while (former := self._changed.pop((record.uri, repr(image)), None)) is not None:
                    image = former
                if record.key is not None:
                    row = record.uri, identity(before)
                    if row in self._gone:
                        continue
                    self._gone.add(row)
            rows.append(Row(image, after))
        return replace(record, rows=rows) if record.operation == "Delete" else record


def net_effects(records: Iterable[Record], identity: Callable[[Image], object]) -> Iterable[NetEffect] | None:
    """Returns, for each row, its last record, its images before and after the records (None: no row), and its last
    image.

    Returns None if a record inserts a row that exists, or deletes a row that does not exist: then the records are not
    one table's history.
    """
    rows: dict[object, NetEffect] = {}
    for record in records:
        for before, after in record.rows:
            if before is not None:
                row = identity(before)
                known = rows.get(row)
                if known is None:
                    first: Image | None = before
                elif known[2] is None:
                    return None
                else:
                    first = known[1]
                if after is not None and identity(after) == row:
                    rows[row] = record, first, after, after
                    continue
                rows[row] = record, first, None, before
            if after is not None:
                row = identity(after)
                known = rows.get(row)
                if known is None:
                    rows[row] = record, None, after, after
                elif known[2] is not None:
                    return None
                else:
                    rows[row] = record, known[1], after, after
    return rows.values()


def net_images(records: Iterable[Record]) -> tuple[list[Recorded], list[Recorded]]:
    """The images removed from a table without a key, and the images added to it, both in the records' order.

    A removed image cancels an equal image that the records added before, if there is one: so the remaining removed
    images are exactly the images that must be in the table before the records, as if the records were applied one by
    one. An image that is removed and added again is in both lists, since only removed images are searched for on the
    follower.
    """
    gone: list[Recorded] = []
    come: list[Recorded | None] = []
    places: dict[str, list[int]] = {}  # maps the ``repr`` of each image to its places in ``come``
    for record in records:
        for before, after in record.rows:
            if before is not None:
                if added := places.get(repr(before)):
                    come[added.pop()] = None
                else:
                    gone.append((record, before))
            if after is not None:
                places.setdefault(repr(after), []).append(len(come))
                come.append((record, after))
    return gone, [each for each in come if each is not None]


def row_identity(record: Record) -> Callable[[Image], object]:
    """A function that returns the exact values of the key in an image; equal results mean the same row."""
    key = [record.columns.index(column) for column in record.key or ()]
    if len(key) > 1:
        return lambda image: tuple([_exactly(image[index]) for index in key])
    (only,) = key
    return lambda image: _exactly(image[only])


def _exactly(value: Value) -> object:
    for tag, content in value.items():
        return content if tag in _HASHABLE else (tag, repr(content))
    raise ValueError("not a value of a record: {}")
