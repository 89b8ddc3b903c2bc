"""Reduces the rows of records to the net effect on each row: its image before them and its image after them.

In a table without a key rows are known by their content alone, so there the net effect is which images go and which
come, each as often as it is named.
"""

from collections.abc import Callable, Iterable

from cdc.model.record import Record
from cdc.model.values import Value

__all__ = ["Image", "NetEffect", "net_effects", "net_images", "row_identity"]

Image = list[Value]
NetEffect = tuple[Record, Image | None, Image | None, Image]
Recorded = tuple[Record, Image]  # an image, and the record that names it
# Values of other types are compared by their text: -0.0 is not 0.0, and a document can be no key of a dict.
_HASHABLE = frozenset({"SignedInteger", "UnsignedInteger", "String"})


def net_effects(records: Iterable[Record], identity: Callable[[Image], object]) -> Iterable[NetEffect] | None:
    """For each row its last record, its image before the records and after them (None: no row), and its last image.

    None if a row is added that exists, or deleted that does not: then the records are not one table's history.
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
    """The images that go from a table without a key, and those that come, both in the records' order.

    An image that goes is one that the records add before, as long as there are such: so those that go from the table
    are just those that must be there before the records, as if they were applied one by one. An image that goes and
    comes back is in both lists, since only what goes is looked for on the follower.
    """
    gone: list[Recorded] = []
    come: list[Recorded | None] = []
    places: dict[str, list[int]] = {}  # in ``come``, of each image, which is known by its exact text in Python
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
    """A function that gives the exact values of the key in an image; equal results mean the same row."""
    key = [record.columns.index(column) for column in record.key or ()]
    if len(key) > 1:
        return lambda image: tuple([_exactly(image[index]) for index in key])
    (only,) = key
    return lambda image: _exactly(image[only])


def _exactly(value: Value) -> object:
    for tag, content in value.items():
        return content if tag in _HASHABLE else (tag, repr(content))
    raise ValueError("not a value of a record: {}")
