"""What was asked of a reading, and what the stream has changed since: it may be in the answer, or not."""

import time
from dataclasses import dataclass, field

from cdc.producer.copy.pending import Table
from cdc.producer.copy.reading import Answer, Wanted
from cdc.producer.copy.snapshot import Changers, is_exact
from cdc.producer.copy.window import Window
from cdc.producer.decode.changes import Rows

__all__ = ["Question"]

# Flags of a rows event: no foreign keys were followed, or what they changed was logged (class Rows_event).
_NOTHING_UNLOGGED = 0x02 | 0x10


@dataclass(slots=True)
class Question:
    """What was asked for at the time ``at``, what changed since, and the answer once there is one.

    ``cascading`` are tables with changes that foreign keys may have followed.
    """

    wanted: Wanted
    window: Window = field(default_factory=Window)
    changers: Changers = field(default_factory=Changers)
    cascading: set[Table] = field(default_factory=set)
    at: float = field(default_factory=time.monotonic)
    answer: Answer | None = None

    def note(self, rows: Rows, gtid: str | None) -> None:
        """Take notice of a change by the transaction ``gtid``."""
        if rows.table.names == self.wanted.table:
            self.window.note(rows.operation, rows.rows)
            self.changers.note(gtid)
        if rows.operation != "Add" and not rows.flags & _NOTHING_UNLOGGED:
            self.cascading.add(rows.table.names)

    def may_cascade(self, answer: Answer) -> bool:
        """Whether a foreign key may have changed the table's rows unseen."""
        return not self.cascading.isdisjoint(answer.follows)

    def is_exact(self, answer: Answer) -> bool:
        """Whether the snapshot in ``answer`` shows the table as it is at this place of the stream."""
        return answer.seen is not None and not self.may_cascade(answer) and is_exact(self.changers.gtids, answer.seen)
