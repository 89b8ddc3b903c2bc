"""Numbers the changes of rows in the order of a stream, and splits a change that changes a row's key. Pure.

The SQL expressions are for the change of a row in a record: ``sequence`` is the record's number, ``row`` is the row's
number in the record. All folds group the changes by the identity of the row. They use the changes of a row differently:

    compare.fold         sorts the changes, since it compares each change with the change before
    compare.digest_…     adds up numbers, in any order, and uses the highest place
    seed.fold            finds the highest place, for all tables together, and then reads the rows at these places
    frames.rows          uses the image at the highest place, for the rows of one table, in the columns of one moment

Before a fold, the table's lineage (``ddl.lineage``) determines which records count, since the table may have been
dropped, emptied, renamed or copied.
"""

__all__ = ["HIGHEST_SEQUENCE", "MOST_ROWS", "PLACE", "row_at", "sequence_at", "steps"]

_ROW_BITS = 23
MOST_ROWS = 1 << _ROW_BITS
"""The maximum number of rows in a record: in a larger record, two changes could have the same place."""
HIGHEST_SEQUENCE = (1 << 62 - _ROW_BITS) - 1
PLACE = f"shiftleft(sequence, {_ROW_BITS + 1}) + 2L * row"
"""The place of a row's change in its stream, higher for later changes. If the change removes one row and adds another
row, this is the place of the removed row, and the added row has the next place."""


def sequence_at(place: str) -> str:
    """Returns the SQL of a record's sequence; ``place`` is the SQL of PLACE for a change in this record."""
    return f"shiftright({place}, {_ROW_BITS + 1})"


def row_at(place: str) -> str:
    """Returns the SQL of a row's number in its record; ``place`` is the SQL of PLACE for the row's change."""
    return f"int(shiftright({place}, 1) & {MOST_ROWS - 1})"


def steps(moves: str, *, removed: str, added: str, both: str) -> str:
    """Returns the SQL of an array of the steps of a change. If the condition ``moves`` is true, the row gets another
    identity: the steps are ``removed``, which removes the old row, and ``added``, which adds the new row. Else the only
    step is ``both``.
    """
    return f"IF({moves}, array({removed}, {added}), array({both}))"
