"""Counts what the copies of tables found on the follower, and logs when one is complete."""

import logging
from dataclasses import dataclass

from cdc.consumer.plan.covering import Covering
from cdc.model.record import Uri
from cdc.service.logs import event

__all__ = ["Copies"]

_LOG = logging.getLogger("cdc.consumer")


@dataclass(slots=True)
class Tally:
    """Of the chunks since the program's start: their ``rows``, and how many were ``missing`` on the follower,
    ``different`` there or ``extra``. ``first`` is the sequence of the first of them.
    """

    first: int = -1
    rows: int = 0
    missing: int = 0
    different: int = 0
    extra: int = 0

    def add(self, covering: Covering) -> None:
        """Count a chunk."""
        repair = covering.repair
        self.rows += len(covering.chunk.rows)
        self.missing += repair.missing
        self.different += repair.different
        self.extra += repair.extra

    def told(self) -> dict[str, int]:
        """For the log."""
        return {"rows": self.rows, "missing": self.missing, "different": self.different, "extra": self.extra}


class Copies:
    """``total`` is of all tables. A table's own counts begin with its first chunk, or with the program."""

    def __init__(self) -> None:
        self.total = Tally()
        self._tables: dict[Uri, Tally] = {}

    def applied(self, covering: Covering) -> None:
        """A chunk has committed."""
        chunk, repair = covering.chunk, covering.repair
        if covering.refused is not None or chunk.range is None:
            return
        if chunk.range.keys is not None:
            self._repaired(covering, len(chunk.range.keys))
            return
        if chunk.range.after is None:
            self._tables[chunk.uri] = Tally(chunk.sequence)
        tally = self._tables.setdefault(chunk.uri, Tally(chunk.sequence))
        self.total.add(covering)
        tally.add(covering)
        if chunk.range.piece is None and (repair.extra or repair.different or (repair.there and repair.missing)):
            event(
                _LOG, "chunk changed rows", uri=chunk.uri, sequence=chunk.sequence,
                missing=repair.missing, different=repair.different, extra=repair.extra,
            )  # fmt: skip
        if chunk.range.upto is None:
            del self._tables[chunk.uri]
            event(_LOG, "table copied", uri=chunk.uri, **tally.told(), since=tally.first, sequence=chunk.sequence)

    def _repaired(self, covering: Covering, keys: int) -> None:
        """Rows of some keys were put right (``cdc-repair``), which is no part of a copy of their table."""
        chunk, tally = covering.chunk, Tally()
        for each in (self.total, tally):
            each.add(covering)
        event(_LOG, "rows repaired", uri=chunk.uri, sequence=chunk.sequence, keys=keys, **tally.told())
