"""Numbers the changes of rows in the order of a stream, and splits a change that gives a row another key. Pure.

The SQL expressions are for a row's change in a record: ``sequence`` is the record's number, ``row`` the row's number in
the record. Folds group changes by what identifies a row, and then differ in what they need of each row's changes:

    compare.fold         sorts them, since it compares each change with the one before it
    compare.digest_…     adds up numbers, whatever their order, and takes the highest place
    seed.fold            takes the highest place, for all tables together, and then reads the rows at these places
    frames.rows          takes the image at the highest place, for the rows of one table, in the columns of one moment

Which records of a table count once it was dropped, emptied, renamed or copied, is decided before, by the table's
lineage (``ddl.lineage``).
"""

__all__ = ["HIGHEST_SEQUENCE", "MOST_ROWS", "PLACE", "row_at", "sequence_at", "steps"]

_ROW_BITS = 23
MOST_ROWS = 1 << _ROW_BITS
"""The rows that a record may have, so that no two changes have the same place."""
HIGHEST_SEQUENCE = (1 << 62 - _ROW_BITS) - 1
PLACE = f"shiftleft(sequence, {_ROW_BITS + 1}) + 2L * row"
"""The place of a row's change in its stream, higher for later changes. If the change removes one row and adds another,
it is that of the removed row, and the added one has the next place."""


def sequence_at(place: str) -> str:
    """The SQL of the sequence of the record whose change has this ``place``."""
    return f"shiftright({place}, {_ROW_BITS + 1})"


def row_at(place: str) -> str:
    """The SQL of the number that the row with this ``place`` has in its record."""
    return f"int(shiftright({place}, 1) & {MOST_ROWS - 1})"


def steps(moves: str, *, removed: str, added: str, both: str) -> str:
    """The SQL of an array of what a change does: ``removed`` to the row that it removes and ``added`` to the one that
    it adds, if the condition ``moves`` is true, which is that the row gets another identity. Else ``both`` to the row.
    """
    return f"IF({moves}, array({removed}, {added}), array({both}))"
