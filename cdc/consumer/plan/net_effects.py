"""Reduces the changes in records to the net effect on each row: its image before the records and its image after the
records.

In a table without a key, a row is identified only by its values. So the net effect consists of the images that are
removed and the images that are added. An image occurs in it as often as in the records.

Some leaders log the changes made by foreign keys. Such a leader reads a row before it deletes the row, but logs the
deletion after the changes that the foreign keys make. So if a row refers to itself, or to a row that is deleted with
it, the log is inconsistent. It contains either a change of the row by SET NULL and then a deletion with the row's
former values, or two deletions of the row (found with MySQL 9.7; MySQL's own replicas stop at the second event).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cdc.model.record import Record, Row, Uri
from cdc.model.values import Value

__all__ = ["Image", "NetEffect", "as_left", "net_effects", "net_images", "row_identity"]

Image = list[Value]
NetEffect = tuple[Record, Image | None, Image | None, Image]
Recorded = tuple[Record, Image]  # an image, and the record that contains it
# Values of other types are compared as text. In Python -0.0 equals 0.0, and a JSON document can't be the key of a dict.
_HASHABLE = frozenset({"SignedInteger", "UnsignedInteger", "String"})

# The flags of a rows event caused by a foreign key. They mean that foreign keys are not checked, and that the leader
# logs all changes made by foreign keys.
_CASCADED = 0x12


def as_left(records: Sequence[Record]) -> Sequence[Record]:
    """Corrects the deletions in records. Each deleted row gets the values that it had when it was deleted, and is
    deleted only once.
    """
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
        return records  # if a value in a key is invalid, the error is raised later, when its literal is written
    return [record for record in found if record.rows]


class _Deletions:
    """Remembers the deleted rows of one transaction, and the rows that foreign keys have changed, by table and former
    image.
    """

    def __init__(self) -> None:
        self._changed: dict[tuple[Uri, str], Image] = {}
        self._gone: set[tuple[Uri, object]] = set()

    def corrected(self, record: Record) -> Record:
        """Notes the changes in the record, and returns the record. A deletion is corrected: its rows have the values
        that foreign keys have set and, if the table has a key, rows that are already deleted are left out.
        """
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
    """Returns the net effect on each row, as four items: the last record that changes the row, its image before all
    records (None if they insert the row), its image after them (None if they delete it), and the last image of the row
    in the records.

    Returns None if a record inserts an existing row or deletes a missing row, since such records can't be the history
    of one table.
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
    """Returns the images that the records remove from a table without a key, and the images that they add, both in the
    order of the records.

    If the records add an image and later remove an equal image, both are left out. So the table must contain all of the
    returned removed images before the records are applied. An image that is first removed and later added is in both
    results, so that the follower is searched for it.
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
    """Returns a function that maps an image to the exact values of its key; equal results mean the same row."""
    key = [record.columns.index(column) for column in record.key or ()]
    if len(key) > 1:
        return lambda image: tuple([_exactly(image[index]) for index in key])
    (only,) = key
    return lambda image: _exactly(image[only])


def _exactly(value: Value) -> object:
    for tag, content in value.items():
        return content if tag in _HASHABLE else (tag, repr(content))
    raise ValueError("not a value of a record: {}")
