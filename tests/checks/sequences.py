"""Whether the records of a topic are a stream: no gap, no repeat, no torn transaction."""

from cdc.model.record import Record

__all__ = ["broken_places"]


def broken_places(found: list[Record]) -> list[str]:
    """Gaps, repeats and torn transactions."""
    broken = [f"sequence {record.sequence} at {at}" for at, record in enumerate(found) if record.sequence != at]
    index, name = 0, ""
    for record in found:
        if record.index != index or (index and record.transaction != name):
            broken.append(f"transaction {record.transaction} at sequence {record.sequence}")
        index, name = (0, "") if record.last else (record.index + 1, record.transaction)
    return broken + ([f"transaction {name} has no end"] if index else [])
